use std::fmt;
use std::sync::Arc;

use crate::deadline::Deadline;
use crate::node::Node;
use crate::scope::Scope;

/// A look at a timed call from inside or outside; see [`with_timeout_handle`](crate::with_timeout_handle).
///
/// asyncio's `Timeout` object is the model.
#[derive(Clone)]
pub struct TimeoutHandle {
    node: Arc<Node>,
}

/// A limit could not be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RescheduleError {
    /// The deadline has been delivered; the work is being stopped and cannot be revived.
    #[error("the timeout has expired already; give a new call a new limit")]
    Expired,
    /// The call has ended.
    #[error("the timed call has ended; give a new call a new limit")]
    Finished,
}

impl TimeoutHandle {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node }
    }

    /// The limit of this call; `never` before a relative one has begun. Enclosing ones may be earlier.
    #[doc(alias = "when")]
    pub fn deadline(&self) -> Deadline {
        self.node.own_deadline()
    }

    /// Moves the limit. One that lies in the past expires at the next wait, not at once. Before the call
    /// has begun it takes the place of the limit that was given.
    ///
    /// # Errors
    ///
    /// [`RescheduleError`] once the limit was delivered or the call has ended.
    pub fn reschedule(&self, deadline: impl Into<Deadline>) -> Result<(), RescheduleError> {
        if self.node.is_delivered() {
            return Err(RescheduleError::Expired);
        }
        if self.node.has_ended() {
            return Err(RescheduleError::Finished);
        }
        let deadline = deadline.into();
        let earlier = deadline < self.node.own_deadline();
        self.node.reschedule(deadline);
        // A later one needs no wake-up: when the timer of the old limit fires, the frame sets it again.
        if earlier {
            self.node.wake_host();
        }
        Ok(())
    }

    /// Whether the limit was reached: while the call runs and after an `Ok`, whether the work was asked
    /// because of it; after a cancelled end, whether the clock had reached it.
    pub fn expired(&self) -> bool {
        self.node.is_delivered()
    }

    /// The scope of the call.
    pub fn scope(&self) -> Scope {
        Scope::of(Arc::clone(&self.node))
    }
}

impl fmt::Debug for TimeoutHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutHandle")
            .field("deadline", &self.deadline())
            .field("expired", &self.expired())
            .finish_non_exhaustive()
    }
}
