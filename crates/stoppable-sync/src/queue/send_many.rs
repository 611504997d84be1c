use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use stoppable_scope::WaitPoint;
use tokio::task::coop::poll_proceed;

use super::core::Progress;
use super::error::SendManyError;
use super::shared::Shared;
use super::waiters::Key;
use super::wakes::Poller;

/// The future of [`ShutdownQueue::send_many`](super::ShutdownQueue::send_many).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct SendMany<'a, T> {
    shared: &'a Shared<T>,
    values: &'a mut VecDeque<T>,
    /// Of the values, where the order has any.
    levels: VecDeque<i64>,
    /// Where it waits, once it does.
    key: Option<Key>,
    wait: WaitPoint,
}

impl<'a, T> SendMany<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>, values: &'a mut VecDeque<T>) -> Self {
        let levels = shared.levels(values);
        Self { shared, values, levels, key: None, wait: WaitPoint::new() }
    }

    fn leave(&mut self) {
        if let Some(key) = self.key.take() {
            self.shared.change(|core, wakes| core.leave_reserve(key, wakes));
        }
    }
}

impl<T> Future for SendMany<'_, T> {
    type Output = Result<(), SendManyError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match this.wait.check() {
                Poll::Ready(Ok(())) => {}
                // Nothing is lost by it, so the request wins over slots; those go to the next.
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
            let Self { shared, values, levels, key, .. } = this;
            let step = shared.step(Poller::new(cx.waker()), |core, poller, wakes| {
                core.poll_send_many(key, values, levels, poller, wakes)
            });
            if let Poll::Ready(progress) = step {
                coop.made_progress();
                match progress {
                    Progress::All => return Poll::Ready(Ok(())),
                    Progress::ShutDown => return Poll::Ready(Err(SendManyError::ShutDown)),
                    Progress::Some => continue,
                }
            }
            drop(coop);
            ready!(this.wait.park(cx));
        }
    }
}

impl<T> Drop for SendMany<'_, T> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T> fmt::Debug for SendMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendMany")
            .field("queue", &self.shared.name.as_deref())
            .field("unsent", &self.values.len())
            .field("waiting", &self.key.is_some())
            .finish()
    }
}
