//! Random operations on hand-polled futures, against a model that scans plain vectors.

use std::task::Poll;

use proptest::prelude::*;
use stoppable_sync::queue::{Join, Recv, Reserve, Send as Sending};
use stoppable_sync::{
    AbandonPolicy, Item, JoinReport, Permit, SendError, ShutdownQueue, TryRecvError, TrySendError,
};
use tokio_test::task::Spawn;

use crate::by_hand;

#[derive(Debug, Clone, Copy)]
enum Op {
    TrySend,
    StartSend,
    PollSend(usize),
    DropSend(usize),
    TryReserve,
    StartReserve,
    PollReserve(usize),
    DropReserve(usize),
    UsePermit(usize),
    DropPermit(usize),
    TryRecv,
    StartRecv,
    PollRecv(usize),
    DropRecv(usize),
    Done(usize),
    Reject(usize),
    DropItem(usize),
    Requeue(usize),
    Detach(usize),
    TaskDone,
    StartJoin,
    PollJoin(usize),
    DropJoin(usize),
    Shutdown,
    ShutdownImmediate,
}

fn op() -> impl Strategy<Value = Op> {
    let at = 0..8_usize;
    prop_oneof![
        6 => Just(Op::TrySend),
        8 => Just(Op::StartSend),
        6 => at.clone().prop_map(Op::PollSend),
        3 => at.clone().prop_map(Op::DropSend),
        2 => Just(Op::TryReserve),
        3 => Just(Op::StartReserve),
        3 => at.clone().prop_map(Op::PollReserve),
        2 => at.clone().prop_map(Op::DropReserve),
        3 => at.clone().prop_map(Op::UsePermit),
        2 => at.clone().prop_map(Op::DropPermit),
        5 => Just(Op::TryRecv),
        8 => Just(Op::StartRecv),
        6 => at.clone().prop_map(Op::PollRecv),
        3 => at.clone().prop_map(Op::DropRecv),
        5 => at.clone().prop_map(Op::Done),
        1 => at.clone().prop_map(Op::Reject),
        2 => at.clone().prop_map(Op::DropItem),
        3 => at.clone().prop_map(Op::Requeue),
        1 => at.clone().prop_map(Op::Detach),
        1 => Just(Op::TaskDone),
        2 => Just(Op::StartJoin),
        2 => at.clone().prop_map(Op::PollJoin),
        1 => at.prop_map(Op::DropJoin),
        1 => Just(Op::Shutdown),
        1 => Just(Op::ShutdownImmediate),
    ]
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    Open,
    Draining,
    Stopped,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Entry {
    value: u32,
    attempt: u32,
    abandons: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Waiting,
    Served,
    /// A sender: accepted. A receiver: to look again.
    Over,
    GivenBack,
}

/// A future that was polled and is not ready. `value`: a sender; none: a reserver.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    id: usize,
    value: Option<u32>,
    state: State,
    woken: bool,
}

#[derive(Debug)]
struct Model {
    capacity: usize,
    requeues: bool,
    phase: Phase,
    store: Vec<Entry>,
    receivers: Vec<Waiter>,
    senders: Vec<Waiter>,
    joins: Vec<(Waiter, Option<(u64, u64)>)>,
    permits: usize,
    in_flight: u64,
    accepted: u64,
    done: u64,
    rejected: u64,
    abandoned: u64,
    returned: u64,
    requeued: u64,
}

impl Model {
    fn count(waiters: &[Waiter], state: State) -> usize {
        waiters.iter().filter(|waiter| waiter.state == state).count()
    }

    fn promised(&self) -> usize {
        Self::count(&self.receivers, State::Served)
    }

    fn reserved(&self) -> usize {
        self.permits + Self::count(&self.senders, State::Served)
    }

    fn has_room(&self) -> bool {
        self.store.len() - self.promised() + self.reserved() < self.capacity
    }

    fn accept(&mut self, value: u32) {
        self.accepted += 1;
        self.store.push(Entry { value, attempt: 0, abandons: 0 });
    }

    /// The first sender that holds a slot gives its value now. The list is in the order of the first
    /// polls, and so slots are granted in that order.
    fn accept_one(&mut self) -> bool {
        let granted = |w: &&mut Waiter| w.state == State::Served && w.value.is_some();
        let Some(sender) = self.senders.iter_mut().find(granted) else { return false };
        sender.state = State::Over;
        let value = sender.value.unwrap();
        self.accept(value);
        true
    }

    fn settle(&mut self) {
        loop {
            let waiting = |w: &Waiter| w.state == State::Waiting;
            let mut moved = false;
            if let Some(at) = self.receivers.iter().position(waiting) {
                if self.store.len() == self.promised() {
                    self.accept_one();
                }
                let state = if self.store.len() > self.promised() {
                    Some(State::Served)
                } else if self.phase != Phase::Open && self.store.is_empty() {
                    Some(State::Over)
                } else {
                    None
                };
                if let Some(state) = state {
                    (self.receivers[at].state, self.receivers[at].woken) = (state, true);
                    moved = true;
                }
            }
            if let Some(at) = self.senders.iter().position(waiting) {
                if self.has_room() {
                    (self.senders[at].state, self.senders[at].woken) = (State::Served, true);
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        if self.unfinished() == 0 {
            for (join, report) in &mut self.joins {
                if join.state == State::Waiting {
                    (join.state, join.woken) = (State::Served, true);
                    *report = Some((self.accepted, self.done));
                }
            }
        }
    }

    fn unfinished(&self) -> u64 {
        self.store.len() as u64 + self.in_flight
    }

    fn try_send(&mut self, value: u32) -> Result<(), TrySendError<u32>> {
        if self.phase != Phase::Open {
            return Err(TrySendError::ShutDown(value));
        }
        if !self.has_room() {
            return Err(TrySendError::Full(value));
        }
        while self.accept_one() {}
        self.accept(value);
        Ok(())
    }

    fn take(&mut self) -> Entry {
        self.in_flight += 1;
        let mut entry = self.store.remove(0);
        entry.attempt += 1;
        entry
    }

    fn try_recv(&mut self) -> Result<Entry, TryRecvError> {
        if self.store.len() > self.promised() || self.accept_one() {
            return Ok(self.take());
        }
        let drained = self.phase != Phase::Open && self.store.is_empty();
        Err(if drained { TryRecvError::ShutDown } else { TryRecvError::Empty })
    }

    fn close(&mut self) {
        for sender in &mut self.senders {
            match sender.state {
                State::Waiting => (sender.state, sender.woken) = (State::GivenBack, true),
                State::Served if sender.value.is_some() => sender.state = State::GivenBack,
                _ => {}
            }
        }
    }

    fn wait(list: &mut Vec<Waiter>, id: usize, value: Option<u32>) {
        list.push(Waiter { id, value, state: State::Waiting, woken: false });
    }
}

struct Run<'q> {
    queue: &'q ShutdownQueue<u32>,
    model: Model,
    next: u32,
    sends: Vec<(usize, Spawn<Sending<'q, u32>>)>,
    reserves: Vec<(usize, Spawn<Reserve<'q, u32>>)>,
    recvs: Vec<(usize, Spawn<Recv<'q, u32>>)>,
    joins: Vec<(usize, Spawn<Join<'q, u32>>)>,
    permits: Vec<Permit<'q, u32>>,
    items: Vec<(Item<u32>, Entry)>,
    detached: u64,
}

fn take_at<V>(list: &mut Vec<V>, at: usize) -> Option<V> {
    (!list.is_empty()).then(|| list.remove(at % list.len()))
}

fn find(list: &mut Vec<Waiter>, id: usize) -> Option<Waiter> {
    let at = list.iter().position(|waiter| waiter.id == id)?;
    Some(list.remove(at))
}

impl<'q> Run<'q> {
    fn value(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn got(&mut self, item: Item<u32>, expected: Entry) {
        assert_eq!((*item, item.attempt()), (expected.value, expected.attempt));
        self.items.push((item, expected));
    }

    fn poll_send(&mut self, id: usize, mut send: Spawn<Sending<'q, u32>>, first: Option<u32>) {
        let expected = match first {
            Some(value) => match self.model.try_send(value) {
                Err(TrySendError::Full(value)) => {
                    Model::wait(&mut self.model.senders, id, Some(value));
                    None
                }
                other => Some(other.map_err(TrySendError::into_inner)),
            },
            None => {
                let known = self.model.senders.iter().position(|w| w.id == id).unwrap();
                let waiter = self.model.senders[known];
                match waiter.state {
                    State::Waiting => {
                        self.model.senders[known].woken = false;
                        None
                    }
                    State::Served => {
                        while self.model.senders.iter().any(|w| w.id == id && w.state == State::Served) {
                            self.model.accept_one();
                        }
                        find(&mut self.model.senders, id);
                        Some(Ok(()))
                    }
                    State::Over => {
                        find(&mut self.model.senders, id);
                        Some(Ok(()))
                    }
                    State::GivenBack => {
                        find(&mut self.model.senders, id);
                        Some(Err(waiter.value.unwrap()))
                    }
                }
            }
        };
        match (send.poll(), expected) {
            (Poll::Pending, None) => self.sends.push((id, send)),
            (Poll::Ready(Ok(())), Some(Ok(()))) => {}
            (Poll::Ready(Err(SendError::ShutDown(value))), Some(Err(expected))) => {
                assert_eq!(value, expected);
            }
            (got, expected) => panic!("send: {got:?}, expected {expected:?}"),
        }
    }

    fn poll_reserve(&mut self, id: usize, mut reserve: Spawn<Reserve<'q, u32>>) {
        let expected = match find(&mut self.model.senders, id) {
            None if self.model.phase != Phase::Open => Some(false),
            None if self.model.has_room() => Some(true),
            None => {
                Model::wait(&mut self.model.senders, id, None);
                None
            }
            Some(waiter) => match waiter.state {
                State::Waiting => {
                    // Back to its place.
                    let at = self.model.senders.iter().take_while(|w| w.id < id).count();
                    self.model.senders.insert(at, Waiter { woken: false, ..waiter });
                    None
                }
                State::Served => Some(self.model.phase == Phase::Open),
                State::Over | State::GivenBack => Some(false),
            },
        };
        if expected == Some(true) {
            self.model.permits += 1;
        }
        match (reserve.poll(), expected) {
            (Poll::Pending, None) => self.reserves.push((id, reserve)),
            (Poll::Ready(Ok(permit)), Some(true)) => self.permits.push(permit),
            (Poll::Ready(Err(_)), Some(false)) => {}
            (got, expected) => panic!("reserve: {got:?}, expected {expected:?}"),
        }
    }

    fn poll_recv(&mut self, id: usize, mut recv: Spawn<Recv<'q, u32>>) {
        let known = self.model.receivers.iter().position(|w| w.id == id);
        let state = known.map(|at| self.model.receivers[at].state);
        let expected = match state {
            Some(State::Waiting) => {
                self.model.receivers[known.unwrap()].woken = false;
                None
            }
            Some(State::Served) => {
                find(&mut self.model.receivers, id);
                Some(Some(self.model.take()))
            }
            _ => {
                find(&mut self.model.receivers, id);
                match self.model.try_recv() {
                    Ok(entry) => Some(Some(entry)),
                    Err(TryRecvError::ShutDown) => Some(None),
                    Err(TryRecvError::Empty) => {
                        Model::wait(&mut self.model.receivers, id, None);
                        None
                    }
                }
            }
        };
        match (recv.poll(), expected) {
            (Poll::Pending, None) => self.recvs.push((id, recv)),
            (Poll::Ready(Ok(None)), Some(None)) => {}
            (Poll::Ready(Ok(Some(item))), Some(Some(entry))) => self.got(item, entry),
            (got, expected) => panic!("recv: {got:?}, expected {expected:?}"),
        }
    }

    fn poll_join(&mut self, id: usize, mut join: Spawn<Join<'q, u32>>) {
        let known = self.model.joins.iter().position(|(w, _)| w.id == id);
        let expected = match known {
            None if self.model.unfinished() == 0 => Some((self.model.accepted, self.model.done)),
            None => {
                let waiter = Waiter { id, value: None, state: State::Waiting, woken: false };
                self.model.joins.push((waiter, None));
                None
            }
            Some(at) if self.model.joins[at].0.state == State::Waiting => {
                self.model.joins[at].0.woken = false;
                None
            }
            Some(at) => self.model.joins.remove(at).1,
        };
        match (join.poll(), expected) {
            (Poll::Pending, None) => self.joins.push((id, join)),
            (Poll::Ready(Ok(JoinReport { accepted, done, .. })), Some(expected)) => {
                assert_eq!((accepted, done), expected);
            }
            (got, expected) => panic!("join: {got:?}, expected {expected:?}"),
        }
    }

    fn apply(&mut self, id: usize, op: Op) {
        let queue = self.queue;
        match op {
            Op::TrySend => {
                let value = self.value();
                assert_eq!(queue.try_send(value), self.model.try_send(value));
            }
            Op::StartSend => {
                let value = self.value();
                self.poll_send(id, by_hand(queue.send(value)), Some(value));
            }
            Op::PollSend(at) => {
                if let Some((id, send)) = take_at(&mut self.sends, at) {
                    self.poll_send(id, send, None);
                }
            }
            Op::DropSend(at) => {
                if let Some((id, _send)) = take_at(&mut self.sends, at) {
                    find(&mut self.model.senders, id);
                }
            }
            Op::TryReserve => {
                let expected = self.model.phase == Phase::Open && self.model.has_room();
                let reserved = queue.try_reserve();
                assert_eq!(reserved.is_ok(), expected);
                if let Ok(permit) = reserved {
                    self.model.permits += 1;
                    self.permits.push(permit);
                }
            }
            Op::StartReserve => self.poll_reserve(id, by_hand(queue.reserve())),
            Op::PollReserve(at) => {
                if let Some((id, reserve)) = take_at(&mut self.reserves, at) {
                    self.poll_reserve(id, reserve);
                }
            }
            Op::DropReserve(at) => {
                if let Some((id, _reserve)) = take_at(&mut self.reserves, at) {
                    find(&mut self.model.senders, id);
                }
            }
            Op::UsePermit(at) => {
                if let Some(permit) = take_at(&mut self.permits, at) {
                    let value = self.value();
                    self.model.permits -= 1;
                    let open = self.model.phase == Phase::Open;
                    assert_eq!(permit.send(value).is_ok(), open);
                    if open {
                        while self.model.accept_one() {}
                        self.model.accept(value);
                    }
                }
            }
            Op::DropPermit(at) => {
                if take_at(&mut self.permits, at).is_some() {
                    self.model.permits -= 1;
                }
            }
            Op::TryRecv => match (queue.try_recv(), self.model.try_recv()) {
                (Ok(item), Ok(entry)) => self.got(item, entry),
                (got, expected) => assert_eq!(got.map(|_| ()), expected.map(|_| ())),
            },
            Op::StartRecv => self.poll_recv(id, by_hand(queue.recv())),
            Op::PollRecv(at) => {
                if let Some((id, recv)) = take_at(&mut self.recvs, at) {
                    self.poll_recv(id, recv);
                }
            }
            Op::DropRecv(at) => {
                if let Some((id, _recv)) = take_at(&mut self.recvs, at) {
                    find(&mut self.model.receivers, id);
                }
            }
            Op::Done(at) => {
                if let Some((item, _)) = take_at(&mut self.items, at) {
                    item.done();
                    self.model.in_flight -= 1;
                    self.model.done += 1;
                }
            }
            Op::Reject(at) => {
                if let Some((item, _)) = take_at(&mut self.items, at) {
                    item.reject();
                    self.model.in_flight -= 1;
                    self.model.rejected += 1;
                }
            }
            Op::DropItem(at) => {
                if let Some((item, mut entry)) = take_at(&mut self.items, at) {
                    drop(item);
                    self.model.in_flight -= 1;
                    let open = self.model.phase == Phase::Open;
                    if open && self.model.requeues && entry.abandons < 3 {
                        entry.abandons += 1;
                        self.model.requeued += 1;
                        self.model.store.push(entry);
                    } else {
                        self.model.abandoned += 1;
                    }
                }
            }
            Op::Requeue(at) => {
                if let Some((item, entry)) = take_at(&mut self.items, at) {
                    match item.requeue() {
                        Ok(()) => {
                            assert_ne!(self.model.phase, Phase::Stopped);
                            self.model.in_flight -= 1;
                            self.model.requeued += 1;
                            self.model.store.push(entry);
                        }
                        Err(error) => {
                            assert_eq!(self.model.phase, Phase::Stopped);
                            self.items.push((error.into_item(), entry));
                        }
                    }
                }
            }
            Op::Detach(at) => {
                if let Some((item, entry)) = take_at(&mut self.items, at) {
                    assert_eq!(item.detach(), entry.value);
                    self.detached += 1;
                }
            }
            Op::TaskDone => {
                assert_eq!(queue.task_done().is_ok(), self.detached > 0);
                if self.detached > 0 {
                    self.detached -= 1;
                    self.model.in_flight -= 1;
                    self.model.done += 1;
                }
            }
            Op::StartJoin => self.poll_join(id, by_hand(queue.join())),
            Op::PollJoin(at) => {
                if let Some((id, join)) = take_at(&mut self.joins, at) {
                    self.poll_join(id, join);
                }
            }
            Op::DropJoin(at) => {
                if let Some((id, _join)) = take_at(&mut self.joins, at) {
                    self.model.joins.retain(|(waiter, _)| waiter.id != id);
                }
            }
            Op::Shutdown => {
                queue.shutdown();
                if self.model.phase == Phase::Open {
                    self.model.phase = Phase::Draining;
                    self.model.close();
                }
            }
            Op::ShutdownImmediate => {
                let leftovers = queue.shutdown_immediate();
                assert_eq!(leftovers.in_flight(), self.model.in_flight);
                let expected: Vec<_> = self.model.store.drain(..).map(|entry| entry.value).collect();
                assert_eq!(leftovers.into_iter().collect::<Vec<_>>(), expected);
                self.model.returned += expected.len() as u64;
                self.model.phase = Phase::Stopped;
                self.model.close();
                for receiver in &mut self.model.receivers {
                    if receiver.state == State::Served {
                        receiver.state = State::Over;
                    }
                }
            }
        }
        self.model.settle();
    }

    fn compare(&self) {
        let (stats, model) = (self.queue.stats(), &self.model);
        assert_eq!(
            (stats.len, stats.promised, stats.reserved, stats.in_flight),
            (model.store.len(), model.promised(), model.reserved(), model.in_flight)
        );
        assert_eq!(
            (stats.waiting_receivers, stats.waiting_senders),
            (Model::count(&model.receivers, State::Waiting), Model::count(&model.senders, State::Waiting))
        );
        assert_eq!(
            (stats.accepted, stats.done, stats.rejected, stats.abandoned, stats.returned, stats.requeued),
            (model.accepted, model.done, model.rejected, model.abandoned, model.returned, model.requeued)
        );
        crate::assert_balanced(self.queue);
        let woken = |list: &[Waiter], id| list.iter().any(|w| w.id == id && w.woken);
        for (id, send) in &self.sends {
            assert_eq!(send.is_woken(), woken(&model.senders, *id), "send {id}");
        }
        for (id, reserve) in &self.reserves {
            assert_eq!(reserve.is_woken(), woken(&model.senders, *id), "reserve {id}");
        }
        for (id, recv) in &self.recvs {
            assert_eq!(recv.is_woken(), woken(&model.receivers, *id), "recv {id}");
        }
        for (id, join) in &self.joins {
            let expected = model.joins.iter().any(|(w, _)| w.id == *id && w.woken);
            assert_eq!(join.is_woken(), expected, "join {id}");
        }
    }
}

fn run(capacity: Option<usize>, requeues: bool, ops: &[Op]) {
    let mut builder = ShutdownQueue::builder();
    if let Some(capacity) = capacity {
        builder = builder.capacity(capacity);
    }
    if requeues {
        builder = builder.abandon_policy(AbandonPolicy::Requeue);
    }
    let queue = builder.build();
    let mut run = Run {
        queue: &queue,
        model: Model {
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
        },
        next: 0,
        sends: Vec::new(),
        reserves: Vec::new(),
        recvs: Vec::new(),
        joins: Vec::new(),
        permits: Vec::new(),
        items: Vec::new(),
        detached: 0,
    };
    for (id, op) in ops.iter().enumerate() {
        run.apply(id, *op);
        run.compare();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_queue_does_what_the_model_does(
        capacity in prop_oneof![Just(Some(1)), Just(Some(2)), Just(Some(3)), Just(None)],
        requeues in any::<bool>(),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        run(capacity, requeues, &ops);
    }
}
