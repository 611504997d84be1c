use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use stoppable_scope::Cancelled;

use super::item::Item;
use super::receiving::Receiving;
use super::shared::Shared;

/// The future of [`ShutdownQueue::recv`](super::ShutdownQueue::recv).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Recv<'a, T> {
    shared: &'a Arc<Shared<T>>,
    receiving: Receiving,
}

impl<'a, T> Recv<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Arc<Shared<T>>) -> Self {
        Self { shared, receiving: Receiving::new() }
    }
}

impl<T> Future for Recv<'_, T> {
    type Output = Result<Option<Item<T>>, Cancelled>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, receiving } = self.get_mut();
        receiving.poll(shared, *shared, cx)
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.receiving.leave(self.shared);
    }
}

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv")
            .field("queue", &self.shared.name.as_deref())
            .field("waiting", &self.receiving.is_waiting())
            .finish()
    }
}
