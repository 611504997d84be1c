use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::time::Instant;

use crate::name::Name;
use crate::reason::Reason;
use crate::sync::{AtomicBool, Ordering, thread_local};

/// Which scope is meant; unique in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(u64);

impl ScopeId {
    /// Each thread takes a block of them at a time.
    pub(crate) fn next() -> Self {
        const BLOCK: u64 = 256;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        thread_local! {
            static OWN: Cell<u64> = const { Cell::new(0) };
        }
        let fresh = || NEXT.fetch_add(1, Ordering::Relaxed) * BLOCK;
        let next = OWN.try_with(|own| {
            let id = if own.get() % BLOCK == 0 { fresh() } else { own.get() };
            own.set(id + 1);
            id
        });
        Self(next.unwrap_or_else(|_| fresh()))
    }
}

impl fmt::Display for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// One cancel request: the scope it was made on, and why.
///
/// It is the [`source`](Error::source) of every [`Cancelled`](crate::Cancelled), and so can be found in
/// any error that has one somewhere in its chain, also behind `#[error(transparent)]`. Cheap to clone.
#[derive(Clone)]
pub struct Request(Arc<Inner>);

struct Inner {
    scope: ScopeId,
    name: Name,
    reason: Reason,
    at: Instant,
    origin: Origin,
    /// Every wait that is registered under a waker of its own has been woken for this request.
    announced: AtomicBool,
}

/// Who made a request; only those of users can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Origin {
    /// `Scope::cancel` and its like.
    User,
    /// The library: a deadline, a failed sibling, a dropped owner.
    Library,
    /// An outside token.
    Token,
}

impl Request {
    pub(crate) fn new(scope: ScopeId, name: Name, reason: Reason, origin: Origin) -> Self {
        let announced = AtomicBool::new(false);
        Self(Arc::new(Inner { scope, name, reason, at: Instant::now(), origin, announced }))
    }

    /// The scope that was asked. Its descendants see the same request.
    pub fn scope(&self) -> ScopeId {
        self.0.scope
    }

    /// The name of that scope.
    pub fn scope_name(&self) -> &Name {
        &self.0.name
    }

    /// Why.
    pub fn reason(&self) -> &Reason {
        &self.0.reason
    }

    /// When it was made, by tokio's clock.
    pub fn at(&self) -> Instant {
        self.0.at
    }

    /// Whether both are one request, not two that look alike.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn origin(&self) -> Origin {
        self.0.origin
    }

    pub(crate) fn is_announced(&self) -> bool {
        self.0.announced.load(Ordering::Acquire)
    }

    pub(crate) fn set_announced(&self) {
        self.0.announced.store(true, Ordering::Release);
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("scope", &self.0.name)
            .field("reason", &self.0.reason)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cancel of `{}`: {}", self.0.name, self.0.reason)
    }
}

impl Error for Request {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0.reason {
            Reason::Error(error) => Some(&**error),
            _ => None,
        }
    }
}
