use std::error::Error;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

use stoppable_scope::{Limit, Name, TaskError};

use crate::core::CancelledIf;
use crate::group_run::{GroupRun, GroupRunReported};
use crate::policy::Policy;
use crate::task_group::TaskGroup;

/// How a group is to be. See [`TaskGroup::builder`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// use stoppable_group::{Policy, TaskGroup, ok};
///
/// TaskGroup::builder()
///     .name("crawl")
///     .limit(8)
///     .policy(Policy::Supervise)
///     .deadline(Duration::from_secs(30))
///     .run(|_group| async { ok(()) })
///     .await
///     .unwrap();
/// # }
/// ```
#[must_use = "a builder does nothing until `run`"]
pub struct GroupBuilder {
    pub(crate) name: Name,
    pub(crate) grace: Option<Duration>,
    pub(crate) cleanup_limit: Option<Duration>,
    pub(crate) limit: Option<usize>,
    pub(crate) policy: Policy,
    pub(crate) deadline: Option<Limit>,
    pub(crate) keep_report: bool,
    pub(crate) cancelled_if: Option<CancelledIf>,
}

impl GroupBuilder {
    pub(crate) fn new() -> Self {
        Self {
            name: Name::from_static("group"),
            grace: None,
            cleanup_limit: None,
            limit: None,
            policy: Policy::default(),
            deadline: None,
            keep_report: false,
            cancelled_if: None,
        }
    }

    /// A name for errors and reports; `group` by default.
    pub fn name(mut self, name: impl Into<Name>) -> Self {
        self.name = name.into();
        self
    }

    /// How long the body and the tasks may go on after they were asked to leave. None by default: what still
    /// waits after it was asked is dropped at once.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// How long all cleanup sections in here together may take after a request; 60 s by default.
    pub fn cleanup_limit(mut self, limit: Duration) -> Self {
        self.cleanup_limit = Some(limit);
        self
    }

    /// How many tasks run at once; more are made, and wait for a place in the order of spawning. No limit by
    /// default.
    ///
    /// # Panics
    ///
    /// If `limit` is 0: no task could ever run.
    #[track_caller]
    pub fn limit(mut self, limit: usize) -> Self {
        assert!(limit > 0, "a group with a limit of 0 could never run a task; give it at least 1");
        self.limit = Some(limit.min(tokio::sync::Semaphore::MAX_PERMITS));
        self
    }

    /// What the failure of one task does to the others.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// A deadline for all of it, counted from the first poll where it is a duration: then the group cancels
    /// itself. To have that as an error of its own kind use [`with_timeout`](stoppable_scope::with_timeout)
    /// around the group.
    pub fn deadline(mut self, limit: impl Into<Limit>) -> Self {
        self.deadline = Some(limit.into());
        self
    }

    /// Lists the tasks that end `Ok` in the report as well, and times all.
    pub fn keep_report(mut self) -> Self {
        self.keep_report = true;
        self
    }

    /// Which further errors of tasks mean that they were cancelled: for types that have no cancellation among
    /// their sources, such as a `Status` with a code. It is asked only for those, and believed only where the
    /// task was in fact cancelled.
    pub fn cancelled_if(
        mut self,
        cancelled_if: impl Fn(&(dyn Error + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.cancelled_if = Some(Box::new(cancelled_if));
        self
    }

    /// Runs `body` in the group. See [`TaskGroup::run`].
    ///
    /// # Errors
    ///
    /// [`GroupError`](crate::GroupError).
    #[track_caller]
    pub fn run<B, F, T>(self, body: B) -> GroupRun<B, F, T>
    where
        B: FnOnce(TaskGroup) -> F,
        F: Future<Output = Result<T, TaskError>>,
    {
        GroupRun::new(self, body, Location::caller())
    }

    /// [`run`](Self::run), and gives the report of the group beside its result.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// let (result, report) = TaskGroup::builder()
    ///     .run_reported(|group| async move {
    ///         group.spawn(async { ok(1) });
    ///         ok(())
    ///     })
    ///     .await;
    /// assert!(result.is_ok());
    /// assert_eq!((report.ok, report.live), (1, 0));
    /// # }
    /// ```
    #[track_caller]
    pub fn run_reported<B, F, T>(self, body: B) -> GroupRunReported<B, F, T>
    where
        B: FnOnce(TaskGroup) -> F,
        F: Future<Output = Result<T, TaskError>>,
    {
        GroupRunReported::new(self.run(body))
    }
}

impl fmt::Debug for GroupBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupBuilder")
            .field("name", &self.name)
            .field("limit", &self.limit)
            .field("policy", &self.policy)
            .field("grace", &self.grace)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
