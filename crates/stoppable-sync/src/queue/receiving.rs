//! What `Recv`, `RecvRef` and `Items` have in common.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, WaitPoint};
use tokio::task::coop::poll_proceed;

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
        if self.key.is_none() && shared.hints.is_empty() {
            self.wait_in_line(shared, cx);
            return Poll::Pending;
        }
        let coop = ready!(poll_proceed(cx));
        let received = match source.recv_now(&mut self.key) {
            Ok(taken) => Some(taken),
            Err(TryRecvError::ShutDown) => None,
            Err(TryRecvError::Empty) => {
                drop(coop);
                self.wait_in_line(shared, cx);
                return Poll::Pending;
            }
        };
        // It is over, so what it took from the budget is not given back.
        mem::forget(coop);
        Poll::Ready(Ok(received))
    }

    /// Gets or keeps a place in the line. Where there is something by now it has itself polled again: a way back
    /// into `poll` would cost each item something.
    #[inline(never)]
    fn wait_in_line<T>(&mut self, shared: &Shared<T>, cx: &mut Context<'_>) {
        let waits = match self.key {
            None => {
                self.key = shared.line_up(cx.waker(), |core, waker, _| core.line_up_to_recv(waker));
                self.key.is_some()
            }
            Some(key) => {
                let poller = Poller::new(cx.waker());
                shared.step(poller, |core, poller, _| core.stay_in_line(key, poller)).is_pending()
            }
        };
        if !waits || self.wait.park(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
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
