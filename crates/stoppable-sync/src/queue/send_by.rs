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
    returned: Arc<Mutex<Option<T>>>,
    deadline: Deadline,
}

/// A `send` that leaves its value outside when it ends without having sent it, however it ends: the
/// timeout around it may drop it, or give an error of its own for the one with the value in it.
struct Delivery<'a, T> {
    send: Send<'a, T>,
    returned: Arc<Mutex<Option<T>>>,
}

struct ShutDown;

impl<'a, T> SendBy<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>, value: T, deadline: Deadline) -> Self {
        let returned = Arc::new(Mutex::new(None));
        let delivery = Delivery { send: Send::new(shared, value), returned: Arc::clone(&returned) };
        Self { send: Limited::new(deadline, delivery), returned, deadline }
    }
}

impl<T> Delivery<'_, T> {
    fn hand_back(&self, value: T) {
        *self.returned.lock() = Some(value);
    }
}

impl<T> Future for Delivery<'_, T> {
    type Output = Result<Result<(), ShutDown>, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        Poll::Ready(match ready!(Pin::new(&mut this.send).poll(cx)) {
            Ok(()) => Ok(Ok(())),
            Err(SendError::ShutDown(value)) => {
                this.hand_back(value);
                Ok(Err(ShutDown))
            }
            Err(SendError::Cancelled(value, cancelled)) => {
                this.hand_back(value);
                Err(cancelled)
            }
        })
    }
}

impl<T> Drop for Delivery<'_, T> {
    fn drop(&mut self) {
        if let Some(value) = self.send.leave() {
            self.hand_back(value);
        }
    }
}

impl<T> Future for SendBy<'_, T> {
    type Output = Result<(), SendByError<T>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.send.poll(cx));
        // Whatever the timeout says: without a value that came back it was accepted.
        let Some(value) = this.returned.lock().take() else {
            return Poll::Ready(Ok(()));
        };
        Poll::Ready(Err(match result {
            Ok(_) => SendByError::ShutDown(value),
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
