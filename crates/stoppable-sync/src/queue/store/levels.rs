//! Entries by priority: one ring for each of the small levels, a sorted map for the rest.

use std::collections::{BTreeMap, VecDeque};

use super::{Entry, Tag};

/// So many levels, from 0 on, have a ring; a bit for each says whether it holds anything.
const RINGS: i64 = u64::BITS as i64;

/// Invariant: `filled` has the bit of every ring that is not empty and no other, `others` holds no
/// empty ring and none of a level that is in `rings`, and `len` counts all entries.
pub(crate) struct Levels<T> {
    rings: Vec<VecDeque<Entry<T>>>,
    filled: u64,
    others: BTreeMap<i64, VecDeque<Entry<T>>>,
    len: usize,
}

impl<T> Levels<T> {
    pub(crate) fn new() -> Self {
        Self { rings: Vec::new(), filled: 0, others: BTreeMap::new(), len: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: Entry<T>, level: i64) {
        self.len += 1;
        if (0..RINGS).contains(&level) {
            self.ring(level as usize).push_back(entry);
            self.filled |= 1 << level;
        } else {
            self.others.entry(level).or_default().push_back(entry);
        }
    }

    fn ring(&mut self, level: usize) -> &mut VecDeque<Entry<T>> {
        if self.rings.len() <= level {
            self.rings.resize_with(level + 1, VecDeque::new);
        }
        &mut self.rings[level]
    }

    /// The first of the smallest level.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry<T>> {
        let below = self.others.first_key_value().is_some_and(|(level, _)| *level < 0);
        if self.filled == 0 || below {
            return self.pop_other();
        }
        let level = self.filled.trailing_zeros() as usize;
        let ring = &mut self.rings[level];
        let entry = ring.pop_front()?;
        if ring.is_empty() {
            self.filled &= !(1 << level);
        }
        self.len -= 1;
        Some(entry)
    }

    #[cold]
    fn pop_other(&mut self) -> Option<Entry<T>> {
        let mut first = self.others.first_entry()?;
        let entry = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        self.len -= 1;
        entry
    }

    pub(crate) fn remove(&mut self, ticket: u64) -> Option<Entry<T>> {
        let has = |entry: &Entry<T>| entry.tag.ticket == ticket;
        for (level, ring) in self.rings.iter_mut().enumerate() {
            if let Some(at) = ring.iter().position(has) {
                let entry = ring.remove(at);
                if ring.is_empty() {
                    self.filled &= !(1 << level);
                }
                self.len -= 1;
                return entry;
            }
        }
        let (level, at) =
            self.others.iter().find_map(|(level, ring)| ring.iter().position(has).map(|at| (*level, at)))?;
        let ring = self.others.get_mut(&level)?;
        let entry = ring.remove(at);
        if ring.is_empty() {
            self.others.remove(&level);
        }
        self.len -= 1;
        entry
    }

    pub(crate) fn take_all(&mut self) -> VecDeque<Entry<T>> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    pub(crate) fn tags(&self) -> impl Iterator<Item = Tag> + '_ {
        self.rings.iter().chain(self.others.values()).flatten().map(|entry| entry.tag)
    }
}
