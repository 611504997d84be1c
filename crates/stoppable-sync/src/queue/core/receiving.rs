//! Items on their way out.

use std::task::Waker;

use super::{Core, Receiver, Step, Taken};
use crate::queue::error::TryRecvError;
use crate::queue::ledger::{Ledger, Seat};
use crate::queue::waiters::{Key, Line};
use crate::queue::wakes::{NeedsClone, Poller, Wakes};

impl<T> Core<T> {
    /// Takes what the order says is next, whoever it was promised to: a promise is for *an* item.
    #[inline]
    fn take(&mut self, ledger: &Ledger) -> Option<Taken<T>> {
        let mut entry = self.store.pop()?;
        let tag = &mut entry.tag;
        tag.attempt = tag.attempt.saturating_add(1);
        let others = self.accepted - self.store.len() as u64 - 1;
        let others = others - (self.rejected + self.abandoned + self.returned) - self.batches.items();
        let seat = ledger.seat(*tag, others, &mut self.cursor);
        if seat == Seat::Overflow {
            self.overflow.insert(tag.ticket, tag.attempt);
        }
        Some(Taken { entry, seat })
    }

    #[inline]
    pub(crate) fn try_recv(&mut self, ledger: &Ledger, wakes: &mut Wakes) -> Result<Taken<T>, TryRecvError> {
        if self.available() != 0 || self.accept_first_granted() {
            if let Some(taken) = self.take(ledger) {
                self.pump(wakes);
                return Ok(taken);
            }
        }
        Err(if self.drained() { TryRecvError::ShutDown } else { TryRecvError::Empty })
    }

    /// `None`: shut down and nothing queued.
    #[inline]
    pub(crate) fn poll_recv(
        &mut self,
        key: &mut Option<Key>,
        ledger: &Ledger,
        poller: &mut Poller<'_>,
        wakes: &mut Wakes,
    ) -> Step<Option<Taken<T>>> {
        if let Some(known) = *key {
            match self.receivers.get(known) {
                Some((Line::Waiting, receiver)) => {
                    return match poller.register(&mut receiver.waker) {
                        Ok(()) => Step::Pending,
                        Err(NeedsClone) => Step::NeedsClone,
                    };
                }
                _ => {
                    // What it was promised is there, or it was told to look again: as one that comes now.
                    *key = None;
                    self.strike_off(known);
                }
            }
        }
        match self.try_recv(ledger, wakes) {
            Ok(taken) => Step::Ready(Some(taken)),
            Err(TryRecvError::ShutDown) => Step::Ready(None),
            Err(TryRecvError::Empty) => match poller.take_clone() {
                Ok(waker) => {
                    *key = Some(self.receivers.insert(Receiver { waker: Some(waker), want: 1, promised: 0 }));
                    Step::Pending
                }
                Err(NeedsClone) => Step::NeedsClone,
            },
        }
    }

    /// Ends the wait. A promise it had passes on.
    pub(crate) fn leave_recv(&mut self, key: Key, wakes: &mut Wakes) {
        wakes.retire(self.strike_off(key));
        self.pump(wakes);
    }

    /// Takes a receiver off the record; what it was promised is promised to nobody.
    pub(super) fn strike_off(&mut self, key: Key) -> Option<Waker> {
        let Receiver { waker, promised, .. } = self.receivers.remove(key)?;
        self.promised -= promised;
        waker
    }

    /// Takes one item out of the store for good. Where it was promised, the promise made last is void.
    pub(crate) fn cancel(&mut self, ticket: u64, ledger: &Ledger, wakes: &mut Wakes) -> Option<T> {
        let entry = self.store.remove(ticket)?;
        self.returned += 1;
        if self.promised > self.store.len() {
            self.take_promise_back();
        }
        self.pump(wakes);
        self.release_joiners(ledger, wakes);
        Some(entry.value)
    }

    /// From who has part of what it wants, else from who was served last: that one is first to wait again.
    fn take_promise_back(&mut self) {
        let collecting = self.receivers.first_waiting();
        for key in collecting.into_iter().chain(self.receivers.last_served()) {
            let Some((line, receiver)) = self.receivers.get(key) else { return };
            if receiver.promised == 0 {
                continue;
            }
            receiver.promised -= 1;
            self.promised -= 1;
            if line == Line::Served {
                self.receivers.shift_back(key);
            }
            return;
        }
    }
}
