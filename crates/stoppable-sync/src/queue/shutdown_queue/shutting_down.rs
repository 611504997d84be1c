//! How the queue closes.

use super::ShutdownQueue;
use crate::queue::core::End;
use crate::queue::leftovers::Leftovers;

impl<T> ShutdownQueue<T> {
    /// Takes nothing new from now on: what is queued can still be received, then everybody gets `None`.
    ///
    /// Blocked senders get their values back, and permits are void. Receivers that wait for nothing are
    /// woken. Repeating it changes nothing.
    ///
    /// As `Queue.shutdown()` of asyncio 3.13, where receivers get an exception at the end.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// jobs.send("queued").await.unwrap();
    /// jobs.shutdown();
    /// assert!(jobs.send("late").await.is_err());
    /// assert_eq!(*jobs.recv().await.unwrap().unwrap(), "queued");
    /// assert!(jobs.recv().await.unwrap().is_none());
    /// # }
    /// ```
    #[doc(alias = "close")]
    pub fn shutdown(&self) {
        self.shared.change(|core, wakes| core.shut_down(wakes));
    }

    /// Shuts down and takes out what is queued, promised items included. Everybody who waits is told.
    ///
    /// What is in flight stays so: `join` waits for it, but it can no more be requeued. It may follow a
    /// [`shutdown`](Self::shutdown), never the other way round.
    ///
    /// asyncio's `shutdown(immediate=True)` throws the values away.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let jobs = ShutdownQueue::bounded(8);
    /// jobs.send("not processed").await.unwrap();
    /// for job in jobs.shutdown_immediate() {
    ///     println!("to do next time: {job}");
    /// }
    /// assert_eq!(jobs.join().await.unwrap().returned, 1);
    /// # }
    /// ```
    pub fn shutdown_immediate(&self) -> Leftovers<T> {
        let shared = &*self.shared;
        let (entries, in_flight) = shared.change(|core, wakes| {
            let entries = core.stop(End::Returned, wakes);
            (entries, core.stats().in_flight)
        });
        Leftovers::new(entries, in_flight)
    }
}
