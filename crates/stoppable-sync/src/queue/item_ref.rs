use std::fmt;
use std::ops::{Deref, DerefMut};

use super::core::Taken;
use super::error::RequeueError;
use super::held::Held;
use super::shared::Shared;

/// An [`Item`](super::Item) that borrows its queue, as [`recv_ref`](super::ShutdownQueue::recv_ref)
/// gives it: for hot loops, where sharing the queue with each item would show.
///
/// It is settled in the same ways, and abandoned in the same way when it is dropped unsettled.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_sync::ShutdownQueue;
///
/// let jobs = ShutdownQueue::unbounded();
/// jobs.send(7).await.unwrap();
/// jobs.shutdown();
///
/// let mut sum = 0;
/// while let Some(job) = jobs.recv_ref().await.unwrap() {
///     sum += *job;
///     job.done();
/// }
/// assert_eq!(sum, 7);
/// # }
/// ```
#[must_use = "an item that is dropped unsettled is abandoned; call `done`"]
pub struct ItemRef<'a, T>(Held<T, &'a Shared<T>>);

impl<'a, T> ItemRef<'a, T> {
    #[inline(always)]
    pub(crate) fn new(queue: &'a Shared<T>, taken: Taken<T>) -> Self {
        Self(Held::new(queue, taken))
    }

    /// Drops the value and counts the item as done: this attempt is over, and nobody else has to care.
    ///
    /// The item is counted after the value was dropped, and also if its destructor panics.
    #[inline(always)]
    pub fn done(self) {
        self.0.done();
    }

    /// Puts the item to the back of the queue, beyond capacity if need be, also while the queue drains.
    ///
    /// The back is where it is received last: also in a last-in-first-out queue. By priority it is last
    /// among its equals; see [`Builder::priority`](super::Builder::priority).
    ///
    /// After a [`shutdown`](super::ShutdownQueue::shutdown) it is served to whoever receives again.
    ///
    /// # Errors
    ///
    /// [`RequeueError`] with the guard in it after
    /// [`shutdown_immediate`](super::ShutdownQueue::shutdown_immediate), and once the last handle is gone.
    pub fn requeue(self) -> Result<(), RequeueError<Self>> {
        self.0.requeue().map_err(|held| RequeueError(Self(held)))
    }

    /// Gives the item up for good: to the dead-letter sink where there is one. It counts as rejected.
    pub fn reject(self) {
        self.0.reject();
    }

    /// Takes the value out of the guard and leaves the item in flight, as asyncio's `get` does.
    ///
    /// `join` waits until [`task_done`](super::ShutdownQueue::task_done) was called for it.
    #[doc(alias = "into_inner")]
    #[must_use = "`join` now waits for a `task_done`; to end the item, call `done`"]
    pub fn detach(self) -> T {
        self.0.detach()
    }

    /// The item's number: values are numbered from 1 in the order in which they were accepted.
    pub fn ticket(&self) -> u64 {
        self.0.tag().ticket
    }

    /// How often the item was received, this time included.
    pub fn attempt(&self) -> u32 {
        self.0.tag().attempt
    }
}

impl<T> Deref for ItemRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.value()
    }
}

impl<T> DerefMut for ItemRef<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.value_mut()
    }
}

impl<T: fmt::Debug> fmt::Debug for ItemRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemRef")
            .field("value", self.0.value())
            .field("ticket", &self.ticket())
            .field("attempt", &self.attempt())
            .finish()
    }
}
