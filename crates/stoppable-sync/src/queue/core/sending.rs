//! Values and permits on their way in.

use super::{Core, Offer, Phase, Sender, Sending, Step};
use crate::queue::error::{TryReserveError, TrySendError};
use crate::queue::waiters::{Key, Line};
use crate::queue::wakes::{NeedsClone, Poller, Wakes};

impl<T> Core<T> {
    #[inline]
    pub(crate) fn try_send(&mut self, value: T, wakes: &mut Wakes) -> Result<(), TrySendError<T>> {
        if self.phase != Phase::Open {
            return Err(TrySendError::ShutDown(value));
        }
        if self.free() == 0 {
            return Err(TrySendError::Full(value));
        }
        self.admit_behind_granted(value, wakes);
        Ok(())
    }

    /// A value that was waiting and has its slot is not overtaken by one that comes now.
    #[inline]
    fn admit_behind_granted(&mut self, value: T, wakes: &mut Wakes) {
        while self.accept_first_granted() {}
        self.admit(value);
        self.pump(wakes);
    }

    #[inline]
    pub(crate) fn poll_send(
        &mut self,
        sending: &mut Sending<T>,
        poller: &mut Poller<'_>,
        wakes: &mut Wakes,
    ) -> Step<Result<(), T>> {
        match std::mem::replace(sending, Sending::Over) {
            Sending::Unsent(value) => match self.try_send(value, wakes) {
                Ok(()) => Step::Ready(Ok(())),
                Err(TrySendError::ShutDown(value)) => Step::Ready(Err(value)),
                Err(TrySendError::Full(value)) => match poller.take_clone() {
                    Ok(waker) => {
                        let offer = Offer::Value(value);
                        let key = self.senders.insert(Sender { offer, waker: Some(waker) });
                        *sending = Sending::Waiting(key);
                        Step::Pending
                    }
                    Err(NeedsClone) => {
                        *sending = Sending::Unsent(value);
                        Step::NeedsClone
                    }
                },
            },
            Sending::Waiting(key) => match self.senders.get(key) {
                Some((Line::Waiting, sender)) => {
                    *sending = Sending::Waiting(key);
                    match poller.register(&mut sender.waker) {
                        Ok(()) => Step::Pending,
                        Err(NeedsClone) => Step::NeedsClone,
                    }
                }
                Some((Line::Served, _)) => {
                    // Those that were served before it go first.
                    while self.has_slot(key) {
                        self.accept_first_granted();
                    }
                    Step::Ready(self.leave_send(key, wakes).map_or(Ok(()), Err))
                }
                _ => Step::Ready(self.leave_send(key, wakes).map_or(Ok(()), Err)),
            },
            Sending::Over => panic!("`Send` polled after completion"),
        }
    }

    /// Whether `key` has a slot and its value still with it.
    fn has_slot(&mut self, key: Key) -> bool {
        matches!(self.senders.get(key), Some((Line::Served, _)))
    }

    /// Ends the wait. The value, unless it was accepted. A slot it had passes on.
    pub(crate) fn leave_send(&mut self, key: Key, wakes: &mut Wakes) -> Option<T> {
        let Sender { offer, waker } = self.senders.remove(key)?;
        wakes.retire(waker);
        self.pump(wakes);
        match offer {
            Offer::Value(value) => Some(value),
            Offer::Accepted | Offer::Permit | Offer::Granted => None,
        }
    }

    pub(crate) fn try_reserve(&mut self) -> Result<(), TryReserveError> {
        if self.phase != Phase::Open {
            return Err(TryReserveError::ShutDown);
        }
        if self.free() == 0 {
            return Err(TryReserveError::Full);
        }
        self.permits += 1;
        Ok(())
    }

    /// `Err`: shut down.
    pub(crate) fn poll_reserve(
        &mut self,
        key: &mut Option<Key>,
        poller: &mut Poller<'_>,
        wakes: &mut Wakes,
    ) -> Step<Result<(), ()>> {
        let Some(known) = *key else {
            return match self.try_reserve() {
                Ok(()) => Step::Ready(Ok(())),
                Err(TryReserveError::ShutDown) => Step::Ready(Err(())),
                Err(TryReserveError::Full) => match poller.take_clone() {
                    Ok(waker) => {
                        let sender = Sender { offer: Offer::Permit, waker: Some(waker) };
                        *key = Some(self.senders.insert(sender));
                        Step::Pending
                    }
                    Err(NeedsClone) => Step::NeedsClone,
                },
            };
        };
        match self.senders.get(known) {
            Some((Line::Waiting, sender)) => match poller.register(&mut sender.waker) {
                Ok(()) => Step::Pending,
                Err(NeedsClone) => Step::NeedsClone,
            },
            Some((_, Sender { offer: Offer::Granted, .. })) if self.phase == Phase::Open => {
                *key = None;
                self.senders.remove(known);
                Step::Ready(Ok(()))
            }
            _ => {
                *key = None;
                self.leave_reserve(known, wakes);
                Step::Ready(Err(()))
            }
        }
    }

    /// Ends the wait. A slot it was granted passes on.
    pub(crate) fn leave_reserve(&mut self, key: Key, wakes: &mut Wakes) {
        let Some(Sender { offer, waker }) = self.senders.remove(key) else {
            return;
        };
        wakes.retire(waker);
        if let Offer::Granted = offer {
            self.permits -= 1;
        }
        self.pump(wakes);
    }

    /// Uses up a permit, whether the value is taken or not.
    pub(crate) fn send_with_permit(&mut self, value: T, wakes: &mut Wakes) -> Result<(), T> {
        self.permits -= 1;
        if self.phase != Phase::Open {
            return Err(value);
        }
        self.admit_behind_granted(value, wakes);
        Ok(())
    }

    pub(crate) fn return_permit(&mut self, wakes: &mut Wakes) {
        self.permits -= 1;
        self.pump(wakes);
    }
}
