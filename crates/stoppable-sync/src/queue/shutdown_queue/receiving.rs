//! Items on their way out.

use std::time::Duration;

use stoppable_scope::Deadline;

use super::ShutdownQueue;
use crate::queue::error::TryRecvError;
use crate::queue::item::Item;
use crate::queue::items::Items;
use crate::queue::recv::Recv;
use crate::queue::recv_batch::RecvBatch;
use crate::queue::recv_by::RecvBy;
use crate::queue::recv_many::RecvMany;
use crate::queue::recv_ref::RecvRef;

impl<T> ShutdownQueue<T> {
    /// Waits for an item. `None`: the queue was shut down and nothing is queued.
    ///
    /// Receivers are served in the order in which they began to wait (were first polled). Who waits is
    /// promised *an* item, which [`try_recv`](Self::try_recv) cannot take away, as `get_nowait` can in
    /// asyncio; which item, the order of the queue decides when it is taken.
    ///
    /// Inside a tokio runtime it takes part in the cooperative budget, as tokio's own channels do.
    ///
    /// # Errors
    ///
    /// `Cancelled` if the scope around this wait is cancelled; it wins over an item.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: a cancelled or dropped wait takes no item, and what it was promised passes on to
    /// the next who waits, in the same instant.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// jobs.send("job").await.unwrap();
    /// jobs.shutdown();
    ///
    /// while let Some(job) = jobs.recv().await.unwrap() {
    ///     assert_eq!(*job, "job");
    ///     job.done();
    /// }
    /// # }
    /// ```
    #[doc(alias = "get")]
    #[track_caller]
    #[inline]
    pub fn recv(&self) -> Recv<'_, T> {
        Recv::new(&self.shared)
    }

    /// [`recv`](Self::recv) with a guard that borrows the queue, for hot loops.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    ///
    /// # Cancel safety
    ///
    /// As [`recv`](Self::recv).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// jobs.send("job").await.unwrap();
    /// let job = jobs.recv_ref().await.unwrap().unwrap();
    /// job.done();
    /// # }
    /// ```
    #[track_caller]
    #[inline]
    pub fn recv_ref(&self) -> RecvRef<'_, T> {
        RecvRef::new(&self.shared)
    }

    /// The items as a [`Stream`](futures_core::Stream), for its adapters. It ends where
    /// [`recv`](Self::recv) gives `None`.
    ///
    /// A cancel is its last element, as an `Err`. It waits in one line with [`recv`](Self::recv), and holds
    /// a handle to the queue. A stream that was polled and is pending may be promised an item: poll it
    /// again or drop it, for others wait behind it.
    ///
    /// For a plain loop take [`recv`](Self::recv).
    ///
    /// # Cancel safety
    ///
    /// As [`recv`](Self::recv). Adapters that hold items, such as `buffered`, drop them with themselves,
    /// and what is dropped is abandoned.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use futures::TryStreamExt;
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// for n in 1..=5 {
    ///     jobs.send(n).await.unwrap();
    /// }
    /// jobs.shutdown();
    /// jobs.stream()
    ///     .try_for_each_concurrent(2, |job| async move {
    ///         job.done();
    ///         Ok(())
    ///     })
    ///     .await
    ///     .unwrap();
    /// assert_eq!(jobs.stats().done, 5);
    /// # }
    /// ```
    #[track_caller]
    pub fn stream(&self) -> Items<T> {
        Items::new(self.clone())
    }

    /// An item, if there is one that is promised to nobody.
    ///
    /// # Errors
    ///
    /// [`TryRecvError`]: empty, or shut down and drained.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_sync::{ShutdownQueue, TryRecvError};
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// jobs.try_send("job").unwrap();
    /// jobs.try_recv().unwrap().done();
    /// assert_eq!(jobs.try_recv().unwrap_err(), TryRecvError::Empty);
    /// jobs.shutdown();
    /// assert_eq!(jobs.try_recv().unwrap_err(), TryRecvError::ShutDown);
    /// ```
    #[doc(alias = "get_nowait")]
    #[inline]
    pub fn try_recv(&self) -> Result<Item<T>, TryRecvError> {
        self.shared.recv_item(&mut None)
    }

    /// Waits for an item, and takes with it what else is there: up to `max` items under one guard.
    ///
    /// `None`: the queue was shut down and nothing is queued. It waits in one line with
    /// [`recv`](Self::recv), for one item. What is promised to others it leaves to them.
    ///
    /// Take it where batches save work and nobody should wait for them to fill: under load they are large,
    /// else they are small. Where a batch is worth a wait, take [`recv_batch`](Self::recv_batch). As
    /// `recv_many` of tokio's channel, which fills a buffer; asyncio has nothing like it.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    ///
    /// # Panics
    ///
    /// If `max` is 0.
    ///
    /// # Cancel safety
    ///
    /// As [`recv`](Self::recv).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let rows = ShutdownQueue::bounded(100);
    /// for row in 0..5 {
    ///     rows.send(row).await.unwrap();
    /// }
    /// rows.shutdown();
    /// let mut sizes = Vec::new();
    /// while let Some(batch) = rows.recv_many(3).await.unwrap() {
    ///     sizes.push(batch.len());
    ///     batch.done();
    /// }
    /// assert_eq!(sizes, [3, 2]);
    /// # }
    /// ```
    #[track_caller]
    pub fn recv_many(&self, max: usize) -> RecvMany<'_, T> {
        RecvMany::new(&self.shared, max)
    }

    /// Waits until `max` items are there, or the first of them has waited for `max_age` here: at least one
    /// item, under one guard.
    ///
    /// The age counts from the poll that finds the first item, and no further one starts it again: none
    /// waits longer than that in this call. After a [`shutdown`](Self::shutdown) nothing more can come, so
    /// what there is comes out at once; `None`: nothing is queued. A `max_age` of zero takes what there is,
    /// a very long one waits for the whole batch.
    ///
    /// While it is collected the batch lies in the queue, promised to this call: so it occupies no slot,
    /// and `max` may be larger than the capacity; it is visible in [`stats`](Self::stats); nobody can take
    /// it away, but [`cancel`](Self::cancel) can take an item out of it, and
    /// [`shutdown_immediate`](Self::shutdown_immediate) gives all of it back. Which items come out is
    /// decided when they do, by the order of the queue. It waits in one line with [`recv`](Self::recv): as
    /// long as it is the first there, what comes is for this batch, and those behind it wait. Several
    /// workers so fill one batch after another, and do not fill many at a time.
    ///
    /// It wakes twice a batch, for the first item and when it is full or due. asyncio has nothing like it.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv): `Cancelled` wins over a batch, also over one that is full.
    ///
    /// # Panics
    ///
    /// If `max` is 0; and where items wait for their age, outside of a tokio runtime with its time enabled.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost. What was collected stays where it is, in order, and counts as never received; it goes
    /// to the next who waits, where its age starts again.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// # async fn insert_all(rows: &[u32]) -> Result<(), ()> { Ok(()) }
    /// let rows = ShutdownQueue::bounded(8);
    /// let writer = {
    ///     let rows = rows.clone();
    ///     tokio::spawn(async move {
    ///         while let Some(batch) = rows.recv_batch(100, Duration::from_millis(250)).await.unwrap() {
    ///             if insert_all(&batch).await.is_ok() {
    ///                 batch.done();
    ///             } // else it is dropped: abandoned
    ///         }
    ///     })
    /// };
    /// for row in 0..300 {
    ///     rows.send(row).await.unwrap();
    /// }
    /// rows.shutdown();
    /// writer.await.unwrap();
    /// assert_eq!(rows.join().await.unwrap().done, 300);
    /// # }
    /// ```
    #[track_caller]
    pub fn recv_batch(&self, max: usize, max_age: Duration) -> RecvBatch<'_, T> {
        RecvBatch::new(&self.shared, max, max_age)
    }

    /// [`recv`](Self::recv) with a limit on the wait. A `Duration` counts from this call.
    ///
    /// A limit that has already passed takes nothing, also where something is queued.
    ///
    /// # Errors
    ///
    /// [`RecvByError`](crate::queue::RecvByError): the deadline came first, or cancelled. A deadline of a
    /// scope around the call is a cancel, only this one is `Elapsed`.
    ///
    /// # Cancel safety
    ///
    /// As [`recv`](Self::recv).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_sync::{RecvByError, ShutdownQueue};
    ///
    /// let jobs = ShutdownQueue::<u32>::bounded(8);
    /// let error = jobs.recv_by(Duration::from_secs(1)).await.unwrap_err();
    /// assert!(matches!(error, RecvByError::Elapsed(_)));
    /// # }
    /// ```
    #[track_caller]
    pub fn recv_by(&self, deadline: impl Into<Deadline>) -> RecvBy<'_, T> {
        RecvBy::new(&self.shared, deadline.into())
    }
}
