use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use stoppable_scope::machinery::Node;
use stoppable_scope::{Cancelled, Name, ScopeKind, TaskError};
use tokio::sync::OwnedSemaphorePermit;

use crate::catch::catch;
use crate::core::Core;
use crate::handle_error::HandleError;
use crate::on_thread::OnThread;
use crate::shield::Shield;
use crate::spawn_when_free::SpawnWhenFree;
use crate::stop_flag::StopFlag;
use crate::task_group::TaskGroup;
use crate::task_handle::TaskHandle;
use crate::task_output::{TaskOutput, Value};
use crate::task_root::{Kind, TaskRoot};

/// A task with a name or a grace, before it is spawned: `group.task("name").grace(d).spawn(..)`.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// use stoppable_group::{TaskGroup, ok};
///
/// TaskGroup::run(|group| async move {
///     let upload = group.task("upload").grace(Duration::from_secs(2)).spawn(async { ok(()) });
///     assert_eq!(upload.name(), "upload");
///     ok(upload.await?)
/// })
/// .await
/// .unwrap();
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a task builder does nothing until it spawns"]
pub struct TaskBuilder<'a> {
    group: &'a TaskGroup,
    name: Option<Name>,
    grace: Option<Duration>,
    service: bool,
    site: Option<&'static Location<'static>>,
}

impl<'a> TaskBuilder<'a> {
    pub(crate) fn new(group: &'a TaskGroup) -> Self {
        Self { group, name: None, grace: None, service: false, site: None }
    }

    pub(crate) fn name(mut self, name: Name) -> Self {
        self.name = Some(name);
        self
    }

    /// How long the task may go on after it was asked to leave. None by default: what still waits after it
    /// was asked is dropped at once.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Makes it a service: it does not hold the group open. When the body and all other tasks have ended it is
    /// asked to stop and cancelled, which is then a good end. If it fails that is a failure like any other; if it ends
    /// `Ok` the others go on. It takes no place of a [`limit`](crate::GroupBuilder::limit).
    ///
    /// # Compared with a task that is cancelled at the end of the body
    ///
    /// trio and Kotlin have such tasks cancelled by hand (`cancel_scope.cancel()`, daemon tasks). Take a service for
    /// what serves the other tasks (a heartbeat, a cache, a listener); take a plain task and its handle's
    /// [`cancel`](TaskHandle::cancel) where it should end earlier than the last of them.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// TaskGroup::run(|group| async move {
    ///     // Runs as long as there is something else to do.
    ///     group.task("heartbeat").service().spawn(std::future::pending::<()>());
    ///     ok(group.spawn(async { ok(42) }).await?)
    /// })
    /// .await
    /// .unwrap();
    /// # }
    /// ```
    pub fn service(mut self) -> Self {
        self.service = true;
        self
    }

    /// Where it counts as spawned, in place of the line that calls.
    pub(crate) fn at(mut self, site: &'static Location<'static>) -> Self {
        self.site = Some(site);
        self
    }

    /// Spawns a future that gives a `Result` or `()`. See [`TaskGroup::spawn`].
    #[track_caller]
    pub fn spawn<F, M>(self, future: F) -> TaskHandle<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        let new = self.new_task::<F>(Location::caller());
        new.start(self.group.core(), future, self.kind(), None)
    }

    /// Spawns a future that is not `Send`, on the thread that spawns it.
    ///
    /// All rules are those of [`spawn`](Self::spawn); take that where the future is `Send`. The task runs only while
    /// its `LocalSet` does: keep that running until the group has ended, and where the group's future may be dropped,
    /// until [`root().join()`](crate::root()) has.
    ///
    /// # Panics
    ///
    /// Outside of a `LocalSet` or a local runtime, as `tokio::task::spawn_local` does.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use std::rc::Rc;
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// let local = tokio::task::LocalSet::new();
    /// let group = TaskGroup::run(|group| async move {
    ///     let shared = Rc::new(7);
    ///     let task = group.spawn_local(async move { ok(*shared) });
    ///     ok(task.await?)
    /// });
    /// assert_eq!(local.run_until(group).await.unwrap(), 7);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_local<F, M>(self, future: F) -> TaskHandle<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + 'static,
        F::Output: TaskOutput<M>,
        M: 'static,
    {
        let new = self.new_task::<F>(Location::caller());
        new.start_local(self.group.core(), future, self.kind())
    }

    /// Spawns a future whose output is the value, whatever its type.
    #[track_caller]
    pub fn spawn_value<F>(self, future: F) -> TaskHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let new = self.new_task::<F>(Location::caller());
        new.start(self.group.core(), async move { Value(future.await) }, self.kind(), None)
    }

    /// Waits for a free place, then spawns. See [`TaskGroup::spawn_when_free`].
    #[track_caller]
    pub fn spawn_when_free<F, M>(self, future: F) -> SpawnWhenFree<F, M>
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        let site = Location::caller();
        let places = self.group.core().places.clone();
        let places = places.filter(|_| !self.service);
        let core = Arc::clone(self.group.core());
        SpawnWhenFree::new(future, core, self.new_task::<F>(site), self.kind(), places)
    }

    /// Runs `work` on a blocking thread. See [`TaskGroup::spawn_blocking`].
    #[track_caller]
    pub fn spawn_blocking<W, O, M>(self, work: W) -> TaskHandle<O::Value>
    where
        W: FnOnce(StopFlag) -> O + Send + 'static,
        O: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        let mut new = self.new_task::<W>(Location::caller());
        new.kind = ScopeKind::Blocking;
        let kind = if self.service { Kind::BlockingService } else { Kind::Blocking };
        new.start_with(self.group.core(), |node| OnThread::new(work, Arc::clone(node)), kind, None)
    }

    #[track_caller]
    pub(crate) fn shield<F, M>(self, future: F) -> Shield<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        let new = self.new_task::<F>(Location::caller());
        let core = Arc::clone(self.group.core());
        let task = new.start(&core, future, Kind::Shielded, None);
        Shield::new(core, task)
    }

    /// Spawns a future that ends what runs elsewhere, and so is polled whatever was requested.
    #[track_caller]
    pub(crate) fn spawn_foreign<F, T>(self, future: F) -> TaskHandle<T>
    where
        F: Future<Output = Result<T, TaskError>> + Send + 'static,
        T: Send + 'static,
    {
        let new = self.new_task::<F>(Location::caller());
        new.start(self.group.core(), future, Kind::Foreign, None)
    }

    /// Spawns into a place that was taken before.
    pub(crate) fn spawn_in<F, M>(
        self,
        place: Option<OwnedSemaphorePermit>,
        future: F,
    ) -> TaskHandle<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        let new = self.new_task::<F>(Location::caller());
        new.start(self.group.core(), future, self.kind(), place)
    }

    fn kind(&self) -> Kind {
        if self.service { Kind::Service } else { Kind::Plain }
    }

    fn new_task<F>(&self, site: &'static Location<'static>) -> NewTask {
        let name = self.name.clone().unwrap_or_else(|| Name::from_static(type_name::<F>()));
        let site = self.site.unwrap_or(site);
        NewTask { name, grace: self.grace, site, kind: ScopeKind::Task }
    }
}

/// A name for who gave none: that of the `async fn`, or of the function that has the block or closure.
fn type_name<F>() -> &'static str {
    let name = std::any::type_name::<F>();
    let name = name.split('<').next().unwrap_or(name);
    let name = name.trim_end_matches("::{{closure}}");
    name.rsplit("::").next().filter(|name| !name.is_empty()).unwrap_or("task")
}

/// All that is known of a task before its future.
#[derive(Debug)]
pub(crate) struct NewTask {
    name: Name,
    grace: Option<Duration>,
    site: &'static Location<'static>,
    kind: ScopeKind,
}

impl NewTask {
    pub(crate) fn start<F, M>(
        self,
        core: &Arc<Core>,
        future: F,
        kind: Kind,
        place: Option<OwnedSemaphorePermit>,
    ) -> TaskHandle<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        self.start_with(core, |_| future, kind, place)
    }

    fn start_with<F, M>(
        self,
        core: &Arc<Core>,
        future: impl FnOnce(&Arc<Node>) -> F,
        kind: Kind,
        place: Option<OwnedSemaphorePermit>,
    ) -> TaskHandle<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        match self.admit(core, kind) {
            Ok(node) => {
                let root = TaskRoot::new(future(&node), kind, Arc::clone(&node), Arc::clone(core), place);
                TaskHandle::new(node, core.runtime.spawn(root))
            }
            Err(refused) => refused.handle(future),
        }
    }

    #[track_caller]
    fn start_local<F, M>(
        self,
        core: &Arc<Core>,
        future: F,
        kind: Kind,
    ) -> TaskHandle<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + 'static,
        F::Output: TaskOutput<M>,
        M: 'static,
    {
        match self.admit(core, kind) {
            Ok(node) => {
                let root = TaskRoot::new(future, kind, Arc::clone(&node), Arc::clone(core), None);
                TaskHandle::new(node, tokio::task::spawn_local(root))
            }
            Err(refused) => refused.handle(|_| future),
        }
    }

    /// Counts the task in and gives it its scope, unless the group takes no more.
    fn admit(self, core: &Arc<Core>, kind: Kind) -> Result<Arc<Node>, Refused> {
        let Self { name, grace, site, kind: scope } = self;
        let request = core.node.effective_request();
        let admitted = request.is_none() && core.admit().is_ok();
        let parent = admitted.then(|| Arc::clone(&core.node));
        let node = Node::new(scope, name, site, parent);
        if !admitted {
            return Err(Refused { node, cancelled: request.map(Cancelled::new) });
        }
        if let Some(grace) = grace {
            node.set_grace(grace);
        }
        if kind.is_service() {
            core.add_service(&node);
        }
        core.catch_up(&node);
        Ok(node)
    }
}

/// A task that its group did not take.
#[derive(Debug)]
struct Refused {
    node: Arc<Node>,
    cancelled: Option<Cancelled>,
}

impl Refused {
    /// Drops the future unpolled.
    #[cold]
    fn handle<F, T>(self, future: impl FnOnce(&Arc<Node>) -> F) -> TaskHandle<T> {
        let Self { node, cancelled } = self;
        if catch(|| drop(future(&node))).is_err() {
            let (task, at) = (node.name(), node.site());
            tracing::error!(%task, %at, "a refused future panicked when it was dropped");
        }
        let refused = HandleError::Refused { task: node.name().clone(), cancelled };
        TaskHandle::refused(node, refused)
    }
}
