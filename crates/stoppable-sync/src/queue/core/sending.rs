//! Values on their way in.

use std::num::NonZeroU64;
use std::task::Waker;

use super::{Core, Offer, Phase, Sender, Sending, Step, Unsent};
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
    #[inline]
    pub(crate) fn send_now(&mut self, sending: &mut Sending<T>, wakes: &mut Wakes) -> Option<NonZeroU64> {
        self.room().ok()?;
        let unsent = sending.take_unsent()?;
        NonZeroU64::new(self.admit_behind_granted(unsent, wakes))
    }

    pub(crate) fn poll_send(
        &mut self,
        sending: &mut Sending<T>,
        poller: &mut Poller<'_>,
        wakes: &mut Wakes,
    ) -> Step<Result<u64, T>> {
        if let Some(ticket) = self.send_now(sending, wakes) {
            return Step::Ready(Ok(ticket.get()));
        }
        match std::mem::replace(sending, Sending::Over) {
            Sending::Unsent(unsent) if self.phase != Phase::Open => Step::Ready(Err(unsent.value)),
            Sending::Unsent(unsent) => match poller.take_clone() {
                Ok(waker) => {
                    let offer = Offer::Value(unsent);
                    *sending = Sending::Waiting(self.line_up(offer, waker));
                    Step::Pending
                }
                Err(NeedsClone) => {
                    *sending = Sending::Unsent(unsent);
                    Step::NeedsClone
                }
            },
            Sending::Waiting(key) => match self.senders.get(key) {
                Some((Line::Waiting, sender)) => {
                    *sending = Sending::Waiting(key);
                    match poller.register(&mut sender.waker) {
                        Ok(()) => Step::Pending,
                        Err(NeedsClone) => Step::NeedsClone,
                    }
                }
                _ => {
                    // Those that were served before it go first.
                    while self.has_slot(key) {
                        self.accept_first_granted();
                    }
                    let left = self.leave_send(key, wakes).expect(ON_RECORD);
                    Step::Ready(left.map_err(|unsent| unsent.value))
                }
            },
            Sending::Over => panic!("`Send` polled after completion"),
        }
    }

    /// To the end of the line.
    #[cold]
    pub(super) fn line_up(&mut self, offer: Offer<T>, waker: Waker) -> Key {
        self.places += 1;
        self.senders.insert(Sender { offer, waker: Some(waker), place: self.places })
    }

    /// Whether `key` has a slot and its value still with it.
    fn has_slot(&mut self, key: Key) -> bool {
        matches!(self.senders.get(key), Some((Line::Served, _)))
    }

    /// Ends the wait: the ticket if it was accepted, else the value. A slot it had passes on.
    pub(crate) fn leave_send(&mut self, key: Key, wakes: &mut Wakes) -> Option<Result<u64, Unsent<T>>> {
        let Sender { offer, waker, .. } = self.senders.remove(key)?;
        wakes.retire(waker);
        self.pump(wakes);
        match offer {
            Offer::Value(unsent) => Some(Err(unsent)),
            Offer::Accepted(ticket) => Some(Ok(ticket)),
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
