use std::mem::ManuallyDrop;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use crate::ambient;
use crate::cancelled::Cancelled;
use crate::node::{Node, Registration};
use crate::request::Request;

/// What makes a hand-written future a stoppable wait.
///
/// Keep one in the future. In `poll` ask [`check`](Self::check) where a cancel may be answered, and call
/// [`park`](Self::park) last before returning `Pending`. A wait that is polled with its task's own waker
/// registers nothing by it; the task's root is woken for all its waits.
///
/// # Examples
///
/// ```
/// use std::future::poll_fn;
/// use std::task::{Poll, ready};
/// use stoppable_scope::{Cancelled, Scope, WaitPoint};
///
/// /// Waits for nothing but a cancel.
/// async fn forever() -> Cancelled {
///     let mut point = WaitPoint::new();
///     poll_fn(|cx| loop {
///         if let Err(cancelled) = ready!(point.check()) {
///             return Poll::Ready(cancelled);
///         }
///         ready!(point.park(cx));
///     })
///     .await
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let scope = Scope::new();
/// scope.cancel("enough");
/// let error = scope.run(forever()).await.unwrap_err();
/// assert_eq!(error.to_string(), "cancelled: enough");
/// # }
/// ```
#[derive(Debug)]
pub struct WaitPoint {
    site: &'static Location<'static>,
    registration: Seldom,
}

/// Boxed, since few waits ever need one, and dropped by hand: so that a wait which has none pays a look for it.
#[derive(Debug, Default)]
struct Seldom(ManuallyDrop<Option<Box<Option<Registration>>>>);

impl Drop for Seldom {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            self.clear();
        }
    }
}

impl Seldom {
    #[cold]
    fn clear(&mut self) {
        drop(self.0.take());
    }
}

/// How often a task may answer one request before its waits fall silent.
const ANSWERS: u32 = 128;

impl WaitPoint {
    /// A wait of the code that calls this.
    #[track_caller]
    #[inline]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self::at(Location::caller())
    }

    /// A wait of the code at `site`.
    #[inline]
    pub fn at(site: &'static Location<'static>) -> Self {
        Self { site, registration: Seldom::default() }
    }

    /// Whether to go on.
    ///
    /// `Ready(Ok(()))`: nothing is asked. `Ready(Err(_))`: answer with this. `Pending`: return `Pending`
    /// and wake nobody; this task has answered the same request 128 times, so whatever loop swallows the
    /// answers comes to rest here and is cut.
    #[inline]
    pub fn check(&mut self) -> Poll<Result<(), Cancelled>> {
        match Self::pending_request() {
            None => Poll::Ready(Ok(())),
            Some(request) => Self::answer(request).map(Err),
        }
    }

    /// The request to answer, without answering it.
    #[inline]
    pub(crate) fn pending_request() -> Option<Request> {
        ambient::with(|ambient| ambient.and_then(|ambient| ambient.node().effective_request()))
    }

    #[cold]
    pub(crate) fn answer(request: Request) -> Poll<Cancelled> {
        if let Some(node) = ambient::node() {
            node.mark_answered(&request);
        }
        let given = ambient::root().map_or(0, |root| root.answer(&request));
        if given >= ANSWERS { Poll::Pending } else { Poll::Ready(Cancelled::new(request)) }
    }

    /// Notes that the task waits at `site`.
    pub(crate) fn note(site: &'static Location<'static>) {
        ambient::with(|ambient| {
            if let Some(ambient) = ambient {
                ambient.root().set_last_wait(site);
            }
        });
    }

    /// Makes sure that a request wakes this wait, and notes where the task is waiting.
    ///
    /// `Ready` means that a request has come meanwhile: go round again from [`check`](Self::check).
    #[inline]
    pub fn park(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let under = ambient::with(|ambient| {
            let ambient = ambient?;
            ambient.root().set_last_wait(self.site);
            let foreign = !ambient.is_polled_with(cx);
            Some(foreign.then(|| Arc::clone(ambient.node())))
        });
        match under {
            Some(None) => Poll::Pending,
            Some(Some(node)) => self.register(node, cx),
            None => {
                warn_without_scope(self.site);
                Poll::Pending
            }
        }
    }

    /// The waker is not that of the task's root, so nobody wakes it for us.
    #[cold]
    fn register(&mut self, node: Arc<Node>, cx: &mut Context<'_>) -> Poll<()> {
        let registration = self.registration.0.get_or_insert_default();
        Registration::ensure(registration, &node, cx, false);
        if node.effective_request().is_some_and(|request| !Self::is_silent(&request)) {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    fn is_silent(request: &Request) -> bool {
        ambient::root().is_some_and(|root| root.answers_to(request) >= ANSWERS)
    }
}

/// A task that was spawned without a group has no scope, so nothing reaches its waits. Said once.
#[inline]
fn warn_without_scope(site: &'static Location<'static>) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.load(Ordering::Relaxed) && tokio::task::try_id().is_some() {
        say_without_scope(site, &SAID);
    }
}

#[cold]
fn say_without_scope(site: &'static Location<'static>, said: &AtomicBool) {
    if !said.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            at = %site,
            "a stoppable wait in a task without a scope: no cancel reaches it; spawn the task in a \
             group, or wrap its future with `.in_current_scope()`"
        );
    }
}
