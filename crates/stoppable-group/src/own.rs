use std::time::Duration;

use stoppable_scope::{OrCancelledExt, TaskError, cleanup, ok};
use tokio::task::JoinHandle;

use crate::task_group::TaskGroup;
use crate::task_handle::TaskHandle;

/// An aborted task ends at its next wait; one that never comes to a wait is not waited for longer.
const ABORT_LIMIT: Duration = Duration::from_secs(60);

impl TaskGroup {
    /// Takes over a task that was spawned with plain tokio: the group waits for it, a panic in it is a failure, and
    /// a cancel of the group aborts it.
    ///
    /// It still has no scope of its own: its waits do not answer, it is cut. For an `AbortHandle` alone, whose task
    /// nobody can wait for, spawn `async move { scope.cancelled().await; handle.abort() }` as a service.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// let foreign = tokio::spawn(async { 7 });
    /// let seven = TaskGroup::run(|group| async move { ok(group.own(foreign).await?) });
    /// assert_eq!(seven.await.unwrap(), 7);
    /// # }
    /// ```
    #[track_caller]
    pub fn own<T: Send + 'static>(&self, mut foreign: JoinHandle<T>) -> TaskHandle<T> {
        self.task("foreign task").spawn(async move {
            let waited = (&mut foreign).or_cancelled().await;
            let (result, cancelled) = match waited {
                Ok(result) => (result, None),
                Err(cancelled) => {
                    foreign.abort();
                    (cleanup(ABORT_LIMIT, foreign).await?, Some(cancelled))
                }
            };
            match (result, cancelled) {
                (Ok(value), _) => ok(value),
                (Err(error), _) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                (Err(_), Some(cancelled)) => Err(TaskError::from(cancelled)),
                (Err(error), None) => Err(TaskError::from(error)),
            }
        })
    }
}
