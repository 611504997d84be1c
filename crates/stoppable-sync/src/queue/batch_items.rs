use std::fmt;
use std::sync::Arc;
use std::vec;

use super::core::Taken;
use super::item::Item;
use super::ledger::Seat;
use super::shared::Shared;
use super::store::{Entry, Tag};

/// The items of a [`Batch`](super::Batch), one by one. Those that are left when it is dropped are abandoned.
#[must_use = "items that are dropped unsettled are abandoned"]
pub struct BatchItems<T> {
    queue: Arc<Shared<T>>,
    values: vec::IntoIter<T>,
    tags: vec::IntoIter<Tag>,
    record: u32,
    /// The place in the record of the item that is next.
    at: u32,
}

impl<T> BatchItems<T> {
    pub(crate) fn new(queue: &Arc<Shared<T>>, values: Vec<T>, record: u32) -> Self {
        let tags = queue.read(|core| core.batches.tags(record));
        let queue = Arc::clone(queue);
        Self { queue, values: values.into_iter(), tags: tags.into_iter(), record, at: 0 }
    }
}

impl<T> Iterator for BatchItems<T> {
    type Item = Item<T>;

    fn next(&mut self) -> Option<Item<T>> {
        let (value, tag) = (self.values.next()?, self.tags.next()?);
        let seat = Seat::Batch { record: self.record, at: self.at };
        self.at += 1;
        Some(Item::new(Arc::clone(&self.queue), Taken { entry: Entry { value, tag }, seat }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.values.size_hint()
    }
}

impl<T> ExactSizeIterator for BatchItems<T> {}

impl<T> Drop for BatchItems<T> {
    fn drop(&mut self) {
        /// Goes on where the destructor of a value panicked.
        struct Rest<'a, T>(&'a mut BatchItems<T>);

        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                self.0.for_each(drop);
            }
        }

        let rest = Rest(self);
        rest.0.for_each(drop);
    }
}

impl<T> fmt::Debug for BatchItems<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchItems").field("len", &self.len()).finish_non_exhaustive()
    }
}
