use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};

use crate::handle_error::HandleError;
use crate::handles::Handles;

/// The future of [`Handles::join_next`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct JoinNext<'a, T> {
    handles: &'a mut Handles<T>,
    point: WaitPoint,
    waiting: bool,
}

impl<'a, T> JoinNext<'a, T> {
    pub(crate) fn new(handles: &'a mut Handles<T>, site: &'static Location<'static>) -> Self {
        Self { handles, point: WaitPoint::at(site), waiting: false }
    }
}

impl<T> Future for JoinNext<'_, T> {
    type Output = Result<Option<(usize, Result<T, HandleError>)>, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            if !this.waiting {
                ready!(this.point.check())?;
                this.waiting = true;
            }
            // As with a single handle: who waits already gets a result that is there.
            if let Poll::Ready(next) = this.handles.poll_next(cx) {
                return Poll::Ready(Ok(next));
            }
            ready!(this.point.check())?;
            ready!(this.point.park(cx));
        }
    }
}
