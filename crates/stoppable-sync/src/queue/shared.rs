//! The core behind its lock, and everything that has to happen outside of it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::task::{Poll, Waker};

use super::abandon_policy::AbandonPolicy;
use super::core::{Core, End, Step, Taken, Unsent};
use super::dead_letter::{DeadLetter, DeadLetterReason};
use super::error::TrySendError;
use super::ledger::{Ledger, Seat};
use super::store::{Entry, Order, Tag};
use super::wakes::{Poller, Wakes, shrug_off};
use crate::sync::{AtomicUsize, Mutex, Ordering};

pub(crate) type Sink<T> = Box<dyn Fn(DeadLetter<T>) + Send + Sync>;

pub(crate) struct Shared<T> {
    core: Mutex<Core<T>>,
    pub(crate) ledger: Ledger,
    /// How many `ShutdownQueue`s there are; guards do not count.
    handles: AtomicUsize,
    pub(crate) name: Option<Cow<'static, str>>,
    order: Order<T>,
    policy: AbandonPolicy,
    sink: Option<Sink<T>>,
}

impl<T> Shared<T> {
    pub(crate) fn new(
        capacity: Option<usize>,
        order: Order<T>,
        name: Option<Cow<'static, str>>,
        policy: AbandonPolicy,
        sink: Option<Sink<T>>,
    ) -> Self {
        Self {
            core: Mutex::new(Core::new(capacity, &order)),
            ledger: Ledger::new(),
            handles: AtomicUsize::new(1),
            name,
            order,
            policy,
            sink,
        }
    }

    /// A value that is to be sent, with what the order has to know about it.
    #[inline]
    pub(crate) fn unsent(&self, value: T) -> Unsent<T> {
        let level = self.level(&value);
        Unsent { value, level }
    }

    #[inline]
    pub(crate) fn level(&self, value: &T) -> i64 {
        self.order.level(value)
    }

    /// Of many values, if the order has any.
    pub(crate) fn levels(&self, values: &VecDeque<T>) -> VecDeque<i64> {
        match &self.order {
            Order::Fifo | Order::Lifo => VecDeque::new(),
            Order::Priority(priority) => values.iter().map(priority).collect(),
        }
    }

    /// Looks, and changes nothing.
    #[inline]
    pub(crate) fn read<R>(&self, look: impl FnOnce(&Core<T>) -> R) -> R {
        look(&self.core.lock())
    }

    /// Changes something, then wakes whom it concerns.
    #[inline]
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Core<T>, &mut Wakes) -> R) -> R {
        let mut wakes = Wakes::new();
        let result = change(&mut self.core.lock(), &mut wakes);
        wakes.wake_all();
        result
    }

    /// One poll. The first look needs no clone of the waker; where one is needed it is made outside
    /// the lock, and everything is looked at again.
    #[inline]
    pub(crate) fn step<R>(
        &self,
        waker: &Waker,
        mut step: impl FnMut(&mut Core<T>, &mut Poller<'_>, &mut Wakes) -> Step<R>,
    ) -> Poll<R> {
        let mut poller = Poller::new(waker);
        loop {
            match self.change(|core, wakes| step(core, &mut poller, wakes)) {
                Step::Ready(result) => return Poll::Ready(result),
                Step::Pending => return Poll::Pending,
                Step::NeedsClone => poller.make_clone(),
            }
        }
    }

    /// Counts an item as done, without the lock unless somebody joins.
    #[inline]
    pub(crate) fn count_done(&self, seat: Seat, tag: Tag) {
        match seat {
            Seat::Single(at) => self.ledger.vacate(at),
            Seat::Overflow | Seat::Batch { .. } => {
                self.change(|core, _| core.vacate(&self.ledger, seat, tag));
            }
        }
        if self.ledger.count_done(1) {
            self.change(|core, wakes| core.release_joiners(&self.ledger, wakes));
        }
    }

    pub(crate) fn reject(&self, taken: Taken<T>) {
        let Taken { entry, seat } = taken;
        let _counts = Settle { shared: self, seat, tag: entry.tag, end: End::Rejected };
        self.bury(entry, DeadLetterReason::Rejected);
    }

    /// A guard was dropped unsettled.
    #[cold]
    pub(crate) fn abandon(&self, taken: Taken<T>) {
        let Taken { entry, seat } = taken;
        let tag = entry.tag;
        let level = self.level_to_put_back(&entry.value);
        let decided = self.change(|core, wakes| core.abandon(&self.ledger, seat, entry, level, wakes));
        let requeued = decided.is_ok();
        tracing::debug!(
            queue = self.name.as_deref(),
            ticket = tag.ticket,
            attempt = tag.attempt,
            requeued,
            "a queue item was dropped unsettled"
        );
        if let Err(entry) = decided {
            let _counts = Settle { shared: self, seat, tag, end: End::Abandoned };
            if self.policy != AbandonPolicy::Count || self.read(Core::is_shut_down) {
                self.bury(entry, DeadLetterReason::Abandoned);
            } else {
                drop(entry);
            }
        }
    }

    /// `None`: the policy puts nothing back, or the order cannot say where.
    fn level_to_put_back(&self, value: &T) -> Option<i64> {
        let mut level = None;
        if self.policy == AbandonPolicy::Requeue {
            shrug_off("the priority function of a queue panicked", || level = Some(self.level(value)));
        }
        level
    }

    /// To the sink, where there is one.
    fn bury(&self, entry: Entry<T>, reason: DeadLetterReason) {
        let Some(sink) = &self.sink else { return };
        let Entry { value, tag } = entry;
        let letter = DeadLetter { value, ticket: tag.ticket, attempt: tag.attempt, reason };
        shrug_off("the dead-letter sink of a queue panicked", || sink(letter));
    }

    #[inline]
    pub(crate) fn try_send(&self, value: T) -> Result<u64, TrySendError<T>> {
        let unsent = self.unsent(value);
        self.change(|core, wakes| core.try_send(unsent, wakes))
    }

    /// One more handle, unless the last is gone.
    pub(crate) fn revive(&self) -> bool {
        let mut handles = self.handles.load(Ordering::Relaxed);
        while handles != 0 {
            match self.handles.compare_exchange(handles, handles + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => handles = now,
            }
        }
        false
    }

    pub(crate) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// With the last handle goes the last way to receive.
    pub(crate) fn remove_handle(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let lost = self.change(|core, wakes| core.stop(&self.ledger, Some(End::Abandoned), wakes));
        if lost.is_empty() {
            return;
        }
        if self.sink.is_none() {
            tracing::warn!(
                queue = self.name.as_deref(),
                lost = lost.len(),
                "the last handle of a queue was dropped with items inside; shut it down and drain \
                 it, take them with `shutdown_immediate`, or give the queue a dead-letter sink"
            );
        }
        for entry in lost {
            self.bury(entry, DeadLetterReason::QueueDropped);
        }
    }
}

/// Counts an end when dropped: after the value, and also when the value's destructor panics.
struct Settle<'a, T> {
    shared: &'a Shared<T>,
    seat: Seat,
    tag: Tag,
    end: End,
}

impl<T> Drop for Settle<'_, T> {
    fn drop(&mut self) {
        let Self { shared, seat, tag, end } = self;
        shared.change(|core, wakes| core.settle(&shared.ledger, *seat, *tag, *end, wakes));
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.read(|core| core.stats(&self.ledger));
        f.debug_struct("ShutdownQueue").field("name", &self.name).field("stats", &stats).finish()
    }
}
