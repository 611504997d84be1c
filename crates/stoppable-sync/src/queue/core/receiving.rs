//! Items on their way out.

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
        let others = others - (self.rejected + self.abandoned + self.returned);
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
                Some((Line::Served, _)) => {
                    *key = None;
                    self.receivers.remove(known);
                    let taken = self.take(ledger);
                    self.pump(wakes);
                    return Step::Ready(taken);
                }
                _ => {
                    // Told to look again: as one that comes now.
                    *key = None;
                    self.receivers.remove(known);
                }
            }
        }
        match self.try_recv(ledger, wakes) {
            Ok(taken) => Step::Ready(Some(taken)),
            Err(TryRecvError::ShutDown) => Step::Ready(None),
            Err(TryRecvError::Empty) => match poller.take_clone() {
                Ok(waker) => {
                    *key = Some(self.receivers.insert(Receiver { waker: Some(waker) }));
                    Step::Pending
                }
                Err(NeedsClone) => Step::NeedsClone,
            },
        }
    }

    /// Ends the wait. A promise it had passes on.
    pub(crate) fn leave_recv(&mut self, key: Key, wakes: &mut Wakes) {
        if let Some(Receiver { waker }) = self.receivers.remove(key) {
            wakes.retire(waker);
            self.pump(wakes);
        }
    }
}
