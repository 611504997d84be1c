//! Items on their way out together.

use super::{Core, End, Receiver, Seat, Step, TakenMany};
use crate::queue::waiters::{Key, Line};
use crate::queue::wakes::{NeedsClone, Poller, Wakes};

/// What a wait for a batch wants.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// So many are promised to it before it is served, unless it is due.
    pub(crate) promises: usize,
    /// So many it takes at most.
    pub(crate) max: usize,
}

impl<T> Core<T> {
    /// `None`: shut down and nothing queued. While it waits, what is collected lies in the store and is
    /// promised to it; `begun` tells whether that is anything. `due`: what there is will do.
    pub(crate) fn poll_recv_many(
        &mut self,
        key: &mut Option<Key>,
        wanted: Wanted,
        due: bool,
        begun: &mut bool,
        poller: &mut Poller<'_>,
        wakes: &mut Wakes,
    ) -> Step<Option<TakenMany<T>>> {
        loop {
            let known = match *key {
                Some(known) => known,
                None => self.line_up_for(wanted.promises, key, wakes),
            };
            match self.receivers.get(known) {
                Some((Line::Waiting, receiver)) if !due || receiver.promised == 0 => {
                    *begun = receiver.promised != 0;
                    return match poller.register(&mut receiver.waker) {
                        Ok(()) => Step::Pending,
                        Err(NeedsClone) => Step::NeedsClone,
                    };
                }
                Some((Line::Waiting | Line::Served, _)) => {
                    *key = None;
                    wakes.retire(self.strike_off(known));
                    let taken = self.take_many(wanted.max);
                    self.pump(wakes);
                    return Step::Ready(Some(taken));
                }
                _ => {
                    // Told to look again.
                    *key = None;
                    self.strike_off(known);
                    if self.drained() {
                        return Step::Ready(None);
                    }
                }
            }
        }
    }

    /// Its waker is put on record when it turns out that it has to wait.
    fn line_up_for(&mut self, want: usize, key: &mut Option<Key>, wakes: &mut Wakes) -> Key {
        let known = self.receivers.insert(Receiver { waker: None, want, promised: 0 });
        *key = Some(known);
        self.pump(wakes);
        known
    }

    /// Takes what the order says is next, up to `max` of what is promised to nobody.
    fn take_many(&mut self, max: usize) -> TakenMany<T> {
        let many = self.available().min(max);
        let (record, tags) = self.batches.open();
        let mut values = Vec::with_capacity(many);
        tags.reserve(many);
        self.store.pop_many(many, |value, tag| {
            values.push(value);
            tags.push(tag.received());
        });
        TakenMany { values, record }
    }

    /// Counts all items of a batch as done.
    pub(crate) fn batch_done(&mut self, record: u32, wakes: &mut Wakes) {
        let many = self.batches.close(record);
        self.count(End::Done, many as u64, wakes);
    }

    /// Every item of the batch gets a seat of its own.
    pub(crate) fn break_up(&mut self, record: u32) -> Vec<Seat> {
        let tags = self.batches.tags(record).to_vec();
        self.batches.close(record);
        tags.into_iter().map(|tag| self.seat(tag)).collect()
    }
}
