use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::core::Taken;
use super::error::RequeueError;
use super::held::Held;
use super::lease::{Lease, Leased};

/// An item in flight, as [`recv`](super::ShutdownQueue::recv) gives it: a guard around the value.
///
/// It is settled by [`done`](Self::done), [`requeue`](Self::requeue) or [`reject`](Self::reject). One that
/// is dropped unsettled, by an error, a panic or because its task was cut, is *abandoned*: `join` does
/// not wait for it, and the queue's [`AbandonPolicy`](super::AbandonPolicy) decides what becomes of it. So
/// a failure never counts as done, and a forgotten call never hangs a `join`.
///
/// The guard owns its share of the queue and can be moved into another task. It does not keep the queue
/// open: with the last [`ShutdownQueue`](super::ShutdownQueue) handle the queue is gone, and an
/// item still out can be settled, but not requeued.
///
/// asyncio gives the bare value and leaves it to the caller to call `task_done`; see
/// [`detach`](Self::detach) for that.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_sync::ShutdownQueue;
///
/// let jobs = ShutdownQueue::bounded(8);
/// jobs.send(String::from("job")).await.unwrap();
///
/// let mut job = jobs.recv().await.unwrap().unwrap();
/// job.push_str(" 1");
/// assert_eq!(*job, "job 1");
/// job.done();
/// assert_eq!(jobs.stats().done, 1);
/// # }
/// ```
#[must_use = "an item that is dropped unsettled is abandoned; call `done`"]
pub struct Item<T>(Held<T, Leased<T>>);

impl<T> Item<T> {
    #[inline(always)]
    pub(crate) fn new(lease: Arc<Lease<T>>, taken: Taken<T>) -> Self {
        Self(Held::new(Leased(lease), taken))
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

impl<T> Deref for Item<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.value()
    }
}

impl<T> DerefMut for Item<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.value_mut()
    }
}

impl<T: fmt::Debug> fmt::Debug for Item<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("value", self.0.value())
            .field("ticket", &self.ticket())
            .field("attempt", &self.attempt())
            .finish()
    }
}
