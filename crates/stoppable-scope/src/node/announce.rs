//! Telling a whole subtree: first the hints, then the waits that have a waker of their own, then the
//! roots, deepest first. A root that is polled after that polls waits which know already.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

use super::{HINT_CANCEL, HINT_STOP, Node, Step};
use crate::request::Request;
use crate::token::TokenLink;

#[derive(Default)]
struct Audience {
    waits: Vec<Waker>,
    tokens: Vec<TokenLink>,
    roots: Vec<Waker>,
}

impl Node {
    pub(super) fn announce_cancel(self: &Arc<Self>, request: &Request) {
        let hosted = !self.is_root() && !self.is_registered();
        let mut audience = self.descend(HINT_CANCEL);
        audience.tokens.drain(..).for_each(|token| quietly(|| token.cancel()));
        wake(audience.waits.drain(..));
        request.set_announced();
        wake(audience.roots.drain(..).rev());
        if hosted {
            self.wake_host();
        }
    }

    pub(super) fn announce_stop(self: &Arc<Self>) {
        let mut audience = self.descend(HINT_STOP);
        wake(audience.waits.drain(..));
    }

    /// Tells those below a node that has moved what it has learned.
    pub(super) fn push_hints(self: &Arc<Self>) {
        let bits = self.bits();
        if bits & HINT_CANCEL != 0 {
            let audience = self.descend(HINT_CANCEL);
            audience.tokens.into_iter().for_each(|token| quietly(|| token.cancel()));
            wake(audience.waits.into_iter().chain(audience.roots.into_iter().rev()));
        }
        if bits & HINT_STOP != 0 {
            self.announce_stop();
        }
    }

    fn descend(self: &Arc<Self>, hint: u32) -> Audience {
        let mut audience = Audience::default();
        // Whoever is asked itself passes it on, whatever it is.
        self.tell(hint, &mut audience);
        let mut rest = vec![Arc::clone(self)];
        let mut some = Vec::new();
        while let Some(node) = rest.pop() {
            // A few at a time: each is told while it is at hand, and nobody below waits long for the lock.
            let mut slots = 0..;
            while node.some_children(&mut slots, &mut some) {
                rest.extend(some.drain(..).filter(|child| child.tell(hint, &mut audience)));
            }
        }
        audience
    }

    /// Tells this scope alone. Whether there are others below it that are to be told.
    fn tell(self: &Arc<Self>, hint: u32, audience: &mut Audience) -> bool {
        let cancel = hint == HINT_CANCEL;
        let mut state = self.state.lock();
        if cancel {
            audience.roots.extend(self.hint_to_root(hint, &mut state));
        } else {
            self.set(hint);
        }
        for (_, listener) in state.rest.cold_mut().into_iter().flat_map(|cold| cold.waits.iter_mut()) {
            if cancel || listener.on_stop {
                audience.waits.extend(listener.waker.take());
            }
        }
        // A cleanup section hears of it, to shorten its limit; what is inside does not.
        if cancel && self.masks() {
            return false;
        }
        let token = cancel && state.rest.cold().is_some_and(|cold| cold.token.is_some());
        let below = state.rest.has_children();
        drop(state);
        // A hint alone does not cancel a token: what it speaks of may have been taken back.
        if token && self.effective_request().is_some() {
            audience.tokens.extend(self.take_token());
        }
        below
    }

    /// Wakes whoever polls the frame of this scope: the nearest registration from here up.
    pub(crate) fn wake_host(self: &Arc<Self>) {
        // Under the lock of each: a frame that registers there afterwards sees what was changed here.
        let host = self.ascend(&mut |node| match node.take_root_or_miss() {
            Some(waker) => Step::Found(waker),
            None if node.is_root() => Step::Stop,
            None => Step::Up,
        });
        wake(host);
    }
}

/// Wakes them all, also when one of them panics.
fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        quietly(|| waker.wake());
    }
}

fn quietly(wake: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(wake)).is_err() {
        tracing::error!("a waker panicked while a cancel was announced");
    }
}
