use std::fmt;
use std::sync::Arc;

use stoppable_scope::machinery::Node;
use stoppable_scope::{Cancelled, Scope};

/// How a blocking thread hears that it should leave. Look at it in every loop.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_group::{TaskGroup, ok};
///
/// let sum = TaskGroup::run(|group| async move {
///     let sum = group.spawn_blocking(|stop| {
///         let mut sum = 0_u64;
///         for n in 0..1_000 {
///             stop.check()?;
///             sum += n;
///         }
///         ok(sum)
///     });
///     ok(sum.await?)
/// });
/// assert_eq!(sum.await.unwrap(), 499_500);
/// # }
/// ```
#[derive(Clone)]
pub struct StopFlag {
    node: Arc<Node>,
}

impl StopFlag {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node }
    }

    /// Whether to leave now: the task was cancelled, or a deadline around it has passed by the clock.
    pub fn is_cancelled(&self) -> bool {
        self.check().is_err()
    }

    /// Whether to finish and take nothing new.
    pub fn is_stopping(&self) -> bool {
        self.node.is_stopping()
    }

    /// `Err(Cancelled)` if it is time to leave; pass it on with `?`.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], with the scope that asked and the reason.
    pub fn check(&self) -> Result<(), Cancelled> {
        self.node.expire_overdue();
        self.node.check()
    }

    /// The scope of the task.
    pub fn scope(&self) -> Scope {
        Scope::of(Arc::clone(&self.node))
    }
}

impl fmt::Debug for StopFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopFlag").field("cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}
