use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::error::{ReserveError, ReserveManyError};
use super::permit::Permit;
use super::reserving::Reserving;
use super::shared::Shared;

/// The future of [`ShutdownQueue::reserve`](super::ShutdownQueue::reserve).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Reserve<'a, T> {
    shared: &'a Shared<T>,
    reserving: Reserving,
}

impl<'a, T> Reserve<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>) -> Self {
        Self { shared, reserving: Reserving::new() }
    }
}

impl<'a, T> Future for Reserve<'a, T> {
    type Output = Result<Permit<'a, T>, ReserveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, reserving } = self.get_mut();
        reserving.poll(shared, 1, cx).map(|reserved| match reserved {
            Ok(()) => Ok(Permit::new(shared)),
            Err(ReserveManyError::Cancelled(cancelled)) => Err(ReserveError::Cancelled(cancelled)),
            // Every queue has room for one.
            Err(ReserveManyError::ShutDown | ReserveManyError::BeyondCapacity { .. }) => {
                Err(ReserveError::ShutDown)
            }
        })
    }
}

impl<T> Drop for Reserve<'_, T> {
    fn drop(&mut self) {
        self.reserving.leave(self.shared);
    }
}

impl<T> fmt::Debug for Reserve<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve")
            .field("queue", &self.shared.name.as_deref())
            .field("waiting", &self.reserving.is_waiting())
            .finish()
    }
}
