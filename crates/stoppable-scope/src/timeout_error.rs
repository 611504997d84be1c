use std::convert::Infallible;
use std::error::Error;
use std::fmt;

use crate::cancelled::Cancelled;
use crate::chain;
use crate::elapsed::Elapsed;

/// How a timed call ended without a value.
#[derive(Debug, Clone)]
pub enum TimeoutError<E> {
    /// This call's own limit was reached.
    Elapsed(Elapsed),
    /// A request from outside, or an enclosing deadline, ended the call; it is not this call's to answer
    /// for, so pass it on.
    Cancelled(Cancelled),
    /// The work's own error.
    Failed(E),
}

impl<E> TimeoutError<E> {
    /// Whether this call's own limit was reached.
    pub fn is_elapsed(&self) -> bool {
        matches!(self, Self::Elapsed(_))
    }

    /// Whether a request from outside ended the call.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_))
    }

    /// The work's own error, if it was that.
    pub fn into_failed(self) -> Option<E> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Elapsed(_) | Self::Cancelled(_) => None,
        }
    }
}

impl TimeoutError<Infallible> {
    /// For work that cannot fail: the elapsed limit, or else the cancellation.
    ///
    /// # Errors
    ///
    /// The [`Cancelled`] of a request from outside.
    pub fn into_elapsed(self) -> Result<Elapsed, Cancelled> {
        match self {
            Self::Elapsed(elapsed) => Ok(elapsed),
            Self::Cancelled(cancelled) => Err(cancelled),
            Self::Failed(never) => match never {},
        }
    }
}

impl<E: fmt::Display> fmt::Display for TimeoutError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elapsed(elapsed) => fmt::Display::fmt(elapsed, f),
            Self::Cancelled(cancelled) => fmt::Display::fmt(cancelled, f),
            Self::Failed(error) => fmt::Display::fmt(error, f),
        }
    }
}

/// Shows as what it holds, and has its sources.
impl<E: fmt::Debug + fmt::Display + 'static> Error for TimeoutError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Elapsed(elapsed) => elapsed.source(),
            Self::Cancelled(cancelled) => cancelled.source(),
            Self::Failed(error) => chain::source(error),
        }
    }
}
