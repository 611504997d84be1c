//! What the tests share: hand polls, the two ways to leave a wait, runtimes, threads.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use futures::StreamExt;
use stoppable::queue::Batch;
use stoppable::{InScope, InScopeExt, Item, Scope, ShutdownQueue};
use tokio_test::task::{Spawn, spawn};

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A wait in a scope of its own, polled by hand. What happens between two polls happens in the same step.
pub(crate) struct Wait<F> {
    scope: Scope,
    future: Spawn<InScope<F>>,
}

impl<F: Future> Wait<F> {
    #[track_caller]
    pub(crate) fn new(future: F) -> Self {
        let scope = Scope::named("wait");
        let future = spawn(future.in_scope(&scope));
        Self { scope, future }
    }

    /// Polled once, and it waits.
    #[track_caller]
    pub(crate) fn blocked(future: F) -> Self {
        let mut wait = Self::new(future);
        wait.pending();
        wait
    }

    #[track_caller]
    pub(crate) fn pending(&mut self) {
        assert!(self.future.poll().is_pending(), "expected it to wait");
    }

    #[track_caller]
    pub(crate) fn ready(&mut self) -> F::Output {
        match self.future.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("expected it to be ready"),
        }
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.future.is_woken()
    }

    /// Asks it to leave, or drops it. A wait that was asked is polled by [`Leaving::end`].
    pub(crate) fn leave(self, how: Leave) -> Leaving<F> {
        match how {
            Leave::Request => {
                self.scope.cancel("leave");
                Leaving(Some(self))
            }
            Leave::Drop => Leaving(None),
        }
    }
}

/// How a wait is left: "drop too" rows go both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    Request,
    Drop,
}

impl Leave {
    pub(crate) const BOTH: [Self; 2] = [Self::Request, Self::Drop];
}

pub(crate) struct Leaving<F>(Option<Wait<F>>);

impl<F: Future> Leaving<F> {
    /// What it answers. `None`: it was dropped.
    #[track_caller]
    pub(crate) fn end(self) -> Option<F::Output> {
        self.0.map(|mut wait| wait.ready())
    }
}

/// On one thread with paused time, with 60 s to end.
pub(crate) fn paused<F: Future>(test: F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async { tokio::time::timeout(secs(60), test).await.expect("it hangs") })
}

/// On one thread with paused time, then on two.
pub(crate) fn both<F: Future>(test: impl Fn() -> F) {
    paused(test());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(secs(5), test()).await.expect("it hangs") });
}

/// Lets everything that can run do so: on one thread, where nobody else does.
pub(crate) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn take<T>(queue: &ShutdownQueue<T>) -> Item<T> {
    queue.try_recv().expect("something is queued")
}

/// Receives and settles all that can be had at once.
pub(crate) fn drain<T: Clone>(queue: &ShutdownQueue<T>) -> Vec<T> {
    std::iter::from_fn(|| queue.try_recv().ok())
        .map(|item| {
            let value = item.clone();
            item.done();
            value
        })
        .collect()
}

/// Nobody is on record, nothing is set aside.
#[track_caller]
pub(crate) fn assert_no_waiters<T>(queue: &ShutdownQueue<T>) {
    let stats = queue.stats();
    assert_eq!((stats.waiting_receivers, stats.waiting_senders, stats.waiting_joiners), (0, 0, 0));
    assert_eq!((stats.promised, stats.reserved), (0, 0));
}

type Received<'a> = Pin<Box<dyn Future<Output = Result<Option<i32>, ()>> + 'a>>;

pub(crate) type Receive = for<'a> fn(&'a ShutdownQueue<i32>) -> Received<'a>;

/// All waits for an item: the value, settled, or `Err` for a cancel.
pub(crate) const RECEIVES: [Receive; 6] = [
    |queue| Box::pin(async { queue.recv().await.map(|item| item.map(settled)).map_err(drop) }),
    |queue| {
        Box::pin(async {
            queue.stream().next().await.transpose().map(|item| item.map(settled)).map_err(drop)
        })
    },
    |queue| Box::pin(async { queue.recv_by(secs(9)).await.map(|item| item.map(settled)).map_err(drop) }),
    |queue| {
        Box::pin(async {
            let item = queue.recv_ref().await.map_err(drop)?;
            Ok(item.map(|item| {
                let value = *item;
                item.done();
                value
            }))
        })
    },
    |queue| Box::pin(async { queue.recv_many(1).await.map(|batch| batch.map(settled_batch)).map_err(drop) }),
    |queue| {
        Box::pin(async {
            queue.recv_batch(1, secs(9)).await.map(|batch| batch.map(settled_batch)).map_err(drop)
        })
    },
];

fn settled(item: Item<i32>) -> i32 {
    let value = *item;
    item.done();
    value
}

fn settled_batch(batch: Batch<i32>) -> i32 {
    assert_eq!(batch.len(), 1);
    let value = batch[0];
    batch.done();
    value
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, without a runtime. Fails after 5 s of waiting.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    let mut slept = Duration::ZERO;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let started = std::time::Instant::now();
        thread::park_timeout(secs(5));
        slept += started.elapsed();
        assert!(slept < secs(5), "it hangs");
    }
}

/// Lets threads begin each round together. It spins, for a sleep would make the rounds miss each other.
pub(crate) struct Rounds {
    threads: usize,
    arrived: AtomicUsize,
}

impl Rounds {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0) }
    }

    /// `round` counts from 0, and each thread waits for each round once.
    pub(crate) fn wait(&self, round: usize) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        let started = std::time::Instant::now();
        for turn in 1_u32.. {
            if self.arrived.load(Ordering::SeqCst) >= self.threads * (round + 1) {
                return;
            }
            if turn % 64 == 0 {
                thread::yield_now();
                assert!(started.elapsed() < secs(5), "the other thread does not come");
            } else {
                std::hint::spin_loop();
            }
        }
    }
}
