//! Who is polled in a scope under which waker.
//!
//! A waker is only moved under the lock; it is cloned, woken and dropped outside.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Waker};

use slab::Slab;

use super::{Node, REGISTERED};
use crate::sync::Ordering;

#[derive(Debug, Default)]
pub(super) struct Wakers {
    /// The one registration of the frame whose scope this is, where it is polled under a waker of its own.
    pub(super) root: Option<Waker>,
    /// Single waits that are polled under another waker than the frame around them.
    pub(super) waits: Option<Box<Slab<Listener>>>,
}

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) waker: Option<Waker>,
    pub(super) on_stop: bool,
}

impl Node {
    /// Whether the frame's own registration is in place. One that was woken has to be made again.
    pub(crate) fn is_registered(&self) -> bool {
        self.bits() & REGISTERED != 0
    }

    pub(crate) fn register(&self, waker: Waker) {
        let old = {
            let mut state = self.state.lock();
            self.set(REGISTERED);
            state.wakers.root.replace(waker)
        };
        drop(old);
    }

    pub(crate) fn deregister(&self) {
        let old = self.take_root();
        drop(old);
    }

    pub(super) fn take_root(&self) -> Option<Waker> {
        let mut state = self.state.lock();
        self.bits.fetch_and(!REGISTERED, Ordering::AcqRel);
        state.wakers.root.take()
    }

    /// How many wakers are registered with this scope.
    pub(crate) fn registrations(&self) -> usize {
        let state = self.state.lock();
        let waits = state.wakers.waits.as_ref().map_or(0, |waits| waits.len());
        waits + usize::from(state.wakers.root.is_some())
    }
}

/// The registration of one wait under a waker of its own; given back on drop.
pub(crate) struct Registration {
    node: Arc<Node>,
    key: usize,
    on_stop: bool,
}

impl Registration {
    fn new(node: Arc<Node>, cx: &Context<'_>, on_stop: bool) -> Self {
        let waker = Some(cx.waker().clone());
        let key = {
            let mut state = node.state.lock();
            state.wakers.waits.get_or_insert_default().insert(Listener { waker, on_stop })
        };
        Self { node, key, on_stop }
    }

    /// Makes sure that `registration` is with `node`, and that it is this waker which will be woken.
    pub(crate) fn ensure(registration: &mut Option<Self>, node: &Arc<Node>, cx: &Context<'_>, on_stop: bool) {
        match registration {
            Some(known) if Arc::ptr_eq(&known.node, node) => known.renew(cx),
            _ => *registration = Some(Self::new(Arc::clone(node), cx, on_stop)),
        }
    }

    fn renew(&mut self, cx: &Context<'_>) {
        let same = {
            let state = self.node.state.lock();
            let listener = state.wakers.waits.as_ref().and_then(|waits| waits.get(self.key));
            let waker = listener.and_then(|listener| listener.waker.as_ref());
            waker.is_some_and(|waker| waker.will_wake(cx.waker()))
        };
        if !same {
            let node = Arc::clone(&self.node);
            *self = Self::new(node, cx, self.on_stop);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let old = {
            let mut state = self.node.state.lock();
            state.wakers.waits.as_mut().and_then(|waits| waits.try_remove(self.key))
        };
        drop(old);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("scope", self.node.name()).finish_non_exhaustive()
    }
}
