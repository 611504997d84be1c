use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;

use crate::ambient;
use crate::cut::Ended;
use crate::frame::{Frame, Rule};
use crate::name::Name;
use crate::node::{Node, ScopeKind};

/// Leaves the deadlines around: inside, [`Deadline::current`](crate::Deadline::current) is `never`, and
/// timed calls and checkpoints are not measured against what lies outside.
///
/// It does not outlive them: when a deadline around is delivered, it cancels what is in here like
/// everything else. Work that has to go on belongs into `cleanup`, or into another group by `shield`.
///
/// # Cancel safety
///
/// That of the future.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// use stoppable_scope::{Deadline, ok, with_timeout, without_deadline};
///
/// with_timeout(Duration::from_secs(1), async {
///     without_deadline(async { assert!(Deadline::current().is_never()) }).await;
///     ok(())
/// })
/// .await
/// .unwrap();
/// # }
/// ```
#[track_caller]
pub fn without_deadline<F: Future>(future: F) -> WithoutDeadline<F> {
    WithoutDeadline { future, site: Location::caller(), frame: None }
}

/// The future of [`without_deadline`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
#[pin_project]
pub struct WithoutDeadline<F> {
    #[pin]
    future: F,
    site: &'static Location<'static>,
    frame: Option<Frame>,
}

impl<F: Future> Future for WithoutDeadline<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let site = *this.site;
        let frame = this.frame.get_or_insert_with(|| {
            let name = Name::from_static("without_deadline");
            Frame::new(Node::new(ScopeKind::WithoutDeadline, name, site, ambient::node()), Rule::Never)
        });
        match ready!(frame.poll(this.future, cx)) {
            Ended::Finished(output) => Poll::Ready(output),
            Ended::Cut(_) => unreachable!("a frame with `Rule::Never` does not cut"),
        }
    }
}
