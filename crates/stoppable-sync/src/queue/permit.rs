use std::fmt;

use super::error::PermitVoidError;
use super::shared::Shared;

/// The right to send one value without waiting, as [`reserve`](super::ShutdownQueue::reserve) gives it.
///
/// It holds a slot of the queue until it is used or dropped. Reserve first and make the value then: a
/// cancelled wait for room so never has a value to lose. A shutdown makes permits void.
///
/// Modelled on tokio's `mpsc::Permit`; asyncio has nothing like it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_sync::ShutdownQueue;
///
/// let jobs = ShutdownQueue::bounded(1);
/// let permit = jobs.reserve().await.unwrap();
/// assert!(jobs.try_send("other").is_err());
/// permit.send("mine").unwrap();
/// assert_eq!(*jobs.recv().await.unwrap().unwrap(), "mine");
/// # }
/// ```
#[must_use = "a permit that is dropped gives its slot back"]
pub struct Permit<'a, T> {
    queue: &'a Shared<T>,
    /// Whether the slot went to a value.
    used: bool,
}

impl<'a, T> Permit<'a, T> {
    pub(crate) fn new(queue: &'a Shared<T>) -> Self {
        Self { queue, used: false }
    }

    /// Sends the value into the slot, and tells its ticket.
    ///
    /// # Errors
    ///
    /// [`PermitVoidError`] with the value in it if the queue was shut down meanwhile.
    pub fn send(mut self, value: T) -> Result<u64, PermitVoidError<T>> {
        let unsent = self.queue.unsent(value);
        self.used = true;
        self.queue.change(|core, wakes| core.send_with_permit(unsent, wakes)).map_err(PermitVoidError)
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        if !self.used {
            self.queue.change(|core, wakes| core.return_permit(wakes));
        }
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("queue", &self.queue.name.as_deref()).finish()
    }
}
