//! The state machine of the queue, without async, without a lock, without foreign code.
//!
//! Every change ends in [`Core::pump`], which promises items and grants slots until neither is possible.
//! So between two calls this always holds:
//!
//! - an item that is not promised lies in the store only if no receiver waits;
//! - a slot is free only if no sender waits;
//! - a receiver waits only if no sender has a slot and its value still with it;
//! - after a shutdown no sender waits, and no receiver where nothing is queued;
//! - of those that wait only the first has part of what it wants.
//!
//! That is why the paths below need not ask who waits: where there is something to have, nobody waits for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use slab::Slab;

mod batching;
mod receiving;
mod sending;
mod settling;
mod slots;

pub(crate) use batching::Wanted;

use super::batches::Batches;
use super::ends::{Ends, SEATS};
use super::join_report::JoinReport;
use super::queue_stats::QueueStats;
use super::store::{Order, Store, Tag};
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

/// An item on its way to its receiver. Kept small, since it is moved more than once on it.
pub(crate) struct Taken<T> {
    pub(crate) value: T,
    pub(crate) seat: Seat,
}

/// Where an item in flight is on record. Belongs to its guard, which gives it up when it settles the item.
#[derive(Clone, Copy)]
pub(crate) struct Seat {
    at: usize,
    /// Nobody has to be told when the item is done, so it may be noted in [`Ends`] and counted later.
    alone: bool,
}

impl Seat {
    /// Where to note that the item is done, if that is all there is to do.
    #[inline(always)]
    pub(crate) fn alone(self) -> Option<usize> {
        self.alone.then_some(self.at)
    }
}

/// Items on their way to their receiver together, at least one.
pub(crate) struct TakenMany<T> {
    pub(crate) values: Vec<T>,
    /// Where [`Batches`] has their tags.
    pub(crate) record: u32,
}

/// A value to be sent, and its level in an order by priority.
pub(crate) struct Unsent<T> {
    pub(crate) value: T,
    pub(crate) level: i64,
}

pub(crate) const NOT_OVER: &str = "`Send` polled after completion";

/// Where a `send` is.
pub(crate) enum Sending<T> {
    Unsent(Unsent<T>),
    Waiting(Key),
    Over,
}

impl<T> Sending<T> {
    #[inline]
    fn take_unsent(&mut self) -> Option<Unsent<T>> {
        match std::mem::replace(self, Self::Over) {
            Self::Unsent(unsent) => Some(unsent),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// What came of sending many.
pub(crate) enum Progress {
    All,
    /// Enough for one turn; there is room for more.
    Some,
    ShutDown,
}

/// Why slots are not to be had.
pub(crate) enum Refusal {
    ShutDown,
    /// More than the queue can hold, which is so much.
    BeyondCapacity(usize),
}

/// How an item ends.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Done,
    Rejected,
    Abandoned,
    Returned,
}

/// Waits in [`Line::Waiting`], has its promises in [`Line::Served`], is to look again when [`Line::Out`].
struct Receiver {
    waker: Option<Waker>,
    /// How many items it is to be promised.
    want: usize,
    /// How many it is promised. Part of `want` while it waits: a batch that is collected.
    promised: usize,
}

/// Waits in [`Line::Waiting`]. A value in [`Line::Served`] has a slot.
struct Sender<T> {
    offer: Offer<T>,
    waker: Option<Waker>,
    /// Counts senders that had to wait, in the order in which they began to.
    place: u64,
}

enum Offer<T> {
    /// Still the sender's. [`Line::Out`]: the queue was shut down.
    Value(Unsent<T>),
    /// With its ticket.
    Accepted(u64),
    /// Wants slots for values that cannot be reached from here. [`Line::Out`]: has them all, or the queue
    /// was shut down, or they are more than it can hold.
    Slots(Slots),
}

struct Slots {
    want: usize,
    /// Part of `want` while it waits; these count in `permits` already.
    granted: usize,
    /// Whether it has a use for part of them.
    piecemeal: bool,
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
    /// What the receivers are promised together.
    promised: usize,
    /// Slots held by permits, and by those who wait for several.
    permits: usize,
    /// How many producer handles there are.
    producers: usize,
    /// How many senders had to wait, ever.
    places: u64,
    accepted: u64,
    done: u64,
    rejected: u64,
    abandoned: u64,
    returned: u64,
    requeued: u64,
    peak_len: usize,
    /// Those in flight that have a guard each, and those noted in `ends`.
    singles: Slab<Tag>,
    /// So many singles are worth a look for those that have ended.
    crowded: usize,
    /// The seat below [`SEATS`] that was taken last: who receives again is often done with it.
    recent: usize,
    ends: Arc<Ends>,
    /// Those in flight that were taken in batches.
    batches: Batches,
    /// Those in flight that were detached from their guard.
    detached: VecDeque<Tag>,
}

impl<T> Core<T> {
    pub(crate) fn new(capacity: Option<usize>, order: &Order<T>, ends: Arc<Ends>) -> Self {
        Self {
            store: Store::new(order),
            phase: Phase::Open,
            capacity: capacity.unwrap_or(usize::MAX),
            receivers: Waiters::new(),
            senders: Waiters::new(),
            joiners: Waiters::new(),
            promised: 0,
            permits: 0,
            producers: 0,
            places: 0,
            accepted: 0,
            done: 0,
            rejected: 0,
            abandoned: 0,
            returned: 0,
            requeued: 0,
            peak_len: 0,
            singles: Slab::new(),
            crowded: SEATS,
            recent: 0,
            ends,
            batches: Batches::new(),
            detached: VecDeque::new(),
        }
    }

    /// Items in the store that are promised to nobody.
    #[inline]
    fn available(&self) -> usize {
        self.store.len() - self.promised
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

    /// Whether one that comes now to receive has to wait.
    #[inline]
    pub(crate) fn is_dry(&self) -> bool {
        self.available() == 0 && self.senders.served() == 0 && !self.drained()
    }

    #[inline]
    fn drained(&self) -> bool {
        self.phase != Phase::Open && self.store.is_empty()
    }

    /// Taken and not settled, where all ends are counted.
    fn in_flight(&self) -> u64 {
        let settled = self.done + self.rejected + self.abandoned + self.returned;
        self.accepted - settled - self.store.len() as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.store.len()
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.free() == 0
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.phase != Phase::Open
    }

    pub(crate) fn stats(&mut self) -> QueueStats {
        self.count_ends();
        QueueStats {
            len: self.store.len(),
            capacity: (self.capacity != usize::MAX).then_some(self.capacity),
            peak_len: self.peak_len,
            promised: self.promised,
            reserved: self.reserved(),
            waiting_receivers: self.receivers.waiting(),
            waiting_senders: self.senders.waiting(),
            waiting_joiners: self.joiners.waiting(),
            in_flight: self.in_flight(),
            accepted: self.accepted,
            done: self.done,
            rejected: self.rejected,
            abandoned: self.abandoned,
            returned: self.returned,
            requeued: self.requeued,
            is_shut_down: self.is_shut_down(),
        }
    }

    pub(crate) fn unfinished(&mut self) -> Unfinished {
        self.count_ends();
        let queued = self.store.tags().into_iter().map(|tag| UnfinishedItem {
            ticket: tag.ticket,
            attempt: tag.attempt,
            in_flight: false,
        });
        let singles = self.singles.iter().map(|(_, tag)| tag);
        let in_flight = singles
            .chain(self.batches.in_flight())
            .chain(&self.detached)
            .map(|tag| UnfinishedItem { ticket: tag.ticket, attempt: tag.attempt, in_flight: true });
        Unfinished::new(queued.chain(in_flight).collect())
    }

    /// Promises items and grants slots until neither is possible.
    #[inline(always)]
    fn pump(&mut self, wakes: &mut Wakes) {
        if self.receivers.waiting() != 0 || self.senders.waiting() != 0 {
            self.pump_all(wakes);
        }
    }

    #[inline(never)]
    fn pump_all(&mut self, wakes: &mut Wakes) {
        while self.pump_receiver(wakes) || self.pump_sender(wakes) {}
    }

    fn pump_receiver(&mut self, wakes: &mut Wakes) -> bool {
        let Some(first) = self.receivers.first_waiting() else {
            return false;
        };
        if self.available() == 0 && self.senders.served() != 0 {
            self.accept_first_granted();
        }
        let (available, drained, open) = (self.available(), self.drained(), self.phase == Phase::Open);
        let Some((_, receiver)) = self.receivers.get(first) else {
            return false;
        };
        let begins = receiver.promised == 0;
        let more = available.min(receiver.want - receiver.promised);
        receiver.promised += more;
        self.promised += more;
        let line = if receiver.promised == receiver.want || (receiver.promised != 0 && !open) {
            Line::Served
        } else if drained {
            Line::Out
        } else {
            // What it wants is more than there is: it is told when that begins.
            if more != 0 && begins {
                wakes.push(receiver.waker.take());
            }
            return more != 0;
        };
        wakes.push(receiver.waker.take());
        self.receivers.shift(first, line);
        true
    }

    fn pump_sender(&mut self, wakes: &mut Wakes) -> bool {
        let Some(first) = self.senders.first_waiting() else {
            return false;
        };
        let free = self.free();
        if free == 0 {
            return false;
        }
        let Some((_, sender)) = self.senders.get(first) else {
            return false;
        };
        let line = match &mut sender.offer {
            Offer::Slots(slots) => {
                let begins = slots.granted == 0;
                let more = free.min(slots.want - slots.granted);
                slots.granted += more;
                self.permits += more;
                if slots.granted != slots.want {
                    // Told when it begins, if that is of use to it.
                    if slots.piecemeal && begins {
                        wakes.push(sender.waker.take());
                    }
                    return true;
                }
                Line::Out
            }
            Offer::Value(_) | Offer::Accepted(_) => Line::Served,
        };
        wakes.push(sender.waker.take());
        self.senders.shift(first, line);
        true
    }

    /// Puts a value into the store, and tells its ticket. The caller has made sure of its place.
    #[inline(always)]
    fn admit(&mut self, Unsent { value, level }: Unsent<T>) -> u64 {
        self.accepted += 1;
        self.store.push(value, self.accepted, level);
        self.peak_len = self.peak_len.max(self.store.len());
        self.accepted
    }

    /// Accepts the value of the sender that has had a slot for longest. False: there is none.
    #[inline(never)]
    fn accept_first_granted(&mut self) -> bool {
        let Some(first) = self.senders.first_served() else {
            return false;
        };
        self.senders.shift(first, Line::Out);
        let ticket = self.accepted + 1;
        if let Some((_, sender)) = self.senders.get(first) {
            if let Offer::Value(unsent) = std::mem::replace(&mut sender.offer, Offer::Accepted(ticket)) {
                self.admit(unsent);
            }
        }
        true
    }
}
