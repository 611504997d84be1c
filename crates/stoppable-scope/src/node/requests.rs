//! What a scope was asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Cold, EXPIRED, HINT_CANCEL, HINT_STOP, MISSED, Node, OWN_CANCEL, OWN_STOP, ScopeKind, Step};
use crate::cancelled::Cancelled;
use crate::reason::Reason;
use crate::request::{Origin, Request, ScopeId};
use crate::sync::Ordering;
use crate::token::TokenLink;

/// How long a blocking thread is waited for where nobody has given a grace.
const BLOCKING_GRACE: Duration = Duration::from_secs(1);

impl Node {
    /// Makes a request on this scope and tells everybody below. A user may ask again and again; the
    /// library and a token ask once.
    pub fn request(self: &Arc<Self>, reason: Reason, origin: Origin) -> Request {
        let request = Request::new(self.id, self.name.clone(), reason, origin);
        {
            let mut state = self.state.lock();
            if origin != Origin::User {
                if let Some(known) = state.requests().iter().find(|known| known.origin() == origin) {
                    return known.clone();
                }
            }
            let requests = &mut state.rest.make_cold().requests;
            requests.push(request.clone());
            self.set(OWN_CANCEL | HINT_CANCEL);
            if requests.len() > 1 {
                // It adds nothing to what is standing; `uncancel` announces it if that changes.
                return request;
            }
        }
        self.announce_cancel(&request);
        request
    }

    /// Makes the request of this scope's deadline.
    pub(crate) fn expire(self: &Arc<Self>) -> Request {
        self.set(EXPIRED);
        self.request(Reason::Deadline(self.own_deadline()), Origin::Library)
    }

    /// Notes that the deadline of this scope had come when its future ended as cancelled.
    pub(crate) fn set_expired_by_clock(&self) {
        self.set(EXPIRED);
    }

    /// Whether the deadline of this scope was delivered.
    #[inline]
    pub(crate) fn is_delivered(&self) -> bool {
        self.bits() & EXPIRED != 0
    }

    /// Takes back the latest request that a user made on this scope. Tells how many are left.
    pub(crate) fn uncancel(self: &Arc<Self>) -> usize {
        let (taken, first, token, left) = {
            let mut state = self.state.lock();
            let Cold { requests, token, .. } = state.rest.make_cold();
            let by_user = |request: &Request| request.origin() == Origin::User;
            let taken = requests.iter().rposition(by_user).map(|at| (at, requests.remove(at)));
            let token = if requests.is_empty() {
                self.bits.fetch_and(!OWN_CANCEL, Ordering::AcqRel);
                token.take_if(|token| token.is_spent())
            } else {
                None
            };
            let first = match &taken {
                Some((0, _)) => requests.first().cloned(),
                _ => None,
            };
            let left = requests.iter().filter(|request| by_user(request)).count();
            (taken, first, token, left)
        };
        drop((taken, token));
        if let Some(first) = first {
            self.announce_cancel(&first);
        }
        left
    }

    /// How many requests of users stand on this scope.
    pub(crate) fn cancelling(&self) -> usize {
        let state = self.state.lock();
        state.requests().iter().filter(|request| request.origin() == Origin::User).count()
    }

    /// Whether it is worth a look if something is asked.
    #[inline]
    pub(crate) fn may_be_asked(&self) -> bool {
        self.bits() & (HINT_CANCEL | MISSED) != 0
    }

    /// The first request that was made on this scope and stands.
    pub fn own_request(&self) -> Option<Request> {
        self.first_request(Request::clone)
    }

    /// Looks at it without a clone.
    fn first_request<R>(&self, look: impl FnOnce(&Request) -> R) -> Option<R> {
        if self.bits() & OWN_CANCEL == 0 {
            return None;
        }
        self.state.lock().requests().first().map(look)
    }

    /// What a wait in this scope answers with: the outermost request that reaches it.
    #[inline]
    pub fn effective_request(self: &Arc<Self>) -> Option<Request> {
        if self.bits() & HINT_CANCEL == 0 {
            return None;
        }
        self.outermost_request()
    }

    #[cold]
    fn outermost_request(self: &Arc<Self>) -> Option<Request> {
        let mut outermost = None;
        self.ascend::<()>(&mut |node| {
            if let Some(request) = node.own_request() {
                outermost = Some(request);
            }
            if node.masks() { Step::Stop } else { Step::Up }
        });
        outermost
    }

    /// Whether `request` still is what a wait in this scope answers with; of this scope alone with `own_only`.
    pub(crate) fn still_stands(self: &Arc<Self>, request: &Request, own_only: bool) -> bool {
        let mut stands = false;
        self.ascend::<()>(&mut |node| {
            if let Some(same) = node.first_request(|first| first.is(request)) {
                stands = same;
            }
            if own_only || node.masks() { Step::Stop } else { Step::Up }
        });
        stands
    }

    /// The outermost request above this scope, by a request that was made or by the clock.
    pub fn request_above(self: &Arc<Self>) -> Option<Request> {
        if self.masks() {
            return None;
        }
        let now = Instant::now();
        let mut outermost = None;
        let mut deadlines = true;
        self.ascend::<()>(&mut |node| {
            if !Arc::ptr_eq(node, self) {
                if deadlines && node.is_due(now) {
                    outermost = Some(node.own_request().unwrap_or_else(|| node.expire()));
                } else if let Some(request) = node.own_request() {
                    outermost = Some(request);
                }
            }
            deadlines &= !node.hides_deadlines();
            if node.masks() { Step::Stop } else { Step::Up }
        });
        outermost
    }

    /// The request that shortens this cleanup section, and the end it sets: one that the section masks
    /// leaves the sections what is left of their common limit; the end of a section around is the end.
    pub(crate) fn section_end(self: &Arc<Self>) -> Option<Instant> {
        let above = self.above()?;
        let mut outermost: Option<(Request, bool)> = None;
        above.ascend::<()>(&mut |node| {
            if let Some(request) = node.own_request() {
                outermost = Some((request, node.masks()));
            }
            if node.masks() { Step::Stop } else { Step::Up }
        });
        let (request, by_section) = outermost?;
        if by_section {
            return Some(request.at());
        }
        request.at().checked_add(self.cleanup_limit())
    }

    /// Answers with `Cancelled` if a request reaches this scope.
    pub fn check(self: &Arc<Self>) -> Result<(), Cancelled> {
        self.effective_request().map_or(Ok(()), |request| Err(Cancelled::new(request)))
    }

    /// Whether the scope `id` is this one or above it; masks do not matter.
    pub fn is_within(self: &Arc<Self>, id: ScopeId) -> bool {
        let found = self.ascend(&mut |node| if node.id == id { Step::Found(()) } else { Step::Up });
        found.is_some()
    }

    /// When the frame of this scope may be cut: at once, or at the end of the earliest grace that was
    /// given on the way from a scope that was asked down to here. None if that does not come, or nothing is asked any
    /// more.
    pub(crate) fn cut_at(self: &Arc<Self>, own_only: bool) -> Option<Instant> {
        // A thread cannot be dropped, only left alone; it gets a moment to see its flag.
        let blocking = (self.kind() == ScopeKind::Blocking).then_some(BLOCKING_GRACE);
        let mut grace = None;
        let mut earliest: Option<Instant> = None;
        self.ascend::<()>(&mut |node| {
            if let Some(given) = node.grace() {
                grace = Some(grace.map_or(given, |least| given.min(least)));
            }
            if let Some(at) = node.first_request(Request::at) {
                // A grace that the clock cannot hold does not end.
                let end = grace.or(blocking).map_or(Some(at), |grace: Duration| at.checked_add(grace));
                earliest = match (earliest, end) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
            if own_only || node.masks() { Step::Stop } else { Step::Up }
        });
        earliest
    }

    /// Asks this scope to finish and to take nothing new.
    pub fn stop(self: &Arc<Self>) {
        if self.bits.fetch_or(OWN_STOP | HINT_STOP, Ordering::AcqRel) & OWN_STOP == 0 {
            self.announce_stop();
        }
    }

    /// Whether this scope or one above was asked to stop, or was cancelled.
    pub fn is_stopping(self: &Arc<Self>) -> bool {
        if self.bits() & (HINT_STOP | HINT_CANCEL) == 0 {
            return false;
        }
        let stop = |node: &Arc<Self>| node.bits() & OWN_STOP != 0;
        let found = self.ascend(&mut |node| if stop(node) { Step::Found(()) } else { Step::Up });
        found.is_some() || self.effective_request().is_some()
    }

    /// The token that this scope was made from.
    pub(crate) fn outside_token(&self) -> Option<CancellationToken> {
        let state = self.state.lock();
        state.rest.cold().and_then(|cold| cold.outside.as_ref()).map(TokenLink::token)
    }

    /// Keeps the token that this scope is made from.
    pub(crate) fn set_outside_token(&self, token: TokenLink) {
        self.state.lock().rest.make_cold().outside = Some(token);
    }

    /// Takes the token that was handed out, in order to cancel it.
    pub(crate) fn take_token(&self) -> Option<TokenLink> {
        self.state.lock().rest.cold_mut().and_then(|cold| cold.token.take())
    }

    /// The token that was handed out, if there is one that a cancel of the scope will reach.
    pub(crate) fn known_token(&self) -> Option<CancellationToken> {
        let state = self.state.lock();
        let token = state.rest.cold().and_then(|cold| cold.token.as_ref())?;
        (!token.is_spent()).then(|| token.token())
    }

    /// Keeps `token`, unless the scope has one. Then tells which.
    pub(crate) fn set_token(&self, token: TokenLink) -> Option<CancellationToken> {
        let mut state = self.state.lock();
        let place = &mut state.rest.make_cold().token;
        if let Some(known) = place.as_ref().filter(|known| !known.is_spent()) {
            let known = known.token();
            drop(state);
            return Some(known);
        }
        let old = place.replace(token);
        drop(state);
        drop(old);
        None
    }
}
