use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};
use tokio::task::coop::{RestoreOnPending, poll_proceed};

use super::core::{NOT_OVER, Sending, Unsent};
use super::error::SendError;
use super::shared::Shared;
use super::waiters::Key;
use super::wakes::Poller;

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
        Self { shared, sending: Sending::Unsent(shared.unsent(value)), wait: WaitPoint::new() }
    }

    /// Leaves the queue: the ticket if it was accepted, else the value; a slot it had passes on.
    pub(crate) fn leave(&mut self) -> Option<Result<u64, Unsent<T>>> {
        match mem::replace(&mut self.sending, Sending::Over) {
            Sending::Unsent(unsent) => Some(Err(unsent)),
            Sending::Waiting(key) => self.shared.change(|core, wakes| core.leave_send(key, wakes)),
            Sending::Over => None,
        }
    }

    /// There is no room for it now. The error is boxed, so that a ticket comes back in registers.
    #[inline(never)]
    fn line_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<u64, Box<SendError<T>>>> {
        let Self { shared, sending, .. } = self;
        let sent =
            shared.line_up(cx.waker(), |core, waker, wakes| core.send_or_line_up(sending, waker, wakes));
        self.sent_or_parked(sent, cx)
    }

    /// It has its place in the line: keeps it, or has a slot by now, or was turned away.
    #[inline(never)]
    fn poll_waiting(
        &mut self,
        key: Key,
        coop: RestoreOnPending,
        cx: &mut Context<'_>,
    ) -> Poll<Result<u64, Box<SendError<T>>>> {
        let sent = self
            .shared
            .step(Poller::new(cx.waker()), |core, poller, wakes| core.poll_waiting_send(key, poller, wakes));
        if sent.is_ready() {
            mem::forget(coop);
        }
        self.sent_or_parked(sent, cx)
    }

    #[inline]
    fn sent_or_parked(
        &mut self,
        sent: Poll<Result<u64, T>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<u64, Box<SendError<T>>>> {
        if let Poll::Ready(sent) = sent {
            self.sending = Sending::Over;
            return Poll::Ready(sent.map_err(|value| Box::new(SendError::ShutDown(value))));
        }
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
        if matches!(this.sending, Sending::Unsent(_)) && this.shared.hints.is_full() {
            return this.line_up(cx).map_err(|error| *error);
        }
        let coop = ready!(poll_proceed(cx));
        if let Sending::Waiting(key) = this.sending {
            return this.poll_waiting(key, coop, cx).map_err(|error| *error);
        }
        if let Some(ticket) = this.shared.send_now(&mut this.sending) {
            // It is over, so what it took from the budget is not given back.
            mem::forget(coop);
            return Poll::Ready(Ok(ticket.get()));
        }
        drop(coop);
        this.line_up(cx).map_err(|error| *error)
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
