use std::fmt;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use stoppable_scope::machinery::{Node, Origin};
use stoppable_scope::{Cancelled, Name, Reason, Scope, WaitPoint};
use tokio::task::JoinHandle;
use tokio::task::coop::unconstrained;

use crate::core::Core;
use crate::handle_error::HandleError;
use crate::outcome::Outcome;
use crate::task_root::Left;

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
    result: Source<T>,
    point: WaitPoint,
    /// Whether it was polled, and is not to answer before it has looked.
    waiting: bool,
}

/// Where the result comes from.
enum Source<T> {
    /// tokio has a place for it beside the task, so a result that nobody takes goes with that.
    Task(JoinHandle<Left<T>>),
    Refused(Box<HandleError>),
    Taken,
}

/// How often the processor is offered to the thread that is about to leave a result. After that its wake-up does.
const PATIENCE: usize = 1000;

impl<T> TaskHandle<T> {
    pub(crate) fn new(node: Arc<Node>, task: JoinHandle<Left<T>>) -> Self {
        Self::with_source(node, Source::Task(task))
    }

    /// The handle of a task that was not taken.
    pub(crate) fn refused(node: Arc<Node>, refused: HandleError) -> Self {
        Self::with_source(node, Source::Refused(Box::new(refused)))
    }

    fn with_source(node: Arc<Node>, result: Source<T>) -> Self {
        let point = WaitPoint::at(node.site());
        Self { node, result, point, waiting: false }
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
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
        match &self.result {
            Source::Task(task) => self.node.has_ended() || task.is_finished(),
            Source::Refused(_) | Source::Taken => true,
        }
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
    pub(crate) fn poll_result(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, HandleError>> {
        let result = match &mut self.result {
            Source::Task(task) => match pin!(unconstrained(task)).poll(cx) {
                Poll::Ready(Ok(Some(result))) => result.map_err(|error| *error),
                Poll::Ready(Ok(None) | Err(_)) => Err(self.lost()),
                Poll::Pending if self.node.has_ended() => ready!(self.poll_underway(cx)),
                Poll::Pending => return Poll::Pending,
            },
            Source::Refused(_) => match mem::replace(&mut self.result, Source::Taken) {
                Source::Refused(refused) => return Poll::Ready(Err(*refused)),
                _ => unreachable!("matched above"),
            },
            Source::Taken => panic!("`TaskHandle` polled after it gave its result"),
        };
        self.result = Source::Taken;
        Poll::Ready(result)
    }

    /// The task has ended on another thread, and tokio is about to leave its result here. Who has seen it counted out,
    /// or was cancelled because of its failure, finds the result; so that is worth a moment.
    #[cold]
    fn poll_underway(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, HandleError>> {
        if let Some(Outcome::Failed(failure)) = Core::outcome_of(&self.node) {
            return Poll::Ready(Err(HandleError::Failed(failure)));
        }
        let Source::Task(task) = &mut self.result else { return Poll::Pending };
        for _ in 0..PATIENCE {
            if task.is_finished() {
                break;
            }
            std::thread::yield_now();
        }
        match ready!(pin!(unconstrained(task)).poll(cx)) {
            Ok(Some(result)) => Poll::Ready(result.map_err(|error| *error)),
            Ok(None) | Err(_) => Poll::Ready(Err(self.lost())),
        }
    }

    /// The runtime went down and took the result along; word of what became of the task was left.
    #[cold]
    fn lost(&self) -> HandleError {
        let word = self.node.take_word().and_then(|word| word.downcast().ok());
        word.map(|error| *error).unwrap_or_else(|| {
            let request = self.node.effective_request();
            let request = request.unwrap_or_else(|| self.node.request(Reason::OwnerGone, Origin::Library));
            HandleError::Cancelled { task: self.name().clone(), cancelled: Cancelled::new(request) }
        })
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
            if !this.waiting {
                ready!(this.point.check()).map_err(HandleError::WaiterCancelled)?;
                this.waiting = true;
            }
            // Who was waiting already gets a result that is there, whatever was requested.
            if let Poll::Ready(result) = this.poll_result(cx) {
                return Poll::Ready(result);
            }
            if let Err(cancelled) = ready!(this.point.check()) {
                this.waiting = false;
                return Poll::Ready(Err(HandleError::WaiterCancelled(cancelled)));
            }
            ready!(this.point.park(cx));
        }
    }
}

impl<T> Drop for TaskHandle<T> {
    fn drop(&mut self) {
        if let Source::Task(task) = &mut self.result {
            self.node.set_unwanted();
            // A value that is there already is dropped here, where its destructor may panic.
            let mut cx = Context::from_waker(Waker::noop());
            drop(task.is_finished().then(|| pin!(unconstrained(task)).poll(&mut cx)));
        }
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
