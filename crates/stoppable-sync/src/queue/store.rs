//! Where accepted values lie until a receiver takes them. The order is decided here and nowhere else.

use std::collections::VecDeque;
use std::fmt;

mod levels;

use levels::Levels;

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

/// Tells a value's level. Foreign code, so asked before the lock is taken.
pub(crate) type Priority<T> = Box<dyn Fn(&T) -> i64 + Send + Sync>;

/// Which item is next.
pub(crate) enum Order<T> {
    Fifo,
    Lifo,
    Priority(Priority<T>),
}

impl<T> Order<T> {
    /// The level of a value that enters; of no meaning unless this is an order by priority.
    #[inline]
    pub(crate) fn level(&self, value: &T) -> i64 {
        match self {
            Self::Fifo | Self::Lifo => 0,
            Self::Priority(priority) => priority(value),
        }
    }
}

impl<T> fmt::Debug for Order<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "Fifo",
            Self::Lifo => "Lifo",
            Self::Priority(_) => "Priority",
        })
    }
}

pub(crate) enum Store<T> {
    Fifo(VecDeque<Entry<T>>),
    Lifo(VecDeque<Entry<T>>),
    Priority(Box<Levels<T>>),
}

impl<T> Store<T> {
    pub(crate) fn new(order: &Order<T>) -> Self {
        match order {
            Order::Fifo => Self::Fifo(VecDeque::new()),
            Order::Lifo => Self::Lifo(VecDeque::new()),
            Order::Priority(_) => Self::Priority(Box::new(Levels::new())),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fifo(entries) | Self::Lifo(entries) => entries.len(),
            Self::Priority(levels) => levels.len(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: Entry<T>, level: i64) {
        match self {
            Self::Fifo(entries) | Self::Lifo(entries) => entries.push_back(entry),
            Self::Priority(levels) => levels.push(entry, level),
        }
    }

    /// Pushes it so that it comes out last: of all, or of its level.
    pub(crate) fn put_back(&mut self, entry: Entry<T>, level: i64) {
        match self {
            Self::Fifo(entries) => entries.push_back(entry),
            Self::Lifo(entries) => entries.push_front(entry),
            Self::Priority(levels) => levels.push(entry, level),
        }
    }

    /// The next entry in the queue's order.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry<T>> {
        match self {
            Self::Fifo(entries) => entries.pop_front(),
            Self::Lifo(entries) => entries.pop_back(),
            Self::Priority(levels) => levels.pop(),
        }
    }

    /// Takes one out of the middle. Looks through all of them.
    pub(crate) fn remove(&mut self, ticket: u64) -> Option<Entry<T>> {
        match self {
            Self::Fifo(entries) | Self::Lifo(entries) => {
                let at = entries.iter().position(|entry| entry.tag.ticket == ticket)?;
                entries.remove(at)
            }
            Self::Priority(levels) => levels.remove(ticket),
        }
    }

    /// Everything, in the queue's order.
    pub(crate) fn take_all(&mut self) -> VecDeque<Entry<T>> {
        match self {
            Self::Fifo(entries) => std::mem::take(entries),
            Self::Lifo(entries) => std::mem::take(entries).into_iter().rev().collect(),
            Self::Priority(levels) => levels.take_all(),
        }
    }

    /// What is in it, in no order.
    pub(crate) fn tags(&self) -> Vec<Tag> {
        match self {
            Self::Fifo(entries) | Self::Lifo(entries) => entries.iter().map(|entry| entry.tag).collect(),
            Self::Priority(levels) => levels.tags().collect(),
        }
    }
}
