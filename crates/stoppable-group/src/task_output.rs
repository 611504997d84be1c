use std::error::Error;

use stoppable_scope::{TaskError, TaskFailureError};

/// What the future of a task may give: `Result<T, E>` with any error, or `()`.
///
/// `Marker` is inferred and means nothing. For any other output use `spawn_value`.
#[diagnostic::on_unimplemented(
    message = "a task gives a `Result` or `()`, not `{Self}`",
    label = "the future gives `{Self}`",
    note = "use `spawn_value` for a future with another output",
    note = "the error of the `Result` has to be a `std::error::Error`, or a boxed one such as `anyhow::Error`",
    note = "if the compiler can not tell the error type, end the block with `stoppable::ok(value)`"
)]
pub trait TaskOutput<Marker>: 'static {
    /// The value of a task that ends well.
    type Value: 'static;

    /// The error, as std knows it, if it is one.
    fn as_error(&self) -> Option<&(dyn Error + 'static)>;

    /// The value, or the error in a box.
    fn into_result(self) -> Result<Self::Value, TaskError>;
}

/// Marker of [`TaskOutput`]: a `Result` whose error has the marker `M`.
#[derive(Debug)]
pub struct IsResult<M>(M);

/// Marker of [`TaskOutput`]: nothing.
#[derive(Debug)]
pub struct IsUnit;

impl<T, E, M> TaskOutput<IsResult<M>> for Result<T, E>
where
    T: 'static,
    E: TaskFailureError<M>,
{
    type Value = T;

    fn as_error(&self) -> Option<&(dyn Error + 'static)> {
        self.as_ref().err().map(TaskFailureError::as_error)
    }

    fn into_result(self) -> Result<T, TaskError> {
        self.map_err(TaskFailureError::into_task_error)
    }
}

impl TaskOutput<IsUnit> for () {
    type Value = ();

    fn as_error(&self) -> Option<&(dyn Error + 'static)> {
        None
    }

    fn into_result(self) -> Result<(), TaskError> {
        Ok(())
    }
}

/// Wraps any value as an output that cannot fail.
pub(crate) struct Value<T>(pub(crate) T);

/// Marker of [`TaskOutput`]: a plain value.
pub(crate) struct IsValue;

impl<T: 'static> TaskOutput<IsValue> for Value<T> {
    type Value = T;

    fn as_error(&self) -> Option<&(dyn Error + 'static)> {
        None
    }

    fn into_result(self) -> Result<T, TaskError> {
        Ok(self.0)
    }
}
