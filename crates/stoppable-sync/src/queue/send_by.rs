use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;
use stoppable_scope::{Cancelled, Deadline};

use super::error::{SendByError, SendError};
use super::limited::{Limited, LimitedError};
use super::send::Send;
use super::shared::Shared;
use crate::sync::Mutex;

/// The future of [`ShutdownQueue::send_by`](super::ShutdownQueue::send_by).
#[must_use = "futures do nothing unless you `.await` or poll them"]
#[pin_project]
pub struct SendBy<'a, T> {
    #[pin]
    send: Limited<Delivery<'a, T>>,
    left: Left<T>,
    deadline: Deadline,
}

/// A `send` that leaves its ticket, or its value, outside when it ends, however it ends: the timeout
/// around it may drop it, or give an error of its own for the one with the value in it.
struct Delivery<'a, T> {
    send: Send<'a, T>,
    left: Left<T>,
}

type Left<T> = Arc<Mutex<Option<Result<u64, T>>>>;

const ENDED: &str = "a send that ended has a ticket or its value";

impl<'a, T> SendBy<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>, value: T, deadline: Deadline) -> Self {
        let left = Arc::new(Mutex::new(None));
        let delivery = Delivery { send: Send::new(shared, value), left: Arc::clone(&left) };
        Self { send: Limited::new(deadline, delivery), left, deadline }
    }
}

impl<T> Delivery<'_, T> {
    fn leave_behind(&self, left: Result<u64, T>) {
        *self.left.lock() = Some(left);
    }
}

impl<T> Future for Delivery<'_, T> {
    type Output = Result<(), Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let (left, answer) = match ready!(Pin::new(&mut this.send).poll(cx)) {
            Ok(ticket) => (Ok(ticket), Ok(())),
            Err(SendError::ShutDown(value)) => (Err(value), Ok(())),
            Err(SendError::Cancelled(value, cancelled)) => (Err(value), Err(cancelled)),
        };
        this.leave_behind(left);
        Poll::Ready(answer)
    }
}

impl<T> Drop for Delivery<'_, T> {
    fn drop(&mut self) {
        if let Some(left) = self.send.leave() {
            self.leave_behind(left.map_err(|unsent| unsent.value));
        }
    }
}

impl<T> Future for SendBy<'_, T> {
    type Output = Result<u64, SendByError<T>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.send.poll(cx));
        // Whatever the timeout says: one that was accepted is sent.
        let left = this.left.lock().take().expect(ENDED);
        Poll::Ready(left.map_err(|value| match result {
            Ok(()) => SendByError::ShutDown(value),
            Err(LimitedError::Elapsed(elapsed)) => SendByError::Elapsed(value, elapsed),
            Err(LimitedError::Cancelled(cancelled)) => SendByError::Cancelled(value, cancelled),
        }))
    }
}

impl<T> fmt::Debug for SendBy<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBy").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
