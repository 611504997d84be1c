use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use stoppable_scope::machinery::shown;
use stoppable_scope::{Name, ScopeId, TaskError};

/// How one task failed: its name, where it was spawned, and its error or the payload of its panic.
///
/// Cheap to clone; all clones are the same failure. A [`TaskHandle`](crate::TaskHandle) gives one to
/// whoever waits, and the group keeps one: passing it on with `?` does not count it twice.
#[derive(Clone)]
pub struct TaskFailure(Arc<Inner>);

struct Inner {
    task: ScopeId,
    name: Name,
    site: &'static Location<'static>,
    cause: Cause,
    /// The first group that has it in its error.
    kept_by: OnceLock<ScopeId>,
}

enum Cause {
    Error(TaskError),
    Panic { message: String, payload: Mutex<Option<Box<dyn Any + Send>>> },
}

impl TaskFailure {
    pub(crate) fn error_of(
        task: ScopeId,
        name: Name,
        site: &'static Location<'static>,
        error: TaskError,
    ) -> Self {
        Self(Arc::new(Inner { task, name, site, cause: Cause::Error(error), kept_by: OnceLock::new() }))
    }

    pub(crate) fn panic_of(
        task: ScopeId,
        name: Name,
        site: &'static Location<'static>,
        payload: Box<dyn Any + Send>,
    ) -> Self {
        let message = panic_message(&*payload);
        let cause = Cause::Panic { message, payload: Mutex::new(Some(payload)) };
        Self(Arc::new(Inner { task, name, site, cause, kept_by: OnceLock::new() }))
    }

    /// The same task with another error.
    pub(crate) fn with_error(&self, error: TaskError) -> Self {
        Self::error_of(self.id(), self.name().clone(), self.site(), error)
    }

    /// The scope of the task.
    pub fn id(&self) -> ScopeId {
        self.0.task
    }

    /// The name of the task; `body` for the body of a group.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// Where it was spawned.
    pub fn site(&self) -> &'static Location<'static> {
        self.0.site
    }

    /// Its error; `None` if it panicked.
    pub fn error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match &self.0.cause {
            Cause::Error(error) => Some(shown(&**error)),
            Cause::Panic { .. } => None,
        }
    }

    /// Its error as an `E`, or the first `E` among the sources of that.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        let mut next = self.error().map(|error| error as &(dyn Error + 'static));
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// The text of its panic; `None` if it ended with an error.
    pub fn panic_message(&self) -> Option<&str> {
        match &self.0.cause {
            Cause::Panic { message, .. } => Some(message),
            Cause::Error(_) => None,
        }
    }

    /// Whether it panicked.
    pub fn is_panic(&self) -> bool {
        self.panic_message().is_some()
    }

    /// The payload of its panic, for the first who asks.
    pub fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        match &self.0.cause {
            Cause::Panic { payload, .. } => payload.lock().take(),
            Cause::Error(_) => None,
        }
    }

    pub(crate) fn kept_by(&self) -> Option<ScopeId> {
        self.0.kept_by.get().copied()
    }

    pub(crate) fn set_kept_by(&self, group: ScopeId) {
        let _known = self.0.kept_by.set(group);
    }

    /// Whether both are one failure.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&'static str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a text").to_owned()
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.cause {
            Cause::Error(error) => write!(f, "task `{}` failed: {error}", self.0.name),
            Cause::Panic { message, .. } => write!(f, "task `{}` panicked: {message}", self.0.name),
        }
    }
}

impl fmt::Debug for TaskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TaskFailure");
        shown.field("name", &self.0.name).field("site", &format_args!("{}", self.0.site));
        match &self.0.cause {
            Cause::Error(error) => shown.field("error", error),
            Cause::Panic { message, .. } => shown.field("panic", message),
        };
        shown.finish()
    }
}

impl Error for TaskFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error().map(|error| error as &(dyn Error + 'static))
    }
}
