//! Ask, cut, honour: how a future is polled in a scope and how it is ended. Written once and used by
//! task roots, the bodies of groups, timeouts, cleanup sections and `Scope::run`.

mod entering;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::coop;
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::ambient::{self, WakerId};
use crate::cut::{Cut, Ended};
use crate::deadline::Deadline;
use crate::node::{Node, ScopeKind, Ticks};
use crate::request::Request;

/// A future's place in the tree of scopes.
#[derive(Debug)]
#[doc(hidden)]
pub struct Frame {
    /// The frame's own scope, except while it is polled: then the scope around it, which has changed places with
    /// it, or none.
    node: Option<Arc<Node>>,
    /// Under which waker it is registered with its scope, where that is another than the one of the frame around it.
    seat: Option<WakerId>,
    rare: Option<Box<Rare>>,
    rule: Rule,
    /// Cleanup sections that are open inside.
    sections: i32,
}

/// What the frame of a plain task never has.
#[derive(Debug, Default)]
struct Rare {
    alarm: Alarm,
    asked: Option<Asked>,
}

/// The request for which the future was polled last, where it waits nevertheless.
#[derive(Debug)]
struct Asked {
    request: Request,
    chance: Chance,
}

/// Which requests make this frame cut its future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Rule {
    /// Those made on its own scope; it only passes on the question of others. Timeouts.
    Own,
    /// Whatever reaches its scope, after the grace. Task roots and bodies of groups.
    Any,
    /// Whatever reaches its scope, without grace: it is the answer of one wait.
    Wait,
    /// None.
    Never,
}

/// Whether the future had its chance to answer the request for which it was polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chance {
    /// Not yet, and so many polls were unfair.
    Unfair(u8),
    Fair,
}

/// A poll with a spent budget is not a fair chance; but who never leaves any cannot hold off the cut.
const UNFAIR_POLLS: u8 = 2;

impl Frame {
    /// A frame whose scope is `node`.
    pub fn new(node: Arc<Node>, rule: Rule) -> Self {
        Self { node: Some(node), seat: None, rare: None, rule, sections: 0 }
    }

    /// Goes on in another scope.
    pub(crate) fn change_scope(&mut self, node: Arc<Node>) {
        self.leave_seat();
        self.node = Some(node);
    }

    /// The scope of this frame. Not to be asked from inside its own poll.
    #[inline]
    pub fn node(&self) -> &Arc<Node> {
        self.node.as_ref().expect("a frame has its scope while it is not polled")
    }

    /// Polls `future` in the scope of this frame, and says when it has to be dropped.
    #[inline]
    pub fn poll<F: Future>(
        &mut self,
        mut future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<Ended<F::Output>> {
        loop {
            let before = self.prepare();
            let entered = self.enter(cx);
            let polled = future.as_mut().poll(cx);
            let wanted = entered.leave();
            if let Poll::Ready(output) = polled {
                return Poll::Ready(Ended::Finished(output));
            }
            match self.conclude(before, wanted, cx) {
                Next::Wait => return Poll::Pending,
                Next::Again => {}
                Next::Cut(cut) => return Poll::Ready(Ended::Cut(cut)),
            }
        }
    }

    /// Has a request on this scope wake `cx` although the future is not polled yet.
    pub fn register(&mut self, cx: &Context<'_>) {
        self.take_seat(cx);
    }

    /// Stands in for a poll when the future of this frame has ended and something else in its scope goes on:
    /// keeps the place and the registration, and delivers the deadline when it has come.
    pub fn attend(&mut self, cx: &mut Context<'_>) {
        let wanted = if self.is_nested(cx) { None } else { Some(Ticks::NEVER) };
        if wanted.is_some() {
            self.take_seat(cx);
        }
        loop {
            self.expire_if_fired();
            if self.arm(wanted, None, cx).is_pending() {
                return;
            }
        }
    }

    /// Delivers the deadline if the timer has fired for it, and notes what stands.
    #[inline]
    fn prepare(&self) -> Option<Hearing> {
        if self.node().own_ticks() != Ticks::NEVER {
            self.expire_if_fired();
        }
        if self.node().may_be_asked() { self.hearing() } else { None }
    }

    fn expire_if_fired(&self) {
        let fired = self.fired().max(ambient::fired());
        if self.deadline() <= fired {
            self.node().expire();
        }
    }

    #[cold]
    fn hearing(&self) -> Option<Hearing> {
        self.node().forget_missed();
        // One that is not announced yet is not heard by all that are polled now.
        let request = self.request().filter(Request::is_announced)?;
        Some(Hearing { request, budget: coop::has_budget_remaining(), stalls: ambient::stalls() })
    }

    /// What is to be done after the future was polled and is pending. `before` is what it could hear then, `wanted`
    /// what those inside want of the timer, where this frame has it.
    #[inline]
    fn conclude(&mut self, before: Option<Hearing>, wanted: Option<u64>, cx: &mut Context<'_>) -> Next {
        if self.node().may_be_asked() || self.asked().is_some() {
            return self.conclude_asked(before, wanted, cx);
        }
        if self.rest(wanted, None, cx) { Next::Wait } else { Next::Again }
    }

    #[cold]
    fn conclude_asked(&mut self, before: Option<Hearing>, wanted: Option<u64>, cx: &mut Context<'_>) -> Next {
        match self.verdict(before) {
            Verdict::Cut(cut) => Next::Cut(cut),
            Verdict::AskNow => Next::Again,
            Verdict::AskSoon => {
                // This wait has not answered yet, so the frames around must not cut it either.
                if self.rule == Rule::Wait {
                    ambient::count_stall();
                }
                cx.waker().wake_by_ref();
                let _ = self.rest(wanted, None, cx);
                Next::Wait
            }
            Verdict::Wait(end) if self.rest(wanted, end, cx) => Next::Wait,
            Verdict::Wait(_) => Next::Again,
        }
    }

    /// Registers and arms what has to wake this frame. `false` if something has come meanwhile.
    #[inline]
    fn rest(&mut self, wanted: Option<u64>, end: Option<Instant>, cx: &mut Context<'_>) -> bool {
        if self.node().is_root() && !self.is_seated(cx) && !self.sit_down(cx) {
            return false;
        }
        self.arm(wanted, end, cx).is_pending()
    }

    /// The root of a task registers after it was polled: one that has ended by then never does. `false` if it was
    /// asked meanwhile, and woken by nobody.
    #[cold]
    fn sit_down(&mut self, cx: &Context<'_>) -> bool {
        let missed = self.take_seat(cx);
        let asked = self.request();
        let same = match (self.asked(), &asked) {
            (Some(before), Some(now)) => before.request.is(now),
            (before, now) => before.is_none() && now.is_none(),
        };
        same && !missed
    }

    /// After the future was polled and is pending. `before` is the request that it could see then.
    fn verdict(&mut self, before: Option<Hearing>) -> Verdict {
        let own_only = self.rule == Rule::Own;
        let standing = before.filter(|before| self.node().still_stands(&before.request, own_only));
        let Some(before) = standing else { return self.verdict_on_news() };
        let chance = self.chance(&before.request, before.is_fair());
        let request = before.request;
        let mut end = None;
        if chance == Chance::Fair && self.sections <= 0 {
            end = if self.rule == Rule::Wait { Some(request.at()) } else { self.node().cut_at(own_only) };
            let after_grace = end.is_some_and(|end| end > request.at());
            // Without a grace the end has come, whatever the clock says.
            if end.is_some_and(|end| !after_grace || end <= Instant::now()) {
                let answered = self.rule != Rule::Wait && self.has_answered(&request);
                return Verdict::Cut(Cut { answered, after_grace, request });
            }
        }
        self.rare.get_or_insert_default().asked = Some(Asked { request, chance });
        if chance == Chance::Fair { Verdict::Wait(end) } else { Verdict::AskSoon }
    }

    /// What it heard before the poll, if anything, does not stand any more.
    fn verdict_on_news(&mut self) -> Verdict {
        let Some(request) = self.request() else {
            if let Some(rare) = &mut self.rare {
                rare.asked = None;
            }
            return Verdict::Wait(None);
        };
        // It came while the future was polled: what was polled before it has not heard of it.
        let now = request.is_announced() && coop::has_budget_remaining();
        if now { Verdict::AskNow } else { Verdict::AskSoon }
    }

    fn has_answered(&self, request: &Request) -> bool {
        let root = ambient::root();
        root.as_ref().unwrap_or(self.node()).answers_to(request) > 0
    }

    /// Whether the future has had its chance to answer `request`, after one more poll.
    fn chance(&self, request: &Request, fair: bool) -> Chance {
        let before = self.asked().filter(|asked| asked.request.is(request));
        match before.map_or(Chance::Unfair(0), |asked| asked.chance) {
            Chance::Unfair(polls) if !fair && polls < UNFAIR_POLLS => Chance::Unfair(polls + 1),
            _ => Chance::Fair,
        }
    }

    #[inline]
    fn asked(&self) -> Option<&Asked> {
        self.rare.as_ref().and_then(|rare| rare.asked.as_ref())
    }

    /// For which instant the timer of this frame has fired.
    #[inline]
    fn fired(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.alarm.fired())
    }

    fn request(&self) -> Option<Request> {
        match self.rule {
            Rule::Own => self.node().own_request(),
            Rule::Any | Rule::Wait => self.node().effective_request(),
            Rule::Never => None,
        }
    }

    /// The deadline of this scope, unless it was delivered.
    #[inline]
    fn deadline(&self) -> u64 {
        match self.node().own_ticks() {
            Ticks::NEVER => Ticks::NEVER,
            _ if self.node().is_delivered() => Ticks::NEVER,
            ticks => ticks,
        }
    }

    /// Has the timer fire for what comes first: the deadline, `end`, or what those inside want. It is that of the
    /// frame around, unless this one has a waker of its own. Ready if that has come.
    #[inline]
    fn arm(&mut self, wanted: Option<u64>, end: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let end = end.map_or(Ticks::NEVER, |end| Ticks::of(Deadline::at(end)));
        let own = self.deadline().min(end);
        let at = match wanted {
            Some(inside) => inside.min(own),
            None => {
                ambient::want(own);
                Ticks::NEVER
            }
        };
        match &mut self.rare {
            None if at == Ticks::NEVER => Poll::Pending,
            rare => rare.get_or_insert_default().alarm.poll_at(at, cx),
        }
    }
}

/// A request that the future can see while it is polled.
struct Hearing {
    request: Request,
    budget: bool,
    stalls: u32,
}

impl Hearing {
    /// Whether a poll since then was a chance to answer.
    fn is_fair(&self) -> bool {
        self.budget && self.stalls == ambient::stalls()
    }
}

/// What follows a pending poll.
enum Next {
    Wait,
    Again,
    Cut(Cut),
}

/// After a pending poll.
enum Verdict {
    Wait(Option<Instant>),
    /// Poll again at once.
    AskNow,
    /// Poll again after the others had their turn.
    AskSoon,
    Cut(Cut),
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.leave_seat();
        // Only the handle of a timed call asks.
        if let Some(node) = self.node.as_ref().filter(|node| node.kind() == ScopeKind::Timeout) {
            if Arc::strong_count(node) > 1 {
                node.end();
            }
        }
    }
}
