//! What `Recv` and `RecvRef` have in common.

use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};
use tokio::task::coop::poll_proceed;

use super::core::Taken;
use super::shared::Shared;
use super::waiters::Key;

pub(crate) struct Receiving<'a, T> {
    shared: &'a Shared<T>,
    /// Where it waits, once it does.
    key: Option<Key>,
    wait: WaitPoint,
}

impl<'a, T> Receiving<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Shared<T>) -> Self {
        Self { shared, key: None, wait: WaitPoint::new() }
    }

    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Taken<T>>, Cancelled>> {
        loop {
            match self.wait.check() {
                Poll::Ready(Ok(())) => {}
                // Nothing is lost by it, so the request wins over an item; that goes to the next.
                Poll::Ready(Err(cancelled)) => {
                    self.leave();
                    return Poll::Ready(Err(cancelled));
                }
                Poll::Pending => {
                    self.leave();
                    return Poll::Pending;
                }
            }
            let coop = ready!(poll_proceed(cx));
            let Self { shared, key, .. } = self;
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

    fn leave(&mut self) {
        if let Some(key) = self.key.take() {
            self.shared.change(|core, wakes| core.leave_recv(key, wakes));
        }
    }

    pub(crate) fn debug(&self, of: &'static str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(of)
            .field("queue", &self.shared.name.as_deref())
            .field("waiting", &self.key.is_some())
            .finish()
    }
}

impl<T> Drop for Receiving<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}
