//! Where accepted values lie until a receiver takes them. The order is decided here and nowhere else.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

mod levels;

use levels::Levels;

/// What the queue knows about a value from its acceptance to its end.
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
    #[inline]
    fn new(ticket: u64) -> Self {
        Self { ticket, attempt: 0, abandons: 0 }
    }

    /// Of the item once it was received again.
    #[inline]
    pub(crate) fn received(self) -> Self {
        Self { attempt: self.attempt.saturating_add(1), ..self }
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

/// A value and its ticket: as much as goes through two registers where the value is a word.
struct Entry<T> {
    value: T,
    ticket: u64,
}

/// Invariant: `len` counts the entries, and `again` has the tag of each that was received before.
pub(crate) struct Store<T> {
    entries: Entries<T>,
    len: usize,
    again: BTreeMap<u64, Tag>,
}

enum Entries<T> {
    Fifo(VecDeque<Entry<T>>),
    Lifo(VecDeque<Entry<T>>),
    Priority(Box<Levels<T>>),
}

impl<T> Store<T> {
    pub(crate) fn new(order: &Order<T>) -> Self {
        let entries = match order {
            Order::Fifo => Entries::Fifo(VecDeque::new()),
            Order::Lifo => Entries::Lifo(VecDeque::new()),
            Order::Priority(_) => Entries::Priority(Box::new(Levels::new())),
        };
        Self { entries, len: 0, again: BTreeMap::new() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: T, ticket: u64, level: i64) {
        let entry = Entry { value, ticket };
        match &mut self.entries {
            Entries::Fifo(entries) | Entries::Lifo(entries) => entries.push_back(entry),
            Entries::Priority(levels) => levels.push(entry, level),
        }
        self.len += 1;
    }

    /// Pushes many with the tickets that follow `ticket`; the levels too, if the order has any.
    pub(crate) fn push_many(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
        mut ticket: u64,
        levels: &mut VecDeque<i64>,
    ) {
        let many = values.len();
        let entries = values.map(|value| {
            ticket += 1;
            Entry { value, ticket }
        });
        match &mut self.entries {
            Entries::Fifo(queued) | Entries::Lifo(queued) => {
                queued.extend(entries);
            }
            Entries::Priority(queued) => {
                entries.zip(levels.drain(..many)).for_each(|(entry, level)| queued.push(entry, level));
            }
        }
        self.len += many;
    }

    /// Pushes it so that it comes out last: of all, or of its level.
    pub(crate) fn put_back(&mut self, value: T, tag: Tag, level: i64) {
        let entry = Entry { value, ticket: tag.ticket };
        match &mut self.entries {
            Entries::Fifo(entries) => entries.push_back(entry),
            Entries::Lifo(entries) => entries.push_front(entry),
            Entries::Priority(levels) => levels.push(entry, level),
        }
        self.len += 1;
        self.again.insert(tag.ticket, tag);
    }

    /// The next value in the queue's order.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(T, Tag)> {
        let Entry { value, ticket } = match &mut self.entries {
            Entries::Fifo(entries) => entries.pop_front(),
            Entries::Lifo(entries) => entries.pop_back(),
            Entries::Priority(levels) => levels.pop(),
        }?;
        self.len -= 1;
        Some((value, self.take_tag(ticket)))
    }

    /// The next `many` values in the queue's order, of which there are so many.
    pub(crate) fn pop_many(&mut self, many: usize, mut take: impl FnMut(T, Tag)) {
        match &mut self.entries {
            Entries::Fifo(entries) if self.again.is_empty() => {
                self.len -= many;
                entries.drain(..many).for_each(|Entry { value, ticket }| take(value, Tag::new(ticket)));
            }
            _ => std::iter::from_fn(|| self.pop()).take(many).for_each(|(value, tag)| take(value, tag)),
        }
    }

    /// Few values come here twice, so the others have no tag on record.
    #[inline]
    fn take_tag(&mut self, ticket: u64) -> Tag {
        let known = if self.again.is_empty() { None } else { self.again.remove(&ticket) };
        known.unwrap_or(Tag::new(ticket))
    }

    /// Takes one out of the middle. Looks through all of them.
    pub(crate) fn remove(&mut self, ticket: u64) -> Option<T> {
        let entry = match &mut self.entries {
            Entries::Fifo(entries) | Entries::Lifo(entries) => {
                let at = entries.iter().position(|entry| entry.ticket == ticket)?;
                entries.remove(at)
            }
            Entries::Priority(levels) => levels.remove(ticket),
        }?;
        self.len -= 1;
        self.again.remove(&ticket);
        Some(entry.value)
    }

    /// Everything, in the queue's order.
    pub(crate) fn take_all(&mut self) -> VecDeque<(T, Tag)> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// What is in it, in no order.
    pub(crate) fn tags(&self) -> Vec<Tag> {
        let tag = |entry: &Entry<T>| self.again.get(&entry.ticket).copied().unwrap_or(Tag::new(entry.ticket));
        match &self.entries {
            Entries::Fifo(entries) | Entries::Lifo(entries) => entries.iter().map(tag).collect(),
            Entries::Priority(levels) => levels.iter().map(tag).collect(),
        }
    }
}
