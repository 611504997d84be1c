//! What `Item` and `ItemRef` have in common.

use std::ops::Deref;

use super::core::Taken;
use super::ledger::Seat;
use super::shared::Shared;
use super::store::{Entry, Tag};

/// An item in flight. Whoever drops it with the value inside abandons it.
pub(crate) struct Held<T, Q: Deref<Target = Shared<T>>> {
    queue: Q,
    /// Taken exactly when the item is settled, which ends the guard; so it is there to be looked at.
    value: Option<T>,
    tag: Tag,
    seat: Seat,
}

const THERE: &str = "a guard has its value until it is settled";

impl<T, Q: Deref<Target = Shared<T>>> Held<T, Q> {
    #[inline]
    pub(crate) fn new(queue: Q, taken: Taken<T>) -> Self {
        let Taken { entry: Entry { value, tag }, seat } = taken;
        Self { queue, value: Some(value), tag, seat }
    }

    pub(crate) fn tag(&self) -> Tag {
        self.tag
    }

    #[inline]
    pub(crate) fn value(&self) -> &T {
        self.value.as_ref().expect(THERE)
    }

    #[inline]
    pub(crate) fn value_mut(&mut self) -> &mut T {
        self.value.as_mut().expect(THERE)
    }

    /// Drops the value, then counts: also when its destructor panics.
    #[inline]
    pub(crate) fn done(mut self) {
        let value = self.value.take();
        let _count = CountDone(&self);
        drop(value);
    }

    pub(crate) fn reject(mut self) {
        if let Some(taken) = self.take() {
            self.queue.reject(taken);
        }
    }

    pub(crate) fn requeue(mut self) -> Result<(), Self> {
        let level = self.queue.level(self.value());
        let Some(Taken { entry, seat }) = self.take() else {
            return Ok(());
        };
        let queue = &*self.queue;
        match queue.change(|core, wakes| core.requeue(&queue.ledger, seat, entry, level, wakes)) {
            Ok(()) => Ok(()),
            Err(entry) => {
                self.value = Some(entry.value);
                Err(self)
            }
        }
    }

    pub(crate) fn detach(mut self) -> T {
        let value = self.value.take().expect(THERE);
        let queue = &*self.queue;
        queue.change(|core, _| core.detach(&queue.ledger, self.seat, self.tag));
        value
    }

    fn take(&mut self) -> Option<Taken<T>> {
        let value = self.value.take()?;
        Some(Taken { entry: Entry { value, tag: self.tag }, seat: self.seat })
    }
}

impl<T, Q: Deref<Target = Shared<T>>> Drop for Held<T, Q> {
    #[inline]
    fn drop(&mut self) {
        if let Some(taken) = self.take() {
            self.queue.abandon(taken);
        }
    }
}

struct CountDone<'a, T, Q: Deref<Target = Shared<T>>>(&'a Held<T, Q>);

impl<T, Q: Deref<Target = Shared<T>>> Drop for CountDone<'_, T, Q> {
    #[inline]
    fn drop(&mut self) {
        self.0.queue.count_done(self.0.seat, self.0.tag);
    }
}
