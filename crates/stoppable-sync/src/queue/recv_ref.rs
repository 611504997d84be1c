use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use stoppable_scope::Cancelled;

use super::item_ref::ItemRef;
use super::receiving::Receiving;
use super::shared::Shared;

/// The future of [`ShutdownQueue::recv_ref`](super::ShutdownQueue::recv_ref).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct RecvRef<'a, T> {
    shared: &'a Shared<T>,
    receiving: Receiving,
}

impl<'a, T> RecvRef<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>) -> Self {
        Self { shared, receiving: Receiving::new() }
    }
}

impl<'a, T> Future for RecvRef<'a, T> {
    type Output = Result<Option<ItemRef<'a, T>>, Cancelled>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, receiving } = self.get_mut();
        receiving.poll(shared, shared, cx)
    }
}

impl<T> Drop for RecvRef<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.receiving.leave(self.shared);
    }
}

impl<T> fmt::Debug for RecvRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvRef")
            .field("queue", &self.shared.name.as_deref())
            .field("waiting", &self.receiving.is_waiting())
            .finish()
    }
}
