//! What the queue is to do, by scanning.

use stoppable_sync::{TryRecvError, TrySendError};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Phase {
    Open,
    Draining,
    Stopped,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Order {
    Fifo,
    Lifo,
    Priority,
}

/// Few levels, within and beyond those that have a ring.
pub(super) fn level(value: u32) -> i64 {
    [3, 70, -1, 3, 0][value as usize % 5]
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Entry {
    pub(super) value: u32,
    pub(super) ticket: u64,
    pub(super) attempt: u32,
    pub(super) abandons: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum State {
    Waiting,
    Served,
    /// A sender: accepted. A receiver: to look again.
    Over,
    GivenBack,
}

/// A future that was polled and is not ready. The lists are in the order of the first polls.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) id: usize,
    pub(super) want: usize,
    pub(super) promised: usize,
    pub(super) state: State,
    pub(super) woken: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) id: usize,
    pub(super) want: Want,
    /// Of several slots.
    pub(super) granted: usize,
    pub(super) ticket: u64,
    pub(super) state: State,
    pub(super) woken: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Want {
    Value(u32),
    Permits(usize),
    Many(Vec<u32>),
}

#[derive(Debug)]
pub(super) struct Joiner {
    pub(super) id: usize,
    pub(super) report: Option<(u64, u64)>,
    pub(super) woken: bool,
}

#[derive(Debug)]
pub(super) struct Spec {
    pub(super) order: Order,
    pub(super) capacity: usize,
    pub(super) requeues: bool,
    pub(super) phase: Phase,
    pub(super) store: Vec<Entry>,
    pub(super) receivers: Vec<Receiver>,
    pub(super) senders: Vec<Sender>,
    pub(super) joins: Vec<Joiner>,
    pub(super) permits: usize,
    pub(super) in_flight: u64,
    pub(super) accepted: u64,
    pub(super) done: u64,
    pub(super) rejected: u64,
    pub(super) abandoned: u64,
    pub(super) returned: u64,
    pub(super) requeued: u64,
}

impl Spec {
    pub(super) fn new(order: Order, capacity: Option<usize>, requeues: bool) -> Self {
        Self {
            order,
            capacity: capacity.unwrap_or(usize::MAX),
            requeues,
            phase: Phase::Open,
            store: Vec::new(),
            receivers: Vec::new(),
            senders: Vec::new(),
            joins: Vec::new(),
            permits: 0,
            in_flight: 0,
            accepted: 0,
            done: 0,
            rejected: 0,
            abandoned: 0,
            returned: 0,
            requeued: 0,
        }
    }

    pub(super) fn promised(&self) -> usize {
        self.receivers.iter().map(|receiver| receiver.promised).sum()
    }

    pub(super) fn reserved(&self) -> usize {
        let slots = |sender: &Sender| match sender.want {
            Want::Value(_) => (sender.state == State::Served) as usize,
            Want::Permits(_) | Want::Many(_) => sender.granted,
        };
        self.permits + self.senders.iter().map(slots).sum::<usize>()
    }

    pub(super) fn available(&self) -> usize {
        self.store.len() - self.promised()
    }

    pub(super) fn free(&self) -> usize {
        self.capacity.saturating_sub(self.available() + self.reserved())
    }

    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    pub(super) fn is_drained(&self) -> bool {
        !self.is_open() && self.store.is_empty()
    }

    pub(super) fn unfinished(&self) -> u64 {
        self.store.len() as u64 + self.in_flight
    }

    pub(super) fn accept(&mut self, value: u32) {
        self.accepted += 1;
        self.store.push(Entry { value, ticket: self.accepted, attempt: 0, abandons: 0 });
    }

    pub(super) fn put_back(&mut self, entry: Entry) {
        self.requeued += 1;
        self.in_flight -= 1;
        match self.order {
            Order::Lifo => self.store.insert(0, entry),
            Order::Fifo | Order::Priority => self.store.push(entry),
        }
    }

    /// The first sender up to that place in the list that has a slot gives its value now.
    pub(super) fn accept_one(&mut self, up_to: usize) -> bool {
        let ticket = self.accepted + 1;
        for sender in &mut self.senders[..up_to] {
            if let (State::Served, Want::Value(value)) = (sender.state, &sender.want) {
                let value = *value;
                (sender.state, sender.ticket) = (State::Over, ticket);
                self.accept(value);
                return true;
            }
        }
        false
    }

    pub(super) fn accept_all(&mut self) {
        while self.accept_one(self.senders.len()) {}
    }

    pub(super) fn try_send(&mut self, value: u32) -> Result<u64, TrySendError<u32>> {
        if !self.is_open() {
            return Err(TrySendError::ShutDown(value));
        }
        if self.free() == 0 {
            return Err(TrySendError::Full(value));
        }
        self.accept_all();
        self.accept(value);
        Ok(self.accepted)
    }

    /// Which one is next.
    fn next(&self) -> usize {
        match self.order {
            Order::Fifo => 0,
            Order::Lifo => self.store.len() - 1,
            Order::Priority => {
                let levels = self.store.iter().map(|entry| level(entry.value)).enumerate();
                levels.min_by_key(|(at, level)| (*level, *at)).unwrap().0
            }
        }
    }

    pub(super) fn take(&mut self) -> Entry {
        self.in_flight += 1;
        let mut entry = self.store.remove(self.next());
        entry.attempt += 1;
        entry
    }

    pub(super) fn take_all(&mut self) -> Vec<u32> {
        let mut values = Vec::new();
        while !self.store.is_empty() {
            values.push(self.store.remove(self.next()).value);
        }
        values
    }

    pub(super) fn try_recv(&mut self) -> Result<Entry, TryRecvError> {
        if self.available() != 0 || self.accept_one(self.senders.len()) {
            return Ok(self.take());
        }
        Err(if self.is_drained() { TryRecvError::ShutDown } else { TryRecvError::Empty })
    }

    /// Out of the queue; the promise made last is void if there is nothing left for it.
    pub(super) fn cancel(&mut self, ticket: u64) -> Option<u32> {
        let at = self.store.iter().position(|entry| entry.ticket == ticket)?;
        let entry = self.store.remove(at);
        self.returned += 1;
        if self.promised() > self.store.len() {
            let last = self.receivers.iter_mut().rfind(|receiver| receiver.promised != 0).unwrap();
            last.promised -= 1;
            last.state = State::Waiting;
        }
        Some(entry.value)
    }

    pub(super) fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        for sender in &mut self.senders {
            if let (State::Waiting, Want::Permits(want)) = (sender.state, &sender.want) {
                if *want > capacity {
                    (sender.state, sender.granted, sender.woken) = (State::GivenBack, 0, true);
                }
            }
        }
    }

    pub(super) fn shut_down(&mut self) {
        if self.is_open() {
            self.phase = Phase::Draining;
            self.turn_away();
        }
    }

    pub(super) fn stop(&mut self) -> Vec<u32> {
        let left = self.take_all();
        self.returned += left.len() as u64;
        self.phase = Phase::Stopped;
        self.turn_away();
        for receiver in &mut self.receivers {
            receiver.promised = 0;
            if receiver.state == State::Served {
                receiver.state = State::Over;
            }
        }
        left
    }

    fn turn_away(&mut self) {
        for sender in &mut self.senders {
            match (sender.state, &sender.want) {
                (State::Waiting, _) => (sender.state, sender.woken) = (State::GivenBack, true),
                (State::Served, Want::Value(_)) => sender.state = State::GivenBack,
                _ => {}
            }
        }
    }

    /// Promises and grants until neither is possible, then releases who joins.
    pub(super) fn settle(&mut self) {
        while self.serve_receiver() || self.serve_sender() {}
        if self.unfinished() == 0 {
            for join in &mut self.joins {
                if join.report.is_none() {
                    (join.report, join.woken) = (Some((self.accepted, self.done)), true);
                }
            }
        }
    }

    fn serve_receiver(&mut self) -> bool {
        let Some(at) = self.receivers.iter().position(|r| r.state == State::Waiting) else { return false };
        if self.available() == 0 {
            self.accept_one(self.senders.len());
        }
        let (available, open, drained) = (self.available(), self.is_open(), self.is_drained());
        let receiver = &mut self.receivers[at];
        let more = available.min(receiver.want - receiver.promised);
        receiver.promised += more;
        receiver.woken |= more != 0 && receiver.promised == more;
        if receiver.promised == receiver.want || (receiver.promised != 0 && !open) {
            (receiver.state, receiver.woken) = (State::Served, true);
        } else if drained {
            (receiver.state, receiver.woken) = (State::Over, true);
        } else {
            return more != 0;
        }
        true
    }

    fn serve_sender(&mut self) -> bool {
        let free = self.free();
        let Some(sender) = self.senders.iter_mut().find(|s| s.state == State::Waiting) else { return false };
        if free == 0 {
            return false;
        }
        let (want, piecemeal) = match &sender.want {
            Want::Value(_) => {
                (sender.state, sender.woken) = (State::Served, true);
                return true;
            }
            Want::Permits(want) => (*want, false),
            Want::Many(values) => (values.len(), true),
        };
        let more = free.min(want - sender.granted);
        sender.granted += more;
        sender.woken |= piecemeal && sender.granted == more;
        if sender.granted == want {
            (sender.state, sender.woken) = (State::Served, true);
        }
        true
    }
}
