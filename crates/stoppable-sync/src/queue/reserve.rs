use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use stoppable_scope::WaitPoint;
use tokio::task::coop::poll_proceed;

use super::error::ReserveError;
use super::permit::Permit;
use super::shared::Shared;
use super::waiters::Key;

/// The future of [`ShutdownQueue::reserve`](super::ShutdownQueue::reserve).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Reserve<'a, T> {
    shared: &'a Shared<T>,
    key: Option<Key>,
    wait: WaitPoint,
}

impl<'a, T> Reserve<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>) -> Self {
        Self { shared, key: None, wait: WaitPoint::new() }
    }

    fn leave(&mut self) {
        if let Some(key) = self.key.take() {
            self.shared.change(|core, wakes| core.leave_reserve(key, wakes));
        }
    }
}

impl<'a, T> Future for Reserve<'a, T> {
    type Output = Result<Permit<'a, T>, ReserveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match this.wait.check() {
                Poll::Ready(Ok(())) => {}
                // Nothing is lost by it, so the request wins over a slot; that goes to the next.
                Poll::Ready(Err(cancelled)) => {
                    this.leave();
                    return Poll::Ready(Err(cancelled.into()));
                }
                Poll::Pending => {
                    this.leave();
                    return Poll::Pending;
                }
            }
            let coop = ready!(poll_proceed(cx));
            let Self { shared, key, .. } = this;
            let step = shared.step(cx.waker(), |core, poller, wakes| core.poll_reserve(key, poller, wakes));
            if let Poll::Ready(reserved) = step {
                coop.made_progress();
                return Poll::Ready(match reserved {
                    Ok(()) => Ok(Permit::new(shared)),
                    Err(()) => Err(ReserveError::ShutDown),
                });
            }
            drop(coop);
            ready!(this.wait.park(cx));
        }
    }
}

impl<T> Drop for Reserve<'_, T> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T> fmt::Debug for Reserve<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve")
            .field("queue", &self.shared.name.as_deref())
            .field("waiting", &self.key.is_some())
            .finish()
    }
}
