//! What `Recv`, `RecvRef` and `Items` have in common.

use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};
use tokio::task::coop::poll_proceed;

use super::core::Taken;
use super::shared::Shared;
use super::waiters::Key;

/// A wait for an item. Its owner calls [`leave`](Self::leave) when it goes away.
pub(crate) struct Receiving {
    /// Where it waits, once it does.
    key: Option<Key>,
    wait: WaitPoint,
}

impl Receiving {
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self { key: None, wait: WaitPoint::new() }
    }

    #[inline]
    pub(crate) fn poll<T>(
        &mut self,
        shared: &Shared<T>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Taken<T>>, Cancelled>> {
        loop {
            match self.wait.check() {
                Poll::Ready(Ok(())) => {}
                // Nothing is lost by it, so the request wins over an item; that goes to the next.
                Poll::Ready(Err(cancelled)) => {
                    self.leave(shared);
                    return Poll::Ready(Err(cancelled));
                }
                Poll::Pending => {
                    self.leave(shared);
                    return Poll::Pending;
                }
            }
            let coop = ready!(poll_proceed(cx));
            let key = &mut self.key;
            let step = shared
                .step(cx.waker(), |core, poller, wakes| core.poll_recv(key, &shared.ledger, poller, wakes));
            if let Poll::Ready(taken) = step {
                coop.made_progress();
                return Poll::Ready(Ok(taken));
            }
            drop(coop);
            ready!(self.wait.park(cx));
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.key.is_some()
    }

    #[inline]
    pub(crate) fn leave<T>(&mut self, shared: &Shared<T>) {
        if let Some(key) = self.key.take() {
            shared.change(|core, wakes| core.leave_recv(key, wakes));
        }
    }
}
