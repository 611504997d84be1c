use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use stoppable_scope::machinery::Origin;
use stoppable_scope::{Name, Reason, Scope, TaskError};

use crate::core::Core;
use crate::group_builder::GroupBuilder;
use crate::group_report::GroupReport;
use crate::group_run::GroupRun;
use crate::shield::Shield;
use crate::spawn_when_free::SpawnWhenFree;
use crate::stop_flag::StopFlag;
use crate::task_builder::TaskBuilder;
use crate::task_handle::TaskHandle;
use crate::task_output::TaskOutput;

/// Tasks with one owner: related work in one lifecycle.
///
/// [`TaskGroup::run`] runs a body that spawns tasks into the group, and returns after the body and all tasks
/// have ended: after `Ok`, an error, a panic, a timeout or a cancel no task of it is alive. The first failure
/// cancels the others at once ([`Policy`](crate::Policy)); all failures are kept in the [`GroupError`].
///
/// The `TaskGroup` that the body gets is a handle: clone it into tasks that spawn siblings.
///
/// How it ends: any failure gives a [`GroupError`] with all of them. If the body and every task ended `Ok`,
/// undisturbed by a cancel, the body's value counts, whatever was requested. Else a request from outside gives
/// an error that [`is_cancelled`](crate::GroupError::is_cancelled); after the group's own cancel the body's value
/// counts if there is one.
///
/// If the future of the group is dropped (Rust cannot await in `Drop`), its tasks are cancelled, and adopted
/// by the enclosing group, or else by the [`root`](crate::root) of the runtime, which waits for them.
///
/// # Compared with
///
/// - `JoinSet` hands out results one by one, and aborts when it is dropped without waiting. Take it where you want
///   just that and tasks need no clean-up. With [`Handles`](crate::Handles) a group does the same for several types.
/// - `FuturesUnordered` polls all in one task, without `'static`: take it for many short waits that borrow.
/// - Go's `errgroup` keeps the first error only and cancels a context that each task has to look at.
/// - Java's `StructuredTaskScope`, asyncio's `TaskGroup` and trio's nursery are the models. Their joiners are the
///   [`Policy`](crate::Policy), [`race`](crate::race()) and [`TaskGroup::map`] here.
///
/// # Names, nested groups and `tracing`
///
/// Groups nest by being run in a task or body of another: a cancel goes down, a [`GroupError`] prints as a tree of
/// names. Each task has a `tracing` span at level debug with its `group` and `name`, below the span in which it was
/// spawned; where that level is off, it runs in the span of its spawner.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_group::{TaskError, TaskGroup, ok};
///
/// let sync = TaskGroup::builder().name("sync").run(|sync| async move {
///     sync.task("peers").spawn(async {
///         let peers = TaskGroup::builder().name("peers").run(|peers| async move {
///             peers.task("10.0.0.7").spawn(async { Err::<(), _>(TaskError::from("no route")) });
///             ok(())
///         });
///         peers.await
///     });
///     ok(())
/// });
/// let error = sync.await.unwrap_err();
/// assert!(error.to_string().contains("task `10.0.0.7` failed: no route"));
/// assert_eq!(error.flatten()[0].name(), "10.0.0.7");
/// # }
/// ```
///
/// [`GroupError`]: crate::GroupError
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use stoppable_group::{TaskError, TaskGroup, with_timeout};
///
/// async fn fetch_user(id: u32) -> Result<String, TaskError> {
///     Ok(format!("user {id}"))
/// }
/// async fn fetch_orders(_id: u32) -> Result<Vec<u32>, TaskError> {
///     Ok(vec![1, 2])
/// }
///
/// let id = 7;
/// let (user, orders) = with_timeout(Duration::from_secs(1), TaskGroup::run(|group| async move {
///     let user = group.spawn(fetch_user(id));
///     let orders = group.spawn(fetch_orders(id));
///     Ok((user.await?, orders.await?))
/// }))
/// .await
/// .unwrap();
/// assert_eq!((user.as_str(), orders.len()), ("user 7", 2));
/// # }
/// ```
#[derive(Clone)]
pub struct TaskGroup {
    core: Arc<Core>,
}

impl TaskGroup {
    /// Runs `body` in a new group, and returns after all its tasks have ended.
    ///
    /// # Cancel safety
    ///
    /// Dropped half-way, the body is dropped, the tasks are cancelled and the enclosing group adopts them.
    ///
    /// # Errors
    ///
    /// [`GroupError`](crate::GroupError): all failures, or a cancellation from outside.
    ///
    /// # Panics
    ///
    /// When polled outside of a tokio runtime. A panic in a task or in the body is a failure in the error, see
    /// [`resume_panic`](crate::GroupError::resume_panic).
    #[track_caller]
    pub fn run<B, F, T>(body: B) -> GroupRun<B, F, T>
    where
        B: FnOnce(TaskGroup) -> F,
        F: Future<Output = Result<T, TaskError>>,
    {
        Self::builder().run(body)
    }

    /// A group with a name, a limit, a policy, a grace or a deadline.
    pub fn builder() -> GroupBuilder {
        GroupBuilder::new()
    }

    pub(crate) fn of(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Spawns a future that gives a `Result<T, E>` or `()`.
    ///
    /// It takes its scope and deadline from this group, whoever spawns it. In a full group it is made, and not
    /// polled until it has a place. A group that is closing or cancelled refuses: the future is dropped
    /// unpolled, the handle says so, and the refusal is no failure.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// TaskGroup::run(|group| async move {
    ///     group.spawn(async { tokio::task::yield_now().await });
    ///     let seven = group.spawn(async { ok("7".parse::<u32>()?) });
    ///     assert_eq!(seven.await?, 7);
    ///     ok(())
    /// })
    /// .await
    /// .unwrap();
    /// # }
    /// ```
    #[track_caller]
    #[doc(alias = "create_task")]
    #[doc(alias = "start_soon")]
    pub fn spawn<F, M>(&self, future: F) -> TaskHandle<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        TaskBuilder::new(self).spawn(future)
    }

    /// Spawns a future whose output is the value, whatever its type; it cannot fail but by a panic.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// let answer = TaskGroup::run(|group| async move {
    ///     let maybe = group.spawn_value(async { Some(42) });
    ///     ok(maybe.await?)
    /// });
    /// assert_eq!(answer.await.unwrap(), Some(42));
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_value<F>(&self, future: F) -> TaskHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        TaskBuilder::new(self).spawn_value(future)
    }

    /// Spawns a future that is not `Send`, on the thread that spawns it. See [`TaskBuilder::spawn_local`].
    ///
    /// # Panics
    ///
    /// Outside of a `LocalSet` or a local runtime.
    #[track_caller]
    pub fn spawn_local<F, M>(&self, future: F) -> TaskHandle<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + 'static,
        F::Output: TaskOutput<M>,
        M: 'static,
    {
        TaskBuilder::new(self).spawn_local(future)
    }

    /// A task with a name, which may have a grace.
    pub fn task(&self, name: impl Into<Name>) -> TaskBuilder<'_> {
        TaskBuilder::new(self).name(name.into())
    }

    /// A task that counts as spawned at `site`.
    pub(crate) fn task_at(&self, site: &'static Location<'static>) -> TaskBuilder<'_> {
        TaskBuilder::new(self).at(site)
    }

    /// Waits for a free place in a group with a limit, then spawns: how pressure travels to the spawner.
    /// A stoppable wait.
    ///
    /// # Cancel safety
    ///
    /// Dropped half-way, nothing is spawned and its turn is lost.
    ///
    /// # Errors
    ///
    /// [`Cancelled`](stoppable_scope::Cancelled) for the spawner; nothing is spawned then.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// TaskGroup::builder()
    ///     .limit(2)
    ///     .run(|group| async move {
    ///         for _page in 0..100 {
    ///             let _ = group.spawn_when_free(tokio::task::yield_now()).await?;
    ///             assert!(group.live() <= 2);
    ///         }
    ///         ok(())
    ///     })
    ///     .await
    ///     .unwrap();
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_when_free<F, M>(&self, future: F) -> SpawnWhenFree<F, M>
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        TaskBuilder::new(self).spawn_when_free(future)
    }

    /// Runs `work` on a blocking thread; the [`StopFlag`] tells it when to leave.
    ///
    /// A thread cannot be dropped. After a cancel it is waited for until its grace ends, one second where
    /// nobody gave one; then it is reported as abandoned and no longer counted as live. The drop of the runtime
    /// still waits for it; who must not, ends it with `Runtime::shutdown_background`.
    ///
    /// Like every task it hears the requests of *this group*: a timeout around the handle alone ends the wait, not
    /// the work. To bound the work give it a group of its own inside the timeout:
    /// `with_timeout(limit, TaskGroup::run(|group| async move { .. group.spawn_blocking(..) .. }))`.
    ///
    /// To wait in there for something async, such as a full queue, use `Handle::block_on`: the wait is in the scope of
    /// the task and answers a cancel.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    /// use tokio::runtime::Handle;
    ///
    /// let (lines, mut incoming) = tokio::sync::mpsc::channel(1);
    /// let count = TaskGroup::run(|group| async move {
    ///     group.task("reader").spawn_blocking(move |stop| {
    ///         for line in ["a", "b", "c"] {
    ///             stop.check()?;
    ///             Handle::current().block_on(lines.send(line))?;
    ///         }
    ///         ok(())
    ///     });
    ///     let mut count = 0;
    ///     while incoming.recv().await.is_some() {
    ///         count += 1;
    ///     }
    ///     ok(count)
    /// });
    /// assert_eq!(count.await.unwrap(), 3);
    /// # }
    /// ```
    #[track_caller]
    #[doc(alias = "to_thread")]
    #[doc(alias = "run_in_executor")]
    pub fn spawn_blocking<W, O, M>(&self, work: W) -> TaskHandle<O::Value>
    where
        W: FnOnce(StopFlag) -> O + Send + 'static,
        O: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        TaskBuilder::new(self).spawn_blocking(work)
    }

    /// Makes `future` a task of this group and waits for it: a waiter that goes away does not stop it.
    ///
    /// Whoever waits gets its failure, and it is then his to pass on. If he has gone, it is in the error of this
    /// group, and cancels nobody. A cancel of the group itself reaches the work like any task. In a group that
    /// is cancelled already nothing is started.
    ///
    /// asyncio's `shield` is the model; here the work has an owner.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: that is its purpose.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_group::{TaskGroup, ok, with_timeout};
    /// use tokio::time::sleep;
    ///
    /// TaskGroup::run(|group| async move {
    ///     let commit = group.shield(async {
    ///         sleep(Duration::from_secs(2)).await;
    ///         ok("committed")
    ///     });
    ///     // Waits for one second only; the commit goes on, and the group waits for it.
    ///     assert!(with_timeout(Duration::from_secs(1), commit).await.is_err());
    ///     ok(())
    /// })
    /// .await
    /// .unwrap();
    /// # }
    /// ```
    #[track_caller]
    pub fn shield<F, M>(&self, future: F) -> Shield<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        TaskBuilder::new(self).shield(future)
    }

    /// Asks the body and all tasks to leave. The group then ends with the body's value, if there is one.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// let found = TaskGroup::run(|group| async move {
    ///     for _ in 0..3 {
    ///         group.spawn(std::future::pending::<()>());
    ///     }
    ///     group.cancel("found it");
    ///     ok("the value of the body counts")
    /// });
    /// assert_eq!(found.await.unwrap(), "the value of the body counts");
    /// # }
    /// ```
    pub fn cancel(&self, reason: impl Into<Reason>) {
        self.core.node.request(reason.into(), Origin::User);
    }

    /// The scope of this group.
    pub fn scope(&self) -> Scope {
        Scope::of(Arc::clone(&self.core.node))
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        self.core.node.name()
    }

    /// How many tasks were spawned and have not ended, those that wait for a place included.
    pub fn live(&self) -> usize {
        self.core.live()
    }

    /// What became of the tasks so far. After the group has ended it is complete.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// TaskGroup::run(|group| async move {
    ///     group.spawn(async { ok(1) }).await?;
    ///     let report = group.report();
    ///     assert_eq!((report.ok, report.failed), (1, 0));
    ///     ok(())
    /// })
    /// .await
    /// .unwrap();
    /// # }
    /// ```
    pub fn report(&self) -> GroupReport {
        self.core.report()
    }
}

impl fmt::Debug for TaskGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskGroup")
            .field("name", self.name())
            .field("live", &self.live())
            .finish_non_exhaustive()
    }
}
