use std::fmt;
use std::sync::Arc;
use std::vec;

use super::core::{Seat, Taken};
use super::item::Item;
use super::lease::Lease;
use super::shared::Shared;

/// The items of a [`Batch`](super::Batch), one by one. Those that are left when it is dropped are abandoned.
#[must_use = "items that are dropped unsettled are abandoned"]
pub struct BatchItems<T> {
    lease: Arc<Lease<T>>,
    values: vec::IntoIter<T>,
    seats: vec::IntoIter<Seat>,
}

impl<T> BatchItems<T> {
    pub(crate) fn new(queue: &Arc<Shared<T>>, values: Vec<T>, record: u32) -> Self {
        let seats = queue.change(|core, _| core.break_up(record));
        Self { lease: Lease::new(queue), values: values.into_iter(), seats: seats.into_iter() }
    }
}

impl<T> Iterator for BatchItems<T> {
    type Item = Item<T>;

    fn next(&mut self) -> Option<Item<T>> {
        let (value, seat) = (self.values.next()?, self.seats.next()?);
        Some(Item::new(Arc::clone(&self.lease), Taken { value, seat }))
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
