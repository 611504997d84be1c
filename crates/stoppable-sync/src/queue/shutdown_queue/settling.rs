//! How items end, and who waits for it.

use stoppable_scope::Deadline;

use super::ShutdownQueue;
use crate::queue::error::TaskDoneError;
use crate::queue::join::Join;
use crate::queue::join_by::JoinBy;

impl<T> ShutdownQueue<T> {
    /// Waits until no item is queued or in flight, and tells how they ended.
    ///
    /// An item that was dropped unsettled does not hold it up; it is in the report. Who joins is released
    /// in the moment when nothing is unfinished, also if more is sent before it runs again. After a
    /// [`shutdown`](Self::shutdown) it still waits for what is queued, so somebody has to drain the queue;
    /// after a [`shutdown_immediate`](Self::shutdown_immediate) it waits for what is in flight.
    ///
    /// # Errors
    ///
    /// `Cancelled` if the scope around this wait is cancelled; it wins over a result.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed by waiting. Wait again.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// jobs.send("job").await.unwrap();
    /// let consumer = jobs.clone();
    /// tokio::spawn(async move { consumer.recv().await.unwrap().unwrap().done() });
    /// assert!(jobs.join().await.unwrap().all_done());
    /// # }
    /// ```
    #[track_caller]
    pub fn join(&self) -> Join<'_, T> {
        Join::new(&self.shared)
    }

    /// [`join`](Self::join) with a limit on the wait. A `Duration` counts from this call.
    ///
    /// A limit that has already passed is `Elapsed` at once, also where nothing is unfinished.
    ///
    /// # Errors
    ///
    /// [`JoinByError`](crate::queue::JoinByError): the deadline came first, with how many items are
    /// unfinished and which, or cancelled. A deadline of a scope around the call is a cancel.
    ///
    /// # Cancel safety
    ///
    /// As [`join`](Self::join).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// jobs.send("job").await.unwrap();
    /// let error = jobs.join_by(Duration::from_secs(1)).await.unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "the queue was not finished before the deadline: \
    ///      1 item unfinished: 1 queued (#1), 0 in flight",
    /// );
    /// # }
    /// ```
    #[track_caller]
    pub fn join_by(&self, deadline: impl Into<Deadline>) -> JoinBy<'_, T> {
        JoinBy::new(&self.shared, deadline.into())
    }

    /// Takes one item that is queued out of the queue, by its ticket, and gives its value back.
    ///
    /// `None` if it is not queued: it was received, or ended, or there never was such an item. So a job
    /// that was cancelled in time never runs, and of a receiver and a cancel only one gets it. It counts as
    /// returned. A receiver that it was promised to goes on waiting, the first in its line.
    ///
    /// Takes time in proportion to what is queued. asyncio has nothing like it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// let first = jobs.send("first").await.unwrap();
    /// let second = jobs.send("second").await.unwrap();
    /// assert_eq!(jobs.cancel(first), Some("first"));
    ///
    /// let item = jobs.recv().await.unwrap().unwrap();
    /// assert_eq!(item.ticket(), second);
    /// assert_eq!(jobs.cancel(second), None); // too late
    /// item.done();
    /// # }
    /// ```
    pub fn cancel(&self, ticket: u64) -> Option<T> {
        self.shared.change(|core, wakes| core.cancel(ticket, wakes))
    }

    /// Settles one item that was [detached](crate::Item::detach) from its guard, the oldest, as done.
    ///
    /// asyncio's `task_done` is for every item; here the guard does it.
    ///
    /// # Errors
    ///
    /// [`TaskDoneError`] if no item is detached. Nothing is counted then.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_sync::{ShutdownQueue, TaskDoneError};
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// jobs.send(5).await.unwrap();
    /// let n: i32 = jobs.recv().await.unwrap().unwrap().detach();
    /// assert_eq!((n, jobs.stats().in_flight), (5, 1));
    /// assert_eq!(jobs.task_done(), Ok(()));
    /// assert_eq!(jobs.task_done(), Err(TaskDoneError));
    /// # }
    /// ```
    pub fn task_done(&self) -> Result<(), TaskDoneError> {
        self.shared.change(|core, wakes| core.task_done(wakes))
    }
}
