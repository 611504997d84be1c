use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project::pin_project;
use stoppable_scope::Deadline;

use super::error::RecvByError;
use super::item::Item;
use super::limited::{Limited, LimitedError};
use super::recv::Recv;
use super::shared::Shared;

/// The future of [`ShutdownQueue::recv_by`](super::ShutdownQueue::recv_by).
#[must_use = "futures do nothing unless you `.await` or poll them"]
#[pin_project]
pub struct RecvBy<'a, T> {
    #[pin]
    recv: Limited<Recv<'a, T>>,
    deadline: Deadline,
}

impl<'a, T> RecvBy<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Arc<Shared<T>>, deadline: Deadline) -> Self {
        Self { recv: Limited::new(deadline, Recv::new(shared)), deadline }
    }
}

impl<T> Future for RecvBy<'_, T> {
    type Output = Result<Option<Item<T>>, RecvByError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().recv.poll(cx).map_err(|error| match error {
            LimitedError::Elapsed(elapsed) => RecvByError::Elapsed(elapsed),
            LimitedError::Cancelled(cancelled) => RecvByError::Cancelled(cancelled),
        })
    }
}

impl<T> fmt::Debug for RecvBy<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvBy").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
