use stoppable_scope::Cancelled;

use crate::task_failure::TaskFailure;

/// How a task ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Outcome {
    /// With a value.
    Ok,
    /// With an error or a panic.
    Failed(TaskFailure),
    /// Cancelled while it ran: it answered, or was cut.
    Cancelled(Cancelled),
    /// Cancelled before it was polled once.
    NotStarted(Cancelled),
    /// Its thread did not come back within its grace.
    Abandoned,
}

impl Outcome {
    /// Whether it ended with a value.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }

    /// Whether it failed or panicked.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Whether it was cancelled, before it began or later.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_) | Self::NotStarted(_))
    }
}
