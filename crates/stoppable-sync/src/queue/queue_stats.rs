/// What a queue looks like at one moment, all of it read together.
///
/// The books always balance:
/// `accepted == done + rejected + abandoned + returned + len + in_flight`.
///
/// asyncio's `Queue` shows this in its `repr`; trio's channels in `statistics()`. Here the ends of items
/// are counted as well.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_sync::ShutdownQueue;
///
/// let jobs = ShutdownQueue::bounded(8);
/// jobs.send('a').await.unwrap();
/// jobs.send('b').await.unwrap();
/// let item = jobs.recv().await.unwrap().unwrap();
///
/// let stats = jobs.stats();
/// assert_eq!((stats.accepted, stats.len, stats.in_flight), (2, 1, 1));
/// assert_eq!(stats.peak_len, 2);
/// item.done();
/// assert_eq!(jobs.stats().unfinished(), 1);
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// Items queued, promised ones included.
    pub len: usize,
    /// The limit, `None` for an unbounded queue.
    pub capacity: Option<usize>,
    /// The most items that were queued at one time. Draining does not reset it.
    pub peak_len: usize,
    /// Queued items that are promised to a receiver which was not polled since. They occupy no slot.
    pub promised: usize,
    /// Slots held by permits, and by senders that were given one and were not polled since.
    pub reserved: usize,
    /// Receivers that have no promise, or wait for more: a batch that is collected.
    pub waiting_receivers: usize,
    /// Senders, and waits for a permit, that have no slot.
    pub waiting_senders: usize,
    /// Joins that wait.
    pub waiting_joiners: usize,
    /// Items that were received and are not settled, detached ones included.
    pub in_flight: u64,
    /// Values that were taken into the queue.
    pub accepted: u64,
    /// Items settled by `done` or `task_done`.
    pub done: u64,
    /// Items settled by `reject`.
    pub rejected: u64,
    /// Items that ended because a guard was dropped unsettled, or with the last handle.
    pub abandoned: u64,
    /// Items given back by `shutdown_immediate` or `cancel`.
    pub returned: u64,
    /// How often an item was put back, by hand or by policy. No end, so not part of the balance.
    pub requeued: u64,
    /// Whether the queue was shut down, in whichever way.
    pub is_shut_down: bool,
}

impl QueueStats {
    /// What [`join`](super::ShutdownQueue::join) waits for: items queued and in flight.
    pub fn unfinished(&self) -> u64 {
        self.len as u64 + self.in_flight
    }
}
