use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::batch_items::BatchItems;
use super::core::TakenMany;
use super::shared::Shared;

/// Items in flight that were received together: one guard around all of them.
///
/// It is what [`recv_many`](super::ShutdownQueue::recv_many) and
/// [`recv_batch`](super::ShutdownQueue::recv_batch) give, at least one item, in the order of the queue. It
/// is a slice of the values, for whoever takes many at a time. [`done`](Self::done) settles all of them. To
/// settle each in its own way, iterate: that gives an [`Item`](super::Item) for each. A batch that is
/// dropped unsettled, and what is left of one while it is iterated, is abandoned, item by item, by the
/// queue's [`AbandonPolicy`](super::AbandonPolicy).
///
/// One guard for all costs less than one for each; iterating gives that up.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_sync::ShutdownQueue;
///
/// # async fn insert_all(rows: &[u32]) -> Result<(), ()> { Ok(()) }
/// let rows = ShutdownQueue::bounded(100);
/// for row in 0..5 {
///     rows.send(row).await.unwrap();
/// }
/// let batch = rows.recv_many(3).await.unwrap().unwrap();
/// assert_eq!(*batch, [0, 1, 2]);
/// if insert_all(&batch).await.is_ok() {
///     batch.done();
/// }
/// for row in rows.recv_many(3).await.unwrap().unwrap() {
///     if *row == 3 { row.done() } else { row.reject() }
/// }
/// assert_eq!((rows.stats().done, rows.stats().rejected), (4, 1));
/// # }
/// ```
#[must_use = "a batch that is dropped unsettled is abandoned; call `done`"]
pub struct Batch<T> {
    queue: Arc<Shared<T>>,
    /// Empty once it is settled or iterated, and only then.
    values: Vec<T>,
    record: u32,
}

impl<T> Batch<T> {
    pub(crate) fn new(queue: Arc<Shared<T>>, taken: TakenMany<T>) -> Self {
        let TakenMany { values, record } = taken;
        Self { queue, values, record }
    }

    /// Drops the values and counts all items as done.
    ///
    /// They are counted after the values were dropped, and also if a destructor panics.
    pub fn done(mut self) {
        let values = std::mem::take(&mut self.values);
        let _count = CountDone { queue: &self.queue, record: self.record };
        drop(values);
    }

    fn take_items(&mut self) -> BatchItems<T> {
        let values = std::mem::take(&mut self.values);
        BatchItems::new(&self.queue, values, self.record)
    }
}

struct CountDone<'a, T> {
    queue: &'a Shared<T>,
    record: u32,
}

impl<T> Drop for CountDone<'_, T> {
    fn drop(&mut self) {
        let Self { queue, record } = self;
        queue.change(|core, wakes| core.batch_done(*record, wakes));
    }
}

/// Gives each item its own guard.
impl<T> IntoIterator for Batch<T> {
    type Item = super::Item<T>;
    type IntoIter = BatchItems<T>;

    fn into_iter(mut self) -> BatchItems<T> {
        self.take_items()
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        if !self.values.is_empty() {
            drop(self.take_items());
        }
    }
}

impl<T> Deref for Batch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> DerefMut for Batch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

impl<T: fmt::Debug> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Batch").field(&self.values).finish()
    }
}
