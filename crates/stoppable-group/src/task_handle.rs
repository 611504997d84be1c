use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use stoppable_scope::machinery::{Node, Origin};
use stoppable_scope::{Name, Reason, Scope, WaitPoint};

use crate::handle_error::HandleError;
use crate::slot::Slot;

/// A task of a group, for who wants its value or wants to cancel it.
///
/// It is a future, by value or by `&mut`, and a stoppable wait. Waiting borrows the task: leaving the wait,
/// or dropping the handle, does not cancel it, for its group owns it. [`shutdown`](Self::shutdown) cancels
/// and waits.
///
/// # Compared with `tokio::task::JoinHandle`
///
/// A failure that is read here is still in the error of the group; `abort` is [`cancel`](Self::cancel), which
/// asks first; the wait itself can be cancelled, and says so apart from the task being cancelled.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_group::{TaskGroup, ok};
///
/// let sum = TaskGroup::run(|group| async move {
///     let two = group.spawn(async { ok(2) });
///     let three = group.spawn(async { ok(3) });
///     ok(two.await? + three.await?)
/// });
/// assert_eq!(sum.await.unwrap(), 5);
/// # }
/// ```
pub struct TaskHandle<T> {
    node: Arc<Node>,
    slot: Arc<Slot<T>>,
    point: WaitPoint,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Waiting,
}

impl<T> TaskHandle<T> {
    pub(crate) fn new(node: Arc<Node>, slot: Arc<Slot<T>>) -> Self {
        let point = WaitPoint::at(node.site());
        Self { node, slot, point, state: State::New }
    }

    /// The name of the task.
    pub fn name(&self) -> &Name {
        self.node.name()
    }

    /// The scope of the task.
    pub fn scope(&self) -> Scope {
        Scope::of(Arc::clone(&self.node))
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.slot.is_done()
    }

    /// Asks the task to leave. `false` if it has ended already. The siblings are not touched.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// TaskGroup::run(|group| async move {
    ///     let task = group.spawn(std::future::pending::<()>());
    ///     assert!(task.cancel());
    ///     assert!(task.await.unwrap_err().is_cancelled());
    ///     ok(())
    /// })
    /// .await
    /// .unwrap();
    /// # }
    /// ```
    #[allow(clippy::must_use_candidate)]
    pub fn cancel(&self) -> bool {
        self.cancel_because(())
    }

    /// [`cancel`](Self::cancel), with a reason.
    #[allow(clippy::must_use_candidate)]
    pub fn cancel_because(&self, reason: impl Into<Reason>) -> bool {
        let running = !self.is_finished();
        if running {
            self.node.request(reason.into(), Origin::User);
        }
        running
    }

    /// The result, for who is not stoppable by this wait.
    pub(crate) fn poll_slot(&self, cx: &Context<'_>) -> Poll<Result<T, HandleError>> {
        self.slot.poll_take(cx)
    }

    /// Cancels the task and waits until it has ended. The word of `JoinSet`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// TaskGroup::run(|group| async move {
    ///     let task = group.spawn(std::future::pending::<()>());
    ///     assert!(task.shutdown().await.is_err());
    ///     assert_eq!(group.live(), 0);
    ///     ok(())
    /// })
    /// .await
    /// .unwrap();
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Leaving the wait takes nothing back: the task was asked.
    ///
    /// # Errors
    ///
    /// As waiting for the handle; a task that ended with a value all the same gives it.
    pub async fn shutdown(self) -> Result<T, HandleError> {
        self.cancel();
        self.await
    }
}

impl<T> Future for TaskHandle<T> {
    type Output = Result<T, HandleError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            if this.state == State::New {
                ready!(this.point.check()).map_err(HandleError::WaiterCancelled)?;
                this.state = State::Waiting;
            }
            // Who was waiting already gets a result that is there, whatever was requested.
            if let Poll::Ready(result) = this.slot.poll_take(cx) {
                return Poll::Ready(result);
            }
            ready!(this.point.check()).map_err(HandleError::WaiterCancelled).inspect_err(|_| {
                this.state = State::New;
            })?;
            ready!(this.point.park(cx));
        }
    }
}

impl<T> Drop for TaskHandle<T> {
    fn drop(&mut self) {
        drop(self.slot.give_up());
    }
}

impl<T> Unpin for TaskHandle<T> {}

impl<T> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle")
            .field("name", self.name())
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
