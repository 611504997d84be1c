//! What `Item` and `ItemRef` have in common.

use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;

use super::core::{End, Seat, Taken};
use super::shared::Shared;
use super::store::Tag;

/// The queue, as a guard knows it.
pub(crate) trait Queue<T>: Deref<Target = Shared<T>> {
    fn count_done(&self, seat: Seat);
}

impl<T> Queue<T> for &Shared<T> {
    #[inline(always)]
    fn count_done(&self, seat: Seat) {
        self.settle(seat, End::Done);
    }
}

/// An item in flight. Whoever drops it with the value inside abandons it.
pub(crate) struct Held<T, Q: Queue<T>> {
    /// Taken exactly when the item is settled, which ends the guard; so it is there to be looked at.
    live: Option<Live<T, Q>>,
}

struct Live<T, Q> {
    queue: Q,
    taken: Taken<T>,
}

const THERE: &str = "a guard has its value until it is settled";

impl<T, Q: Queue<T>> Held<T, Q> {
    #[inline(always)]
    pub(crate) fn new(queue: Q, taken: Taken<T>) -> Self {
        Self { live: Some(Live { queue, taken }) }
    }

    #[inline]
    fn live(&self) -> &Live<T, Q> {
        self.live.as_ref().expect(THERE)
    }

    /// The record of the item is with the queue, so that the guard is small.
    pub(crate) fn tag(&self) -> Tag {
        let Live { queue, taken } = self.live();
        queue.tag(taken.seat)
    }

    #[inline]
    pub(crate) fn value(&self) -> &T {
        &self.live().taken.value
    }

    #[inline]
    pub(crate) fn value_mut(&mut self) -> &mut T {
        &mut self.live.as_mut().expect(THERE).taken.value
    }

    /// Drops the value, then counts: also when its destructor panics.
    #[inline(always)]
    pub(crate) fn done(mut self) {
        let live = self.live.take();
        // There is nothing left in it to drop, which the compiler does not see.
        mem::forget(self);
        if let Some(Live { queue, taken: Taken { value, seat } }) = live {
            let _count = CountDone { queue: &queue, seat, value: PhantomData };
            drop(value);
        }
    }

    pub(crate) fn reject(mut self) {
        if let Some(Live { queue, taken }) = self.live.take() {
            queue.reject(taken);
        }
    }

    pub(crate) fn requeue(mut self) -> Result<(), Self> {
        let level = self.live().queue.level(self.value());
        let Live { queue, taken: Taken { value, seat } } = self.live.take().expect(THERE);
        match queue.change(|core, wakes| core.requeue(seat, value, level, wakes)) {
            Ok(()) => Ok(()),
            Err(value) => Err(Self::new(queue, Taken { value, seat })),
        }
    }

    pub(crate) fn detach(mut self) -> T {
        let Live { queue, taken: Taken { value, seat } } = self.live.take().expect(THERE);
        queue.change(|core, _| core.detach(seat));
        value
    }
}

impl<T, Q: Queue<T>> Drop for Held<T, Q> {
    #[inline]
    fn drop(&mut self) {
        if let Some(Live { queue, taken }) = self.live.take() {
            queue.abandon(taken);
        }
    }
}

struct CountDone<'a, T, Q: Queue<T>> {
    queue: &'a Q,
    seat: Seat,
    value: PhantomData<T>,
}

impl<T, Q: Queue<T>> Drop for CountDone<'_, T, Q> {
    #[inline(always)]
    fn drop(&mut self) {
        self.queue.count_done(self.seat);
    }
}
