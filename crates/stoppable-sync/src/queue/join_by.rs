use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;
use stoppable_scope::Deadline;

use super::core::Core;
use super::error::JoinByError;
use super::join::Join;
use super::join_report::JoinReport;
use super::limited::{Limited, LimitedError};
use super::shared::Shared;

/// The future of [`ShutdownQueue::join_by`](super::ShutdownQueue::join_by).
#[must_use = "futures do nothing unless you `.await` or poll them"]
#[pin_project]
pub struct JoinBy<'a, T> {
    #[pin]
    join: Limited<Join<'a, T>>,
    shared: &'a Shared<T>,
    deadline: Deadline,
}

impl<'a, T> JoinBy<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>, deadline: Deadline) -> Self {
        Self { join: Limited::new(deadline, Join::new(shared)), shared, deadline }
    }
}

impl<T> Future for JoinBy<'_, T> {
    type Output = Result<JoinReport, JoinByError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let shared = *this.shared;
        Poll::Ready(ready!(this.join.poll(cx)).map_err(|error| match error {
            LimitedError::Elapsed(_) => JoinByError::Elapsed(shared.read(Core::unfinished)),
            LimitedError::Cancelled(cancelled) => JoinByError::Cancelled(cancelled),
        }))
    }
}

impl<T> fmt::Debug for JoinBy<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinBy").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
