//! Values and permits on their way in.

use std::collections::VecDeque;

use stoppable_scope::Deadline;

use super::ShutdownQueue;
use crate::queue::error::{TryReserveError, TrySendError};
use crate::queue::permit::Permit;
use crate::queue::reserve::Reserve;
use crate::queue::reserve_many::ReserveMany;
use crate::queue::send::Send;
use crate::queue::send_by::SendBy;
use crate::queue::send_many::SendMany;

impl<T> ShutdownQueue<T> {
    /// Sends a value, and waits for room if there is none. Gives the item's ticket, for
    /// [`cancel`](Self::cancel).
    ///
    /// Senders are served in the order in which they began to wait (were first polled), and none that
    /// comes later overtakes: also not one of [`try_send`](Self::try_send), where asyncio's `put_nowait`
    /// does overtake a `put` that was woken and did not run since.
    ///
    /// A value that waits for room is accepted when its sender is polled after a slot became free, or
    /// earlier, when a receiver needs it or a later send would overtake it.
    ///
    /// # Errors
    ///
    /// [`SendError`](crate::queue::SendError) with the value in it: the queue was shut down, or the scope
    /// around this wait is cancelled. A wait that starts in a cancelled scope sends nothing.
    ///
    /// # Cancel safety
    ///
    /// The value was sent or it was not, never both. A cancel gives it back, except where it was accepted
    /// already: then the answer is `Ok`. A dropped future drops its value, unless that was accepted.
    /// To have the value in hand while waiting, [`reserve`](Self::reserve) first.
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
    /// assert_eq!(jobs.send("late").await.unwrap_err().into_inner(), "late");
    /// # }
    /// ```
    #[doc(alias = "put")]
    #[track_caller]
    #[inline]
    pub fn send(&self, value: T) -> Send<'_, T> {
        Send::new(&self.shared, value)
    }

    /// Sends a value if there is room now. Gives the item's ticket.
    ///
    /// # Errors
    ///
    /// [`TrySendError`] with the value in it: full, or shut down. A queue that is both is shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_sync::{ShutdownQueue, TrySendError};
    ///
    /// let jobs = ShutdownQueue::bounded(1);
    /// jobs.try_send(1).unwrap();
    /// assert_eq!(jobs.try_send(2), Err(TrySendError::Full(2)));
    /// jobs.shutdown();
    /// assert_eq!(jobs.try_send(2), Err(TrySendError::ShutDown(2)));
    /// ```
    #[doc(alias = "put_nowait")]
    #[inline]
    pub fn try_send(&self, value: T) -> Result<u64, TrySendError<T>> {
        self.shared.try_send(value)
    }

    /// [`send`](Self::send) with a limit on the wait. A `Duration` counts from this call.
    ///
    /// A limit that has already passed sends nothing, also where there is room.
    ///
    /// # Errors
    ///
    /// [`SendByError`](crate::queue::SendByError) with the value in it: shut down, cancelled, or the deadline
    /// came first. A deadline of a scope around the call is a cancel, only this one is `Elapsed`.
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_sync::{SendByError, ShutdownQueue};
    ///
    /// let jobs = ShutdownQueue::bounded(1);
    /// jobs.send(1).await.unwrap();
    /// let error = jobs.send_by(42, Duration::from_millis(50)).await.unwrap_err();
    /// assert!(matches!(error, SendByError::Elapsed(42, _)));
    /// # }
    /// ```
    #[track_caller]
    pub fn send_by(&self, value: T, deadline: impl Into<Deadline>) -> SendBy<'_, T> {
        SendBy::new(&self.shared, value, deadline.into())
    }

    /// Sends all of `values`, from the front, and waits for room as often as it takes.
    ///
    /// Waits in one line with [`send`](Self::send), and keeps its place there until all is sent: no value
    /// of one that waits behind it is accepted between its own, except after the last room for it became
    /// free, and before it is polled. While it waits, each value goes in when it is polled after a slot
    /// became free.
    ///
    /// For a single value, or to get its ticket, take [`send`](Self::send). For many that are not made yet,
    /// or must go in all or none, take [`reserve_many`](Self::reserve_many). asyncio has no such thing;
    /// Kotlin's and tokio's channels have none either.
    ///
    /// # Errors
    ///
    /// [`SendManyError`](crate::queue::SendManyError): shut down, or the scope around this wait is
    /// cancelled. What was not sent is still in `values`, in order.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost. What was sent is gone from `values`, and the rest is still there, also if the
    /// future is dropped. Call it again with the same deque.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use std::collections::VecDeque;
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(2);
    /// let mut page = VecDeque::from([1, 2, 3]);
    /// {
    ///     let mut sending = std::pin::pin!(jobs.send_many(&mut page));
    ///     assert!(futures::poll!(&mut sending).is_pending());
    /// }
    /// assert_eq!((jobs.len(), page.len()), (2, 1));
    /// jobs.recv().await.unwrap().unwrap().done();
    /// jobs.send_many(&mut page).await.unwrap();
    /// assert!(page.is_empty());
    /// # }
    /// ```
    #[track_caller]
    pub fn send_many<'a>(&'a self, values: &'a mut VecDeque<T>) -> SendMany<'a, T> {
        SendMany::new(&self.shared, values)
    }

    /// Waits for room and holds it: the permit sends one value without waiting.
    ///
    /// Waits in one line with [`send`](Self::send), in the order of the first polls.
    ///
    /// # Errors
    ///
    /// [`ReserveError`](crate::queue::ReserveError): shut down, or the scope around this wait is cancelled.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost. A slot that was granted meanwhile passes on to the next who waits; the request
    /// wins over it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// let permit = jobs.reserve().await.unwrap();
    /// permit.send("made only now").unwrap();
    /// # }
    /// ```
    #[track_caller]
    pub fn reserve(&self) -> Reserve<'_, T> {
        Reserve::new(&self.shared)
    }

    /// Waits for room for `many` values at a time: all permits, or none.
    ///
    /// Waits in one line with [`send`](Self::send). While it is the first there, the slots that become free
    /// are kept for it; the others wait behind it. As `reserve_many` of tokio's channel, which gives an
    /// iterator.
    ///
    /// # Errors
    ///
    /// [`ReserveManyError`](crate::queue::ReserveManyError): more than the capacity, also if the queue is
    /// made smaller during the wait; shut down; or the scope around this wait is cancelled.
    ///
    /// # Cancel safety
    ///
    /// As [`reserve`](Self::reserve).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// for (permit, part) in jobs.reserve_many(2).await.unwrap().into_iter().zip(["head", "tail"]) {
    ///     permit.send(part).unwrap();
    /// }
    /// assert!(jobs.reserve_many(9).await.is_err());
    /// # }
    /// ```
    #[track_caller]
    pub fn reserve_many(&self, many: usize) -> ReserveMany<'_, T> {
        ReserveMany::new(&self.shared, many)
    }

    /// A permit, if there is room now.
    ///
    /// # Errors
    ///
    /// [`TryReserveError`]: full, or shut down. A queue that is both is shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_sync::{ShutdownQueue, TryReserveError};
    ///
    /// let jobs = ShutdownQueue::bounded(1);
    /// let permit = jobs.try_reserve().unwrap();
    /// assert_eq!(jobs.try_reserve().unwrap_err(), TryReserveError::Full);
    /// permit.send('a').unwrap();
    /// ```
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TryReserveError> {
        self.shared.change(|core, _| core.try_reserve())?;
        Ok(Permit::new(&self.shared))
    }
}
