//! Items on their way out.

use std::task::Waker;

use super::{Core, End, Receiver, Seat, Step, Taken};
use crate::queue::ends::SEATS;
use crate::queue::error::TryRecvError;
use crate::queue::store::Tag;
use crate::queue::waiters::{Key, Line};
use crate::queue::wakes::{NeedsClone, Poller, Wakes};

impl<T> Core<T> {
    /// Takes what the order says is next, whoever it was promised to: a promise is for *an* item.
    #[inline(always)]
    fn take(&mut self) -> Option<Taken<T>> {
        let (value, tag) = self.store.pop()?;
        let seat = self.seat(tag.received());
        Some(Taken { value, seat })
    }

    #[inline(always)]
    pub(super) fn seat(&mut self, tag: Tag) -> Seat {
        if self.ends.take(self.recent) {
            // Its item has ended, which is counted here as well as anywhere.
            self.done += 1;
            self.singles[self.recent] = tag;
            return Seat { at: self.recent, alone: self.joiners.waiting() == 0 };
        }
        if self.singles.len() >= self.crowded {
            self.make_seats();
        }
        let at = self.singles.insert(tag);
        if at >= SEATS {
            return Seat { at, alone: false };
        }
        self.recent = at;
        Seat { at, alone: self.joiners.waiting() == 0 }
    }

    /// Looks again only once there are many more, so that it pays also where all of them are in flight.
    #[inline(never)]
    fn make_seats(&mut self) {
        self.count_ends();
        self.crowded = SEATS.max(2 * self.singles.len());
    }

    #[inline(always)]
    pub(crate) fn try_recv(&mut self, wakes: &mut Wakes) -> Result<Taken<T>, TryRecvError> {
        if self.available() != 0 || (self.senders.served() != 0 && self.accept_first_granted()) {
            if let Some(taken) = self.take() {
                self.pump(wakes);
                return Ok(taken);
            }
        }
        Err(if self.drained() { TryRecvError::ShutDown } else { TryRecvError::Empty })
    }

    /// One that waits gives up its place for what it was promised.
    #[inline(always)]
    pub(crate) fn recv_now(
        &mut self,
        key: &mut Option<Key>,
        wakes: &mut Wakes,
    ) -> Result<Taken<T>, TryRecvError> {
        if key.is_some() && !self.is_called(key) {
            return Err(TryRecvError::Empty);
        }
        self.try_recv(wakes)
    }

    /// Whether it has nothing to wait for any more: it was promised something, or told to look again. It is
    /// then as one that comes now.
    #[inline(never)]
    fn is_called(&mut self, key: &mut Option<Key>) -> bool {
        let Some(known) = *key else { return true };
        if let Some((Line::Waiting, _)) = self.receivers.get(known) {
            return false;
        }
        *key = None;
        self.strike_off(known);
        true
    }

    /// A place at the end of the line, which takes the waker. `None`: there is something, or there will be
    /// nothing.
    #[inline]
    pub(crate) fn line_up_to_recv(&mut self, waker: &mut Option<Waker>) -> Option<Key> {
        if !self.is_dry() {
            return None;
        }
        Some(self.receivers.insert(Receiver { waker: waker.take(), want: 1, promised: 0 }))
    }

    /// Keeps its place in the line. Ready: there is something, or there will be nothing.
    pub(crate) fn stay_in_line(&mut self, key: Key, poller: &mut Poller<'_>) -> Step<()> {
        match self.receivers.get(key) {
            Some((Line::Waiting, receiver)) => match poller.register(&mut receiver.waker) {
                Ok(()) => Step::Pending,
                Err(NeedsClone) => Step::NeedsClone,
            },
            _ => Step::Ready(()),
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
    pub(crate) fn cancel(&mut self, ticket: u64, wakes: &mut Wakes) -> Option<T> {
        let value = self.store.remove(ticket)?;
        if self.promised > self.store.len() {
            self.take_promise_back();
        }
        self.pump(wakes);
        self.count(End::Returned, 1, wakes);
        Some(value)
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
