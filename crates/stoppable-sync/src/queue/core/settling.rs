//! How items end, who waits for it, and how the queue closes.

use std::collections::VecDeque;

use super::{Core, End, Joiner, Phase, Step};
use crate::queue::error::TaskDoneError;
use crate::queue::join_report::JoinReport;
use crate::queue::ledger::{Ledger, Seat};
use crate::queue::store::{Entry, Tag};
use crate::queue::waiters::{Key, Line};
use crate::queue::wakes::{NeedsClone, Poller, Wakes};

/// How often the policy puts an abandoned item back.
const REQUEUES: u32 = 3;

impl<T> Core<T> {
    /// The item is in flight no more.
    pub(crate) fn vacate(&mut self, ledger: &Ledger, seat: Seat, tag: Tag) {
        match seat {
            Seat::Single(at) => ledger.vacate(at),
            Seat::Overflow => {
                self.overflow.remove(&tag.ticket);
            }
            Seat::Batch { record, at } => self.batches.vacate(record, at),
        }
    }

    /// Counts the end of an item in flight.
    pub(crate) fn settle(&mut self, ledger: &Ledger, seat: Seat, tag: Tag, end: End, wakes: &mut Wakes) {
        self.vacate(ledger, seat, tag);
        match end {
            End::Rejected => self.rejected += 1,
            End::Abandoned => self.abandoned += 1,
        }
        self.release_joiners(ledger, wakes);
    }

    /// Puts an item in flight to the back, beyond capacity if need be. Gives it back after the end.
    pub(crate) fn requeue(
        &mut self,
        ledger: &Ledger,
        seat: Seat,
        entry: Entry<T>,
        level: i64,
        wakes: &mut Wakes,
    ) -> Result<(), Entry<T>> {
        if self.phase == Phase::Stopped {
            return Err(entry);
        }
        self.vacate(ledger, seat, entry.tag);
        self.requeued += 1;
        self.store.put_back(entry, level);
        self.peak_len = self.peak_len.max(self.store.len());
        self.pump(wakes);
        Ok(())
    }

    /// Decides about an item whose guard was dropped, and puts it back in the same step if that is
    /// the decision: a shutdown cannot come in between. Else the caller ends it. `level`: where the policy
    /// would put it.
    pub(crate) fn abandon(
        &mut self,
        ledger: &Ledger,
        seat: Seat,
        mut entry: Entry<T>,
        level: Option<i64>,
        wakes: &mut Wakes,
    ) -> Result<(), Entry<T>> {
        let Some(level) = level else { return Err(entry) };
        if self.phase != Phase::Open || entry.tag.abandons >= REQUEUES {
            return Err(entry);
        }
        entry.tag.abandons += 1;
        self.requeue(ledger, seat, entry, level, wakes)
    }

    /// The value goes its own way; the item stays in flight.
    pub(crate) fn detach(&mut self, ledger: &Ledger, seat: Seat, tag: Tag) {
        self.vacate(ledger, seat, tag);
        self.detached.push_back((tag.ticket, tag.attempt));
    }

    /// Settles the detached item that is the oldest.
    pub(crate) fn task_done(&mut self, ledger: &Ledger, wakes: &mut Wakes) -> Result<(), TaskDoneError> {
        self.detached.pop_front().ok_or(TaskDoneError)?;
        if ledger.count_done(1) {
            self.release_joiners(ledger, wakes);
        }
        Ok(())
    }

    // Joining.

    fn finished(&self, ledger: &Ledger) -> Option<JoinReport> {
        let stats = self.stats(ledger);
        (stats.unfinished() == 0).then(|| JoinReport::new(&stats))
    }

    /// Releases everybody who joins, if nothing is unfinished.
    pub(crate) fn release_joiners(&mut self, ledger: &Ledger, wakes: &mut Wakes) {
        if self.joiners.waiting() == 0 {
            return;
        }
        let Some(report) = self.finished(ledger) else {
            return;
        };
        while let Some(first) = self.joiners.first_waiting() {
            self.joiners.shift(first, Line::Out);
            if let Some((_, joiner)) = self.joiners.get(first) {
                joiner.report = Some(report);
                wakes.push(joiner.waker.take());
            }
        }
        ledger.set_joiners(0);
    }

    pub(crate) fn poll_join(
        &mut self,
        key: &mut Option<Key>,
        ledger: &Ledger,
        poller: &mut Poller<'_>,
        wakes: &mut Wakes,
    ) -> Step<JoinReport> {
        if let Some(known) = *key {
            if let Some((Line::Waiting, joiner)) = self.joiners.get(known) {
                if let Err(NeedsClone) = poller.register(&mut joiner.waker) {
                    return Step::NeedsClone;
                }
            }
        } else {
            if let Some(report) = self.finished(ledger) {
                return Step::Ready(report);
            }
            let Ok(waker) = poller.take_clone() else {
                return Step::NeedsClone;
            };
            *key = Some(self.joiners.insert(Joiner { waker: Some(waker), report: None }));
            ledger.set_joiners(self.joiners.waiting());
        }
        // Only now: `done()` counts first and then looks whether somebody is here.
        self.release_joiners(ledger, wakes);
        let Some(known) = *key else {
            return Step::Pending;
        };
        match self.joiners.get(known) {
            Some((Line::Out, joiner)) => match joiner.report.take() {
                Some(report) => {
                    self.leave_join(known, ledger, wakes);
                    *key = None;
                    Step::Ready(report)
                }
                None => Step::Pending,
            },
            _ => Step::Pending,
        }
    }

    pub(crate) fn leave_join(&mut self, key: Key, ledger: &Ledger, wakes: &mut Wakes) {
        if let Some(Joiner { waker, .. }) = self.joiners.remove(key) {
            wakes.retire(waker);
            ledger.set_joiners(self.joiners.waiting());
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

    /// Nothing comes in, nothing is put back; gives what is queued.
    pub(crate) fn stop(
        &mut self,
        ledger: &Ledger,
        end: Option<End>,
        wakes: &mut Wakes,
    ) -> VecDeque<Entry<T>> {
        self.phase = Phase::Stopped;
        self.turn_senders_away(wakes);
        self.take_promises_back();
        let queued = self.store.take_all();
        match end {
            None => self.returned += queued.len() as u64,
            Some(End::Rejected) => self.rejected += queued.len() as u64,
            Some(End::Abandoned) => self.abandoned += queued.len() as u64,
        }
        self.pump(wakes);
        self.release_joiners(ledger, wakes);
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
