use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};
use tokio::task::coop::{RestoreOnPending, poll_proceed};

use super::core::{Sending, Unsent};
use super::error::SendError;
use super::shared::Shared;
use super::wakes::Poller;

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

    /// It waits, or there is no room for it now. The error is boxed, so that a ticket comes back in registers.
    #[inline(never)]
    fn poll_waiting(
        &mut self,
        coop: RestoreOnPending,
        cx: &mut Context<'_>,
    ) -> Poll<Result<u64, Box<SendError<T>>>> {
        let waker = cx.waker();
        let poller = match self.sending {
            Sending::Waiting(_) => Poller::new(waker),
            Sending::Unsent(_) | Sending::Over => Poller::with_clone(waker),
        };
        let sending = &mut self.sending;
        let step = self.shared.step(poller, |core, poller, wakes| core.poll_send(sending, poller, wakes));
        if let Poll::Ready(sent) = step {
            coop.made_progress();
            return Poll::Ready(sent.map_err(|value| Box::new(SendError::ShutDown(value))));
        }
        drop(coop);
        ready!(self.wait.park(cx));
        // A request has come meanwhile.
        Pin::new(self).poll(cx).map_err(Box::new)
    }

    /// What was accepted is not taken back by a request.
    #[cold]
    fn give_way(&mut self, asked: Poll<Result<(), Cancelled>>) -> Poll<Result<u64, Box<SendError<T>>>> {
        match (self.leave().expect(NOT_OVER), asked) {
            (Ok(ticket), _) => Poll::Ready(Ok(ticket)),
            (Err(unsent), Poll::Ready(Err(cancelled))) => {
                Poll::Ready(Err(Box::new(SendError::Cancelled(unsent.value, cancelled))))
            }
            // Refused for good, so it must not sit on a slot.
            (Err(unsent), _) => {
                self.sending = Sending::Unsent(unsent);
                Poll::Pending
            }
        }
    }
}

impl<T> Future for Send<'_, T> {
    type Output = Result<u64, SendError<T>>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.wait.check() {
            Poll::Ready(Ok(())) => {}
            asked => return this.give_way(asked).map_err(|error| *error),
        }
        let coop = ready!(poll_proceed(cx));
        if matches!(this.sending, Sending::Unsent(_)) && !this.shared.hints.is_full() {
            if let Some(ticket) = this.shared.send_now(&mut this.sending) {
                coop.made_progress();
                return Poll::Ready(Ok(ticket.get()));
            }
        }
        this.poll_waiting(coop, cx).map_err(|error| *error)
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
