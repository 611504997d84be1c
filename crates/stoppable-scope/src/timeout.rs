use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project::pin_project;

use crate::ambient;
use crate::cancelled::Cancelled;
use crate::chain;
use crate::cut::Ended;
use crate::elapsed::Elapsed;
use crate::frame::{Frame, Rule};
use crate::limit::Limit;
use crate::name::Name;
use crate::node::{Node, ScopeKind};
use crate::reason::Reason;
use crate::request::Request;
use crate::task_error::{TaskFailureError, request_in};
use crate::timeout_error::TimeoutError;
use crate::timeout_handle::TimeoutHandle;

/// Bounds a piece of work: a scope that cancels itself at its deadline.
///
/// `limit` is a `Duration`, counted from the first poll, or a [`Deadline`](crate::Deadline), shared with
/// others. At the limit the work is *asked*: its stoppable waits answer [`Cancelled`], and what then still
/// waits is dropped. So the call returns late by as much as the cleanup sections inside it take;
/// [`Deadline::cut`](crate::Deadline::cut) never does.
///
/// A limit of zero, or a deadline that has passed, never starts the work. Nested limits only shrink: an
/// enclosing deadline that comes first ends this call with [`TimeoutError::Cancelled`].
///
/// How it ends: the work's `Ok` wins, then the work's own error. If the work was cancelled, an enclosing
/// scope that is cancelled or overdue gives [`TimeoutError::Cancelled`], else this deadline gives
/// [`TimeoutError::Elapsed`].
///
/// asyncio's `timeout` and trio's `fail_after` are the models; unlike theirs, only its own expiry becomes
/// an elapsed error.
///
/// # Cancel safety
///
/// That of the work. Dropping the call drops the work.
///
/// # Errors
///
/// [`TimeoutError`].
///
/// # Panics
///
/// When it has to arm its timer outside of a tokio runtime with time enabled.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use stoppable_scope::{TimeoutError, ok, with_timeout};
///
/// let slow = with_timeout(Duration::from_millis(50), async {
///     tokio::time::sleep(Duration::from_secs(10)).await;
///     ok("too late")
/// });
/// assert!(matches!(slow.await, Err(TimeoutError::Elapsed(_))));
/// # }
/// ```
#[track_caller]
#[doc(alias = "wait_for")]
#[doc(alias = "timeout_at")]
#[doc(alias = "fail_after")]
pub fn with_timeout<F, T, E, M>(limit: impl Into<Limit>, future: F) -> Timeout<F, M>
where
    F: Future<Output = Result<T, E>>,
    E: TaskFailureError<M>,
{
    Timeout {
        future: Some(future),
        site: Location::caller(),
        state: State::New(Start { limit: limit.into(), grace: None, node: None }),
        marker: PhantomData,
    }
}

/// [`with_timeout`] for work that wants to look at its own limit, or to move it.
///
/// # Cancel safety
///
/// That of the work. Dropping the call drops the work.
///
/// # Errors
///
/// [`TimeoutError`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use stoppable_scope::{Deadline, ok, with_timeout_handle};
///
/// let work = with_timeout_handle(Duration::from_secs(1), |timeout| async move {
///     for _chunk in 0..3 {
///         // Each chunk that arrives earns the next one a second.
///         timeout.reschedule(Deadline::after(Duration::from_secs(1)))?;
///         tokio::time::sleep(Duration::from_millis(900)).await;
///     }
///     ok(())
/// });
/// assert!(work.await.is_ok());
/// # }
/// ```
#[track_caller]
pub fn with_timeout_handle<F, T, E, M>(
    limit: impl Into<Limit>,
    work: impl FnOnce(TimeoutHandle) -> F,
) -> Timeout<F, M>
where
    F: Future<Output = Result<T, E>>,
    E: TaskFailureError<M>,
{
    let node = new_node(Location::caller(), None);
    let limit = limit.into();
    let mut timeout = with_timeout(limit, work(TimeoutHandle::new(Arc::clone(&node))));
    timeout.state = State::New(Start { limit, grace: None, node: Some(node) });
    timeout
}

fn new_node(site: &'static Location<'static>, parent: Option<Arc<Node>>) -> Arc<Node> {
    Node::new(ScopeKind::Timeout, Name::from_static("timeout"), site, parent)
}

/// The future of [`with_timeout`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
#[pin_project]
pub struct Timeout<F, M> {
    #[pin]
    future: Option<F>,
    site: &'static Location<'static>,
    state: State,
    marker: PhantomData<fn() -> M>,
}

#[derive(Debug)]
enum State {
    New(Start),
    Running(Frame),
    Ended,
}

/// What a call begins with.
#[derive(Debug)]
struct Start {
    limit: Limit,
    grace: Option<Duration>,
    /// The scope, where a handle was made of it.
    node: Option<Arc<Node>>,
}

impl<F, M> Timeout<F, M> {
    /// How long the work may go on after this call has asked it, at its limit or through its handle. None by
    /// default: what still waits after it was asked is dropped at once. A request from outside passes through,
    /// and who made it decides when to cut.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_scope::{ok, with_timeout};
    /// use tokio::time::sleep;
    ///
    /// // A plain wait, which does not answer: it is let alone for another second.
    /// let slow = with_timeout(Duration::from_secs(1), async {
    ///     sleep(Duration::from_millis(1500)).await;
    ///     ok("just in time")
    /// });
    /// assert_eq!(slow.grace(Duration::from_secs(1)).await.unwrap(), "just in time");
    /// # }
    /// ```
    pub fn grace(mut self, grace: Duration) -> Self {
        if let State::New(start) = &mut self.state {
            start.grace = Some(grace);
        }
        self
    }
}

impl<F, T, E, M> Future for Timeout<F, M>
where
    F: Future<Output = Result<T, E>>,
    E: TaskFailureError<M>,
{
    type Output = Result<T, TimeoutError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let State::New(start) = this.state {
            let node = start.begin(this.site);
            if start.is_over(&node) {
                this.future.set(None);
                *this.state = State::Ended;
                node.expire();
                node.end();
                return Poll::Ready(Err(cancelled_exit(&node, None)));
            }
            *this.state = State::Running(Frame::new(node, Rule::Own));
        }
        let (State::Running(frame), Some(future)) = (&mut *this.state, this.future.as_mut().as_pin_mut())
        else {
            panic!("`Timeout` polled after it was ready");
        };
        let result = match ready!(frame.poll(future, cx)) {
            Ended::Finished(result) => judge(frame.node(), result),
            Ended::Cut(cut) => {
                this.future.set(None);
                cut.log(frame.node());
                Err(cancelled_exit(frame.node(), Some(&cut.request)))
            }
        };
        this.future.set(None);
        *this.state = State::Ended;
        Poll::Ready(result)
    }
}

impl Start {
    fn begin(&mut self, site: &'static Location<'static>) -> Arc<Node> {
        let node = match self.node.take() {
            None => {
                let node = new_node(site, ambient::node());
                node.set_deadline(self.limit.begin());
                node
            }
            // One that was given to a handle may have been rescheduled before it began.
            Some(node) => {
                if !node.is_rescheduled() {
                    node.set_deadline(self.limit.begin());
                }
                if let Some(around) = ambient::node() {
                    node.move_below(&around);
                }
                node
            }
        };
        if let Some(grace) = self.grace {
            node.set_grace(grace);
        }
        node
    }

    /// Whether there is no time at all.
    fn is_over(&self, node: &Node) -> bool {
        if node.is_rescheduled() { node.own_deadline().is_expired() } else { self.limit.is_over() }
    }
}

/// An error is a cancellation only if it names this scope or one above.
fn judge<T, E, M>(node: &Arc<Node>, result: Result<T, E>) -> Result<T, TimeoutError<E>>
where
    E: TaskFailureError<M>,
{
    result.map_err(|error| {
        match request_in(error.as_error()).filter(|request| node.is_within(request.scope())) {
            Some(request) => cancelled_exit(node, Some(request)),
            None => {
                chain::learn::<E, M>();
                TimeoutError::Failed(error)
            }
        }
    })
}

/// How a call ends whose work was cancelled, or never began.
fn cancelled_exit<E>(node: &Arc<Node>, request: Option<&Request>) -> TimeoutError<E> {
    let deadline = node.own_deadline();
    if deadline.is_expired() {
        node.set_expired_by_clock();
    }
    if let Some(above) = node.request_above() {
        return TimeoutError::Cancelled(Cancelled::new(above));
    }
    let own = node.own_request();
    // The first reason stands: cancelled by hand and overdue later is not a timeout.
    let by_hand = own.as_ref().is_some_and(|own| !matches!(own.reason(), Reason::Deadline(_)));
    match own.or_else(|| request.cloned()) {
        Some(request) if by_hand || !deadline.is_expired() && !node.is_delivered() => {
            TimeoutError::Cancelled(Cancelled::new(request))
        }
        _ => TimeoutError::Elapsed(Elapsed::new(deadline)),
    }
}
