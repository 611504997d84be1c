//! Values on their way in.

use std::num::NonZeroU64;
use std::task::{Poll, Waker};

use super::{Core, NOT_OVER, Offer, Phase, Sender, Sending, Step, Unsent};
use crate::queue::error::{TryReserveError, TrySendError};
use crate::queue::waiters::{Key, Line};
use crate::queue::wakes::{NeedsClone, Poller, Wakes};

const ON_RECORD: &str = "a send that waits is on record";

impl<T> Core<T> {
    /// Whether a value, or a permit, finds room now.
    #[inline(always)]
    pub(super) fn room(&self) -> Result<(), TryReserveError> {
        if self.phase != Phase::Open {
            return Err(TryReserveError::ShutDown);
        }
        if self.free() == 0 {
            return Err(TryReserveError::Full);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn try_send(&mut self, unsent: Unsent<T>, wakes: &mut Wakes) -> Result<u64, TrySendError<T>> {
        match self.room() {
            Ok(()) => Ok(self.admit_behind_granted(unsent, wakes)),
            Err(TryReserveError::ShutDown) => Err(TrySendError::ShutDown(unsent.value)),
            Err(TryReserveError::Full) => Err(TrySendError::Full(unsent.value)),
        }
    }

    /// A value that was waiting and has its slot is not overtaken by one that comes now.
    #[inline(always)]
    fn admit_behind_granted(&mut self, unsent: Unsent<T>, wakes: &mut Wakes) -> u64 {
        while self.senders.served() != 0 {
            self.accept_first_granted();
        }
        let ticket = self.admit(unsent);
        self.pump(wakes);
        ticket
    }

    /// The ticket, if there is room for a value that is not sent.
    #[inline(always)]
    pub(crate) fn send_now(&mut self, sending: &mut Sending<T>, wakes: &mut Wakes) -> Option<NonZeroU64> {
        self.room().ok()?;
        let unsent = sending.take_unsent()?;
        NonZeroU64::new(self.admit_behind_granted(unsent, wakes))
    }

    /// The ticket, or a place at the end of the line, which takes the waker.
    pub(crate) fn send_or_line_up(
        &mut self,
        sending: &mut Sending<T>,
        waker: &mut Option<Waker>,
        wakes: &mut Wakes,
    ) -> Poll<Result<u64, T>> {
        if let Some(ticket) = self.send_now(sending, wakes) {
            return Poll::Ready(Ok(ticket.get()));
        }
        let unsent = sending.take_unsent().expect(NOT_OVER);
        if self.phase != Phase::Open {
            return Poll::Ready(Err(unsent.value));
        }
        *sending = Sending::Waiting(self.line_up(Offer::Value(unsent), waker.take()));
        Poll::Pending
    }

    /// Keeps its place in the line until it has a slot, or is turned away.
    pub(crate) fn poll_waiting_send(
        &mut self,
        key: Key,
        poller: &mut Poller<'_>,
        wakes: &mut Wakes,
    ) -> Step<Result<u64, T>> {
        if let Some((Line::Waiting, sender)) = self.senders.get(key) {
            return match poller.register(&mut sender.waker) {
                Ok(()) => Step::Pending,
                Err(NeedsClone) => Step::NeedsClone,
            };
        }
        // Those that were served before it go first.
        while self.has_slot(key) {
            self.accept_first_granted();
        }
        let left = self.leave_send(key, wakes).expect(ON_RECORD);
        Step::Ready(left.map_err(|unsent| unsent.value))
    }

    /// To the end of the line.
    #[inline]
    pub(super) fn line_up(&mut self, offer: Offer<T>, waker: Option<Waker>) -> Key {
        self.places += 1;
        self.senders.insert(Sender { offer, waker, place: self.places })
    }

    /// Whether `key` has a slot and its value still with it.
    fn has_slot(&mut self, key: Key) -> bool {
        matches!(self.senders.get(key), Some((Line::Served, _)))
    }

    /// Ends the wait: the ticket if it was accepted, else the value. A slot it had passes on.
    pub(crate) fn leave_send(&mut self, key: Key, wakes: &mut Wakes) -> Option<Result<u64, Unsent<T>>> {
        let Sender { offer, waker, .. } = self.senders.remove(key)?;
        wakes.retire(waker);
        match offer {
            // Nothing passes on: it had neither a slot nor a place any more.
            Offer::Accepted(ticket) => Some(Ok(ticket)),
            Offer::Value(unsent) => {
                self.pump(wakes);
                Some(Err(unsent))
            }
            Offer::Slots(_) => None,
        }
    }

    /// Uses up a permit, whether the value is taken or not.
    pub(crate) fn send_with_permit(&mut self, unsent: Unsent<T>, wakes: &mut Wakes) -> Result<u64, T> {
        self.permits -= 1;
        if self.phase != Phase::Open {
            return Err(unsent.value);
        }
        Ok(self.admit_behind_granted(unsent, wakes))
    }

    pub(crate) fn return_permit(&mut self, wakes: &mut Wakes) {
        self.permits -= 1;
        self.pump(wakes);
    }
}
