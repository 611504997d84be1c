//! Where accepted values lie until a receiver takes them. The order is decided here and nowhere else.

use std::collections::VecDeque;

/// An accepted value and what the queue knows about it.
pub(crate) struct Entry<T> {
    pub(crate) value: T,
    pub(crate) tag: Tag,
}

/// What stays with a value from its acceptance to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag {
    /// Counts accepted values from 1.
    pub(crate) ticket: u64,
    /// How often it was received.
    pub(crate) attempt: u32,
    /// How often it was requeued because its guard was dropped unsettled.
    pub(crate) abandons: u32,
}

impl Tag {
    pub(crate) fn new(ticket: u64) -> Self {
        Self { ticket, attempt: 0, abandons: 0 }
    }
}

/// First in, first out.
pub(crate) struct Store<T> {
    entries: VecDeque<Entry<T>>,
}

impl<T> Store<T> {
    pub(crate) fn new() -> Self {
        Self { entries: VecDeque::new() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: Entry<T>) {
        self.entries.push_back(entry);
    }

    /// The next entry in the queue's order.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry<T>> {
        self.entries.pop_front()
    }

    /// Everything, in the queue's order.
    pub(crate) fn take_all(&mut self) -> VecDeque<Entry<T>> {
        std::mem::take(&mut self.entries)
    }

    pub(crate) fn tags(&self) -> impl Iterator<Item = Tag> + '_ {
        self.entries.iter().map(|entry| entry.tag)
    }
}
