use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};
use tokio::task::coop::poll_proceed;

use super::core::{Sending, Unsent};
use super::error::SendError;
use super::shared::Shared;

/// The future of [`ShutdownQueue::send`](super::ShutdownQueue::send).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Send<'a, T> {
    shared: &'a Shared<T>,
    sending: Sending<T>,
    wait: WaitPoint,
}

const NOT_OVER: &str = "`Send` polled after completion";

/// Nothing in it is ever pinned.
impl<T> Unpin for Send<'_, T> {}

impl<'a, T> Send<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>, value: T) -> Self {
        Self { shared, sending: Sending::Unsent(shared.unsent(value)), wait: WaitPoint::new() }
    }

    /// Leaves the queue: the ticket if it was accepted, else the value; a slot it had passes on.
    pub(crate) fn leave(&mut self) -> Option<Result<u64, Unsent<T>>> {
        match std::mem::replace(&mut self.sending, Sending::Over) {
            Sending::Unsent(unsent) => Some(Err(unsent)),
            Sending::Waiting(key) => self.shared.change(|core, wakes| core.leave_send(key, wakes)),
            Sending::Over => None,
        }
    }

    fn answer(&mut self, cancelled: Cancelled) -> Result<u64, SendError<T>> {
        let left = self.leave().expect(NOT_OVER);
        left.map_err(|unsent| SendError::Cancelled(unsent.value, cancelled))
    }
}

impl<T> Future for Send<'_, T> {
    type Output = Result<u64, SendError<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match this.wait.check() {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(cancelled)) => return Poll::Ready(this.answer(cancelled)),
                // Refused for good, so it must not sit on a slot.
                Poll::Pending => match this.leave().expect(NOT_OVER) {
                    Ok(ticket) => return Poll::Ready(Ok(ticket)),
                    Err(unsent) => {
                        this.sending = Sending::Unsent(unsent);
                        return Poll::Pending;
                    }
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
