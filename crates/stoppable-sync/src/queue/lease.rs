use std::ops::Deref;
use std::sync::Arc;

use super::core::{End, Seat};
use super::ends::Ends;
use super::held::Queue;
use super::shared::Shared;

/// What keeps the queue for the items that own their share of it.
///
/// Many items share one, and so does the queue itself. That way letting go of it is the one thing that an
/// item does when it is done: a join that has to wait makes the queue let go as well, and is told by
/// whoever does so last.
pub(crate) struct Lease<T> {
    queue: Arc<Shared<T>>,
    ends: Arc<Ends>,
}

impl<T> Lease<T> {
    pub(crate) fn new(queue: &Arc<Shared<T>>) -> Arc<Self> {
        Arc::new(Self { queue: Arc::clone(queue), ends: Arc::clone(&queue.ends) })
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        self.queue.look_after_joiners();
    }
}

/// An item's share.
pub(crate) struct Leased<T>(pub(crate) Arc<Lease<T>>);

impl<T> Deref for Leased<T> {
    type Target = Shared<T>;

    #[inline]
    fn deref(&self) -> &Shared<T> {
        &self.0.queue
    }
}

impl<T> Leased<T> {
    /// Where somebody waits for the end, or there are more items in flight than can be noted.
    #[cold]
    #[inline(never)]
    fn settle_aloud(&self, seat: Seat) {
        self.settle(seat, End::Done);
    }
}

impl<T> Queue<T> for Leased<T> {
    #[inline(always)]
    fn count_done(&self, seat: Seat) {
        match seat.alone() {
            Some(seat) => self.0.ends.note(seat),
            None => self.settle_aloud(seat),
        }
    }
}
