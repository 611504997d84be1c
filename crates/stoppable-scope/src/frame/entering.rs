//! Where a frame is polled: its scope becomes the ambient one, and its waker is known to it where it has to be.

use std::sync::Arc;
use std::task::Context;

use super::Frame;
use crate::ambient::{self, Stay, WakerId};
use crate::node::ScopeKind;

impl Frame {
    #[inline]
    pub(super) fn enter(&mut self, cx: &Context<'_>) -> Entered<'_> {
        let waker = WakerId::of(cx.waker());
        if self.node().is_root() {
            // A stale waker must not be the one that is woken; a first one can wait until after the poll.
            if self.seat.is_some_and(|seat| seat != waker) {
                self.take_seat(cx);
            }
            let fired = self.fired();
            let stay = ambient::enter(&mut self.node, Some(waker), fired, true);
            return Entered { stay, frame: self };
        }
        // The common case, in one look: where it was before, and nothing is registered.
        if self.seat.is_none() {
            if let Some(stay) = ambient::nest(&mut self.node, cx) {
                return Entered { stay, frame: self };
            }
        }
        self.enter_anew(cx)
    }

    fn enter_anew(&mut self, cx: &Context<'_>) -> Entered<'_> {
        if self.is_nested(cx) {
            self.leave_seat();
            if let Some(stay) = ambient::nest(&mut self.node, cx) {
                return Entered { stay, frame: self };
            }
        } else {
            self.take_seat(cx);
        }
        let (waker, fired) = (WakerId::of(cx.waker()), self.fired());
        let stay = ambient::enter(&mut self.node, Some(waker), fired, false);
        Entered { stay, frame: self }
    }

    /// Whether the frame around this one is polled with the same waker, and so is woken for both.
    pub(super) fn is_nested(&mut self, cx: &Context<'_>) -> bool {
        let node = self.node();
        if node.is_root() {
            return false;
        }
        let around = ambient::with(|ambient| {
            let ambient = ambient?;
            let moved = !node.is_child_of(ambient.node());
            Some((ambient.is_polled_with(cx), moved.then(|| Arc::clone(ambient.node()))))
        });
        match around {
            None => false,
            Some((same_waker, None)) => same_waker,
            // These stay where they were put, whoever polls them.
            Some(_) if matches!(node.kind(), ScopeKind::Scope | ScopeKind::Entry) => false,
            Some((same_waker, Some(scope))) => {
                node.move_below(&scope);
                same_waker
            }
        }
    }

    /// Gives the registration back: a stale waker must not hide the one of the frame around.
    pub(super) fn leave_seat(&mut self) {
        if self.seat.take().is_some() && self.node().is_registered() {
            self.node().deregister();
        }
    }

    /// Whether it is registered under this waker. What was woken has to register again.
    pub(super) fn is_seated(&self, cx: &Context<'_>) -> bool {
        self.node().is_registered() && self.seat == Some(WakerId::of(cx.waker()))
    }

    /// Registers, where it is not. Tells whether it was to be woken before.
    pub(super) fn take_seat(&mut self, cx: &Context<'_>) -> bool {
        if self.is_seated(cx) {
            return false;
        }
        let waker = cx.waker().clone();
        self.seat = Some(WakerId::of(&waker));
        self.node().register(waker)
    }
}

/// The frame's scope is the ambient one until this is dropped, also by a panic.
pub(super) struct Entered<'a> {
    frame: &'a mut Frame,
    stay: Stay,
}

impl Entered<'_> {
    /// Tells when those inside have to be polled again, where this frame has to see to it.
    #[inline]
    pub(super) fn leave(mut self) -> Option<u64> {
        self.restore()
    }

    #[inline]
    fn restore(&mut self) -> Option<u64> {
        let frame = &mut *self.frame;
        let left = ambient::leave(&mut frame.node, &mut self.stay);
        // A section that was begun in another frame may end in this one.
        frame.sections = frame.sections.wrapping_add(left.opened).max(0);
        left.wanted
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.stay.is_over() {
            self.restore();
        }
    }
}
