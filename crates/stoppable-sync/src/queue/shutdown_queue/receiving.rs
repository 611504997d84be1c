//! Items on their way out.

use std::sync::Arc;

use stoppable_scope::Deadline;

use super::ShutdownQueue;
use crate::queue::error::TryRecvError;
use crate::queue::item::Item;
use crate::queue::recv::Recv;
use crate::queue::recv_by::RecvBy;
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
        let taken = self.shared.change(|core, wakes| core.try_recv(&self.shared.ledger, wakes))?;
        Ok(crate::Item::new(Arc::clone(&self.shared), taken))
    }

    /// [`recv`](Self::recv) with a limit on the wait. A `Duration` counts from this call.
    ///
    /// A limit that has already passed takes nothing, also where something is queued.
    ///
    /// # Errors
    ///
    /// [`RecvByError`](crate::queue::RecvByError): the deadline came first, or cancelled. A deadline of a scope
    /// around the call is a cancel, only this one is `Elapsed`.
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
