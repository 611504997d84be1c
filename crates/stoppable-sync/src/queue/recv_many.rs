use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use stoppable_scope::Cancelled;

use super::batch::Batch;
use super::core::Wanted;
use super::gathering::Gathering;
use super::shared::Shared;

/// The future of [`ShutdownQueue::recv_many`](super::ShutdownQueue::recv_many).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct RecvMany<'a, T>(Gathering<'a, T>);

impl<'a, T> RecvMany<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Arc<Shared<T>>, max: usize) -> Self {
        Self(Gathering::new(shared, Wanted { promises: 1, max }))
    }
}

impl<T> Future for RecvMany<'_, T> {
    type Output = Result<Option<Batch<T>>, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll(false, cx)
    }
}

impl<T> fmt::Debug for RecvMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug("RecvMany", f)
    }
}
