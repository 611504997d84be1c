//! What a group knows: who lives, who has ended and how. Shared by its handles and its tasks.

use std::cell::RefCell;
use std::error::Error;
use std::mem;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::{Mutex, ReentrantMutex};
use stoppable_scope::machinery::{Node, Origin};
use stoppable_scope::{Reason, Scope};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::catch::wake_all;
use crate::closers::Lanes;
use crate::group_report::{GroupReport, TaskReport};
use crate::ledger::{Consequence, Effect, Ledger};
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::task_failure::TaskFailure;

pub(crate) type CancelledIf = Box<dyn Fn(&(dyn Error + 'static)) -> bool + Send + Sync>;

pub(crate) struct Core {
    pub(crate) node: Arc<Node>,
    pub(crate) runtime: Handle,
    pub(crate) policy: Policy,
    pub(crate) keep_report: bool,
    /// Places for running tasks, where they are limited.
    pub(crate) places: Option<Arc<Semaphore>>,
    pub(crate) cancelled_if: Option<CancelledIf>,
    /// The tasks as tokio knows them. Never locked together with the ledger. Where the runtime has gone a spawn
    /// drops the future there and then, and its destructors may come here again.
    set: ReentrantMutex<RefCell<JoinSet<()>>>,
    ledger: Mutex<Ledger>,
}

/// The group takes no more tasks.
pub(crate) struct Closed;

impl Core {
    pub(crate) fn new(
        node: Arc<Node>,
        runtime: Handle,
        policy: Policy,
        keep_report: bool,
        limit: Option<usize>,
        cancelled_if: Option<CancelledIf>,
    ) -> Arc<Self> {
        let core = Arc::new(Self {
            node,
            runtime,
            policy,
            keep_report,
            places: limit.map(|limit| Arc::new(Semaphore::new(limit))),
            cancelled_if,
            set: ReentrantMutex::default(),
            ledger: Mutex::default(),
        });
        let owner: Weak<Self> = Arc::downgrade(&core);
        core.node.set_owner(owner);
        core
    }

    /// The nearest group from `node` up for which `wanted` gives something.
    pub(crate) fn find<T>(node: &Arc<Node>, mut wanted: impl FnMut(&Arc<Self>) -> Option<T>) -> Option<T> {
        node.find_owner(|owner| owner.downcast::<Self>().ok().and_then(|core| wanted(&core)))
    }

    /// Counts a new task in.
    pub(crate) fn admit(&self) -> Result<(), Closed> {
        let mut ledger = self.ledger.lock();
        if ledger.closed || ledger.decided || ledger.refuses {
            return Err(Closed);
        }
        ledger.count_in();
        Ok(())
    }

    /// Takes no more tasks; those that are there go on.
    pub(crate) fn refuse_new(&self) {
        self.ledger.lock().refuses = true;
    }

    /// Starts a task that was admitted.
    pub(crate) fn start(&self, root: impl Future<Output = ()> + Send + 'static) {
        self.start_with(root, |set, root| drop(set.spawn_on(root, &self.runtime)));
    }

    /// Starts a task that was admitted, on this thread.
    #[track_caller]
    pub(crate) fn start_local(&self, root: impl Future<Output = ()> + 'static) {
        self.start_with(root, |set, root| drop(set.spawn_local(root)));
    }

    #[track_caller]
    fn start_with<R>(&self, root: R, spawn: impl FnOnce(&mut JoinSet<()>, R)) {
        let set = self.set.lock();
        match set.try_borrow_mut() {
            Ok(mut set) => {
                spawn(&mut set, root);
                Self::forget_some(&mut set);
            }
            // A destructor of a task that had no runtime: neither has this one.
            Err(_) => drop(root),
        }
    }

    /// Those that have ended are forgotten faster than new ones come.
    fn forget_some(set: &mut JoinSet<()>) {
        for _ in 0..2 {
            if set.try_join_next().is_none() {
                break;
            }
        }
    }

    /// Notes how a task ended, and what is to be done about the siblings.
    #[must_use]
    pub(crate) fn record(&self, task: TaskReport, disturbed: bool, effect: Effect) -> Consequence {
        let site = task.site;
        let failure = match &task.outcome {
            Outcome::Failed(failure) => Some(failure.clone()),
            _ => None,
        };
        let (orphan, consequence) = {
            let mut ledger = self.ledger.lock();
            ledger.disturbed |= disturbed;
            let consequence = ledger.record(task, effect, self.policy, self.keep_report);
            if let Some(failure) = failure.as_ref().filter(|_| effect != Effect::None) {
                ledger.keep(failure, self.node.id());
            }
            (ledger.orphan, consequence)
        };
        match failure {
            Some(failure) if orphan => {
                tracing::warn!(group = %self.node.name(), at = %site, "after its group was dropped: {failure}");
            }
            Some(failure) => {
                tracing::debug!(group = %self.node.name(), at = %site, "{failure}");
            }
            None => {}
        }
        consequence
    }

    /// Does to the siblings of `task` what has to be done.
    pub(crate) fn follow(&self, consequence: Consequence, task: &Arc<Node>) {
        match consequence {
            Consequence::None => {}
            Consequence::CancelGroup => {
                self.node.request(Reason::SiblingFailed(task.name().clone()), Origin::Library);
            }
            Consequence::CancelTasks => {
                let tasks = self.node.children().into_iter().filter(|child| child.is_root());
                for sibling in tasks.filter(|sibling| !Arc::ptr_eq(sibling, task)) {
                    sibling.request(Reason::SiblingSucceeded(task.name().clone()), Origin::Library);
                }
            }
        }
    }

    /// Lets a task that was admitted be a service, which does not hold the group open.
    pub(crate) fn add_service(&self, node: &Arc<Node>) {
        // Until now it did hold it open, so who has looked meanwhile has to look again.
        let joiners = {
            let mut ledger = self.ledger.lock();
            ledger.services.push(Arc::clone(node));
            ledger.idle_joiners()
        };
        wake_all(joiners);
    }

    /// Counts a task out.
    pub(crate) fn leave(&self, node: &Arc<Node>, service: bool) {
        let joiners = {
            let mut ledger = self.ledger.lock();
            ledger.live -= 1;
            if service {
                ledger.services.retain(|service| !Arc::ptr_eq(service, node));
            }
            ledger.idle_joiners()
        };
        wake_all(joiners);
    }

    /// Stops the services, once nobody else is left. `false` where there are none.
    fn stop_services(&self) -> bool {
        let services = self.ledger.lock().services.clone();
        for service in &services {
            service.stop();
            service.request(Reason::GroupEnded, Origin::Library);
        }
        !services.is_empty()
    }

    /// Keeps a failure that nobody is left to hear of; it cancels nobody.
    pub(crate) fn keep_failure(&self, failure: &TaskFailure) {
        self.ledger.lock().keep(failure, self.node.id());
    }

    /// Whether this failure is in the group's account already.
    pub(crate) fn knows(&self, failure: &TaskFailure) -> bool {
        self.ledger.lock().knows(failure, self.node.id())
    }

    /// Takes over the tasks of a group whose future was dropped. Gives it back where this group has ended.
    pub(crate) fn adopt(&self, orphan: &Arc<Self>) -> Result<(), Closed> {
        self.sweep();
        let joiners = {
            let mut ledger = self.ledger.lock();
            if ledger.closed {
                return Err(Closed);
            }
            ledger.adopted.push(Arc::clone(orphan));
            mem::take(&mut ledger.joiners)
        };
        wake_all(joiners);
        Ok(())
    }

    /// Lets go of adopted groups that have ended, each time there are twice as many as were left the last time:
    /// who adopts may live long.
    fn sweep(&self) {
        let adopted = {
            let ledger = self.ledger.lock();
            if ledger.adopted.len() < ledger.sweep_at.max(16) {
                return;
            }
            ledger.adopted.clone()
        };
        adopted.iter().filter(|orphan| orphan.poll_now_empty()).for_each(|orphan| self.let_go(orphan));
        let mut ledger = self.ledger.lock();
        ledger.sweep_at = ledger.adopted.len() * 2;
    }

    /// Exchanges an adopted group that has ended for its report.
    fn let_go(&self, orphan: &Arc<Self>) {
        let report = orphan.report();
        let mut ledger = self.ledger.lock();
        let before = ledger.adopted.len();
        ledger.adopted.retain(|known| !Arc::ptr_eq(known, orphan));
        // Where several wait, another may have been first.
        if ledger.adopted.len() < before {
            ledger.report.adopted.push(report);
        }
    }

    pub(crate) fn set_orphan(&self) {
        self.ledger.lock().orphan = true;
    }

    /// Lets the closers of one task queue up. `true` from `change` counts a new runner in. `None` where the
    /// group has ended.
    pub(crate) fn queue_closer(&self, change: impl FnOnce(&mut Lanes) -> bool) -> Option<bool> {
        let mut ledger = self.ledger.lock();
        if ledger.closed {
            return None;
        }
        let new_runner = change(&mut ledger.lanes);
        if new_runner {
            ledger.count_in();
        }
        Some(new_runner)
    }

    /// For a runner, which is counted in, so the group has not ended.
    pub(crate) fn with_lanes<T>(&self, change: impl FnOnce(&mut Lanes) -> T) -> T {
        change(&mut self.ledger.lock().lanes)
    }

    /// Ready once nobody is left, here and in the groups that were adopted; then, with `close`, nobody
    /// can come any more.
    pub(crate) fn poll_empty(self: &Arc<Self>, close: bool, cx: &mut Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let unused = self.ledger.lock().add_joiner(waker);
        drop(unused);
        loop {
            let admitted = {
                let ledger = self.ledger.lock();
                if ledger.live > ledger.services.len() {
                    return Poll::Pending;
                }
                ledger.admitted
            };
            if close && self.stop_services() {
                return Poll::Pending;
            }
            if self.poll_set().is_pending() {
                return Poll::Pending;
            }
            let adopted = self.ledger.lock().adopted.clone();
            for orphan in adopted {
                if orphan.poll_empty(true, cx).is_pending() {
                    return Poll::Pending;
                }
                self.let_go(&orphan);
            }
            let mut ledger = self.ledger.lock();
            // Where somebody came after the count, there may be something in the set again.
            if ledger.live == 0 && ledger.admitted == admitted && ledger.adopted.is_empty() {
                ledger.closed |= close;
                return Poll::Ready(());
            }
        }
    }

    /// Ready once tokio has nothing left of what has left the ledger. Wakes all joiners then, for a `JoinSet`
    /// has room for one waker only.
    fn poll_set(self: &Arc<Self>) -> Poll<()> {
        let waker = Waker::from(Arc::new(WakeJoiners(Arc::downgrade(self))));
        let mut cx = Context::from_waker(&waker);
        loop {
            let set = self.set.lock();
            let Ok(mut tasks) = set.try_borrow_mut() else { return Poll::Pending };
            match tasks.poll_join_next(&mut cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Ready(Some(_)) => {}
            }
        }
    }

    /// Whether nobody is left this moment; then nobody can come any more.
    pub(crate) fn poll_now_empty(self: &Arc<Self>) -> bool {
        self.poll_empty(true, &mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Whether nobody is left this moment.
    pub(crate) fn is_idle(self: &Arc<Self>) -> bool {
        self.poll_empty(false, &mut Context::from_waker(Waker::noop())).is_ready()
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope::of(Arc::clone(&self.node))
    }

    pub(crate) fn live(&self) -> usize {
        self.ledger.lock().live
    }

    pub(crate) fn is_disturbed(&self) -> bool {
        self.ledger.lock().disturbed
    }

    /// The failures that are the group's error.
    pub(crate) fn failures(&self) -> Vec<TaskFailure> {
        let ledger = self.ledger.lock();
        if ledger.decided { Vec::new() } else { ledger.failures.clone() }
    }

    pub(crate) fn report(&self) -> GroupReport {
        let ledger = self.ledger.lock();
        let mut report = ledger.report.clone();
        report.live = ledger.live;
        report
    }
}

struct WakeJoiners(Weak<Core>);

impl Wake for WakeJoiners {
    fn wake(self: Arc<Self>) {
        if let Some(core) = self.0.upgrade() {
            let joiners = mem::take(&mut core.ledger.lock().joiners);
            wake_all(joiners);
        }
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("name", self.node.name()).finish_non_exhaustive()
    }
}
