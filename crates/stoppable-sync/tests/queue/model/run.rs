//! Does the same to the queue and to the specification.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use stoppable_sync::{Batch, Item, Permit, Producer, ReserveManyError, SendError, ShutdownQueue};
use tokio_test::task::Spawn;

use super::op::Op;
use super::spec::{Entry, Spec, State};
use super::waits::{Refused, Wanted};
use crate::by_hand;

type Wait<'q, R> = Spawn<Pin<Box<dyn Future<Output = R> + 'q>>>;
/// The ticket of a single one, or what was not sent.
type Sent = Result<Option<u64>, Vec<u32>>;
type Reserved<'q> = Result<Vec<Permit<'q, u32>>, Refused>;

enum Received {
    One(Item<u32>),
    Many(Batch<u32>),
}

pub(super) struct Run<'q> {
    pub(super) queue: &'q ShutdownQueue<u32>,
    pub(super) spec: Spec,
    next: u32,
    /// `true`: many.
    sends: Vec<(usize, bool, Wait<'q, Sent>)>,
    reserves: Vec<(usize, usize, Wait<'q, Reserved<'q>>)>,
    recvs: Vec<(usize, Wanted, Wait<'q, Option<Received>>)>,
    joins: Vec<(usize, Wait<'q, (u64, u64)>)>,
    permits: Vec<Permit<'q, u32>>,
    pub(super) items: Vec<(Item<u32>, Entry)>,
    pub(super) batches: Vec<(Batch<u32>, Vec<Entry>)>,
    producers: Vec<Producer<u32>>,
    pub(super) detached: u64,
}

pub(super) fn take_at<V>(list: &mut Vec<V>, at: usize) -> Option<V> {
    (!list.is_empty()).then(|| list.remove(at % list.len()))
}

fn wait<'q, R>(future: impl Future<Output = R> + 'q) -> Wait<'q, R> {
    by_hand(Box::pin(future))
}

impl<'q> Run<'q> {
    pub(super) fn new(queue: &'q ShutdownQueue<u32>, spec: Spec) -> Self {
        Self {
            queue,
            spec,
            next: 0,
            sends: Vec::new(),
            reserves: Vec::new(),
            recvs: Vec::new(),
            joins: Vec::new(),
            permits: Vec::new(),
            items: Vec::new(),
            batches: Vec::new(),
            producers: Vec::new(),
            detached: 0,
        }
    }

    fn value(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    pub(super) fn got(&mut self, item: Item<u32>, expected: Entry) {
        assert_eq!(
            (*item, item.ticket(), item.attempt()),
            (expected.value, expected.ticket, expected.attempt)
        );
        self.items.push((item, expected));
    }

    fn start_send(&mut self, id: usize, value: u32) {
        let queue = self.queue;
        let send = wait(async move {
            match queue.send(value).await {
                Ok(ticket) => Ok(Some(ticket)),
                Err(SendError::ShutDown(value)) => Err(vec![value]),
                Err(error) => panic!("{error:?}"),
            }
        });
        let expected = self.spec.poll_send(id, Some(value));
        self.check_send(id, false, send, expected.map(|sent| sent.map(Some).map_err(|value| vec![value])));
    }

    fn start_send_many(&mut self, id: usize, many: usize) {
        let queue = self.queue;
        let values: Vec<_> = (0..many).map(|_| self.value()).collect();
        let mut deque = VecDeque::from(values.clone());
        let send = wait(async move {
            match queue.send_many(&mut deque).await {
                Ok(()) => Ok(None),
                Err(_) => Err(deque.into()),
            }
        });
        let expected = self.spec.poll_send_many(id, Some(values));
        self.check_send(id, true, send, expected.map(|sent| sent.map(|()| None)));
    }

    fn poll_send(&mut self, id: usize, many: bool, send: Wait<'q, Sent>) {
        let expected = if many {
            self.spec.poll_send_many(id, None).map(|sent| sent.map(|()| None))
        } else {
            self.spec.poll_send(id, None).map(|sent| sent.map(Some).map_err(|value| vec![value]))
        };
        self.check_send(id, many, send, expected);
    }

    fn check_send(&mut self, id: usize, many: bool, mut send: Wait<'q, Sent>, expected: Option<Sent>) {
        match (send.poll(), expected) {
            (Poll::Pending, None) => self.sends.push((id, many, send)),
            (Poll::Ready(sent), Some(expected)) => assert_eq!(sent, expected),
            (got, expected) => panic!("send: {got:?}, expected {expected:?}"),
        }
    }

    fn start_reserve(&mut self, id: usize, want: Option<usize>) {
        let queue = self.queue;
        let reserve = wait(async move {
            match want {
                None => queue.reserve().await.map(|permit| vec![permit]).map_err(|_| Refused::ShutDown),
                Some(want) => queue.reserve_many(want).await.map_err(|error| match error {
                    ReserveManyError::BeyondCapacity { .. } => Refused::BeyondCapacity,
                    _ => Refused::ShutDown,
                }),
            }
        });
        self.poll_reserve(id, want.unwrap_or(1), reserve);
    }

    fn poll_reserve(&mut self, id: usize, want: usize, mut reserve: Wait<'q, Reserved<'q>>) {
        let expected = self.spec.poll_reserve(id, want);
        match (reserve.poll(), expected) {
            (Poll::Pending, None) => self.reserves.push((id, want, reserve)),
            (Poll::Ready(Ok(permits)), Some(Ok(expected))) => {
                assert_eq!(permits.len(), expected);
                self.permits.extend(permits);
            }
            (Poll::Ready(Err(refused)), Some(Err(expected))) => assert_eq!(refused, expected),
            (got, expected) => panic!("reserve: {got:?}, expected {expected:?}"),
        }
    }

    fn start_recv(&mut self, id: usize, wanted: Wanted) {
        let queue = self.queue;
        let recv = wait(async move {
            match wanted {
                Wanted::One => queue.recv().await.unwrap().map(Received::One),
                Wanted::UpTo(max) => queue.recv_many(max).await.unwrap().map(Received::Many),
                Wanted::Batch(max, due) => {
                    let max_age = if due { Duration::ZERO } else { Duration::MAX };
                    queue.recv_batch(max, max_age).await.unwrap().map(Received::Many)
                }
            }
        });
        self.poll_recv(id, wanted, recv);
    }

    fn poll_recv(&mut self, id: usize, wanted: Wanted, mut recv: Wait<'q, Option<Received>>) {
        let expected = self.spec.poll_recv(id, wanted);
        match (recv.poll(), expected) {
            (Poll::Pending, None) => self.recvs.push((id, wanted, recv)),
            (Poll::Ready(None), Some(None)) => {}
            (Poll::Ready(Some(Received::One(item))), Some(Some(entries))) => self.got(item, entries[0]),
            (Poll::Ready(Some(Received::Many(batch))), Some(Some(entries))) => {
                assert_eq!(*batch, *entries.iter().map(|entry| entry.value).collect::<Vec<_>>());
                self.batches.push((batch, entries));
            }
            (got, expected) => panic!("recv: ready {}, expected {expected:?}", got.is_ready()),
        }
    }

    fn poll_join(&mut self, id: usize, mut join: Wait<'q, (u64, u64)>) {
        match (join.poll(), self.spec.poll_join(id)) {
            (Poll::Pending, None) => self.joins.push((id, join)),
            (Poll::Ready(report), Some(expected)) => assert_eq!(report, expected),
            (got, expected) => panic!("join: {got:?}, expected {expected:?}"),
        }
    }

    pub(super) fn apply(&mut self, id: usize, op: Op) {
        let queue = self.queue;
        match op {
            Op::TrySend => {
                let value = self.value();
                assert_eq!(queue.try_send(value), self.spec.try_send(value));
            }
            Op::StartSend => {
                let value = self.value();
                self.start_send(id, value);
            }
            Op::StartSendMany(many) => self.start_send_many(id, many),
            Op::PollSend(at) => {
                if let Some((id, many, send)) = take_at(&mut self.sends, at) {
                    self.poll_send(id, many, send);
                }
            }
            Op::DropSend(at) => {
                if let Some((id, _, _send)) = take_at(&mut self.sends, at) {
                    self.spec.forget_sender(id);
                }
            }
            Op::TryReserve => {
                let expected = self.spec.is_open() && self.spec.free() != 0;
                let reserved = queue.try_reserve();
                assert_eq!(reserved.is_ok(), expected);
                self.spec.permits += expected as usize;
                self.permits.extend(reserved);
            }
            Op::StartReserve => self.start_reserve(id, None),
            Op::StartReserveMany(want) => self.start_reserve(id, Some(want)),
            Op::PollReserve(at) => {
                if let Some((id, want, reserve)) = take_at(&mut self.reserves, at) {
                    self.poll_reserve(id, want, reserve);
                }
            }
            Op::DropReserve(at) => {
                if let Some((id, _, _reserve)) = take_at(&mut self.reserves, at) {
                    self.spec.forget_sender(id);
                }
            }
            Op::UsePermit(at) => {
                if let Some(permit) = take_at(&mut self.permits, at) {
                    let value = self.value();
                    let sent = permit.send(value);
                    self.spec.permits -= 1;
                    assert_eq!(sent.is_ok(), self.spec.is_open());
                    if self.spec.is_open() {
                        self.spec.accept_all();
                        self.spec.accept(value);
                        assert_eq!(sent, Ok(self.spec.accepted));
                    }
                }
            }
            Op::DropPermit(at) => {
                if take_at(&mut self.permits, at).is_some() {
                    self.spec.permits -= 1;
                }
            }
            Op::TryRecv => match (queue.try_recv(), self.spec.try_recv()) {
                (Ok(item), Ok(entry)) => self.got(item, entry),
                (got, expected) => assert_eq!(got.map(|_| ()), expected.map(|_| ())),
            },
            Op::StartRecv => self.start_recv(id, Wanted::One),
            Op::StartRecvMany(max) => self.start_recv(id, Wanted::UpTo(max)),
            Op::StartRecvBatch(max, due) => self.start_recv(id, Wanted::Batch(max, due)),
            Op::PollRecv(at) => {
                if let Some((id, wanted, recv)) = take_at(&mut self.recvs, at) {
                    self.poll_recv(id, wanted, recv);
                }
            }
            Op::DropRecv(at) => {
                if let Some((id, _, _recv)) = take_at(&mut self.recvs, at) {
                    self.spec.forget_receiver(id);
                }
            }
            Op::StartJoin => {
                let join =
                    async move { queue.join().await.map(|report| (report.accepted, report.done)).unwrap() };
                self.poll_join(id, wait(join));
            }
            Op::PollJoin(at) => {
                if let Some((id, join)) = take_at(&mut self.joins, at) {
                    self.poll_join(id, join);
                }
            }
            Op::DropJoin(at) => {
                if let Some((id, _join)) = take_at(&mut self.joins, at) {
                    self.spec.joins.retain(|join| join.id != id);
                }
            }
            Op::Cancel(at) => {
                let ticket = self.spec.accepted.saturating_sub(at as u64);
                assert_eq!(queue.cancel(ticket), self.spec.cancel(ticket));
            }
            Op::Resize(capacity) => {
                queue.resize(capacity);
                self.spec.resize(capacity);
            }
            Op::AddProducer => {
                let producer = self.producers.first().cloned().unwrap_or_else(|| queue.producer());
                self.producers.push(producer);
            }
            Op::DropProducer => {
                if self.producers.pop().is_some() && self.producers.is_empty() {
                    self.spec.shut_down();
                }
            }
            Op::Shutdown => {
                queue.shutdown();
                self.spec.shut_down();
            }
            Op::ShutdownImmediate => {
                let leftovers = queue.shutdown_immediate();
                assert_eq!(leftovers.in_flight(), self.spec.in_flight);
                assert_eq!(leftovers.into_iter().collect::<Vec<_>>(), self.spec.stop());
            }
            _ => self.settle(op),
        }
        self.spec.settle();
    }

    pub(super) fn compare(&self) {
        let (stats, spec) = (self.queue.stats(), &self.spec);
        assert_eq!(
            (stats.len, stats.promised, stats.reserved, stats.in_flight),
            (spec.store.len(), spec.promised(), spec.reserved(), spec.in_flight)
        );
        let receivers = spec.receivers.iter().filter(|receiver| receiver.state == State::Waiting).count();
        let senders = spec.senders.iter().filter(|sender| sender.state == State::Waiting).count();
        assert_eq!((stats.waiting_receivers, stats.waiting_senders), (receivers, senders));
        assert_eq!(
            (stats.accepted, stats.done, stats.rejected, stats.abandoned, stats.returned, stats.requeued),
            (spec.accepted, spec.done, spec.rejected, spec.abandoned, spec.returned, spec.requeued)
        );
        assert_eq!(stats.is_shut_down, !spec.is_open());
        crate::assert_balanced(self.queue);
        let sender_woken = |id| spec.senders.iter().any(|sender| sender.id == id && sender.woken);
        for (id, _, send) in &self.sends {
            assert_eq!(send.is_woken(), sender_woken(*id), "send {id}");
        }
        for (id, _, reserve) in &self.reserves {
            assert_eq!(reserve.is_woken(), sender_woken(*id), "reserve {id}");
        }
        for (id, _, recv) in &self.recvs {
            let expected = spec.receivers.iter().any(|receiver| receiver.id == *id && receiver.woken);
            assert_eq!(recv.is_woken(), expected, "recv {id}");
        }
        for (id, join) in &self.joins {
            let expected = spec.joins.iter().any(|join| join.id == *id && join.woken);
            assert_eq!(join.is_woken(), expected, "join {id}");
        }
    }
}
