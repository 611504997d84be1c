use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};

use super::join_report::JoinReport;
use super::shared::Shared;
use super::waiters::Key;

/// The future of [`ShutdownQueue::join`](super::ShutdownQueue::join).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Join<'a, T> {
    shared: &'a Shared<T>,
    key: Option<Key>,
    wait: WaitPoint,
}

impl<'a, T> Join<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>) -> Self {
        Self { shared, key: None, wait: WaitPoint::new() }
    }

    fn leave(&mut self) {
        if let Some(key) = self.key.take() {
            self.shared.change(|core, wakes| core.leave_join(key, wakes));
        }
    }
}

impl<T> Future for Join<'_, T> {
    type Output = Result<JoinReport, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match this.wait.check() {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(cancelled)) => {
                    this.leave();
                    return Poll::Ready(Err(cancelled));
                }
                Poll::Pending => {
                    this.leave();
                    return Poll::Pending;
                }
            }
            let Self { shared, key, .. } = this;
            if let Poll::Ready(report) = shared.poll_join(key, cx.waker()) {
                return Poll::Ready(Ok(report));
            }
            ready!(this.wait.park(cx));
        }
    }
}

impl<T> Drop for Join<'_, T> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T> fmt::Debug for Join<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Join")
            .field("queue", &self.shared.name.as_deref())
            .field("waiting", &self.key.is_some())
            .finish()
    }
}
