//! Ask, cut, honour: how a future is polled in a scope and how it is ended. Written once and used by
//! task roots, the bodies of groups, timeouts, cleanup sections and `Scope::run`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::coop;
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::ambient::{self, Ambient};
use crate::deadline::Deadline;
use crate::node::{Node, ScopeKind, Ticks};
use crate::request::Request;

/// A future's place in the tree of scopes.
#[derive(Debug)]
#[doc(hidden)]
pub struct Frame {
    /// The frame's own scope, except while it is polled nested: then the scope around it, which has
    /// changed places with it.
    node: Arc<Node>,
    rule: Rule,
    /// Its own ambient scope, where it is polled under another waker than the frame around it.
    seat: Option<Ambient>,
    /// Cleanup sections that are open inside.
    sections: isize,
    ask: Ask,
    alarm: Alarm,
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

/// How far the question has come.
#[derive(Debug)]
enum Ask {
    /// No request stands.
    Idle,
    /// Polled for this request so often without a fair chance to answer.
    Asking(Request, u32),
    /// The future had its chance to answer this request.
    Asked(Request),
}

/// A poll with a spent budget is not a fair chance; but who never leaves any cannot hold off the cut.
const UNFAIR_POLLS: u32 = 2;

/// What became of the future in a frame.
#[derive(Debug)]
#[doc(hidden)]
pub enum Ended<T> {
    /// It has finished.
    Finished(T),
    /// It has to be dropped now.
    Cut(Cut),
}

/// Why and how a future is cut.
#[derive(Debug)]
#[doc(hidden)]
pub struct Cut {
    /// The request it did not answer in time.
    pub request: Request,
    /// A wait of it did answer, and it went on to another wait.
    pub answered: bool,
    /// It had a grace.
    pub after_grace: bool,
}

impl Cut {
    /// Says who is cut where nobody may have expected it: in the middle of a cleanup that no section
    /// protects, or at the end of a grace.
    pub fn log(&self, node: &Node) {
        if !self.answered && !self.after_grace {
            return;
        }
        let root = ambient::root();
        let last_wait = root.as_deref().unwrap_or(node).last_wait().map(tracing::field::display);
        let (name, spawned) = (node.name(), node.site());
        let reason = self.request.reason();
        if self.after_grace {
            tracing::warn!(%name, at = %spawned, last_wait, %reason, "cut at the end of its grace");
        } else {
            tracing::warn!(
                %name, at = %spawned, last_wait, %reason,
                "cut while it was waiting again after it had answered a cancel; after an answer only \
                 what is ready at once is sure to run: put the rest into `cleanup` or `defer`"
            );
        }
    }
}

impl Frame {
    /// A frame whose scope is `node`.
    pub fn new(node: Arc<Node>, rule: Rule) -> Self {
        Self { node, rule, seat: None, sections: 0, ask: Ask::Idle, alarm: Alarm::default() }
    }

    /// Goes on in another scope.
    pub(crate) fn change_scope(&mut self, node: Arc<Node>) {
        self.leave_seat();
        self.node = node;
    }

    /// The scope of this frame. Not to be asked from inside its own poll.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Polls `future` in the scope of this frame, and says when it has to be dropped.
    pub fn poll<F: Future>(
        &mut self,
        mut future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<Ended<F::Output>> {
        loop {
            if self.deadline().is_some_and(|ticks| self.alarm.has_fired(ticks)) {
                self.node.expire();
            }
            // One that is not announced yet is not heard by all that are polled now.
            let before = self.request().filter(Request::is_announced);
            let budget = before.is_some() && coop::has_budget_remaining();
            let stalls = ambient::stalls();
            let floor = self.node.own_ticks();
            if let Poll::Ready(output) = self.enter(cx).poll(future.as_mut(), cx) {
                return Poll::Ready(Ended::Finished(output));
            }
            let fair = budget && stalls == ambient::stalls();
            match self.verdict(before, fair) {
                Verdict::Cut(cut) => return Poll::Ready(Ended::Cut(cut)),
                Verdict::AskNow => {}
                Verdict::AskSoon => {
                    // This wait has not answered yet, so the frames around must not cut it either.
                    if self.rule == Rule::Wait {
                        ambient::count_stall();
                    }
                    cx.waker().wake_by_ref();
                    let _ = self.arm(floor, None, cx);
                    return Poll::Pending;
                }
                Verdict::Wait(end) => {
                    if self.arm(floor, end, cx).is_pending() {
                        return Poll::Pending;
                    }
                }
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
        if !self.is_nested(cx) {
            self.take_seat(cx);
        }
        while self.deadline().is_some() && self.arm(Ticks::NEVER, None, cx).is_ready() {
            self.node.expire();
        }
    }

    /// After the future was polled and is pending. `before` is the request that it could see then.
    fn verdict(&mut self, before: Option<Request>, fair: bool) -> Verdict {
        let Some(request) = self.request() else {
            self.ask = Ask::Idle;
            return Verdict::Wait(None);
        };
        if !before.is_some_and(|before| before.is(&request)) {
            // It came while the future was polled: what was polled before it has not heard of it.
            let now = request.is_announced() && coop::has_budget_remaining();
            return if now { Verdict::AskNow } else { Verdict::AskSoon };
        }
        if !self.count_ask(&request, fair) {
            return Verdict::AskSoon;
        }
        if self.sections > 0 {
            return Verdict::Wait(None);
        }
        if self.rule == Rule::Wait {
            return Verdict::Cut(Cut { answered: false, after_grace: false, request });
        }
        let end = self.node.cut_at(self.rule == Rule::Own);
        if end > Instant::now() {
            return Verdict::Wait(Some(end));
        }
        let root = ambient::root();
        let answered = root.as_ref().unwrap_or(&self.node).answers_to(&request) > 0;
        Verdict::Cut(Cut { answered, after_grace: end > request.at(), request })
    }

    /// Notes that the future was polled for `request`. Tells whether it had its chance to answer.
    fn count_ask(&mut self, request: &Request, fair: bool) -> bool {
        let unfair = match &self.ask {
            Ask::Asked(asked) if asked.is(request) => return true,
            Ask::Asking(asking, unfair) if asking.is(request) => *unfair,
            _ => 0,
        };
        let asked = fair || unfair >= UNFAIR_POLLS;
        let request = request.clone();
        self.ask = if asked { Ask::Asked(request) } else { Ask::Asking(request, unfair + 1) };
        asked
    }

    fn request(&self) -> Option<Request> {
        match self.rule {
            Rule::Own => self.node.own_request(),
            Rule::Any | Rule::Wait => self.node.effective_request(),
            Rule::Never => None,
        }
    }

    /// The deadline of this scope, unless it was delivered.
    fn deadline(&self) -> Option<u64> {
        match self.node.own_ticks() {
            Ticks::NEVER => None,
            _ if self.node.is_delivered() => None,
            ticks => Some(ticks),
        }
    }

    /// Arms the timer for what comes first, the deadline or `end`. Ready if that has come.
    ///
    /// `floor` is what the deadline was before the poll: where a frame inside relies on it, it looks again when the
    /// timer fires.
    fn arm(&mut self, floor: u64, end: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let relied_on = self.node.is_relied_on();
        let deadline = self.deadline().map(|ticks| if relied_on { ticks.min(floor) } else { ticks });
        if end.is_none() && deadline.is_some_and(|at| self.alarm.is_set(at, relied_on, cx)) {
            return Poll::Pending;
        }
        // Where a frame around has one that comes first it is polled then, and so is this one, unless whatever polls
        // this one waits for a waker of its own.
        let deadline = deadline.filter(|at| self.seat.is_some() || !self.node.is_covered(*at));
        let end = end.map(|end| Ticks::of(Deadline::at(end)));
        let next = match (deadline, end) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        next.map_or(Poll::Pending, |next| self.alarm.poll_at(next, relied_on, cx))
    }

    fn enter(&mut self, cx: &Context<'_>) -> Entered<'_> {
        // The common case, in one look: where it was before, and nothing is registered.
        if self.seat.is_none() && !self.node.is_root() && ambient::nest(&mut self.node, cx) {
            return Entered { nested: true, before: ambient::sections(), frame: self };
        }
        let nested = self.is_nested(cx);
        if nested {
            self.leave_seat();
            ambient::swap_node(&mut self.node);
        } else {
            self.take_seat(cx);
            ambient::swap(&mut self.seat);
        }
        Entered { nested, before: ambient::sections(), frame: self }
    }

    /// Whether the frame around this one is polled with the same waker, and so is woken for both.
    fn is_nested(&mut self, cx: &Context<'_>) -> bool {
        if self.node.is_root() {
            return false;
        }
        let around = ambient::with(|ambient| {
            let ambient = ambient?;
            let moved = !self.node.is_child_of(&ambient.node);
            Some((ambient.waker.will_wake(cx.waker()), moved.then(|| Arc::clone(&ambient.node))))
        });
        match around {
            None => false,
            Some((same_waker, None)) => same_waker,
            // These stay where they were put, whoever polls them.
            Some(_) if matches!(self.node.kind(), ScopeKind::Scope | ScopeKind::Entry) => false,
            Some((same_waker, Some(scope))) => {
                self.node.move_below(&scope);
                same_waker
            }
        }
    }

    /// Gives the registration back: a stale waker must not hide the one of the frame around.
    fn leave_seat(&mut self) {
        if self.seat.take().is_some() {
            self.node.deregister();
        }
    }

    fn take_seat(&mut self, cx: &Context<'_>) {
        let seat = self.seat.get_or_insert_with(|| {
            let node = Arc::clone(&self.node);
            let outer = if node.kind() == ScopeKind::Task { None } else { ambient::root() };
            let root = outer.unwrap_or_else(|| Arc::clone(&node));
            Ambient { node, root, waker: cx.waker().clone() }
        });
        if !seat.waker.will_wake(cx.waker()) {
            seat.waker = cx.waker().clone();
            self.node.deregister();
        }
        if !self.node.is_registered() {
            self.node.register(seat.waker.clone());
        }
    }
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

/// The frame's scope is the ambient one until this is dropped, also by a panic.
struct Entered<'a> {
    frame: &'a mut Frame,
    nested: bool,
    before: isize,
}

impl Entered<'_> {
    fn poll<F: Future>(self, future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
        future.poll(cx)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let frame = &mut *self.frame;
        if self.nested {
            ambient::swap_node(&mut frame.node);
        } else {
            ambient::swap(&mut frame.seat);
        }
        let opened = ambient::sections().wrapping_sub(self.before);
        // A section that was begun in another frame may end in this one.
        frame.sections = frame.sections.wrapping_add(opened).max(0);
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.leave_seat();
        // A scope that was made by hand can be entered again.
        if self.node.kind() != ScopeKind::Scope {
            self.node.end();
        }
    }
}
