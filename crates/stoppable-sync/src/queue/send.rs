use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};
use tokio::task::coop::poll_proceed;

use super::core::Sending;
use super::error::SendError;
use super::shared::Shared;

/// The future of [`ShutdownQueue::send`](super::ShutdownQueue::send).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Send<'a, T> {
    shared: &'a Shared<T>,
    sending: Sending<T>,
    wait: WaitPoint,
}

/// Nothing in it is ever pinned.
impl<T> Unpin for Send<'_, T> {}

impl<'a, T> Send<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>, value: T) -> Self {
        Self { shared, sending: Sending::Unsent(value), wait: WaitPoint::new() }
    }

    /// Leaves the queue. The value, if it was not accepted; a slot it had passes on.
    pub(crate) fn leave(&mut self) -> Option<T> {
        match std::mem::replace(&mut self.sending, Sending::Over) {
            Sending::Unsent(value) => Some(value),
            Sending::Waiting(key) => self.shared.change(|core, wakes| core.leave_send(key, wakes)),
            Sending::Over => None,
        }
    }

    fn answer(&mut self, cancelled: Cancelled) -> Result<(), SendError<T>> {
        match self.leave() {
            Some(value) => Err(SendError::Cancelled(value, cancelled)),
            None => Ok(()),
        }
    }
}

impl<T> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match this.wait.check() {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(cancelled)) => return Poll::Ready(this.answer(cancelled)),
                // Refused for good, so it must not sit on a slot.
                Poll::Pending => match this.leave() {
                    Some(value) => {
                        this.sending = Sending::Unsent(value);
                        return Poll::Pending;
                    }
                    None => return Poll::Ready(Ok(())),
                },
            }
            let coop = ready!(poll_proceed(cx));
            let shared = this.shared;
            let sending = &mut this.sending;
            let step = shared.step(cx.waker(), |core, poller, wakes| core.poll_send(sending, poller, wakes));
            if let Poll::Ready(sent) = step {
                coop.made_progress();
                return Poll::Ready(sent.map_err(SendError::ShutDown));
            }
            drop(coop);
            ready!(this.wait.park(cx));
        }
    }
}

impl<T> Drop for Send<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Sending::Waiting(_) = self.sending {
            drop(self.leave());
        }
    }
}

impl<T> fmt::Debug for Send<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.sending {
            Sending::Unsent(_) => "unsent",
            Sending::Waiting(_) => "waiting",
            Sending::Over => "over",
        };
        f.debug_struct("Send").field("queue", &self.shared.name.as_deref()).field("state", &state).finish()
    }
}
