//! The state machine of the queue, without async, without a lock, without foreign code.
//!
//! Every change ends in [`Core::pump`], which promises items and grants slots until neither is possible.
//! So between two calls this always holds:
//!
//! - an item that is not promised lies in the store only if no receiver waits;
//! - a slot is free only if no sender waits;
//! - a receiver waits only if no sender has a slot and its value still with it;
//! - after a shutdown no sender waits, and no receiver where nothing is queued.
//!
//! That is why the paths below need not ask who waits: where there is something to have, nobody waits for it.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

mod receiving;
mod sending;
mod settling;

use super::join_report::JoinReport;
use super::ledger::{Ledger, Seat};
use super::queue_stats::QueueStats;
use super::store::{Entry, Store, Tag};
use super::unfinished::{Unfinished, UnfinishedItem};
use super::waiters::{Key, Line, Waiters};
use super::wakes::Wakes;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    /// Nothing comes in; what is queued can be had.
    Draining,
    /// Nothing comes in, nothing is put back.
    Stopped,
}

/// What a poll led to.
pub(crate) enum Step<R> {
    Ready(R),
    Pending,
    /// Clone the waker outside the lock and come again.
    NeedsClone,
}

/// An item on its way to its receiver.
pub(crate) struct Taken<T> {
    pub(crate) entry: Entry<T>,
    pub(crate) seat: Seat,
}

/// Where a `send` is.
pub(crate) enum Sending<T> {
    Unsent(T),
    Waiting(Key),
    Over,
}

/// How an item ended that is counted under the lock.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Rejected,
    Abandoned,
}

/// Waits in [`Line::Waiting`], has a promise in [`Line::Served`], is to look again when [`Line::Out`].
struct Receiver {
    waker: Option<Waker>,
}

/// Waits in [`Line::Waiting`]. A value in [`Line::Served`] has a slot.
struct Sender<T> {
    offer: Offer<T>,
    waker: Option<Waker>,
}

enum Offer<T> {
    /// Still the sender's. [`Line::Out`]: the queue was shut down.
    Value(T),
    Accepted,
    /// Wants a permit. [`Line::Out`]: the queue was shut down.
    Permit,
    /// Counts in `permits` already.
    Granted,
}

/// Waits in [`Line::Waiting`]; [`Line::Out`] with its report.
struct Joiner {
    waker: Option<Waker>,
    report: Option<JoinReport>,
}

pub(crate) struct Core<T> {
    store: Store<T>,
    phase: Phase,
    capacity: usize,
    receivers: Waiters<Receiver>,
    senders: Waiters<Sender<T>>,
    joiners: Waiters<Joiner>,
    /// Slots held by permits.
    permits: usize,
    accepted: u64,
    rejected: u64,
    abandoned: u64,
    returned: u64,
    requeued: u64,
    peak_len: usize,
    /// Where the ledger looks for the next seat.
    cursor: usize,
    /// Ticket and attempt of those in flight that found no seat in the ledger.
    overflow: BTreeMap<u64, u32>,
    /// Ticket and attempt of those detached from their guard.
    detached: VecDeque<(u64, u32)>,
}

impl<T> Core<T> {
    pub(crate) fn new(capacity: Option<usize>) -> Self {
        Self {
            store: Store::new(),
            phase: Phase::Open,
            capacity: capacity.unwrap_or(usize::MAX),
            receivers: Waiters::new(),
            senders: Waiters::new(),
            joiners: Waiters::new(),
            permits: 0,
            accepted: 0,
            rejected: 0,
            abandoned: 0,
            returned: 0,
            requeued: 0,
            peak_len: 0,
            cursor: 0,
            overflow: BTreeMap::new(),
            detached: VecDeque::new(),
        }
    }

    /// Items in the store that are promised to nobody.
    #[inline]
    fn available(&self) -> usize {
        self.store.len() - self.receivers.served()
    }

    /// Slots that are held for values not in the store yet.
    #[inline]
    fn reserved(&self) -> usize {
        self.permits + self.senders.served()
    }

    /// Promised items occupy no slot. What was requeued may be beyond the limit, so it saturates.
    #[inline]
    fn free(&self) -> usize {
        self.capacity.saturating_sub(self.available() + self.reserved())
    }

    #[inline]
    fn drained(&self) -> bool {
        self.phase != Phase::Open && self.store.is_empty()
    }

    /// Taken and not settled. Read together with the same `done`, so that the books always balance.
    #[inline]
    fn in_flight(&self, done: u64) -> u64 {
        let settled = done + self.rejected + self.abandoned + self.returned;
        self.accepted - settled - self.store.len() as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.store.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free() == 0
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.phase != Phase::Open
    }

    pub(crate) fn stats(&self, ledger: &Ledger) -> QueueStats {
        let done = ledger.done();
        QueueStats {
            len: self.store.len(),
            capacity: (self.capacity != usize::MAX).then_some(self.capacity),
            peak_len: self.peak_len,
            promised: self.receivers.served(),
            reserved: self.reserved(),
            waiting_receivers: self.receivers.waiting(),
            waiting_senders: self.senders.waiting(),
            waiting_joiners: self.joiners.waiting(),
            in_flight: self.in_flight(done),
            accepted: self.accepted,
            done,
            rejected: self.rejected,
            abandoned: self.abandoned,
            returned: self.returned,
            requeued: self.requeued,
            is_shut_down: self.is_shut_down(),
        }
    }

    pub(crate) fn unfinished(&self, ledger: &Ledger) -> Unfinished {
        let queued = self.store.tags().map(|tag| UnfinishedItem {
            ticket: tag.ticket,
            attempt: tag.attempt,
            in_flight: false,
        });
        let overflow = self.overflow.iter().map(|(ticket, attempt)| (*ticket, *attempt));
        let in_flight = ledger
            .seated()
            .chain(overflow)
            .chain(self.detached.iter().copied())
            .map(|(ticket, attempt)| UnfinishedItem { ticket, attempt, in_flight: true });
        Unfinished::new(queued.chain(in_flight).collect())
    }

    /// Promises items and grants slots until neither is possible.
    #[inline]
    fn pump(&mut self, wakes: &mut Wakes) {
        if self.receivers.waiting() != 0 || self.senders.waiting() != 0 {
            while self.pump_receiver(wakes) || self.pump_sender(wakes) {}
        }
    }

    fn pump_receiver(&mut self, wakes: &mut Wakes) -> bool {
        let Some(first) = self.receivers.first_waiting() else {
            return false;
        };
        let line = if self.available() != 0 || self.accept_first_granted() {
            Line::Served
        } else if self.drained() {
            Line::Out
        } else {
            return false;
        };
        self.receivers.shift(first, line);
        self.wake_receiver(first, wakes);
        true
    }

    fn pump_sender(&mut self, wakes: &mut Wakes) -> bool {
        if self.free() == 0 {
            return false;
        }
        let Some(first) = self.senders.first_waiting() else {
            return false;
        };
        let Some((_, sender)) = self.senders.get(first) else {
            return false;
        };
        wakes.push(sender.waker.take());
        match sender.offer {
            Offer::Permit => {
                sender.offer = Offer::Granted;
                self.permits += 1;
                self.senders.shift(first, Line::Out);
            }
            _ => self.senders.shift(first, Line::Served),
        }
        true
    }

    fn wake_receiver(&mut self, key: Key, wakes: &mut Wakes) {
        if let Some((_, receiver)) = self.receivers.get(key) {
            wakes.push(receiver.waker.take());
        }
    }

    /// Puts a value into the store. The caller has made sure of its place.
    #[inline]
    fn admit(&mut self, value: T) {
        self.accepted += 1;
        self.push(Entry { value, tag: Tag::new(self.accepted) });
    }

    #[inline]
    fn push(&mut self, entry: Entry<T>) {
        self.store.push(entry);
        self.peak_len = self.peak_len.max(self.store.len());
    }

    /// Accepts the value of the sender that has had a slot for longest. False: there is none.
    fn accept_first_granted(&mut self) -> bool {
        let Some(first) = self.senders.first_served() else {
            return false;
        };
        self.senders.shift(first, Line::Out);
        if let Some((_, sender)) = self.senders.get(first) {
            if let Offer::Value(value) = std::mem::replace(&mut sender.offer, Offer::Accepted) {
                self.admit(value);
            }
        }
        true
    }
}
