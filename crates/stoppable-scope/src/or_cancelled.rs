use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;
use tokio::task::coop;

use crate::ambient;
use crate::cancelled::Cancelled;
use crate::request::Request;
use crate::wait_point::WaitPoint;

/// Makes any future a stoppable wait.
pub trait OrCancelledExt: Future + Sized {
    /// Waits for this future, or answers a cancel request with `Err(Cancelled)`.
    ///
    /// In a scope that is cancelled already the future is not polled. One that was waiting is polled
    /// first, and its result wins over a request. On a cancel the future is dropped, unless a cleanup
    /// section inside it is still open.
    ///
    /// # Cancel safety
    ///
    /// That of the future: an answer drops it, as `select!` would.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], with the scope that asked and the reason.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_scope::{OrCancelledExt, Scope};
    ///
    /// let scope = Scope::new();
    /// let wait = scope.run(async {
    ///     scope.cancel("changed my mind");
    ///     std::future::pending::<()>().or_cancelled().await
    /// });
    /// assert!(wait.await.unwrap().is_err());
    /// # }
    /// ```
    #[track_caller]
    fn or_cancelled(self) -> OrCancelled<Self> {
        OrCancelled {
            future: Some(self),
            point: WaitPoint::at(Location::caller()),
            sections: 0,
            state: State::New,
        }
    }
}

impl<F: Future> OrCancelledExt for F {}

/// The future of [`or_cancelled`](OrCancelledExt::or_cancelled).
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
#[pin_project]
pub struct OrCancelled<F> {
    #[pin]
    future: Option<F>,
    point: WaitPoint,
    /// Cleanup sections that are open inside.
    sections: i32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Waiting,
    /// The coop budget was spent when it should have answered: it may have a result, so it is polled
    /// once more.
    Stalled,
}

impl<F: Future> Future for OrCancelled<F> {
    type Output = Result<F::Output, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let before = ambient::view();
            if *this.state == State::New {
                if let Some(request) = before.request {
                    let cancelled = ready!(WaitPoint::answer(request));
                    this.future.set(None);
                    return Poll::Ready(Err(cancelled));
                }
                *this.state = State::Waiting;
            }
            let seen = before.request.filter(Request::is_announced);
            let Some(future) = this.future.as_mut().as_pin_mut() else {
                panic!("`OrCancelled` polled after it was ready");
            };
            if let Poll::Ready(output) = future.poll(cx) {
                return Poll::Ready(Ok(output));
            }
            let after = ambient::view();
            let opened = after.sections.wrapping_sub(before.sections);
            *this.sections = this.sections.wrapping_add(opened).max(0);

            let Some(request) = after.request else {
                *this.state = State::Waiting;
                ready!(this.point.park(cx));
                continue;
            };
            if *this.sections > 0 {
                let _ = this.point.park(cx);
                return Poll::Pending;
            }
            if !seen.is_some_and(|seen| seen.is(&request)) {
                // It came while the future was polled: waits in there have not heard of it.
                if request.is_announced() && coop::has_budget_remaining() {
                    continue;
                }
                ambient::count_stall();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if *this.state == State::Waiting && !coop::has_budget_remaining() {
                *this.state = State::Stalled;
                ambient::count_stall();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let cancelled = ready!(WaitPoint::answer(request));
            this.future.set(None);
            return Poll::Ready(Err(cancelled));
        }
    }
}
