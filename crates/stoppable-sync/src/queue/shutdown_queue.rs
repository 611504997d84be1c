use std::fmt;
use std::sync::Arc;

use super::builder::{Builder, CAPACITY_0};
use super::core::Core;
use super::producer::Producer;
use super::queue_stats::QueueStats;
use super::shared::Shared;
use super::weak_queue::WeakQueue;

mod receiving;
mod sending;
mod settling;
mod shutting_down;

#[doc = include_str!("../docs/shutdown_queue.md")]
#[doc(alias = "Queue")]
pub struct ShutdownQueue<T> {
    shared: Arc<Shared<T>>,
}

impl<T> ShutdownQueue<T> {
    /// A queue that holds at most `capacity` values; `send` waits while it is full.
    ///
    /// Items that were received and are not settled occupy no slot. `usize::MAX` is no limit.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0. asyncio takes 0 for "no limit", which hides a limit computed wrongly; that is
    /// [`unbounded`](Self::unbounded). A rendezvous, where a value waits for its receiver, is not offered.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_sync::{ShutdownQueue, TrySendError};
    ///
    /// let jobs = ShutdownQueue::bounded(1);
    /// assert!(jobs.try_send('a').is_ok());
    /// assert_eq!(jobs.try_send('b'), Err(TrySendError::Full('b')));
    /// ```
    #[track_caller]
    pub fn bounded(capacity: usize) -> Self {
        Self::builder().capacity(capacity).build()
    }

    /// A queue without a limit: `send` never waits for room.
    ///
    /// Then nothing slows a producer down that is faster than its consumers, and memory grows. Prefer
    /// [`bounded`](Self::bounded) unless something else limits what is sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::unbounded();
    /// for n in 0..1000 {
    ///     jobs.try_send(n).unwrap();
    /// }
    /// assert_eq!((jobs.len(), jobs.capacity()), (1000, None));
    /// ```
    pub fn unbounded() -> Self {
        Self::builder().build()
    }

    /// A queue with a name, a policy for abandoned items, or a dead-letter sink. See [`Builder`].
    pub fn builder() -> Builder<T> {
        Builder::new()
    }

    pub(crate) fn from_shared(shared: Shared<T>) -> Self {
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    pub(crate) fn revived(shared: Arc<Shared<T>>) -> Option<Self> {
        // A `ShutdownQueue` that is made here counts as a handle when it is dropped.
        shared.revive().then(|| Self { shared })
    }

    /// A handle that only sends; when the last one goes, the queue is shut down. See [`Producer`].
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// let producer = jobs.producer();
    /// producer.try_send("job").unwrap();
    /// drop(producer);
    /// assert!(jobs.is_shut_down());
    /// assert_eq!(*jobs.try_recv().unwrap(), "job");
    /// ```
    pub fn producer(&self) -> Producer<T> {
        Producer::new(&self.shared)
    }

    /// A reference that does not keep the queue. See [`WeakQueue`].
    pub fn downgrade(&self) -> WeakQueue<T> {
        WeakQueue::new(&self.shared)
    }

    /// Everything that can be counted, read together. See [`QueueStats`].
    pub fn stats(&self) -> QueueStats {
        self.shared.read(Core::stats)
    }

    /// How many items are queued, promised ones included.
    #[doc(alias = "qsize")]
    pub fn len(&self) -> usize {
        self.shared.read(|core| core.len())
    }

    /// Whether nothing is queued.
    #[doc(alias = "empty")]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no slot is free. An unbounded queue is never full.
    #[doc(alias = "full")]
    pub fn is_full(&self) -> bool {
        self.shared.read(|core| core.is_full())
    }

    /// The limit, `None` for an unbounded queue.
    #[doc(alias = "maxsize")]
    pub fn capacity(&self) -> Option<usize> {
        self.stats().capacity
    }

    /// Changes the limit, also of a queue that had none. `usize::MAX` is no limit.
    ///
    /// A larger one lets senders in that wait. With one below what is queued nothing is lost: sends wait
    /// until enough was received; slots that were given out already stay good. A
    /// [`reserve_many`](Self::reserve_many) that waits for more than the new limit ends with an error.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, as [`bounded`](Self::bounded) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(1);
    /// jobs.try_send('a').unwrap();
    /// assert!(jobs.try_send('b').is_err());
    /// jobs.resize(2);
    /// assert!(jobs.try_send('b').is_ok());
    /// ```
    #[track_caller]
    pub fn resize(&self, capacity: usize) {
        assert!(capacity != 0, "{CAPACITY_0}");
        self.shared.change(|core, wakes| core.resize(capacity, wakes));
    }

    /// Whether the queue was shut down, in whichever way.
    #[doc(alias = "is_closed")]
    pub fn is_shut_down(&self) -> bool {
        self.shared.read(|core| core.is_shut_down())
    }

    /// The name it was built with.
    pub fn name(&self) -> Option<&str> {
        self.shared.name.as_deref()
    }
}

/// Another handle to the same queue.
impl<T> Clone for ShutdownQueue<T> {
    fn clone(&self) -> Self {
        self.shared.add_handle();
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// With the last handle goes what is queued: to the dead-letter sink, else it is logged and dropped.
impl<T> Drop for ShutdownQueue<T> {
    fn drop(&mut self) {
        self.shared.remove_handle();
    }
}

impl<T> fmt::Debug for ShutdownQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.shared, f)
    }
}
