use std::time::Duration;

use stoppable_scope::{OrCancelledExt, TaskError, cleanup, ok};
use tokio::task::JoinHandle;

use crate::task_group::TaskGroup;
use crate::task_handle::TaskHandle;

/// An aborted task ends at its next wait; one that never comes to a wait is not waited for longer.
const ABORT_LIMIT: Duration = Duration::from_secs(60);

impl TaskGroup {
    /// Takes over a task that was spawned with plain tokio: the group waits for it, a panic in it is a failure, and
    /// a cancel of the group aborts it. A group that takes no more tasks aborts it at once.
    ///
    /// It still has no scope of its own: its waits do not answer, it is cut. Somebody else who aborts it makes it
    /// fail. It takes no place of a [`limit`](crate::GroupBuilder::limit), for it runs already.
    ///
    /// # Compared with `AbortHandle` and `TaskTracker`
    ///
    /// - What can be spawned in the group should be: then it is asked before it is cut. This is for a `JoinHandle`
    ///   that another library gives you.
    /// - For an `AbortHandle` alone, whose task nobody can wait for, move `defer(handle, limit, |handle| async move {
    ///   handle.abort() })` into a task or into the body: it aborts however that is left. See
    ///   [`defer`](crate::defer()).
    /// - A `TaskTracker` counts futures wherever they run: `group.spawn(tracker.track_future(future))` is in both.
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
    pub fn own<T: Send + 'static>(&self, foreign: JoinHandle<T>) -> TaskHandle<T> {
        let mut foreign = AbortOnDrop(foreign);
        self.task("foreign task").spawn_foreign(async move {
            let waited = (&mut foreign.0).or_cancelled().await;
            let (result, cancelled) = match waited {
                Ok(result) => (result, None),
                Err(cancelled) => {
                    foreign.0.abort();
                    (cleanup(ABORT_LIMIT, &mut foreign.0).await?, Some(cancelled))
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

/// Where nobody polls the future any more, or never did, the task must not run on without an owner.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
