//! Which items of each batch are in flight: one record a batch, kept under the lock.

use super::store::Tag;

/// Tickets start from 1.
const SETTLED: u64 = 0;

/// Invariant: `left` is how many tags of a record are not settled, `items` is the sum of them; a record
/// without any is empty and vacant.
pub(crate) struct Batches {
    records: Vec<Record>,
    vacant: Vec<u32>,
    items: u64,
}

#[derive(Default)]
struct Record {
    tags: Vec<Tag>,
    left: usize,
}

impl Batches {
    pub(crate) fn new() -> Self {
        Self { records: Vec::new(), vacant: Vec::new(), items: 0 }
    }

    /// How many items are in flight in all batches.
    #[inline]
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// An empty record. Something has to be added to it.
    pub(crate) fn open(&mut self) -> u32 {
        self.vacant.pop().unwrap_or_else(|| {
            self.records.push(Record::default());
            (self.records.len() - 1) as u32
        })
    }

    #[inline]
    pub(crate) fn add(&mut self, record: u32, tag: Tag) {
        let record = &mut self.records[record as usize];
        record.tags.push(tag);
        record.left += 1;
        self.items += 1;
    }

    pub(crate) fn tags(&self, record: u32) -> Vec<Tag> {
        self.records[record as usize].tags.clone()
    }

    /// One item of it is in flight no more.
    pub(crate) fn vacate(&mut self, record: u32, at: u32) {
        let Record { tags, left } = &mut self.records[record as usize];
        tags[at as usize].ticket = SETTLED;
        *left -= 1;
        self.items -= 1;
        if *left == 0 {
            tags.clear();
            self.vacant.push(record);
        }
    }

    /// None of it is in flight any more.
    pub(crate) fn close(&mut self, record: u32) {
        let Record { tags, left } = &mut self.records[record as usize];
        self.items -= std::mem::take(left) as u64;
        tags.clear();
        self.vacant.push(record);
    }

    /// Ticket and attempt of each item in flight.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let tags = self.records.iter().flat_map(|record| &record.tags);
        tags.filter(|tag| tag.ticket != SETTLED).map(|tag| (tag.ticket, tag.attempt))
    }
}
