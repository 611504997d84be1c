//! Slots for values that are not in the queue's hands: those of permits, and of many values at a time.

use std::collections::VecDeque;

use super::{Core, Offer, Phase, Progress, Refusal, Sender, Slots, Step};
use crate::queue::error::TryReserveError;
use crate::queue::waiters::{Key, Line};
use crate::queue::wakes::{NeedsClone, Poller, Wakes};

/// So many values are sent in one turn, so that nobody waits long for the lock.
const TURN: usize = 256;

impl<T> Core<T> {
    pub(crate) fn try_reserve(&mut self) -> Result<(), TryReserveError> {
        self.room()?;
        self.permits += 1;
        Ok(())
    }

    /// All of `want` slots, or none.
    pub(crate) fn poll_reserve(
        &mut self,
        key: &mut Option<Key>,
        want: usize,
        poller: &mut Poller<'_>,
        wakes: &mut Wakes,
    ) -> Step<Result<(), Refusal>> {
        if let Some(known) = *key {
            match self.senders.get(known) {
                Some((Line::Waiting, sender)) => {
                    return match poller.register(&mut sender.waker) {
                        Ok(()) => Step::Pending,
                        Err(NeedsClone) => Step::NeedsClone,
                    };
                }
                Some((_, Sender { offer: Offer::Slots(slots), .. }))
                    if self.phase == Phase::Open && slots.granted == want =>
                {
                    *key = None;
                    self.senders.remove(known);
                    return Step::Ready(Ok(()));
                }
                _ => {
                    // Turned away: the answer is that of one that comes now.
                    *key = None;
                    self.leave_reserve(known, wakes);
                }
            }
        }
        if self.phase != Phase::Open {
            return Step::Ready(Err(Refusal::ShutDown));
        }
        if want > self.capacity {
            return Step::Ready(Err(Refusal::BeyondCapacity(self.capacity)));
        }
        if want <= self.free() {
            self.permits += want;
            return Step::Ready(Ok(()));
        }
        let Ok(waker) = poller.take_clone() else {
            return Step::NeedsClone;
        };
        *key = Some(self.line_up(Offer::Slots(Slots { want, granted: 0, piecemeal: false }), Some(waker)));
        self.pump(wakes);
        Step::Pending
    }

    /// Who waits for more than there can be is turned away.
    pub(crate) fn resize(&mut self, capacity: usize, wakes: &mut Wakes) {
        self.capacity = capacity;
        let mut at = self.senders.first_waiting();
        while let Some(key) = at {
            at = self.senders.next(key);
            let Some((_, Sender { offer: Offer::Slots(slots), waker, .. })) = self.senders.get(key) else {
                continue;
            };
            if !slots.piecemeal && slots.want > capacity {
                self.permits -= std::mem::take(&mut slots.granted);
                wakes.push(waker.take());
                self.senders.shift(key, Line::Out);
            }
        }
        self.pump(wakes);
    }

    /// Ends the wait. Slots it was granted pass on.
    pub(crate) fn leave_reserve(&mut self, key: Key, wakes: &mut Wakes) {
        let Some(Sender { offer, waker, .. }) = self.senders.remove(key) else {
            return;
        };
        wakes.retire(waker);
        if let Offer::Slots(slots) = offer {
            self.permits -= slots.granted;
        }
        self.pump(wakes);
    }

    /// Sends from the front of `values`, and their `levels` if the order has any. Once it waits it keeps
    /// its place at the head of the line, where the slots that become free are its own, until all is sent.
    pub(crate) fn poll_send_many(
        &mut self,
        key: &mut Option<Key>,
        values: &mut VecDeque<T>,
        levels: &mut VecDeque<i64>,
        poller: &mut Poller<'_>,
        wakes: &mut Wakes,
    ) -> Step<Progress> {
        if values.is_empty() && key.is_none() {
            return Step::Ready(Progress::All);
        }
        if self.phase != Phase::Open {
            if let Some(known) = key.take() {
                self.leave_reserve(known, wakes);
            }
            return Step::Ready(Progress::ShutDown);
        }
        let Some(known) = *key else {
            let mut turn = TURN;
            while turn != 0 && !values.is_empty() {
                let room = self.free().min(turn);
                if room == 0 {
                    let Ok(waker) = poller.take_clone() else {
                        return Step::NeedsClone;
                    };
                    let slots = Slots { want: values.len(), granted: 0, piecemeal: true };
                    *key = Some(self.line_up(Offer::Slots(slots), Some(waker)));
                    return Step::Pending;
                }
                while self.accept_first_granted() {}
                turn -= self.admit_many(room, values, levels);
                self.pump(wakes);
            }
            return Step::Ready(if values.is_empty() { Progress::All } else { Progress::Some });
        };
        loop {
            let Some((_, Sender { offer: Offer::Slots(slots), place, waker })) = self.senders.get(known)
            else {
                return Step::Ready(Progress::All);
            };
            let granted = std::mem::take(&mut slots.granted);
            if granted == 0 {
                return match poller.register(waker) {
                    Ok(()) => Step::Pending,
                    Err(NeedsClone) => Step::NeedsClone,
                };
            }
            slots.want -= granted;
            let (place, over) = (*place, slots.want == 0);
            self.permits -= granted;
            self.accept_granted_before(place);
            self.admit_many(granted, values, levels);
            if over {
                *key = None;
                self.leave_reserve(known, wakes);
                return Step::Ready(Progress::All);
            }
            self.pump(wakes);
        }
    }

    /// Senders that are before that place, and have a slot, go first.
    fn accept_granted_before(&mut self, place: u64) {
        while let Some(first) = self.senders.first_served() {
            match self.senders.get(first) {
                Some((_, sender)) if sender.place < place => self.accept_first_granted(),
                _ => return,
            };
        }
    }

    fn admit_many(&mut self, room: usize, values: &mut VecDeque<T>, levels: &mut VecDeque<i64>) -> usize {
        let many = room.min(values.len());
        self.store.push_many(values.drain(..many), self.accepted, levels);
        self.accepted += many as u64;
        self.peak_len = self.peak_len.max(self.store.len());
        many
    }
}
