//! What `RecvMany` and `RecvBatch` have in common.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};
use tokio::task::coop::poll_proceed;

use super::batch::Batch;
use super::core::Wanted;
use super::shared::Shared;
use super::waiters::Key;
use super::wakes::Poller;

pub(crate) struct Gathering<'a, T> {
    shared: &'a Arc<Shared<T>>,
    wanted: Wanted,
    /// Where it waits, once it does.
    key: Option<Key>,
    /// Whether something is promised to it while it waits.
    begun: bool,
    wait: WaitPoint,
}

impl<'a, T> Gathering<'a, T> {
    #[track_caller]
    pub(crate) fn new(shared: &'a Arc<Shared<T>>, wanted: Wanted) -> Self {
        assert!(wanted.max != 0, "a batch of at most 0 items would never come; ask for at least 1");
        Self { shared, wanted, key: None, begun: false, wait: WaitPoint::new() }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// `due`: what there is will do, if there is anything.
    pub(crate) fn poll(
        &mut self,
        due: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Batch<T>>, Cancelled>> {
        loop {
            match self.wait.check() {
                Poll::Ready(Ok(())) => {}
                // Nothing is lost by it, so the request wins over items; those go to the next.
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
            let Self { shared, wanted, key, begun, .. } = self;
            let step = shared.step(Poller::new(cx.waker()), |core, poller, wakes| {
                core.poll_recv_many(key, *wanted, due, begun, poller, wakes)
            });
            if let Poll::Ready(taken) = step {
                self.begun = false;
                coop.made_progress();
                return Poll::Ready(Ok(taken.map(|taken| Batch::new(Arc::clone(self.shared), taken))));
            }
            drop(coop);
            ready!(self.wait.park(cx));
        }
    }

    fn leave(&mut self) {
        self.begun = false;
        if let Some(key) = self.key.take() {
            self.shared.change(|core, wakes| core.leave_recv(key, wakes));
        }
    }

    pub(crate) fn debug(&self, of: &'static str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(of)
            .field("queue", &self.shared.name.as_deref())
            .field("max", &self.wanted.max)
            .field("waiting", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

impl<T> Drop for Gathering<'_, T> {
    fn drop(&mut self) {
        self.leave();
    }
}
