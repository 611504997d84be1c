//! Who is polled in a scope under which waker.
//!
//! A waker is only moved under the lock; it is cloned, woken and dropped outside.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::{MISSED, Node, REGISTERED, State};
use crate::sync::Ordering;

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) waker: Option<Waker>,
    pub(super) on_stop: bool,
}

impl Node {
    /// Whether the frame's own registration is in place. One that was woken has to be made again.
    #[inline]
    pub(crate) fn is_registered(&self) -> bool {
        self.bits() & REGISTERED != 0
    }

    /// Takes the place of what was registered before. Tells whether the frame was to be woken when nothing was.
    pub(crate) fn register(&self, waker: Waker) -> bool {
        let (old, missed) = {
            let mut state = self.state.lock();
            let before = self.bits.fetch_or(REGISTERED, Ordering::AcqRel);
            let missed = before & MISSED != 0;
            if missed {
                self.bits.fetch_and(!MISSED, Ordering::AcqRel);
            }
            (state.root.replace(waker), missed)
        };
        drop(old);
        missed
    }

    pub(crate) fn deregister(&self) {
        let old = self.take_root();
        drop(old);
    }

    fn take_root(&self) -> Option<Waker> {
        self.take_root_from(&mut self.state.lock())
    }

    fn take_root_from(&self, state: &mut State) -> Option<Waker> {
        let waker = state.root.take()?;
        self.bits.fetch_and(!REGISTERED, Ordering::AcqRel);
        Some(waker)
    }

    /// Takes what wakes this frame and leaves a hint, in one step.
    pub(super) fn hint_to_root(&self, hint: u32, state: &mut State) -> Option<Waker> {
        let waker = state.root.take();
        let gone = if waker.is_some() { REGISTERED } else { 0 };
        let change = |bits| Some((bits | hint) & !gone);
        let _always = self.bits.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        waker
    }

    /// Takes what wakes this frame. The root of a task that is being polled may register only after that, and then
    /// learns that it has missed this.
    pub(super) fn take_root_or_miss(&self) -> Option<Waker> {
        let mut state = self.state.lock();
        let waker = self.take_root_from(&mut state);
        if waker.is_none() && self.is_root() {
            self.set(MISSED);
        }
        waker
    }

    /// A poll that begins now sees what was missed before.
    pub(crate) fn forget_missed(&self) {
        if self.bits() & MISSED != 0 {
            self.bits.fetch_and(!MISSED, Ordering::AcqRel);
        }
    }

    /// How many wakers are registered with this scope.
    pub(crate) fn registrations(&self) -> usize {
        let state = self.state.lock();
        let waits = state.rest.cold().map_or(0, |cold| cold.waits.len());
        waits + usize::from(state.root.is_some())
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
            state.rest.make_cold().waits.insert(Listener { waker, on_stop })
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
            let listener = state.rest.cold().and_then(|cold| cold.waits.get(self.key));
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
            state.rest.cold_mut().and_then(|cold| cold.waits.try_remove(self.key))
        };
        drop(old);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("scope", self.node.name()).finish_non_exhaustive()
    }
}
