use super::queue_stats::QueueStats;

/// How the items of a queue ended, as [`join`](super::ShutdownQueue::join) tells.
///
/// The counts are for the whole life of the queue, up to the moment when nothing was unfinished:
/// `accepted == done + rejected + abandoned + returned`.
///
/// asyncio's `join` returns nothing: that an item is done does not mean that it worked, and after an
/// immediate shutdown it was not even looked at.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_sync::ShutdownQueue;
///
/// let jobs = ShutdownQueue::bounded(8);
/// jobs.send(1).await.unwrap();
/// jobs.send(2).await.unwrap();
/// jobs.recv().await.unwrap().unwrap().done();
/// drop(jobs.recv().await.unwrap());
///
/// let report = jobs.join().await.unwrap();
/// assert_eq!((report.done, report.abandoned), (1, 1));
/// assert!(!report.all_done());
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinReport {
    /// Values that were taken into the queue.
    pub accepted: u64,
    /// Items settled by `done` or `task_done`.
    pub done: u64,
    /// Items settled by `reject`.
    pub rejected: u64,
    /// Items whose guard was dropped unsettled.
    pub abandoned: u64,
    /// Items that `shutdown_immediate` or `cancel` gave back.
    pub returned: u64,
    /// How often an item was put back, by hand or by policy.
    pub requeued: u64,
}

impl JoinReport {
    pub(crate) fn new(stats: &QueueStats) -> Self {
        Self {
            accepted: stats.accepted,
            done: stats.done,
            rejected: stats.rejected,
            abandoned: stats.abandoned,
            returned: stats.returned,
            requeued: stats.requeued,
        }
    }

    /// Whether every accepted item was done: none rejected, abandoned or returned.
    pub fn all_done(&self) -> bool {
        self.accepted == self.done
    }
}
