//! What the body of a task, a group or a timeout may fail with, and how a cancellation is found in it.

use std::error::Error;
use std::fmt;
use std::ops::Deref;

use crate::cancelled::Cancelled;
use crate::kept;
use crate::request::Request;

/// The one concrete error of bodies: every `std::error::Error`, `Box<dyn Error + Send + Sync>`,
/// `anyhow::Error` and `eyre::Report` becomes it by `?`, so that no closure needs an annotation.
///
/// It is std's boxed error, because that is the one type into which all four convert already.
pub type TaskError = Box<dyn Error + Send + Sync + 'static>;

/// `Ok(value)`, with the error type of an inline block fixed as [`TaskError`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// use stoppable_scope::{ok, with_timeout};
///
/// let text = with_timeout(Duration::from_secs(1), async {
///     let bytes = std::str::from_utf8(b"seven")?;
///     ok(bytes.len())
/// });
/// assert_eq!(text.await.unwrap(), 5);
/// # }
/// ```
#[allow(clippy::missing_errors_doc, clippy::unnecessary_wraps)]
pub fn ok<T>(value: T) -> Result<T, TaskError> {
    Ok(value)
}

/// An error that a task, a group's body or a timeout's body may end with.
///
/// Implemented for every `E: Error` and for every `E` that derefs to `dyn Error + Send + Sync`, which is
/// how `anyhow::Error`, `eyre::Report` and boxed errors look. `Marker` is inferred and means nothing. For
/// an error that is neither see `cancelled_if` of the group.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not be the error of a task",
    label = "neither a `std::error::Error` nor a boxed one",
    note = "implement `std::error::Error` for `{Self}`, or return `stoppable::TaskError`, into which every error converts by `?`",
    note = "if the compiler can not tell the type, end the block with `stoppable::ok(value)`"
)]
pub trait TaskFailureError<Marker>: Send + 'static {
    /// The error as std knows it.
    fn as_error(&self) -> &(dyn Error + 'static);

    /// The error in a box.
    fn into_task_error(self) -> TaskError;
}

/// Marker of [`TaskFailureError`]: the type is an error itself.
#[derive(Debug)]
pub struct IsError;

/// Marker of [`TaskFailureError`]: the type derefs to an error.
#[derive(Debug)]
pub struct DerefsToError;

impl<E: Error + Send + Sync + 'static> TaskFailureError<IsError> for E {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self
    }

    fn into_task_error(self) -> TaskError {
        Box::new(self)
    }
}

impl<E> TaskFailureError<DerefsToError> for E
where
    E: Deref<Target = dyn Error + Send + Sync + 'static> + Send + Sync + 'static,
{
    fn as_error(&self) -> &(dyn Error + 'static) {
        &**self
    }

    fn into_task_error(self) -> TaskError {
        kept::keep(self)
    }
}

/// Marks a real failure whose cause is a cancel, so that no group or timeout takes it for a mere
/// cancellation: `Err(failure(error))`.
///
/// # Examples
///
/// ```
/// use stoppable_scope::{Cancelled, Scope, failure};
///
/// let scope = Scope::new();
/// scope.cancel(());
/// let half_written = failure(scope.check().unwrap_err());
/// assert!(!Cancelled::is_in(&*half_written));
/// ```
pub fn failure(error: impl Into<TaskError>) -> TaskError {
    Box::new(Failure { mark: Mark { error: error.into() } })
}

/// Shows as the error it marks. Its source is the mark, so that the mark is still met where
/// `#[error(transparent)]` skips the outer one.
struct Failure {
    mark: Mark,
}

struct Mark {
    error: TaskError,
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failure").field(&self.mark.error).finish()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.mark.error, f)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.mark)
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a failure, though a cancel may be its cause")
    }
}

impl Error for Mark {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.error)
    }
}

/// The cancel request that `error` stands for: the first one in its chain of sources.
#[doc(hidden)]
pub fn request_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Request> {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<Failure>() || error.is::<Mark>() {
            return None;
        }
        if let Some(cancelled) = error.downcast_ref::<Cancelled>() {
            return Some(cancelled.request());
        }
        if let Some(request) = error.downcast_ref::<Request>() {
            return Some(request);
        }
        next = error.source();
    }
    None
}
