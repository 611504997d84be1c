use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use stoppable_scope::machinery::{Node, ambient_node, ambient_root};
use stoppable_scope::{Name, ScopeId};
use tokio::runtime::Handle;

use crate::close::Close;
use crate::closers::{Closer, Closing};
use crate::core::Core;
use crate::root::root_core;
use crate::task_output::TaskOutput;

/// Cleanup that happens however we leave, also when the future is dropped half-way.
///
/// The guard derefs to the value. When it is dropped it hands the value and its closer to the owner: the
/// group in which `defer` was called, or the nearest living one above it, which runs the closer, waits for
/// it and reports it. The closer runs as a [`cleanup`](stoppable_scope::cleanup) section of `limit`. An
/// error, a panic or a missed limit of a closer is in the error of the owner, and cancels nobody. Closers of
/// one task run one after another, in the order of the drops.
///
/// Outside of any group the closer belongs to the root of the runtime ([`root`](crate::root)).
///
/// [`Deferred::close`] runs the closer now and gives its result; [`Deferred::disarm`] gives the value back.
///
/// Python's `async with` and Go's `defer` are the models; Rust cannot await in `Drop`, so an owner does.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
/// use std::{sync::Arc, time::Duration};
/// use stoppable_group::{TaskGroup, defer, ok};
///
/// let closed = Arc::new(AtomicBool::new(false));
/// let seen = closed.clone();
/// TaskGroup::run(|_group| async move {
///     let conn = defer(closed, Duration::from_secs(2), |closed| async move {
///         tokio::task::yield_now().await;
///         closed.store(true, Relaxed);
///     });
///     assert!(!conn.load(Relaxed));
///     ok(())
/// })
/// .await
/// .unwrap();
/// assert!(seen.load(Relaxed));
/// # }
/// ```
#[track_caller]
pub fn defer<T, C, F, M>(value: T, limit: Duration, closer: C) -> Deferred<T>
where
    T: Send + 'static,
    C: FnOnce(T) -> F + Send + 'static,
    F: Future + Send + 'static,
    F::Output: TaskOutput<M, Value = ()>,
{
    let begin: Begin<T> = Box::new(move |value| {
        let closing = closer(value);
        Box::pin(async move { closing.await.into_result() })
    });
    let owner = Owner::current();
    Deferred { armed: Some((value, begin)), owner, limit, site: Location::caller() }
}

type Begin<T> = Box<dyn FnOnce(T) -> Closing + Send>;

/// The guard of [`defer`].
#[must_use = "dropping the guard closes the value; keep it as long as the value is used"]
pub struct Deferred<T: Send + 'static> {
    armed: Option<(T, Begin<T>)>,
    owner: Owner,
    limit: Duration,
    site: &'static Location<'static>,
}

impl<T: Send + 'static> Deferred<T> {
    /// Runs the closer now, as a cleanup section, and gives its result.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropped half-way it hands the rest to the owner.
    ///
    /// # Errors
    ///
    /// The error of the closer, or [`Elapsed`](stoppable_scope::Elapsed) where it missed its limit.
    pub fn close(mut guard: Self) -> Close {
        let (value, begin) = guard.take();
        Close::new(guard.owner.clone(), guard.closer(Box::new(move || begin(value))))
    }

    /// Gives the value back; the closer will not run.
    #[must_use]
    pub fn disarm(mut guard: Self) -> T {
        guard.take().0
    }

    fn take(&mut self) -> (T, Begin<T>) {
        match self.armed.take() {
            Some(armed) => armed,
            None => unreachable!("only `close`, `disarm` and `drop` take it, and they consume the guard"),
        }
    }

    fn closer(&self, begin: Box<dyn FnOnce() -> Closing + Send>) -> Closer {
        let name = Name::from(format!("closer of {}", self.owner.task));
        Closer { name, site: self.site, limit: self.limit, begin }
    }
}

impl<T: Send + 'static> Drop for Deferred<T> {
    fn drop(&mut self) {
        if let Some((value, begin)) = self.armed.take() {
            let closer = self.closer(Box::new(move || begin(value)));
            self.owner.close_later(closer);
        }
    }
}

impl<T: Send + 'static> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.armed {
            Some((value, _)) => value,
            None => unreachable!("a guard that is borrowed is armed"),
        }
    }
}

impl<T: Send + 'static> DerefMut for Deferred<T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.armed {
            Some((value, _)) => value,
            None => unreachable!("a guard that is borrowed is armed"),
        }
    }
}

impl<T: Send + 'static + fmt::Debug> fmt::Debug for Deferred<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.armed.as_ref().map(|(value, _)| value);
        f.debug_struct("Deferred").field("value", &value).field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Who runs a closer later.
#[derive(Clone)]
pub(crate) struct Owner {
    node: Option<Arc<Node>>,
    lane: ScopeId,
    task: Name,
    runtime: Option<Handle>,
}

impl Owner {
    fn current() -> Self {
        let node = ambient_node();
        let root = ambient_root();
        let nobody = || (stoppable_scope::Scope::new().id(), Name::from_static("no task"));
        let (lane, task) = root.map_or_else(nobody, |root| (root.id(), root.name().clone()));
        Self { node, lane, task, runtime: Handle::try_current().ok() }
    }

    pub(crate) fn close_later(&self, closer: Closer) {
        let mut closer = Some(closer);
        let mut offer = |core: &Arc<Core>| match core.close_later(self.lane, closer.take()?) {
            Ok(()) => Some(()),
            Err(back) => {
                closer = Some(back);
                None
            }
        };
        if let Some(node) = &self.node {
            if Core::find(node, &mut offer).is_some() {
                return;
            }
        }
        let runtime = self.runtime.clone().or_else(|| Handle::try_current().ok());
        if let Some(runtime) = runtime {
            if offer(&root_core(&runtime)).is_some() {
                return;
            }
        }
        if let Some(closer) = closer {
            tracing::error!(
                name = %closer.name, at = %closer.site,
                "a value was dropped outside of any runtime; its closer can not run"
            );
        }
    }
}
