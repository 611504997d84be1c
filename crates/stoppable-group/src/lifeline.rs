use std::fmt;
use std::future::{Ready, poll_fn};
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;

use stoppable_scope::machinery::{Node, ambient_node};
use stoppable_scope::{Scope, TaskError};

use crate::group_builder::GroupBuilder;
use crate::group_error::GroupError;
use crate::group_run::GroupRun;
use crate::task_group::TaskGroup;

/// A group without a body, held in a struct: for a service that owns its tasks.
///
/// Made by [`TaskGroup::new`] or [`GroupBuilder::open`]; it derefs to the [`TaskGroup`] into which tasks are
/// spawned. The rules are those of [`TaskGroup::run`]: a failure cancels the siblings, [`join`](Self::join)
/// returns after all tasks have ended, and if the lifeline is dropped its tasks are cancelled and adopted by the
/// group in which it was made, or else by the [`root`](crate::root) of the runtime.
///
/// Prefer [`TaskGroup::run`] where the tasks live as long as one call. Here it is up to the owner to call `join`,
/// and a failure is only heard of there. A [`deadline`](GroupBuilder::deadline) of the group is looked at by who
/// awaits `join` and by [`checkpoint`](stoppable_scope::checkpoint); to bound the tasks before that, give each a
/// [`with_timeout`](stoppable_scope::with_timeout).
///
/// # Compared with `TaskTracker`
///
/// A tracker counts tasks and waits; it knows neither failures nor whom to cancel. To count what is spawned by
/// others, `tracker.track_future(..)` works on any future here as well.
///
/// # Examples
///
/// ```
/// use stoppable_group::{GroupError, Lifeline, TaskGroup};
///
/// struct Mailer {
///     tasks: Lifeline,
/// }
///
/// impl Mailer {
///     fn new() -> Self {
///         Self { tasks: TaskGroup::new() }
///     }
///     fn send(&self, _mail: String) {
///         self.tasks.spawn(async { tokio::task::yield_now().await });
///     }
///     async fn shut_down(mut self) -> Result<(), GroupError> {
///         self.tasks.close(); // Nothing new; what is under way is finished.
///         self.tasks.join().await
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let mailer = Mailer::new();
/// mailer.send("hello".to_owned());
/// mailer.shut_down().await.unwrap();
/// # }
/// ```
#[must_use = "dropping a lifeline cancels its tasks"]
pub struct Lifeline {
    group: TaskGroup,
    run: Pin<Box<Run>>,
    /// The scope in which it was made.
    home: Arc<Node>,
    ended: bool,
}

/// What a lifeline has in place of a body.
type NoBody = fn(TaskGroup) -> Ready<Result<(), TaskError>>;

type Run = GroupRun<NoBody, Ready<Result<(), TaskError>>, ()>;

impl TaskGroup {
    /// A group without a body, held by its owner; it lies below the scope of the code that makes it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    #[allow(clippy::new_ret_no_self)]
    pub fn new() -> Lifeline {
        Self::builder().open()
    }
}

impl GroupBuilder {
    /// Makes the group without a body. See [`Lifeline`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn open(self) -> Lifeline {
        self.open_in(home())
    }

    #[track_caller]
    pub(crate) fn open_in(self, home: Arc<Node>) -> Lifeline {
        let (run, group) = GroupRun::without_body(self, Location::caller(), Arc::clone(&home));
        Lifeline { group, run: Box::pin(run), home, ended: false }
    }
}

/// The scope of the code that runs; where there is none, one that nobody cancels.
#[track_caller]
pub(crate) fn home() -> Arc<Node> {
    ambient_node().unwrap_or_else(|| Arc::clone(Scope::new().node()))
}

impl Lifeline {
    /// Refuses new tasks from now on. Those that were spawned go on.
    pub fn close(&self) {
        self.group.core().refuse_new();
    }

    /// Waits until all tasks have ended, those included that they spawn meanwhile; then the group is closed.
    ///
    /// While it is awaited the group lies below the scope of whoever awaits it, so a cancel or a timeout there
    /// reaches the tasks, as those of [`TaskGroup::run`]. To stop them, [`cancel`](TaskGroup::cancel) first. A
    /// second call gives `Ok` at once.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the wait leaves the tasks to the lifeline, which lies again where it was made.
    ///
    /// # Errors
    ///
    /// [`GroupError`], as [`TaskGroup::run`].
    pub async fn join(&mut self) -> Result<(), GroupError> {
        if self.ended {
            return Ok(());
        }
        let joining = Joining(self);
        let result = poll_fn(|cx| joining.0.run.as_mut().poll(cx)).await;
        joining.0.ended = true;
        result
    }
}

/// One wait, which may be left.
struct Joining<'a>(&'a mut Lifeline);

impl Drop for Joining<'_> {
    fn drop(&mut self) {
        if !self.0.ended {
            self.0.run.as_mut().go_home(&self.0.home);
        }
    }
}

impl Deref for Lifeline {
    type Target = TaskGroup;

    fn deref(&self) -> &TaskGroup {
        &self.group
    }
}

impl fmt::Debug for Lifeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lifeline").field("group", &self.group).finish_non_exhaustive()
    }
}
