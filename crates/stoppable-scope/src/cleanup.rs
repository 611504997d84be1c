use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project::pin_project;

use crate::ambient;
use crate::cut::Ended;
use crate::deadline::Deadline;
use crate::elapsed::Elapsed;
use crate::frame::{Frame, Rule};
use crate::name::Name;
use crate::node::{Node, ScopeKind};
use crate::section::Section;

/// A cleanup section: no wait inside is cancelled, and no wrapper of this library drops it, before
/// `limit` has passed since its first poll.
///
/// What a program does after a cancel has to be finite: the limit is not optional. At the limit the
/// section itself is cancelled, asked like everything else, and dropped. It ends earlier only with a
/// section around it, or once all sections after a request have taken 60 s together
/// ([`Scope::set_cleanup_limit`](crate::Scope::set_cleanup_limit)). Inside, the ambient deadline is the
/// section's own. A limit of zero never starts it.
///
/// Code between two sections is not protected; what belongs together goes into one. A `select!`, an abort
/// or a foreign timeout drops a section like any future: for that there is `defer`.
///
/// trio's shielded `CancelScope` and Kotlin's `withContext(NonCancellable)` are the models; a limit is what
/// they leave to the author.
///
/// # Cancel safety
///
/// That of the future, when something else than this library drops it.
///
/// # Errors
///
/// [`Elapsed`] when the limit came first.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use stoppable_scope::{OrCancelledExt, Scope, cleanup};
///
/// let scope = Scope::new();
/// scope.run(async {
///     scope.cancel("stop");
///     if std::future::pending::<()>().or_cancelled().await.is_err() {
///         // Says goodbye although the scope is cancelled; gives up after two seconds.
///         let goodbye = tokio::time::sleep(Duration::from_secs(1));
///         cleanup(Duration::from_secs(2), goodbye).await.unwrap();
///     }
/// })
/// .await
/// .unwrap();
/// # }
/// ```
#[track_caller]
pub fn cleanup<F: Future>(limit: Duration, future: F) -> Cleanup<F> {
    Cleanup { future: Some(future), limit, site: Location::caller(), state: State::New }
}

/// The future of [`cleanup`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
#[pin_project]
pub struct Cleanup<F> {
    #[pin]
    future: Option<F>,
    limit: Duration,
    site: &'static Location<'static>,
    state: State,
}

#[derive(Debug)]
enum State {
    New,
    Open(Frame, Section),
    Ended,
}

impl<F: Future> Future for Cleanup<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if matches!(this.state, State::New) {
            let name = Name::from_static("cleanup");
            let node = Node::new(ScopeKind::Cleanup, name, this.site, ambient::node());
            node.set_deadline(Deadline::after(*this.limit));
            shorten(&node);
            if node.own_deadline().is_expired() {
                this.future.set(None);
                *this.state = State::Ended;
                return Poll::Ready(Err(Elapsed::new(node.own_deadline())));
            }
            *this.state = State::Open(Frame::new(node, Rule::Own), Section::begin());
        }
        let (State::Open(frame, _), Some(future)) = (&mut *this.state, this.future.as_mut().as_pin_mut())
        else {
            panic!("`Cleanup` polled after it was ready");
        };
        shorten(frame.node());
        let result = match ready!(frame.poll(future, cx)) {
            Ended::Finished(value) => Ok(value),
            Ended::Cut(cut) => {
                let deadline = frame.node().own_deadline();
                tracing::warn!(
                    at = %this.site,
                    reason = %cut.request.reason(),
                    "a cleanup section did not end within its limit"
                );
                Err(Elapsed::new(deadline))
            }
        };
        this.future.set(None);
        *this.state = State::Ended;
        Poll::Ready(result)
    }
}

/// What was asked outside, and the section around, can only make it shorter.
fn shorten(node: &Arc<Node>) {
    let end = node.section_end().map_or(Deadline::never(), Deadline::at);
    let end = end.earliest(node.enclosing_section());
    if end < node.own_deadline() {
        node.set_deadline(end);
    }
}
