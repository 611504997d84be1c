//! The queue beside other channels. A channel is told apart by one trait and all of them run the same loops,
//! so no case can be kinder to one than to another.

use std::collections::VecDeque;
use std::future::Future;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stoppable::{ShutdownQueue, TaskGroup, ok};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, coop};

use crate::case::{Case, RuntimeKind, Side, Variant};

pub(super) fn cases() -> Vec<Case> {
    let against_kanal =
        |key, what, capacity, must| Case::new(key, what, "item").limits(must, 1.1).on_pairs(capacity);
    vec![
        against_kanal("queue.64", "send + recv + done, capacity 64", 64, 1.35)
            .of::<Owned, Kanal>()
            .counted(20_000),
        against_kanal("queue.64.ref", "the same, borrowed", 64, 1.25).of::<Borrowed, Kanal>().counted(20_000),
        against_kanal("queue.1024", "send + recv + done, capacity 1024", 1024, 1.35).of::<Owned, Kanal>(),
        against_kanal("queue.1024.ref", "the same, borrowed", 1024, 1.25).of::<Borrowed, Kanal>(),
        Case::new("queue.64.ac", "send + recv + done, capacity 64", "item")
            .limits(0.65, 0.5)
            .on_pairs(64)
            .of::<Owned, AsyncChannel>(),
        Case::new("queue.64.ac.ref", "the same, borrowed", "item")
            .limits(0.6, 0.5)
            .on_pairs(64)
            .of::<Borrowed, AsyncChannel>(),
        Case::new("queue.1", "send + recv + done, capacity 1", "item")
            .limits(1.5, 1.2)
            .counted(10_000)
            .on_pairs(1)
            .of::<Owned, Kanal>(),
        Case::new("queue.pingpong", "there and back, capacity 1", "round trip")
            .limits(1.3, 1.2)
            .counted(5000)
            .variant(Variant::new("", pingpong::<Owned>(), pingpong::<Kanal>())),
        Case::new("queue.mt", "send + recv + done, capacity 1, 8 pairs", "item")
            .limits(0.7, 0.45)
            .on(&[RuntimeKind::Mt2])
            .variant(Variant::new("8 pairs", pairs::<Owned>(8, 1), pairs::<Flume>(8, 1)).or_peer(pairs::<
                AsyncChannel,
            >(
                8, 1
            ))),
        Case::new("queue.batch32", "batches of 32, one guard a batch", "item")
            .limits(0.5, 0.3)
            .counted(20_000)
            .variant(Variant::new("", batches_of_ours(), batches_of_tokio())),
        Case::new("queue.priority", "send + recv + done, capacity 64, 8 levels", "item")
            .limits(0.6, 0.4)
            .on_pairs(64)
            .of::<Prioritised, AsyncPriority>(),
    ]
}

/// A case that is measured with one and with eight pairs of a sender and a receiver.
struct OnPairs {
    case: Case,
    capacity: usize,
}

impl Case {
    fn on_pairs(self, capacity: usize) -> OnPairs {
        OnPairs { case: self, capacity }
    }
}

impl OnPairs {
    fn of<Ours: Channel, Peer: Channel>(self) -> Case {
        let Self { case, capacity } = self;
        let variant = |name, n| Variant::new(name, pairs::<Ours>(n, capacity), pairs::<Peer>(n, capacity));
        case.variant(variant("1 pair", 1)).variant(variant("8 pairs", 8))
    }
}

/// A channel whose items are accounted for.
pub(super) trait Channel: Clone + Send + Sync + 'static {
    const NAME: &'static str;
    /// Whether its tasks are those of a group, where its waits can be cancelled.
    const IN_GROUP: bool = false;

    fn bounded(capacity: usize) -> Self;
    fn send(&self, value: u64) -> impl Future<Output = ()> + Send;
    /// Receives one and counts it as done.
    fn settle(&self) -> impl Future<Output = u64> + Send;
}

#[derive(Clone)]
pub(super) struct Owned(ShutdownQueue<u64>);

impl Channel for Owned {
    const NAME: &'static str = "ShutdownQueue::recv";
    const IN_GROUP: bool = true;

    fn bounded(capacity: usize) -> Self {
        Self(ShutdownQueue::bounded(capacity))
    }

    async fn send(&self, value: u64) {
        self.0.send(value).await.expect("nobody cancels");
    }

    async fn settle(&self) -> u64 {
        let item = self.0.recv().await.expect("nobody cancels").expect("nobody shuts down");
        let value = *item;
        item.done();
        value
    }
}

#[derive(Clone)]
pub(super) struct Borrowed(ShutdownQueue<u64>);

impl Channel for Borrowed {
    const NAME: &'static str = "ShutdownQueue::recv_ref";
    const IN_GROUP: bool = true;

    fn bounded(capacity: usize) -> Self {
        Self(ShutdownQueue::bounded(capacity))
    }

    async fn send(&self, value: u64) {
        self.0.send(value).await.expect("nobody cancels");
    }

    async fn settle(&self) -> u64 {
        let item = self.0.recv_ref().await.expect("nobody cancels").expect("nobody shuts down");
        let value = *item;
        item.done();
        value
    }
}

/// It takes no part in tokio's cooperative budget, which tokio's channels and ours do, so it is put in there.
#[derive(Clone)]
pub(super) struct Kanal {
    sender: kanal::AsyncSender<u64>,
    receiver: kanal::AsyncReceiver<u64>,
    done: Arc<AtomicU64>,
}

impl Channel for Kanal {
    const NAME: &'static str = "kanal";

    fn bounded(capacity: usize) -> Self {
        let (sender, receiver) = kanal::bounded_async(capacity);
        Self { sender, receiver, done: Arc::default() }
    }

    async fn send(&self, value: u64) {
        coop::cooperative(self.sender.send(value)).await.expect("nobody closes");
    }

    async fn settle(&self) -> u64 {
        let value = coop::cooperative(self.receiver.recv()).await.expect("nobody closes");
        self.done.fetch_add(1, Ordering::Relaxed);
        value
    }
}

#[derive(Clone)]
pub(super) struct AsyncChannel {
    sender: async_channel::Sender<u64>,
    receiver: async_channel::Receiver<u64>,
    done: Arc<AtomicU64>,
}

impl Channel for AsyncChannel {
    const NAME: &'static str = "async-channel";

    fn bounded(capacity: usize) -> Self {
        let (sender, receiver) = async_channel::bounded(capacity);
        Self { sender, receiver, done: Arc::default() }
    }

    async fn send(&self, value: u64) {
        self.sender.send(value).await.expect("nobody closes");
    }

    async fn settle(&self) -> u64 {
        let value = self.receiver.recv().await.expect("nobody closes");
        self.done.fetch_add(1, Ordering::Relaxed);
        value
    }
}

#[derive(Clone)]
struct Flume {
    sender: flume::Sender<u64>,
    receiver: flume::Receiver<u64>,
    done: Arc<AtomicU64>,
}

impl Channel for Flume {
    const NAME: &'static str = "flume";

    fn bounded(capacity: usize) -> Self {
        let (sender, receiver) = flume::bounded(capacity);
        Self { sender, receiver, done: Arc::default() }
    }

    async fn send(&self, value: u64) {
        self.sender.send_async(value).await.expect("nobody closes");
    }

    async fn settle(&self) -> u64 {
        let value = self.receiver.recv_async().await.expect("nobody closes");
        self.done.fetch_add(1, Ordering::Relaxed);
        value
    }
}

#[derive(Clone)]
struct Prioritised(ShutdownQueue<u64>);

impl Channel for Prioritised {
    const NAME: &'static str = "ShutdownQueue::recv";
    const IN_GROUP: bool = true;

    fn bounded(capacity: usize) -> Self {
        Self(ShutdownQueue::builder().capacity(capacity).priority(|value: &u64| level(*value)).build())
    }

    async fn send(&self, value: u64) {
        self.0.send(value).await.expect("nobody cancels");
    }

    async fn settle(&self) -> u64 {
        let item = self.0.recv().await.expect("nobody cancels").expect("nobody shuts down");
        let value = *item;
        item.done();
        value
    }
}

/// It is never closed: at close it hangs now and then.
#[derive(Clone)]
struct AsyncPriority {
    sender: async_priority_channel::Sender<u64, u8>,
    receiver: async_priority_channel::Receiver<u64, u8>,
    done: Arc<AtomicU64>,
}

impl Channel for AsyncPriority {
    const NAME: &'static str = "async-priority-channel";

    fn bounded(capacity: usize) -> Self {
        let (sender, receiver) = async_priority_channel::bounded(capacity as u64);
        Self { sender, receiver, done: Arc::default() }
    }

    async fn send(&self, value: u64) {
        self.sender.send(value, level(value)).await.expect("nobody closes");
    }

    async fn settle(&self) -> u64 {
        let (value, _) = self.receiver.recv().await.expect("nobody closes");
        self.done.fetch_add(1, Ordering::Relaxed);
        value
    }
}

/// One of eight.
fn level(value: u64) -> u8 {
    (value % 8) as u8
}

/// `pairs` senders and as many receivers, each with its share of the items: so nothing has to be closed, which
/// not every channel does well.
fn pairs<C: Channel>(pairs: u64, capacity: usize) -> Side {
    Side::timed(C::NAME, move |n| async move {
        let share = n.div_ceil(pairs);
        let channel = C::bounded(capacity);
        let send = |channel: C| async move {
            for value in 0..share {
                channel.send(value).await;
            }
        };
        let receive = |channel: C| async move {
            for _ in 0..share {
                black_box(channel.settle().await);
            }
        };
        let senders = (0..pairs).map(|_| send(channel.clone())).collect();
        let receivers = (0..pairs).map(|_| receive(channel.clone())).collect();
        run_all(C::IN_GROUP, senders, receivers).await;
        share * pairs
    })
}

/// One asks, the other answers.
fn pingpong<C: Channel>() -> Side {
    Side::timed(C::NAME, |n| async move {
        let (there, back) = (C::bounded(1), C::bounded(1));
        let (questions, answers) = (there.clone(), back.clone());
        let ask = async move {
            for value in 0..n {
                there.send(value).await;
                answers.settle().await;
            }
        };
        let answer = async move {
            for _ in 0..n {
                back.send(questions.settle().await).await;
            }
        };
        run_all(C::IN_GROUP, vec![ask], vec![answer]).await;
        n
    })
}

const BATCH: u64 = 32;

fn batches_of_ours() -> Side {
    Side::timed("send_many, recv_many", |n| async move {
        let queue = ShutdownQueue::bounded(64);
        let (sender, batches) = (queue.clone(), n.div_ceil(BATCH));
        let send = async move {
            let mut values = VecDeque::new();
            for _ in 0..batches {
                values.extend(0..BATCH);
                sender.send_many(&mut values).await.expect("nobody cancels");
            }
        };
        let receive = async move {
            let mut left = batches * BATCH;
            while left > 0 {
                let batch = queue.recv_many(BATCH as usize).await.expect("nobody cancels");
                let batch = batch.expect("nobody shuts down");
                left -= batch.len() as u64;
                black_box(&*batch);
                batch.done();
            }
        };
        run_all(true, vec![send], vec![receive]).await;
        batches * BATCH
    })
}

fn batches_of_tokio() -> Side {
    Side::timed("reserve_many, recv_many", |n| async move {
        let (sender, mut receiver) = mpsc::channel(64);
        let batches = n.div_ceil(BATCH);
        let send = async move {
            for _ in 0..batches {
                let permits = sender.reserve_many(BATCH as usize).await.expect("nobody closes");
                for (permit, value) in permits.zip(0..BATCH) {
                    permit.send(value);
                }
            }
        };
        let receive = async move {
            let done = AtomicU64::new(0);
            let mut batch = Vec::new();
            while done.load(Ordering::Relaxed) < batches * BATCH {
                let many = receiver.recv_many(&mut batch, BATCH as usize).await;
                black_box(&*batch);
                batch.clear();
                done.fetch_add(many as u64, Ordering::Relaxed);
            }
        };
        run_all(false, vec![send], vec![receive]).await;
        batches * BATCH
    })
}

/// Runs all of these as tasks to their end: of a group, where waits can be cancelled, or of a `JoinSet`.
async fn run_all<A, B>(in_group: bool, a: Vec<A>, b: Vec<B>)
where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    if in_group {
        let group = TaskGroup::run(|group| async move {
            for task in a {
                group.task("a").spawn(task);
            }
            for task in b {
                group.task("b").spawn(task);
            }
            ok(())
        });
        return group.await.expect("all end well");
    }
    let mut tasks = JoinSet::new();
    for task in a {
        tasks.spawn(task);
    }
    for task in b {
        tasks.spawn(task);
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("all end well");
    }
}
