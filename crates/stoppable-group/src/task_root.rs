//! The root of a task: what tokio polls. It holds the one registration of the task, cuts it, and sees to
//! it that the task is accounted for, whatever way it ends.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project::{pin_project, pinned_drop};
use stoppable_scope::machinery::{Cut, Ended, Frame, Node, Origin, Rule};
use stoppable_scope::{Cancelled, Reason, Request};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::Span;
use tracing::level_filters::LevelFilter;

use crate::catch::{Payload, catch};
use crate::core::Core;
use crate::group_report::TaskReport;
use crate::handle_error::HandleError;
use crate::judge::{Verdict, judge};
use crate::ledger::Effect;
use crate::on_thread::NotBegun;
use crate::outcome::Outcome;
use crate::task_failure::TaskFailure;
use crate::task_output::TaskOutput;

/// A task in its span.
#[pin_project(PinnedDrop)]
pub(crate) struct TaskRoot<F, M>
where
    F: Future,
    F::Output: TaskOutput<M>,
{
    #[pin]
    task: Task<F, M>,
    /// Of the task, or of whoever spawned it. Absent where nobody traces.
    span: Option<Box<Span>>,
}

/// What a task leaves for its handle; nothing where nobody will ask for it. Small, for each poll of the task moves it.
pub(crate) type Left<T> = Option<Result<T, Box<HandleError>>>;

#[pin_project(project = Parts)]
struct Task<F, M> {
    #[pin]
    future: Option<F>,
    frame: Frame,
    phase: Phase,
    kind: Kind,
    /// Where places are limited.
    place: Option<Box<Place>>,
    /// The group, until the task is accounted for.
    core: Option<Arc<Core>>,
    /// When it was polled first, where the group keeps a full report.
    begun: Option<Box<Instant>>,
    marker: PhantomData<fn() -> M>,
}

/// Which promises are made about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// Its failure belongs to its waiter, while there is one.
    Shielded,
    /// It stands for a thread, which cannot be cut.
    Blocking,
    /// It outlives the body, and is stopped when nothing else is left.
    Service,
    /// Both.
    BlockingService,
    /// It stands for a task that runs already: it starts whatever was requested, in order to end that.
    Foreign,
    /// It runs closers: it starts whatever was requested, and accounts for each by itself.
    Closers,
}

impl Kind {
    pub(crate) fn is_service(self) -> bool {
        matches!(self, Self::Service | Self::BlockingService)
    }

    fn is_blocking(self) -> bool {
        matches!(self, Self::Blocking | Self::BlockingService)
    }

    /// A service is no use for the limit: it would never give its place back.
    fn needs_place(self) -> bool {
        matches!(self, Self::Plain | Self::Shielded | Self::Blocking)
    }

    /// Whether it is counted among the others, and may be no more than counted.
    fn only_counts(self) -> bool {
        !self.is_service() && self != Self::Closers
    }

    fn always_starts(self) -> bool {
        matches!(self, Self::Closers | Self::Foreign)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not polled yet.
    New,
    Running,
}

/// What a task of a group with a limit waits for before it runs, and then has.
enum Place {
    Wanted(Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>),
    Held(#[allow(dead_code)] Option<OwnedSemaphorePermit>),
}

impl Place {
    /// Queues up now, so that places are given in the order of spawning.
    fn queue_up(places: Arc<Semaphore>) -> Self {
        let mut place = Self::Wanted(Box::pin(async move { places.acquire_owned().await.ok() }));
        let _ = place.poll(&mut Context::from_waker(std::task::Waker::noop()));
        place
    }

    /// Ready once it is held.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Wanted(wanted) = self {
            *self = Self::Held(ready!(wanted.as_mut().poll(cx)));
        }
        Poll::Ready(())
    }
}

/// How the future of a task came to its end.
enum End<O> {
    Output(O),
    Cut(Cut),
    Panic(Payload),
    NotStarted(Cancelled),
}

impl<F, M> TaskRoot<F, M>
where
    F: Future,
    F::Output: TaskOutput<M>,
{
    pub(crate) fn new(
        future: F,
        kind: Kind,
        node: Arc<Node>,
        core: Arc<Core>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let place = match (&core.places, place) {
            (Some(places), None) if kind.needs_place() => Some(Place::queue_up(Arc::clone(places))),
            (_, place) => place.map(|place| Place::Held(Some(place))),
        };
        let span = task_span(&core, &node);
        let task = Task {
            future: Some(future),
            frame: Frame::new(node, Rule::Any),
            phase: Phase::New,
            kind,
            place: place.map(Box::new),
            core: Some(core),
            begun: None,
            marker: PhantomData,
        };
        Self { task, span }
    }
}

/// A span that names the task, below the span of whoever spawns it; that one itself where the level is off.
fn task_span(core: &Core, node: &Node) -> Option<Box<Span>> {
    if LevelFilter::current() == LevelFilter::OFF {
        return None;
    }
    let span = tracing::debug_span!("task", group = %core.node.name(), name = %node.name());
    let span = if span.is_disabled() { Span::current() } else { span };
    (!span.is_disabled()).then(|| Box::new(span))
}

impl<F, M> Future for TaskRoot<F, M>
where
    F: Future,
    F::Output: TaskOutput<M>,
{
    type Output = Left<<F::Output as TaskOutput<M>>::Value>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // Also where it ends here without having begun: the destructors are the task's.
        let _in_span = this.span.as_ref().map(|span| span.enter());
        this.task.project().poll(cx)
    }
}

/// The runtime drops a task that it shuts down.
#[pinned_drop]
impl<F, M> PinnedDrop for TaskRoot<F, M>
where
    F: Future,
    F::Output: TaskOutput<M>,
{
    fn drop(self: Pin<&mut Self>) {
        let this = self.project();
        if this.task.core.is_some() {
            let _in_span = this.span.as_ref().map(|span| span.enter());
            this.task.project().shut_down();
        }
    }
}

impl<F, M> Parts<'_, F, M>
where
    F: Future,
    F::Output: TaskOutput<M>,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Left<<F::Output as TaskOutput<M>>::Value>> {
        if let Err(request) = ready!(self.begin(cx)) {
            return Poll::Ready(self.finish(End::NotStarted(Cancelled::new(request))));
        }
        let future = self.future.as_mut().as_pin_mut().expect("a task that has ended is not polled");
        let end = match catch(|| self.frame.poll(future, cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ended::Finished(output))) => End::Output(output),
            Ok(Poll::Ready(Ended::Cut(cut))) => End::Cut(cut),
            Err(payload) => End::Panic(payload),
        };
        Poll::Ready(self.finish(end))
    }

    /// Ready once the future may be polled; with a request where one came before that.
    #[inline]
    fn begin(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Request>> {
        if *self.phase == Phase::New {
            if !self.kind.always_starts() {
                if let Err(request) = ready!(self.wait_for_place(cx)) {
                    return Poll::Ready(Err(request));
                }
            }
            let keep_report = self.core.as_ref().is_some_and(|core| core.keep_report);
            *self.begun = keep_report.then(|| Box::new(Instant::now()));
            *self.phase = Phase::Running;
        }
        Poll::Ready(Ok(()))
    }

    fn wait_for_place(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Request>> {
        if let Some(place) = self.place {
            // First the registration, then the look: a request in between is seen or wakes.
            self.frame.register(cx);
            if self.frame.node().effective_request().is_none() {
                ready!(place.poll(cx));
            }
        }
        Poll::Ready(self.frame.node().effective_request().map_or(Ok(()), Err))
    }

    /// The runtime goes down under the task.
    fn shut_down(&mut self) {
        let node = self.frame.node();
        let request = node.effective_request();
        let request = request.unwrap_or_else(|| node.request(Reason::OwnerGone, Origin::Library));
        let end = match self.phase {
            Phase::Running => End::Cut(Cut { request, answered: false, after_grace: false }),
            Phase::New => End::NotStarted(Cancelled::new(request)),
        };
        if let Some(Err(error)) = self.finish(end) {
            self.frame.node().leave_word(error);
        }
    }

    /// Drops the future, judges its end, and leaves it in the books. Users' destructors run first, so that a
    /// panic in one is a failure like any other.
    fn finish(&mut self, end: End<F::Output>) -> Left<<F::Output as TaskOutput<M>>::Value> {
        let core = self.core.take()?;
        let node = self.frame.node();
        if let End::Cut(cut) = &end {
            cut.log(node);
        }
        let dropped = catch(|| self.future.set(None));
        let (mut value, mut outcome) =
            judge_end(&core, node, *self.kind, end).unwrap_or_else(|payload| (None, failed(node, payload)));
        if let (Err(payload), false) = (dropped, outcome.is_failed()) {
            outcome = failed(node, payload);
        }
        // A value that nobody wants is dropped here, where its destructor may panic.
        if value.is_some() && (outcome.is_failed() || node.is_unwanted()) {
            let dropped = catch(|| value = None);
            if let (Err(payload), false) = (dropped, outcome.is_failed()) {
                outcome = failed(node, payload);
            }
        }
        // The place is free for the next one.
        *self.place = None;
        node.end();
        if outcome.is_ok() && !node.has_answered() && core.only_counts() && self.kind.only_counts() {
            core.leave_well();
            return value.map(Ok);
        }
        let left = if node.is_unwanted() { None } else { left(node, &outcome, value) };
        let ran_for = self.begun.as_ref().map(|begun| begun.elapsed());
        account_for(&core, node, *self.kind, outcome, ran_for);
        left
    }
}

/// What an end comes to for the handle.
fn left<T>(node: &Node, outcome: &Outcome, value: Option<T>) -> Left<T> {
    match HandleError::of(node.name(), outcome) {
        Some(error) => Some(Err(Box::new(error))),
        None => value.map(Ok),
    }
}

/// Leaves an end that is more than a number in the books, and does to the others what follows from it.
#[cold]
fn account_for(core: &Core, node: &Arc<Node>, kind: Kind, outcome: Outcome, ran_for: Option<Duration>) {
    let as_usual = matches!(outcome, Outcome::Ok | Outcome::Failed(_)) && !node.has_answered();
    let disturbed = !as_usual && !ends_by_plan(node, &outcome);
    let effect = match kind {
        // It is for the waiter, while there is one; what he makes of it is his.
        Kind::Shielded => Effect::Keep,
        // A service that ends well has nothing to do with how the others do.
        _ if kind.is_service() && outcome.is_ok() => Effect::None,
        _ => Effect::Cancel,
    };
    let report = TaskReport {
        id: node.id(),
        name: node.name().clone(),
        site: node.site(),
        outcome,
        ran_for,
        last_wait: node.last_wait(),
    };
    if kind != Kind::Closers {
        let waiter = (kind == Kind::Shielded).then_some(&**node);
        let consequence = core.record(report, disturbed, effect, waiter);
        core.follow(consequence, node);
    }
    if kind.is_service() {
        core.leave_service(node);
    } else {
        core.leave();
    }
}

/// Whether it was asked to leave because its group had all it wanted, before anything else was requested.
fn ends_by_plan(node: &Arc<Node>, outcome: &Outcome) -> bool {
    let Some(own) = node.own_request() else { return false };
    let planned = matches!(own.reason(), Reason::GroupEnded | Reason::SiblingSucceeded(_));
    let before = |by: &Request| own.at() <= by.at();
    planned
        && match outcome {
            Outcome::Cancelled(by) | Outcome::NotStarted(by) => before(by.request()),
            _ => node.effective_request().is_some_and(|by| before(&by)),
        }
}

type Judged<T> = (Option<T>, Outcome);

fn judge_end<O: TaskOutput<M>, M>(
    core: &Core,
    node: &Arc<Node>,
    kind: Kind,
    end: End<O>,
) -> Result<Judged<O::Value>, Payload> {
    Ok(match end {
        End::Output(output) => catch(|| {
            let begun = !output.as_error().is_some_and(|error| error.is::<NotBegun>());
            (begun, judge(core, node, node.name(), output))
        })
        .map(|(begun, verdict)| match verdict {
            Verdict::Value(value) => (Some(value), Outcome::Ok),
            Verdict::Cancelled(cancelled) if !begun => (None, Outcome::NotStarted(cancelled)),
            Verdict::Cancelled(cancelled) => (None, Outcome::Cancelled(cancelled)),
            Verdict::Failed(failure) => (None, Outcome::Failed(failure)),
        })?,
        End::Cut(_) if kind.is_blocking() => {
            tracing::warn!(
                name = %node.name(), at = %node.site(),
                "a blocking task did not look at its stop flag within its grace; its thread is left alone"
            );
            (None, Outcome::Abandoned)
        }
        End::Cut(cut) => (None, Outcome::Cancelled(Cancelled::new(cut.request))),
        End::NotStarted(cancelled) => (None, Outcome::NotStarted(cancelled)),
        End::Panic(payload) => return Err(payload),
    })
}

fn failed(node: &Node, payload: Payload) -> Outcome {
    Outcome::Failed(TaskFailure::panic_of(node.id(), node.name().clone(), node.site(), payload))
}
