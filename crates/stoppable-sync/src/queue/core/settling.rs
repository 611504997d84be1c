//! How items end, who waits for it, and how the queue closes.

use std::collections::VecDeque;

use super::{Core, End, Joiner, Phase, Seat, Step};
use crate::queue::ends::SEATS;
use crate::queue::error::TaskDoneError;
use crate::queue::join_report::JoinReport;
use crate::queue::store::Tag;
use crate::queue::waiters::{Key, Line};
use crate::queue::wakes::{NeedsClone, Poller, Wakes};

/// How often the policy puts an abandoned item back.
const REQUEUES: u32 = 3;

impl<T> Core<T> {
    pub(crate) fn tag(&self, seat: Seat) -> Tag {
        self.singles[seat.at]
    }

    /// Counts the end of an item in flight.
    #[inline(always)]
    pub(crate) fn settle(&mut self, seat: Seat, end: End, wakes: &mut Wakes) {
        self.singles.remove(seat.at);
        self.count(end, 1, wakes);
    }

    /// Counts ends. The items are neither queued nor in flight any more.
    #[inline(always)]
    pub(super) fn count(&mut self, end: End, many: u64, wakes: &mut Wakes) {
        match end {
            End::Done => self.done += many,
            End::Rejected => self.rejected += many,
            End::Abandoned => self.abandoned += many,
            End::Returned => self.returned += many,
        }
        if self.joiners.waiting() != 0 {
            self.release_joiners(wakes);
        }
    }

    /// Counts what was noted as done.
    pub(super) fn count_ends(&mut self) {
        for seat in 0..SEATS {
            if self.ends.take(seat) {
                self.singles.remove(seat);
                self.done += 1;
            }
        }
    }

    /// Puts an item in flight to the back, beyond capacity if need be. Gives it back after the end.
    pub(crate) fn requeue(&mut self, seat: Seat, value: T, level: i64, wakes: &mut Wakes) -> Result<(), T> {
        if self.phase == Phase::Stopped {
            return Err(value);
        }
        let tag = self.singles.remove(seat.at);
        self.requeued += 1;
        self.store.put_back(value, tag, level);
        self.peak_len = self.peak_len.max(self.store.len());
        self.pump(wakes);
        Ok(())
    }

    /// Decides about an item whose guard was dropped, and puts it back in the same step if that is
    /// the decision: a shutdown cannot come in between. Else the caller ends it. `level`: where the policy
    /// would put it.
    pub(crate) fn abandon(
        &mut self,
        seat: Seat,
        value: T,
        level: Option<i64>,
        wakes: &mut Wakes,
    ) -> Result<(), T> {
        let Some(level) = level else { return Err(value) };
        let tag = &mut self.singles[seat.at];
        if self.phase != Phase::Open || tag.abandons >= REQUEUES {
            return Err(value);
        }
        tag.abandons += 1;
        self.requeue(seat, value, level, wakes)
    }

    /// The value goes its own way; the item stays in flight.
    pub(crate) fn detach(&mut self, seat: Seat) {
        self.detached.push_back(self.singles.remove(seat.at));
    }

    /// Settles the detached item that is the oldest.
    pub(crate) fn task_done(&mut self, wakes: &mut Wakes) -> Result<(), TaskDoneError> {
        self.detached.pop_front().ok_or(TaskDoneError)?;
        self.count(End::Done, 1, wakes);
        Ok(())
    }

    // Joining.

    fn finished(&mut self) -> Option<JoinReport> {
        let stats = self.stats();
        (stats.unfinished() == 0).then(|| JoinReport::new(&stats))
    }

    /// Releases everybody who joins, if nothing is unfinished.
    #[cold]
    pub(crate) fn release_joiners(&mut self, wakes: &mut Wakes) {
        let Some(report) = self.finished() else {
            return;
        };
        while let Some(first) = self.joiners.first_waiting() {
            self.joiners.shift(first, Line::Out);
            if let Some((_, joiner)) = self.joiners.get(first) {
                joiner.report = Some(report);
                wakes.push(joiner.waker.take());
            }
        }
    }

    pub(crate) fn poll_join(&mut self, key: &mut Option<Key>, poller: &mut Poller<'_>) -> Step<JoinReport> {
        if let Some((line, joiner)) = key.and_then(|known| self.joiners.get(known)) {
            if line == Line::Waiting {
                return match poller.register(&mut joiner.waker) {
                    Ok(()) => Step::Pending,
                    Err(NeedsClone) => Step::NeedsClone,
                };
            }
        }
        let released = key.take().and_then(|known| self.joiners.remove(known));
        if let Some(report) = released.and_then(|joiner| joiner.report).or_else(|| self.finished()) {
            return Step::Ready(report);
        }
        let Ok(waker) = poller.take_clone() else {
            return Step::NeedsClone;
        };
        *key = Some(self.joiners.insert(Joiner { waker: Some(waker), report: None }));
        Step::Pending
    }

    pub(crate) fn leave_join(&mut self, key: Key, wakes: &mut Wakes) {
        if let Some(Joiner { waker, .. }) = self.joiners.remove(key) {
            wakes.retire(waker);
        }
    }

    // Closing.

    /// Nothing comes in any more: blocked senders have their values back.
    pub(crate) fn shut_down(&mut self, wakes: &mut Wakes) {
        if self.phase == Phase::Open {
            self.phase = Phase::Draining;
            self.turn_senders_away(wakes);
            self.pump(wakes);
        }
    }

    pub(crate) fn add_producer(&mut self) {
        self.producers += 1;
    }

    /// With the last one nothing can come in any more.
    pub(crate) fn remove_producer(&mut self, wakes: &mut Wakes) {
        self.producers -= 1;
        if self.producers == 0 {
            self.shut_down(wakes);
        }
    }

    /// Nothing comes in, nothing is put back; gives what is queued, whose end is `end`.
    pub(crate) fn stop(&mut self, end: End, wakes: &mut Wakes) -> VecDeque<(T, Tag)> {
        self.phase = Phase::Stopped;
        self.turn_senders_away(wakes);
        self.take_promises_back();
        let queued = self.store.take_all();
        self.pump(wakes);
        self.count(end, queued.len() as u64, wakes);
        queued
    }

    /// Everybody who was promised something is to look again. Who has part of it waits anyway.
    fn take_promises_back(&mut self) {
        while let Some(key) = self.receivers.first_served() {
            self.receivers.shift(key, Line::Out);
            self.void_promises(key);
        }
        if let Some(collecting) = self.receivers.first_waiting() {
            self.void_promises(collecting);
        }
    }

    fn void_promises(&mut self, key: Key) {
        if let Some((_, receiver)) = self.receivers.get(key) {
            self.promised -= std::mem::take(&mut receiver.promised);
        }
    }

    fn turn_senders_away(&mut self, wakes: &mut Wakes) {
        while let Some(key) = self.senders.first_served().or(self.senders.first_waiting()) {
            self.senders.shift(key, Line::Out);
            if let Some((_, sender)) = self.senders.get(key) {
                wakes.push(sender.waker.take());
            }
        }
    }
}
