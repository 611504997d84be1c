//! Errors of the kind of `anyhow::Error` and `eyre::Report`, boxed without losing what they are.
//!
//! When one becomes std's box by `into()`, the error inside can no longer be found by its type, but through
//! its `Deref` it can. So it is kept as it is.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::ops::Deref;

use crate::task_error::TaskError;

struct Kept(Box<dyn Shows>);

trait Shows: Send + Sync {
    fn shown(&self) -> &(dyn Error + Send + Sync + 'static);
}

impl<E: Deref<Target = dyn Error + Send + Sync + 'static> + Send + Sync> Shows for E {
    fn shown(&self) -> &(dyn Error + Send + Sync + 'static) {
        &**self
    }
}

/// Boxes `error`. One that is a box of std already stays what it is.
pub(crate) fn keep<E>(error: E) -> TaskError
where
    E: Deref<Target = dyn Error + Send + Sync + 'static> + Send + Sync + 'static,
{
    let mut error = Some(error);
    let boxed = (&mut error as &mut dyn Any).downcast_mut::<Option<TaskError>>().and_then(Option::take);
    match (boxed, error) {
        (Some(boxed), _) => boxed,
        (None, Some(error)) => Box::new(Kept(Box::new(error))),
        (None, None) => unreachable!("it is taken as a box or not at all"),
    }
}

/// The error itself, where `error` only keeps it.
#[doc(hidden)]
pub fn shown<'a>(error: &'a (dyn Error + Send + Sync + 'static)) -> &'a (dyn Error + Send + Sync + 'static) {
    error.downcast_ref::<Kept>().map_or(error, |kept| kept.0.shown())
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0.shown(), f)
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0.shown(), f)
    }
}

impl Error for Kept {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.shown().source()
    }
}
