use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use stoppable_scope::Deadline;

use super::error::{TryReserveError, TrySendError};
use super::permit::Permit;
use super::producer_sink::ProducerSink;
use super::reserve::Reserve;
use super::reserve_many::ReserveMany;
use super::send::Send;
use super::send_by::SendBy;
use super::send_many::SendMany;
use super::shared::Shared;

/// A handle that only sends. When the last one of a queue goes, the queue is shut down, gracefully.
///
/// It is made by [`ShutdownQueue::producer`](super::ShutdownQueue::producer), and cloned for more. Give one
/// to each task that sends, and none has to know which is the last: what they sent is drained, then
/// receivers get `None`. A queue that never had a producer is not shut down in this way, and
/// [`shutdown`](super::ShutdownQueue::shutdown) works at any time. A producer that was made after the last
/// one went finds the queue shut down, so make all of them before the first can end, or keep one until
/// then.
///
/// A producer does not keep the queue: with the last [`ShutdownQueue`](super::ShutdownQueue) handle goes
/// the last way to receive, and sends end with `ShutDown`. Its methods are those of the queue.
///
/// As the senders of tokio's channels and the send channels of trio, which close when the last clone does;
/// asyncio has nothing like it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_sync::ShutdownQueue;
///
/// let jobs = ShutdownQueue::bounded(8);
/// let producer = jobs.producer();
/// for source in 0..3 {
///     let producer = producer.clone();
///     tokio::spawn(async move { producer.send(source).await.unwrap() });
/// }
/// drop(producer);
///
/// let mut received = 0;
/// while let Some(job) = jobs.recv().await.unwrap() {
///     received += 1;
///     job.done();
/// }
/// assert_eq!(received, 3);
/// # }
/// ```
#[must_use = "a producer that is dropped may be the last, and then the queue is shut down"]
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Producer<T> {
    pub(crate) fn new(shared: &Arc<Shared<T>>) -> Self {
        shared.change(|core, _| core.add_producer());
        Self { shared: Arc::clone(shared) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    /// As [`ShutdownQueue::send`](super::ShutdownQueue::send).
    #[doc(alias = "put")]
    #[track_caller]
    #[inline]
    pub fn send(&self, value: T) -> Send<'_, T> {
        Send::new(&self.shared, value)
    }

    /// As [`ShutdownQueue::try_send`](super::ShutdownQueue::try_send).
    ///
    /// # Errors
    ///
    /// [`TrySendError`] with the value in it: full, or shut down.
    #[doc(alias = "put_nowait")]
    #[inline]
    pub fn try_send(&self, value: T) -> Result<u64, TrySendError<T>> {
        self.shared.try_send(value)
    }

    /// As [`ShutdownQueue::send_by`](super::ShutdownQueue::send_by).
    #[track_caller]
    pub fn send_by(&self, value: T, deadline: impl Into<Deadline>) -> SendBy<'_, T> {
        SendBy::new(&self.shared, value, deadline.into())
    }

    /// As [`ShutdownQueue::send_many`](super::ShutdownQueue::send_many).
    #[track_caller]
    pub fn send_many<'a>(&'a self, values: &'a mut VecDeque<T>) -> SendMany<'a, T> {
        SendMany::new(&self.shared, values)
    }

    /// As [`ShutdownQueue::reserve`](super::ShutdownQueue::reserve).
    #[track_caller]
    pub fn reserve(&self) -> Reserve<'_, T> {
        Reserve::new(&self.shared)
    }

    /// As [`ShutdownQueue::try_reserve`](super::ShutdownQueue::try_reserve).
    ///
    /// # Errors
    ///
    /// [`TryReserveError`]: full, or shut down.
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TryReserveError> {
        self.shared.change(|core, _| core.try_reserve())?;
        Ok(Permit::new(&self.shared))
    }

    /// As [`ShutdownQueue::reserve_many`](super::ShutdownQueue::reserve_many).
    #[track_caller]
    pub fn reserve_many(&self, many: usize) -> ReserveMany<'_, T> {
        ReserveMany::new(&self.shared, many)
    }

    /// A [`Sink`](futures_sink::Sink) into the queue, for `forward` and `send_all`. Closing it drops the
    /// producer.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use futures::{StreamExt, stream};
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// let source = stream::iter([1, 2, 3]).map(Ok);
    /// source.forward(jobs.producer().into_sink()).await.unwrap();
    /// // The source has ended, and with it the only producer.
    /// assert!(jobs.is_shut_down());
    /// assert_eq!(jobs.len(), 3);
    /// # }
    /// ```
    #[track_caller]
    pub fn into_sink(self) -> ProducerSink<T> {
        ProducerSink::new(self)
    }
}

/// Another producer of the same queue.
impl<T> Clone for Producer<T> {
    fn clone(&self) -> Self {
        Self::new(&self.shared)
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.shared.change(|core, wakes| core.remove_producer(wakes));
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Producer").field(&self.shared).finish()
    }
}
