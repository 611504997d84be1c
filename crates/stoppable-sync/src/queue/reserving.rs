//! What `Reserve` and `ReserveMany` have in common.

use std::task::{Context, Poll, ready};

use stoppable_scope::WaitPoint;
use tokio::task::coop::poll_proceed;

use super::core::Refusal;
use super::error::ReserveManyError;
use super::shared::Shared;
use super::waiters::Key;
use super::wakes::Poller;

/// A wait for slots. Its owner calls [`leave`](Self::leave) when it goes away.
pub(crate) struct Reserving {
    /// Where it waits, once it does.
    key: Option<Key>,
    wait: WaitPoint,
}

impl Reserving {
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self { key: None, wait: WaitPoint::new() }
    }

    /// `Ok`: `want` more slots count in the queue's permits.
    pub(crate) fn poll<T>(
        &mut self,
        shared: &Shared<T>,
        want: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ReserveManyError>> {
        loop {
            match self.wait.check() {
                Poll::Ready(Ok(())) => {}
                // Nothing is lost by it, so the request wins over a slot; that goes to the next.
                Poll::Ready(Err(cancelled)) => {
                    self.leave(shared);
                    return Poll::Ready(Err(cancelled.into()));
                }
                Poll::Pending => {
                    self.leave(shared);
                    return Poll::Pending;
                }
            }
            let coop = ready!(poll_proceed(cx));
            let key = &mut self.key;
            let step = shared.step(Poller::new(cx.waker()), |core, poller, wakes| {
                core.poll_reserve(key, want, poller, wakes)
            });
            if let Poll::Ready(reserved) = step {
                coop.made_progress();
                return Poll::Ready(reserved.map_err(|refusal| match refusal {
                    Refusal::ShutDown => ReserveManyError::ShutDown,
                    Refusal::BeyondCapacity(capacity) => {
                        ReserveManyError::BeyondCapacity { wanted: want, capacity }
                    }
                }));
            }
            drop(coop);
            ready!(self.wait.park(cx));
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.key.is_some()
    }

    pub(crate) fn leave<T>(&mut self, shared: &Shared<T>) {
        if let Some(key) = self.key.take() {
            shared.change(|core, wakes| core.leave_reserve(key, wakes));
        }
    }
}
