//! Which items of each batch are in flight: one record a batch, kept under the lock.

use super::store::Tag;

/// Invariant: a record without tags is vacant.
pub(crate) struct Batches {
    records: Vec<Vec<Tag>>,
    vacant: Vec<u32>,
}

impl Batches {
    pub(crate) fn new() -> Self {
        Self { records: Vec::new(), vacant: Vec::new() }
    }

    /// An empty record, with what it takes to fill it. Something has to be added to it.
    pub(crate) fn open(&mut self) -> (u32, &mut Vec<Tag>) {
        let record = self.vacant.pop().unwrap_or_else(|| {
            self.records.push(Vec::new());
            (self.records.len() - 1) as u32
        });
        (record, &mut self.records[record as usize])
    }

    pub(crate) fn tags(&self, record: u32) -> &[Tag] {
        &self.records[record as usize]
    }

    /// None of it is in flight any more. Tells how many were.
    pub(crate) fn close(&mut self, record: u32) -> usize {
        let tags = &mut self.records[record as usize];
        let many = tags.len();
        tags.clear();
        self.vacant.push(record);
        many
    }

    /// All items in flight.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Tag> {
        self.records.iter().flatten()
    }
}
