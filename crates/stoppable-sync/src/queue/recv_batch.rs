use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project::pin_project;
use stoppable_scope::Cancelled;
use tokio::task::coop;
use tokio::time::{Instant, Sleep, sleep_until};

use super::batch::Batch;
use super::core::Wanted;
use super::gathering::Gathering;
use super::shared::Shared;

/// The future of [`ShutdownQueue::recv_batch`](super::ShutdownQueue::recv_batch).
#[must_use = "futures do nothing unless you `.await` or poll them"]
#[pin_project]
pub struct RecvBatch<'a, T> {
    gathering: Gathering<'a, T>,
    max_age: Duration,
    #[pin]
    age: Age,
}

/// How long the batch has been collected.
#[pin_project(project = AgeProj)]
enum Age {
    /// There is nothing yet.
    Unborn,
    Running(#[pin] Sleep),
    /// It never comes of age.
    Endless,
    Due,
}

impl<'a, T> RecvBatch<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Arc<Shared<T>>, max: usize, max_age: Duration) -> Self {
        let gathering = Gathering::new(shared, Wanted { promises: max, max });
        Self { gathering, max_age, age: Age::Unborn }
    }
}

impl Age {
    /// From now on.
    fn starts(max_age: Duration) -> Self {
        match Instant::now().checked_add(max_age) {
            _ if max_age.is_zero() => Self::Due,
            Some(at) => Self::Running(sleep_until(at)),
            None => Self::Endless,
        }
    }

    /// Outside of the coop budget, or a busy receiver would never meet it.
    fn is_due(self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        match self.project() {
            AgeProj::Unborn | AgeProj::Endless => false,
            AgeProj::Running(sleep) => Pin::new(&mut coop::unconstrained(sleep)).poll(cx).is_ready(),
            AgeProj::Due => true,
        }
    }
}

impl<T> Future for RecvBatch<'_, T> {
    type Output = Result<Option<Batch<T>>, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let due = this.age.as_mut().is_due(cx);
            let received = this.gathering.poll(due, cx);
            if received.is_ready() || !this.gathering.has_begun() {
                this.age.set(Age::Unborn);
                return received;
            }
            if !matches!(*this.age, Age::Unborn) {
                return Poll::Pending;
            }
            this.age.set(Age::starts(*this.max_age));
            if !this.age.as_mut().is_due(cx) {
                return Poll::Pending;
            }
        }
    }
}

impl<T> fmt::Debug for RecvBatch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.gathering.debug("RecvBatch", f)
    }
}
