use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::error::ReserveManyError;
use super::permit::Permit;
use super::reserving::Reserving;
use super::shared::Shared;

/// The future of [`ShutdownQueue::reserve_many`](super::ShutdownQueue::reserve_many).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ReserveMany<'a, T> {
    shared: &'a Shared<T>,
    want: usize,
    reserving: Reserving,
}

impl<'a, T> ReserveMany<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>, want: usize) -> Self {
        Self { shared, want, reserving: Reserving::new() }
    }
}

impl<'a, T> Future for ReserveMany<'a, T> {
    type Output = Result<Vec<Permit<'a, T>>, ReserveManyError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, want, reserving } = self.get_mut();
        ready!(reserving.poll(shared, *want, cx))?;
        Poll::Ready(Ok((0..*want).map(|_| Permit::new(shared)).collect()))
    }
}

impl<T> Drop for ReserveMany<'_, T> {
    fn drop(&mut self) {
        self.reserving.leave(self.shared);
    }
}

impl<T> fmt::Debug for ReserveMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReserveMany")
            .field("queue", &self.shared.name.as_deref())
            .field("want", &self.want)
            .field("waiting", &self.reserving.is_waiting())
            .finish()
    }
}
