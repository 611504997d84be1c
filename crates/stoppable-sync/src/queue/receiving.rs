//! What `Recv`, `RecvRef` and `Items` have in common.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};
use tokio::task::coop::{RestoreOnPending, poll_proceed};

use super::error::TryRecvError;
use super::item::Item;
use super::item_ref::ItemRef;
use super::shared::Shared;
use super::waiters::Key;
use super::wakes::Poller;

/// Where guards come from. Not a closure, which would be a call, and its result would be moved.
pub(crate) trait Source<G> {
    fn recv_now(&self, key: &mut Option<Key>) -> Result<G, TryRecvError>;
}

impl<T> Source<Item<T>> for Arc<Shared<T>> {
    #[inline(always)]
    fn recv_now(&self, key: &mut Option<Key>) -> Result<Item<T>, TryRecvError> {
        self.recv_item(key)
    }
}

impl<'a, T> Source<ItemRef<'a, T>> for &'a Shared<T> {
    #[inline(always)]
    fn recv_now(&self, key: &mut Option<Key>) -> Result<ItemRef<'a, T>, TryRecvError> {
        self.recv_item_ref(key)
    }
}

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

    /// The way of an item is here in full, so that its value is not moved from frame to frame.
    #[inline(always)]
    pub(crate) fn poll<T, G>(
        &mut self,
        shared: &Shared<T>,
        source: &impl Source<G>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<G>, Cancelled>> {
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
            let sure_to_wait = self.key.is_none() && shared.hints.is_empty();
            let received =
                if sure_to_wait { Err(TryRecvError::Empty) } else { source.recv_now(&mut self.key) };
            let received = match received {
                Ok(taken) => Some(taken),
                Err(TryRecvError::ShutDown) => None,
                Err(TryRecvError::Empty) => {
                    ready!(self.wait_in_line(shared, coop, cx));
                    continue;
                }
            };
            coop.made_progress();
            return Poll::Ready(Ok(received));
        }
    }

    /// `Ready`: there is something now, look again.
    #[inline(never)]
    fn wait_in_line<T>(
        &mut self,
        shared: &Shared<T>,
        coop: RestoreOnPending,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let waker = cx.waker();
        let poller = if self.key.is_some() { Poller::new(waker) } else { Poller::with_clone(waker) };
        let key = &mut self.key;
        if shared.step(poller, |core, poller, _| core.poll_line(key, poller)).is_ready() {
            return Poll::Ready(());
        }
        drop(coop);
        self.wait.park(cx)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.key.is_some()
    }

    #[inline]
    pub(crate) fn leave<T>(&mut self, shared: &Shared<T>) {
        if let Some(key) = self.key.take() {
            shared.leave_recv(key);
        }
    }
}
