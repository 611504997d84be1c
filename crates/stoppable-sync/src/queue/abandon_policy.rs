/// What happens to an item whose guard is dropped unsettled: after an error, a panic or a cancel.
///
/// In every case `join` does not hang on it. After a shutdown an abandoned item goes to the
/// dead-letter sink, whatever the policy, and is only counted where there is none.
///
/// asyncio has no such policy: there a forgotten `task_done` keeps `join` waiting for ever.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_sync::{AbandonPolicy, ShutdownQueue};
///
/// let jobs = ShutdownQueue::builder().abandon_policy(AbandonPolicy::Requeue).build();
/// jobs.send("flaky").await.unwrap();
/// drop(jobs.recv().await.unwrap());
///
/// let again = jobs.recv().await.unwrap().unwrap();
/// assert_eq!((*again, again.attempt()), ("flaky", 2));
/// again.done();
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum AbandonPolicy {
    /// Drop the value and count it as abandoned.
    #[default]
    Count,
    /// Put it to the back of the queue, also beyond capacity, at most three times. After that it goes to
    /// the dead-letter sink if there is one, and is counted as abandoned.
    Requeue,
    /// Hand it to the dead-letter sink at once, and count it as abandoned.
    Sink,
}
