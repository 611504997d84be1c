//! Entries by priority: one ring for each of the small levels, a sorted map for the rest.

use std::collections::{BTreeMap, VecDeque};

use super::Entry;

/// So many levels, from 0 on, have a ring; a bit for each says whether it holds anything.
const RINGS: i64 = u64::BITS as i64;

/// Invariant: `filled` has the bit of every ring that is not empty and no other, and `others` holds no
/// empty ring and none of a level that is in `rings`.
pub(super) struct Levels<T> {
    rings: Vec<VecDeque<Entry<T>>>,
    filled: u64,
    others: BTreeMap<i64, VecDeque<Entry<T>>>,
}

impl<T> Levels<T> {
    pub(super) fn new() -> Self {
        Self { rings: Vec::new(), filled: 0, others: BTreeMap::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry<T>, level: i64) {
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
    pub(super) fn pop(&mut self) -> Option<Entry<T>> {
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
        Some(entry)
    }

    #[cold]
    fn pop_other(&mut self) -> Option<Entry<T>> {
        let mut first = self.others.first_entry()?;
        let entry = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        entry
    }

    pub(super) fn remove(&mut self, ticket: u64) -> Option<Entry<T>> {
        let has = |entry: &Entry<T>| entry.ticket == ticket;
        for (level, ring) in self.rings.iter_mut().enumerate() {
            if let Some(at) = ring.iter().position(has) {
                let entry = ring.remove(at);
                if ring.is_empty() {
                    self.filled &= !(1 << level);
                }
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
        entry
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<T>> {
        self.rings.iter().chain(self.others.values()).flatten()
    }
}
