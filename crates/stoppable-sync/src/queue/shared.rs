//! The core behind its lock, and everything that has to happen outside of it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::abandon_policy::AbandonPolicy;
use super::core::{Core, End, Seat, Sending, Step, Taken, Unsent};
use super::dead_letter::{DeadLetter, DeadLetterReason};
use super::ends::Ends;
use super::error::{TryRecvError, TrySendError};
use super::hints::Hints;
use super::item::Item;
use super::item_ref::ItemRef;
use super::join_report::JoinReport;
use super::lease::Lease;
use super::store::{Order, Tag};
use super::waiters::Key;
use super::wakes::{Poller, Wakes, discard, shrug_off};
use crate::sync::{AtomicUsize, Mutex, Ordering};

pub(crate) type Sink<T> = Box<dyn Fn(DeadLetter<T>) + Send + Sync>;

pub(crate) struct Shared<T> {
    state: Mutex<State<T>>,
    pub(crate) ends: Arc<Ends>,
    pub(crate) hints: Hints,
    /// How many `ShutdownQueue`s there are; guards do not count.
    handles: AtomicUsize,
    pub(crate) name: Option<Cow<'static, str>>,
    order: Order<T>,
    policy: AbandonPolicy,
    sink: Option<Sink<T>>,
}

struct State<T> {
    core: Core<T>,
    /// For the items that are received next. It keeps the queue, so it goes with the last handle.
    lease: Option<Arc<Lease<T>>>,
}

impl<T> Shared<T> {
    pub(crate) fn new(
        capacity: Option<usize>,
        order: Order<T>,
        name: Option<Cow<'static, str>>,
        policy: AbandonPolicy,
        sink: Option<Sink<T>>,
    ) -> Self {
        let ends = Arc::new(Ends::new());
        let core = Core::new(capacity, &order, Arc::clone(&ends));
        Self {
            state: Mutex::new(State { core, lease: None }),
            ends,
            hints: Hints::new(),
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

    /// Looks, and changes nothing that concerns anybody.
    #[inline]
    pub(crate) fn read<R>(&self, look: impl FnOnce(&mut Core<T>) -> R) -> R {
        look(&mut self.state.lock().core)
    }

    /// Changes something, then wakes whom it concerns.
    #[inline]
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Core<T>, &mut Wakes) -> R) -> R {
        let mut wakes = Wakes::new();
        let core = &mut self.state.lock().core;
        let result = change(core, &mut wakes);
        self.hints.set(core.is_dry(), core.is_full());
        result
    }

    /// One poll. The first look needs no clone of the waker; where one is needed it is made outside
    /// the lock, and everything is looked at again.
    pub(crate) fn step<R>(
        &self,
        mut poller: Poller<'_>,
        mut step: impl FnMut(&mut Core<T>, &mut Poller<'_>, &mut Wakes) -> Step<R>,
    ) -> Poll<R> {
        loop {
            match self.change(|core, wakes| step(core, &mut poller, wakes)) {
                Step::Ready(result) => return Poll::Ready(result),
                Step::Pending => return Poll::Pending,
                Step::NeedsClone => poller.make_clone(),
            }
        }
    }

    pub(crate) fn tag(&self, seat: Seat) -> Tag {
        self.read(|core| core.tag(seat))
    }

    pub(crate) fn reject(&self, taken: Taken<T>) {
        let Taken { value, seat } = taken;
        let _counts = Settle { shared: self, seat, end: End::Rejected };
        self.bury(value, self.tag(seat), DeadLetterReason::Rejected);
    }

    /// A guard was dropped unsettled.
    #[cold]
    pub(crate) fn abandon(&self, taken: Taken<T>) {
        let Taken { value, seat } = taken;
        let tag = self.tag(seat);
        let level = self.level_to_put_back(&value);
        let decided = self.change(|core, wakes| core.abandon(seat, value, level, wakes));
        let requeued = decided.is_ok();
        tracing::debug!(
            queue = self.name.as_deref(),
            ticket = tag.ticket,
            attempt = tag.attempt,
            requeued,
            "a queue item was dropped unsettled"
        );
        if let Err(value) = decided {
            let _counts = Settle { shared: self, seat, end: End::Abandoned };
            if self.policy != AbandonPolicy::Count || self.read(|core| core.is_shut_down()) {
                self.bury(value, tag, DeadLetterReason::Abandoned);
            } else {
                drop(value);
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
    fn bury(&self, value: T, tag: Tag, reason: DeadLetterReason) {
        let Some(sink) = &self.sink else { return };
        let letter = DeadLetter { value, ticket: tag.ticket, attempt: tag.attempt, reason };
        shrug_off("the dead-letter sink of a queue panicked", || sink(letter));
    }

    #[inline]
    pub(crate) fn try_send(&self, value: T) -> Result<u64, TrySendError<T>> {
        let unsent = self.unsent(value);
        self.change(|core, wakes| core.try_send(unsent, wakes))
    }

    // Those that each item goes through are spelt out: a closure is a call, and its result is moved.

    #[inline(always)]
    pub(crate) fn send_now(&self, sending: &mut Sending<T>) -> Option<NonZeroU64> {
        let mut wakes = Wakes::new();
        let core = &mut self.state.lock().core;
        let ticket = core.send_now(sending, &mut wakes)?;
        self.hints.set(core.is_dry(), core.is_full());
        Some(ticket)
    }

    #[inline(always)]
    pub(crate) fn recv_item_ref(&self, key: &mut Option<Key>) -> Result<ItemRef<'_, T>, TryRecvError> {
        let mut wakes = Wakes::new();
        let core = &mut self.state.lock().core;
        let taken = core.recv_now(key, &mut wakes)?;
        self.hints.set(core.is_dry(), core.is_full());
        Ok(ItemRef::new(self, taken))
    }

    #[inline(always)]
    pub(crate) fn recv_item(self: &Arc<Self>, key: &mut Option<Key>) -> Result<Item<T>, TryRecvError> {
        let mut wakes = Wakes::new();
        let mut state = self.state.lock();
        let State { core, lease } = &mut *state;
        // First, since an atomic waits for all that was written before it. It can go unused: it is not the last.
        let lease = match lease {
            Some(lease) => Arc::clone(lease),
            None => self.renew(lease),
        };
        let taken = core.recv_now(key, &mut wakes)?;
        self.hints.set(core.is_dry(), core.is_full());
        Ok(Item::new(lease, taken))
    }

    /// A change that begins a wait if it has to. That is likely, so the waker is cloned first, and one look does.
    #[inline]
    pub(crate) fn line_up<R>(
        &self,
        waker: &Waker,
        change: impl FnOnce(&mut Core<T>, &mut Option<Waker>, &mut Wakes) -> R,
    ) -> R {
        let mut clone = Some(waker.clone());
        let result = self.change(|core, wakes| change(core, &mut clone, wakes));
        if clone.is_some() {
            discard(clone);
        }
        result
    }

    #[cold]
    fn renew(self: &Arc<Self>, lease: &mut Option<Arc<Lease<T>>>) -> Arc<Lease<T>> {
        Arc::clone(lease.insert(Lease::new(self)))
    }

    #[inline(always)]
    pub(crate) fn settle(&self, seat: Seat, end: End) {
        let mut wakes = Wakes::new();
        self.state.lock().core.settle(seat, end, &mut wakes);
    }

    pub(crate) fn poll_join(&self, key: &mut Option<Key>, waker: &Waker) -> Poll<JoinReport> {
        let step = self.step(Poller::new(waker), |core, poller, _| core.poll_join(key, poller));
        if step.is_pending() {
            // Only now: from here on items tell of their ends themselves, those before by letting go.
            self.let_go();
        }
        step
    }

    /// Gives up the queue's own share of the lease. If it was the last one, that is the end of the lease.
    fn let_go(&self) {
        let lease = self.state.lock().lease.take();
        drop(lease);
    }

    /// Items may have ended without a word.
    pub(crate) fn look_after_joiners(&self) {
        self.change(|core, wakes| core.release_joiners(wakes));
    }

    #[cold]
    pub(crate) fn leave_recv(&self, key: Key) {
        self.change(|core, wakes| core.leave_recv(key, wakes));
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
        let lost = self.change(|core, wakes| core.stop(End::Abandoned, wakes));
        self.let_go();
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
        for (value, tag) in lost {
            self.bury(value, tag, DeadLetterReason::QueueDropped);
        }
    }
}

/// Counts an end when dropped: after the value, and also when the value's destructor panics.
struct Settle<'a, T> {
    shared: &'a Shared<T>,
    seat: Seat,
    end: End,
}

impl<T> Drop for Settle<'_, T> {
    fn drop(&mut self) {
        let Self { shared, seat, end } = self;
        shared.settle(*seat, *end);
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.read(Core::stats);
        f.debug_struct("ShutdownQueue").field("name", &self.name).field("stats", &stats).finish()
    }
}
