use std::collections::{VecDeque, vec_deque};
use std::fmt;

use super::store::Tag;

/// What was queued when a queue was shut down at once: nothing is thrown away unseen.
///
/// Iterates over the values, in the queue's order.
/// [`in_flight`](Self::in_flight) tells how many were with a consumer at that moment.
///
/// asyncio's `shutdown(immediate=True)` discards the values.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_sync::ShutdownQueue;
///
/// let jobs = ShutdownQueue::bounded(8);
/// for n in 0..3 {
///     jobs.send(n).await.unwrap();
/// }
/// let item = jobs.recv().await.unwrap().unwrap();
///
/// let leftovers = jobs.shutdown_immediate();
/// assert_eq!(leftovers.in_flight(), 1);
/// assert_eq!(leftovers.into_iter().collect::<Vec<_>>(), [1, 2]);
/// item.done();
/// # }
/// ```
#[must_use = "these values were accepted and not processed; look at them, or `drop` them knowingly"]
pub struct Leftovers<T> {
    values: VecDeque<T>,
    in_flight: u64,
}

impl<T> Leftovers<T> {
    pub(crate) fn new(queued: VecDeque<(T, Tag)>, in_flight: u64) -> Self {
        Self { values: queued.into_iter().map(|(value, _)| value).collect(), in_flight }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether nothing was queued.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How many items were received and not settled at that moment. `join` still waits for them.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Looks at the values, in the queue's order.
    pub fn iter(&self) -> vec_deque::Iter<'_, T> {
        self.values.iter()
    }
}

impl<T> IntoIterator for Leftovers<T> {
    type Item = T;
    type IntoIter = vec_deque::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Leftovers<T> {
    type Item = &'a T;
    type IntoIter = vec_deque::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.iter()
    }
}

impl<T> fmt::Debug for Leftovers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leftovers")
            .field("len", &self.len())
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}
