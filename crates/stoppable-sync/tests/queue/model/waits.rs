//! What each poll of a wait is to give. `None`: it goes on waiting.

use stoppable_sync::{TryRecvError, TrySendError};

use super::spec::{Entry, Joiner, Receiver, Sender, Spec, State, Want};

/// The answer of a reserve that gets no permits.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    ShutDown,
    BeyondCapacity,
}

/// What a wait for items wants.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    One,
    UpTo(usize),
    /// `true`: with an age that has come.
    Batch(usize, bool),
}

impl Spec {
    pub(super) fn forget_sender(&mut self, id: usize) -> Option<Sender> {
        let at = self.senders.iter().position(|sender| sender.id == id)?;
        Some(self.senders.remove(at))
    }

    pub(super) fn forget_receiver(&mut self, id: usize) {
        self.receivers.retain(|receiver| receiver.id != id);
    }

    fn wait_to_send(&mut self, id: usize, want: Want) {
        let state = State::Waiting;
        self.senders.push(Sender { id, want, granted: 0, ticket: 0, state, woken: false });
    }

    /// The value of a first poll is in `first`. The ticket, or the value given back.
    pub(super) fn poll_send(&mut self, id: usize, first: Option<u32>) -> Option<Result<u64, u32>> {
        if let Some(value) = first {
            return match self.try_send(value) {
                Err(TrySendError::Full(value)) => {
                    self.wait_to_send(id, Want::Value(value));
                    None
                }
                other => Some(other.map_err(TrySendError::into_inner)),
            };
        }
        let at = self.senders.iter().position(|sender| sender.id == id).unwrap();
        if self.senders[at].state == State::Waiting {
            self.senders[at].woken = false;
            return None;
        }
        while self.senders[at].state == State::Served {
            self.accept_one(at + 1);
        }
        let sender = self.senders.remove(at);
        let Want::Value(value) = sender.want else { panic!("not a send") };
        Some(if sender.state == State::Over { Ok(sender.ticket) } else { Err(value) })
    }

    /// What was not sent, if it was shut down.
    pub(super) fn poll_send_many(
        &mut self,
        id: usize,
        first: Option<Vec<u32>>,
    ) -> Option<Result<(), Vec<u32>>> {
        if let Some(mut values) = first {
            loop {
                if values.is_empty() {
                    return Some(Ok(()));
                }
                if !self.is_open() {
                    return Some(Err(values));
                }
                let room = self.free().min(values.len());
                if room == 0 {
                    self.wait_to_send(id, Want::Many(values));
                    return None;
                }
                self.accept_all();
                values.drain(..room).for_each(|value| self.accept(value));
                self.settle();
            }
        }
        loop {
            let at = self.senders.iter().position(|sender| sender.id == id).unwrap();
            let Want::Many(values) = &mut self.senders[at].want else { panic!("not many") };
            let mut values = std::mem::take(values);
            if !self.is_open() {
                self.senders.remove(at);
                return Some(Err(values));
            }
            let granted = std::mem::take(&mut self.senders[at].granted);
            while granted != 0 && self.accept_one(at) {}
            values.drain(..granted).for_each(|value| self.accept(value));
            if values.is_empty() {
                self.senders.remove(at);
                return Some(Ok(()));
            }
            self.senders[at].want = Want::Many(values);
            if granted == 0 {
                self.senders[at].woken = false;
                return None;
            }
            self.settle();
        }
    }

    pub(super) fn poll_reserve(&mut self, id: usize, want: usize) -> Option<Result<usize, Refused>> {
        if let Some(at) = self.senders.iter().position(|sender| sender.id == id) {
            if self.senders[at].state == State::Waiting {
                self.senders[at].woken = false;
                return None;
            }
            let sender = self.senders.remove(at);
            if sender.state == State::Served && self.is_open() {
                self.permits += want;
                return Some(Ok(want));
            }
            // What it had passes on before it is looked at as a newcomer.
            self.settle();
        }
        if !self.is_open() {
            return Some(Err(Refused::ShutDown));
        }
        if want > self.capacity {
            return Some(Err(Refused::BeyondCapacity));
        }
        if want <= self.free() {
            self.permits += want;
            return Some(Ok(want));
        }
        self.wait_to_send(id, Want::Permits(want));
        self.settle();
        None
    }

    /// `Some(None)`: shut down and nothing queued.
    pub(super) fn poll_recv(&mut self, id: usize, wanted: Wanted) -> Option<Option<Vec<Entry>>> {
        match wanted {
            Wanted::One => self.poll_one(id),
            Wanted::UpTo(max) => self.poll_gather(id, 1, max, false),
            Wanted::Batch(max, due) => {
                let received = self.poll_gather(id, max, max, false);
                if received.is_none() && due && self.receivers.iter().any(|r| r.id == id && r.promised != 0) {
                    return self.poll_gather(id, max, max, true);
                }
                received
            }
        }
    }

    fn poll_one(&mut self, id: usize) -> Option<Option<Vec<Entry>>> {
        if let Some(receiver) = self.receivers.iter_mut().find(|receiver| receiver.id == id) {
            if receiver.state == State::Waiting {
                receiver.woken = false;
                return None;
            }
        }
        self.forget_receiver(id);
        match self.try_recv() {
            Ok(entry) => Some(Some(vec![entry])),
            Err(TryRecvError::ShutDown) => Some(None),
            Err(TryRecvError::Empty) => {
                self.wait_to_recv(id, 1);
                None
            }
        }
    }

    fn poll_gather(&mut self, id: usize, want: usize, max: usize, due: bool) -> Option<Option<Vec<Entry>>> {
        loop {
            if !self.receivers.iter().any(|receiver| receiver.id == id) {
                self.wait_to_recv(id, want);
                self.settle();
            }
            let receiver = self.receivers.iter_mut().find(|receiver| receiver.id == id).unwrap();
            match receiver.state {
                State::Waiting if !due || receiver.promised == 0 => {
                    receiver.woken = false;
                    return None;
                }
                State::Waiting | State::Served => {
                    self.forget_receiver(id);
                    let many = self.available().min(max);
                    return Some(Some((0..many).map(|_| self.take()).collect()));
                }
                State::Over | State::GivenBack => {
                    self.forget_receiver(id);
                    if self.is_drained() {
                        return Some(None);
                    }
                }
            }
        }
    }

    fn wait_to_recv(&mut self, id: usize, want: usize) {
        self.receivers.push(Receiver { id, want, promised: 0, state: State::Waiting, woken: false });
    }

    pub(super) fn poll_join(&mut self, id: usize) -> Option<(u64, u64)> {
        match self.joins.iter().position(|join| join.id == id) {
            None if self.unfinished() == 0 => Some((self.accepted, self.done)),
            None => {
                self.joins.push(Joiner { id, report: None, woken: false });
                None
            }
            Some(at) if self.joins[at].report.is_none() => {
                self.joins[at].woken = false;
                None
            }
            Some(at) => self.joins.remove(at).report,
        }
    }
}
