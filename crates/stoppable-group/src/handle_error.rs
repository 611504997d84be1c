use std::error::Error;
use std::fmt;

use stoppable_scope::{Cancelled, Name};

use crate::outcome::Outcome;
use crate::task_failure::TaskFailure;

/// Why waiting for a task gave no value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum HandleError {
    /// The task failed or panicked. Its group knows; pass this on with `?` and it counts once.
    Failed(TaskFailure),
    /// The task was cancelled while it ran.
    Cancelled {
        /// Which task.
        task: Name,
        /// Who asked it to leave, and why.
        cancelled: Cancelled,
    },
    /// The task was cancelled before it was polled once.
    NotStarted {
        /// Which task.
        task: Name,
        /// Who asked it to leave, and why.
        cancelled: Cancelled,
    },
    /// The group took no more tasks when this one was spawned; its future was dropped unpolled.
    Refused {
        /// Which task.
        task: Name,
        /// The request that closed the group; `None` where it has ended or was closed by its owner.
        cancelled: Option<Cancelled>,
    },
    /// The work runs on a thread that did not come back within its grace; it was left alone.
    Abandoned {
        /// Which task.
        task: Name,
    },
    /// Whoever waits was cancelled, not the task, which goes on.
    WaiterCancelled(Cancelled),
}

impl HandleError {
    /// What whoever waits for `task` is told of an end without a value.
    pub(crate) fn of(task: &Name, outcome: &Outcome) -> Option<Self> {
        let task = || task.clone();
        match outcome {
            Outcome::Ok => None,
            Outcome::Failed(failure) => Some(Self::Failed(failure.clone())),
            Outcome::Cancelled(by) => Some(Self::Cancelled { task: task(), cancelled: by.clone() }),
            Outcome::NotStarted(by) => Some(Self::NotStarted { task: task(), cancelled: by.clone() }),
            Outcome::Abandoned => Some(Self::Abandoned { task: task() }),
        }
    }

    /// How the task failed, if it did.
    pub fn failure(&self) -> Option<&TaskFailure> {
        match self {
            Self::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// Whether the task was cancelled, before it began or later.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled { .. } | Self::NotStarted { .. })
    }

    /// Whether it was the waiter that was cancelled.
    pub fn is_waiter_cancelled(&self) -> bool {
        matches!(self, Self::WaiterCancelled(_))
    }
}

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => fmt::Display::fmt(failure, f),
            Self::Cancelled { task, cancelled } => write!(f, "task `{task}` was {cancelled}"),
            Self::NotStarted { task, cancelled } => write!(f, "task `{task}` never ran, {cancelled}"),
            Self::Refused { task, cancelled: Some(cancelled) } => {
                write!(f, "task `{task}` was refused by a closing group, {cancelled}")
            }
            Self::Refused { task, cancelled: None } => {
                write!(f, "task `{task}` was refused: its group takes no more; spawn it in one that runs")
            }
            Self::Abandoned { task } => {
                write!(f, "the thread of task `{task}` did not come back; look at its stop flag more often")
            }
            Self::WaiterCancelled(cancelled) => fmt::Display::fmt(cancelled, f),
        }
    }
}

impl Error for HandleError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Cancelled { cancelled, .. }
            | Self::NotStarted { cancelled, .. }
            | Self::Refused { cancelled: Some(cancelled), .. }
            | Self::WaiterCancelled(cancelled) => Some(cancelled),
            Self::Refused { cancelled: None, .. } | Self::Abandoned { .. } => None,
        }
    }
}
