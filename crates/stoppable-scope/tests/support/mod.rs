//! What the tests share: short durations, and a future polled by hand under a waker that counts.
#![allow(dead_code)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Fails a test that would hang. Under paused time it costs nothing.
pub(crate) async fn ends<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(secs(100_000), future).await.expect("the test hangs")
}

#[derive(Debug, Default)]
pub(crate) struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future that is polled by hand.
pub(crate) struct Hand<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Wakes>,
}

impl<F: Future> Hand<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Box::pin(future), wakes: Arc::default() }
    }

    /// The same future under a new waker.
    pub(crate) fn rewake(mut self) -> Self {
        self.wakes = Arc::default();
        self
    }

    pub(crate) fn into_future(self) -> Pin<Box<F>> {
        self.future
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    #[track_caller]
    pub(crate) fn pending(&mut self) {
        assert!(self.poll().is_pending(), "expected it to wait");
    }

    #[track_caller]
    pub(crate) fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("expected it to be ready"),
        }
    }

    /// How often it was woken since it was made.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }

    /// Polls for as long as the future wakes itself.
    pub(crate) fn settle(&mut self) -> Poll<F::Output> {
        for _ in 0..1000 {
            let before = self.wakes();
            if let Poll::Ready(output) = self.poll() {
                return Poll::Ready(output);
            }
            if self.wakes() == before {
                return Poll::Pending;
            }
        }
        panic!("it wakes itself without end");
    }
}
