//! What several areas need.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// No deadline of a case comes.
pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// A wait: pending once, then ready.
///
/// It wakes its task right away. The dearer the wait itself, the less of the difference that a wrapper makes
/// would be left above the noise.
pub(super) fn wait() -> Wait {
    Wait { begun: false }
}

pub(super) struct Wait {
    begun: bool,
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.begun {
            return Poll::Ready(());
        }
        self.begun = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Polls by hand until it is ready: no runtime, and a waker that does nothing.
pub(super) fn poll_by_hand<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
    }
}

/// Where tasks park, and somebody waits until all have.
#[derive(Clone, Default)]
pub(super) struct Parking {
    parked: Arc<AtomicU64>,
}

impl Parking {
    pub(super) async fn park(self) {
        self.parked.fetch_add(1, Ordering::Relaxed);
        std::future::pending().await
    }

    pub(super) async fn until(&self, parked: u64) {
        while self.parked.load(Ordering::Relaxed) < parked {
            tokio::task::yield_now().await;
        }
    }
}

/// What this process has in memory that no file backs, in bytes, with the overhead of the allocator.
pub(super) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
