use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::core::Core;
use crate::handle_error::HandleError;
use crate::task_handle::TaskHandle;

/// The future of [`TaskGroup::shield`](crate::TaskGroup::shield): a waiter that may leave.
#[must_use = "the work runs on; drop this to stop waiting for it"]
pub struct Shield<T> {
    core: Arc<Core>,
    handle: TaskHandle<T>,
}

impl<T> Shield<T> {
    pub(crate) fn new(core: Arc<Core>, handle: TaskHandle<T>) -> Self {
        Self { core, handle }
    }
}

impl<T> Future for Shield<T> {
    type Output = Result<T, HandleError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.handle).poll(cx).map_err(|error| match error {
            HandleError::Failed(failure) => {
                self.core.waiter_has_read(self.handle.node());
                HandleError::Failed(failure)
            }
            HandleError::Refused { task, cancelled: Some(cancelled) } => {
                HandleError::Cancelled { task, cancelled }
            }
            other => other,
        })
    }
}

impl<T> Drop for Shield<T> {
    fn drop(&mut self) {
        self.core.waiter_leaves(self.handle.node());
    }
}

impl<T> fmt::Debug for Shield<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shield").field("task", self.handle.name()).finish_non_exhaustive()
    }
}
