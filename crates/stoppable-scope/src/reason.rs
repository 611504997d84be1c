use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::deadline::Deadline;
use crate::name::Name;

/// Why a scope was cancelled. The first reason given to a scope stands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Reason {
    /// Somebody called `cancel` and gave no further reason.
    Requested,
    /// Somebody called `cancel` with a text.
    Because(Cow<'static, str>),
    /// Somebody called `cancel` with an error.
    Error(Arc<dyn Error + Send + Sync>),
    /// A [`CancellationToken`](tokio_util::sync::CancellationToken) was cancelled.
    Token,
    /// The deadline of the scope has been reached.
    Deadline(Deadline),
    /// A task of the same group has failed; this is its name.
    SiblingFailed(Name),
    /// A task of the same group has succeeded and the policy of the group wanted only one.
    SiblingSucceeded(Name),
    /// All other tasks of the group and its body have ended; it was a service.
    GroupEnded,
    /// Whoever owned the work went away: the future of its group was dropped.
    OwnerGone,
    /// The program is shutting down.
    Shutdown,
}

impl Reason {
    /// A reason that is an error of your own.
    pub fn error(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Error(Arc::from(error.into()))
    }
}

/// [`Reason::Requested`].
impl From<()> for Reason {
    fn from((): ()) -> Self {
        Self::Requested
    }
}

impl From<&'static str> for Reason {
    fn from(text: &'static str) -> Self {
        Self::Because(Cow::Borrowed(text))
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self::Because(Cow::Owned(text))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested => f.write_str("requested"),
            Self::Because(text) => f.write_str(text),
            Self::Error(error) => write!(f, "{error}"),
            Self::Token => f.write_str("its cancellation token was cancelled"),
            Self::Deadline(_) => f.write_str("its deadline has elapsed"),
            Self::SiblingFailed(task) => write!(f, "its sibling `{task}` failed"),
            Self::SiblingSucceeded(task) => write!(f, "its sibling `{task}` was first"),
            Self::GroupEnded => f.write_str("its group has ended"),
            Self::OwnerGone => f.write_str("its owner is gone"),
            Self::Shutdown => f.write_str("the program is shutting down"),
        }
    }
}
