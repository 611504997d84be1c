use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::ambient;
use crate::cancelled::Cancelled;
use crate::wait_point::WaitPoint;

/// Lets others run, and answers a cancel: what a loop that computes needs in order to be stoppable.
///
/// It also compares the clock with the nearest deadline, for while the loop computes no timer can fire.
/// trio's `checkpoint` is the model.
///
/// # Cancel safety
///
/// Cancel safe: it holds nothing.
///
/// # Errors
///
/// [`Cancelled`], also when a deadline around has passed by the clock.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// use stoppable_scope::{TaskError, checkpoint, with_timeout};
///
/// let search = with_timeout(Duration::from_millis(20), async {
///     let mut tried = 0_u64;
///     loop {
///         tried = tried.wrapping_mul(31).wrapping_add(1);
///         checkpoint().await?;
///     }
///     #[allow(unreachable_code)]
///     Ok::<u64, TaskError>(tried)
/// });
/// assert!(search.await.unwrap_err().is_elapsed());
/// # }
/// ```
#[track_caller]
pub fn checkpoint() -> Checkpoint {
    Checkpoint { point: WaitPoint::at(Location::caller()), yielded: false }
}

/// The future of [`checkpoint`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Checkpoint {
    point: WaitPoint,
    yielded: bool,
}

impl Future for Checkpoint {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(node) = ambient::node() {
            node.expire_overdue();
        }
        ready!(self.point.check())?;
        if self.yielded {
            return Poll::Ready(Ok(()));
        }
        self.yielded = true;
        let _ = self.point.park(cx);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
