use std::error::Error;
use std::fmt;

use crate::reason::Reason;
use crate::request::{Request, ScopeId};

/// The answer of a stoppable wait to a cancel request: which scope asked, and why.
///
/// Pass it on with `?`. It is cheap to clone and one pointer wide. A cancellation is not a failure: a
/// group or a timeout that meets it in an error, however deep, counts the task as cancelled, provided
/// that it names their own scope or one above. To report a failure that a cancel has caused, wrap it
/// with [`failure`](crate::failure).
///
/// asyncio's `CancelledError` and trio's `Cancelled` are the models; unlike theirs it says whose
/// cancel it was.
#[derive(Clone)]
pub struct Cancelled {
    request: Request,
}

impl Cancelled {
    #[doc(hidden)]
    pub fn new(request: Request) -> Self {
        Self { request }
    }

    /// Why the scope was cancelled.
    pub fn reason(&self) -> &Reason {
        self.request.reason()
    }

    /// The scope on which the request was made.
    pub fn scope(&self) -> ScopeId {
        self.request.scope()
    }

    /// The request itself.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The cancellation in `error` or in its chain of sources, if there is one.
    ///
    /// What [`failure`](crate::failure) has marked is a failure, whatever lies beneath.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_scope::{Cancelled, Scope, failure};
    ///
    /// let scope = Scope::new();
    /// scope.cancel("no longer needed");
    /// let error = std::io::Error::other(scope.check().unwrap_err());
    /// assert!(Cancelled::is_in(&error));
    /// assert!(!Cancelled::is_in(&*failure(error)));
    /// ```
    pub fn is_in(error: &(dyn Error + 'static)) -> bool {
        crate::task_error::request_in(error).is_some()
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled")
            .field("scope", &self.request.scope_name())
            .field("reason", &self.request.reason())
            .finish()
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cancelled: {}", self.request.reason())
    }
}

impl Error for Cancelled {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.request)
    }
}
