//! A wait with a deadline of its own, under the rules of `with_timeout`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;
use stoppable_scope::{Cancelled, Deadline, Elapsed, IsError, Timeout, TimeoutError, with_timeout};

/// Drops the wait as soon as it is over, so that what it was given passes on at once.
#[pin_project]
pub(crate) struct Limited<F>(#[pin] Option<Timeout<F, IsError>>);

pub(crate) enum LimitedError {
    Elapsed(Elapsed),
    Cancelled(Cancelled),
}

impl<F, T> Limited<F>
where
    F: Future<Output = Result<T, Cancelled>>,
{
    #[track_caller]
    pub(crate) fn new(deadline: Deadline, wait: F) -> Self {
        Self(Some(with_timeout(deadline, wait)))
    }

    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, LimitedError>> {
        let mut slot = self.project().0;
        let timeout = slot.as_mut().as_pin_mut().expect("a future polled after completion");
        let result = ready!(timeout.poll(cx));
        slot.set(None);
        Poll::Ready(result.map_err(|error| match error {
            TimeoutError::Elapsed(elapsed) => LimitedError::Elapsed(elapsed),
            TimeoutError::Cancelled(cancelled) | TimeoutError::Failed(cancelled) => {
                LimitedError::Cancelled(cancelled)
            }
        }))
    }
}
