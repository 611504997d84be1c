//! What a group knows: who lives, who has ended and how. Shared by its handles and its tasks.

use std::error::Error;
use std::mem;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use stoppable_scope::machinery::{Node, Origin, ShortMutex};
use stoppable_scope::{Reason, Scope};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::attendance::{Attendance, Closed, Left};
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
    attendance: Attendance,
    /// Nothing of a user runs under this lock.
    ledger: ShortMutex<Ledger>,
}

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
            attendance: Attendance::default(),
            ledger: ShortMutex::default(),
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
        self.attendance.enter()
    }

    /// Takes no more tasks; those that are there go on.
    pub(crate) fn refuse_new(&self) {
        self.attendance.refuse();
    }

    /// Whether the end of a task that ended well, and was not disturbed, is a matter of counting.
    pub(crate) fn only_counts(&self) -> bool {
        !self.keep_report && self.policy != Policy::FirstSuccess
    }

    /// Notes how a task ended, and what is to be done about the siblings. `waiter` is the one whom a failure is for
    /// in the first place.
    #[must_use]
    pub(crate) fn record(
        &self,
        task: TaskReport,
        disturbed: bool,
        effect: Effect,
        waiter: Option<&Node>,
    ) -> Consequence {
        let site = task.site;
        let failure = match &task.outcome {
            Outcome::Failed(failure) => Some(failure.clone()),
            _ => None,
        };
        let (orphan, consequence) = {
            let mut ledger = self.ledger.lock();
            ledger.disturbed |= disturbed;
            let consequence =
                ledger.record(task, effect, self.policy, self.keep_report, self.attendance.live());
            match &failure {
                Some(failure) if waiter.is_some_and(|waiter| !waiter.is_unwanted()) => {
                    ledger.unread.push(failure.clone());
                }
                Some(failure) if effect != Effect::None => ledger.keep(failure, self.node.id()),
                _ => {}
            }
            (ledger.orphan, consequence)
        };
        if consequence == Consequence::CancelTasks {
            self.attendance.refuse();
        }
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
        self.ledger.lock().services.push(Arc::clone(node));
        self.attendance.add_service();
        // Until now it did hold it open, so who has looked meanwhile has to look again.
        self.wake_joiners();
    }

    /// Counts a service out.
    pub(crate) fn leave_service(&self, node: &Arc<Node>) {
        self.ledger.lock().services.retain(|service| !Arc::ptr_eq(service, node));
        self.attendance.remove_service();
        self.leave();
    }

    /// Counts a task out.
    pub(crate) fn leave(&self) {
        self.see_off(self.attendance.leave());
    }

    /// Counts a task out that ended well; what it did otherwise is not on record.
    pub(crate) fn leave_well(&self) {
        self.see_off(self.attendance.leave_well());
    }

    fn see_off(&self, left: Left) {
        if left.full {
            let mut ledger = self.ledger.lock();
            ledger.report.ok += self.attendance.carry() as usize;
        }
        if left.idle {
            self.wake_joiners();
        }
    }

    /// Has those who wait for the group look again.
    #[cold]
    fn wake_joiners(&self) {
        let joiners = mem::take(&mut self.ledger.lock().joiners);
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

    /// The waiter of the task `node` goes away: a failure that he has not read is the owner's, and cancels nobody.
    pub(crate) fn waiter_leaves(&self, node: &Node) {
        let mut ledger = self.ledger.lock();
        node.set_unwanted();
        if let Some(failure) = ledger.take_unread(node.id()) {
            ledger.keep(&failure, self.node.id());
        }
    }

    /// The waiter of the task `node` has its failure.
    pub(crate) fn waiter_has_read(&self, node: &Node) {
        self.ledger.lock().take_unread(node.id());
    }

    /// What became of the task `node`, if its group knows and is there.
    pub(crate) fn outcome_of(node: &Arc<Node>) -> Option<Outcome> {
        let above = node.above()?;
        Self::find(&above, |core| {
            let ledger = core.ledger.lock();
            let task = ledger.report.tasks.iter().rev().find(|task| task.id == node.id());
            task.map(|task| task.outcome.clone())
        })
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
            if self.attendance.is_closed() {
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
        self.attendance.enter_last().ok()?;
        let new_runner = self.with_lanes(change);
        if !new_runner {
            self.leave();
        }
        Some(new_runner)
    }

    /// For who is counted in, so that the group has not ended.
    pub(crate) fn with_lanes<T>(&self, change: impl FnOnce(&mut Lanes) -> T) -> T {
        change(&mut self.ledger.lock().lanes)
    }

    /// Ready once nobody is left, here and in the groups that were adopted; then, with `close`, nobody
    /// can come any more.
    pub(crate) fn poll_empty(self: &Arc<Self>, close: bool, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_empty(close) {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        let unused = self.ledger.lock().add_joiner(waker);
        drop(unused);
        loop {
            if !self.attendance.is_idle() || close && self.stop_services() {
                return Poll::Pending;
            }
            let adopted = self.ledger.lock().adopted.clone();
            for orphan in adopted {
                if orphan.poll_empty(true, cx).is_pending() {
                    return Poll::Pending;
                }
                self.let_go(&orphan);
            }
            if self.is_empty(close) {
                return Poll::Ready(());
            }
        }
    }

    /// Whether nobody is left, here or in an adopted group. With `close` it then takes nobody any more.
    fn is_empty(&self, close: bool) -> bool {
        let ledger = self.ledger.lock();
        let empty = ledger.adopted.is_empty();
        empty && if close { self.attendance.close_if_empty() } else { self.attendance.live() == 0 }
    }

    /// Whether nobody is left this moment; then nobody can come any more.
    pub(crate) fn poll_now_empty(self: &Arc<Self>) -> bool {
        self.poll_empty(true, &mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Whether nobody is left this moment.
    pub(crate) fn is_idle(self: &Arc<Self>) -> bool {
        self.poll_empty(false, &mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Cancels a task that was admitted while another had the first success: whoever cancelled the others may have looked
    /// before it was there.
    pub(crate) fn catch_up(&self, task: &Arc<Node>) {
        if self.policy == Policy::FirstSuccess && self.ledger.lock().decided {
            task.request(Reason::GroupEnded, Origin::Library);
        }
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope::of(Arc::clone(&self.node))
    }

    pub(crate) fn live(&self) -> usize {
        self.attendance.live()
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
        self.complete(self.ledger.lock().report.clone())
    }

    /// The report of a group that has ended, for whoever is the last to have it.
    pub(crate) fn into_report(self: Arc<Self>) -> GroupReport {
        match Arc::try_unwrap(self) {
            Ok(mut core) => {
                let report = mem::take(&mut core.ledger.get_mut().report);
                core.complete(report)
            }
            Err(shared) => shared.report(),
        }
    }

    fn complete(&self, mut report: GroupReport) -> GroupReport {
        report.ok += self.attendance.ended_well() as usize;
        report.live = self.attendance.live();
        report
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("name", self.node.name()).finish_non_exhaustive()
    }
}
