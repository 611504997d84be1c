use std::fmt;

/// A value that nobody processed, as the queue's sink gets it.
///
/// The sink is set with [`Builder::dead_letters`](super::Builder::dead_letters). It is called without
/// any lock held, by whoever settled, dropped or lost the item, and should be short. An item is counted
/// after the sink has returned, so that `join` waits for it; a panic in it is caught and logged.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::sync::{Arc, Mutex};
/// use stoppable_sync::ShutdownQueue;
///
/// let dead = Arc::new(Mutex::new(Vec::new()));
/// let sink = dead.clone();
/// let jobs = ShutdownQueue::builder()
///     .dead_letters(move |letter| sink.lock().unwrap().push((letter.value, letter.attempt)))
///     .build();
/// jobs.send("bad").await.unwrap();
/// jobs.recv().await.unwrap().unwrap().reject();
/// assert_eq!(*dead.lock().unwrap(), [("bad", 1)]);
/// # }
/// ```
#[non_exhaustive]
pub struct DeadLetter<T> {
    /// The value.
    pub value: T,
    /// The item's number: values are numbered from 1 in the order in which they were accepted.
    pub ticket: u64,
    /// How often it was received.
    pub attempt: u32,
    /// How it came here.
    pub reason: DeadLetterReason,
}

/// How a [`DeadLetter`] came to the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// [`Item::reject`](super::Item::reject).
    Rejected,
    /// Its guard was dropped unsettled; see [`AbandonPolicy`](super::AbandonPolicy).
    Abandoned,
    /// It was queued when the last handle of the queue was dropped.
    QueueDropped,
}

impl<T> fmt::Debug for DeadLetter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("ticket", &self.ticket)
            .field("attempt", &self.attempt)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}
