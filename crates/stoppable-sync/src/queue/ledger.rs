//! What may be written without the lock: how many are done, and who is in flight.

use super::store::Tag;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// So many items in flight are on record without the lock; further ones are in the core's overflow.
#[cfg(not(shuttle))]
const SEATS: usize = 64;
/// Few, so that a model run meets the overflow.
#[cfg(shuttle)]
const SEATS: usize = 1;

const VACANT: u64 = 0;
const ATTEMPT_BITS: u32 = 8;

/// Where an item in flight is on record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seat {
    Single(usize),
    Overflow,
    /// With the batch it was taken in.
    Batch {
        record: u32,
        at: u32,
    },
}

pub(crate) struct Ledger {
    /// Items settled by `done()`. Written without the lock.
    done: AtomicU64,
    /// How many joins wait. Written under the lock, read by `done()` without it.
    joiners: AtomicUsize,
    /// Ticket and attempt of each item in flight. Taken under the lock, vacated without it.
    seats: [AtomicU64; SEATS],
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            done: AtomicU64::new(0),
            joiners: AtomicUsize::new(0),
            seats: std::array::from_fn(|_| AtomicU64::new(VACANT)),
        }
    }

    /// Counts so many as done. True: somebody joins, and has to be looked after.
    ///
    /// The join goes the other way round, adds itself and then reads `done`; in the one order of SeqCst
    /// at least one of the two sees the other.
    #[inline]
    pub(crate) fn count_done(&self, many: u64) -> bool {
        self.done.fetch_add(many, Ordering::SeqCst);
        self.joiners.load(Ordering::SeqCst) != 0
    }

    #[inline]
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    pub(crate) fn set_joiners(&self, joiners: usize) {
        self.joiners.store(joiners, Ordering::SeqCst);
    }

    /// Finds a seat, from `cursor` on. Under the lock only. `undone` are the other items that were
    /// taken singly, whether done or not: where all seats are sure to be taken none is looked for.
    #[inline]
    pub(crate) fn seat(&self, tag: Tag, undone: u64, cursor: &mut usize) -> Seat {
        if undone - self.done.load(Ordering::Relaxed) >= SEATS as u64 {
            return Seat::Overflow;
        }
        for _ in 0..SEATS {
            let at = *cursor;
            *cursor = if at + 1 < SEATS { at + 1 } else { 0 };
            if self.seats[at].load(Ordering::Relaxed) == VACANT {
                self.seats[at].store(pack(tag), Ordering::Relaxed);
                return Seat::Single(at);
            }
        }
        Seat::Overflow
    }

    #[inline]
    pub(crate) fn vacate(&self, at: usize) {
        self.seats[at].store(VACANT, Ordering::Relaxed);
    }

    /// Ticket and attempt of those in the seats.
    pub(crate) fn seated(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.seats
            .iter()
            .map(|seat| seat.load(Ordering::Relaxed))
            .filter(|packed| *packed != VACANT)
            .map(unpack)
    }
}

/// Tickets start from 1, so that this is never `VACANT`. An attempt beyond 255 reads as 255.
fn pack(tag: Tag) -> u64 {
    let attempt = u64::from(tag.attempt).min((1 << ATTEMPT_BITS) - 1);
    tag.ticket << ATTEMPT_BITS | attempt
}

fn unpack(packed: u64) -> (u64, u32) {
    (packed >> ATTEMPT_BITS, (packed & ((1 << ATTEMPT_BITS) - 1)) as u32)
}
