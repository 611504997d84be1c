//! The root of a task: what tokio polls. It holds the one registration of the task, cuts it, and sees to
//! it that the task is accounted for, whatever way it ends.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project::{pin_project, pinned_drop};
use stoppable_scope::machinery::{Cut, Ended, Frame, Node, Origin, Rule};
use stoppable_scope::{Cancelled, Reason};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::Span;

use crate::catch::{Payload, catch};
use crate::core::Core;
use crate::group_report::TaskReport;
use crate::handle_error::HandleError;
use crate::judge::{Verdict, judge};
use crate::ledger::{Consequence, Effect};
use crate::on_thread::NotBegun;
use crate::outcome::Outcome;
use crate::slot::Slot;
use crate::task_failure::TaskFailure;
use crate::task_output::TaskOutput;

#[pin_project(PinnedDrop)]
pub(crate) struct TaskRoot<F, M>
where
    F: Future,
    F::Output: TaskOutput<M>,
{
    #[pin]
    future: Option<F>,
    frame: Frame,
    state: State,
    kind: Kind,
    /// There until the task is accounted for.
    account: Option<Account<<F::Output as TaskOutput<M>>::Value>>,
    begun: Option<Instant>,
    /// Of the task, or of whoever spawned it. Absent where nobody traces.
    span: Option<Box<Span>>,
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

    fn always_starts(self) -> bool {
        matches!(self, Self::Closers | Self::Foreign)
    }
}

enum State {
    /// Waiting for a place.
    Queued(Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>),
    /// Not polled yet.
    New(Option<OwnedSemaphorePermit>),
    /// With its place, which others wait for.
    Running(#[allow(dead_code)] Option<OwnedSemaphorePermit>),
}

struct Account<T> {
    core: Arc<Core>,
    slot: Arc<Slot<T>>,
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
        slot: Arc<Slot<<F::Output as TaskOutput<M>>::Value>>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let state = match (&core.places, place) {
            (Some(places), None) if kind.needs_place() => State::queued(Arc::clone(places)),
            (_, place) => State::New(place),
        };
        let span = task_span(&core, &node);
        Self {
            span,
            future: Some(future),
            frame: Frame::new(node, Rule::Any),
            state,
            kind,
            account: Some(Account { core, slot }),
            begun: None,
            marker: PhantomData,
        }
    }
}

/// A span that names the task, below the span of whoever spawns it; that one itself where the level is off.
fn task_span(core: &Core, node: &Node) -> Option<Box<Span>> {
    let span = tracing::debug_span!("task", group = %core.node.name(), name = %node.name());
    let span = if span.is_disabled() { Span::current() } else { span };
    (!span.is_disabled()).then(|| Box::new(span))
}

impl State {
    /// Queues up now, so that places are given in the order of spawning.
    fn queued(places: Arc<Semaphore>) -> Self {
        let mut place = Box::pin(async move { places.acquire_owned().await.ok() });
        match place.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(place) => Self::New(place),
            Poll::Pending => Self::Queued(place),
        }
    }
}

/// How the future of a task came to its end.
enum End<O> {
    Output(O),
    Cut(Cut),
    Panic(Payload),
    NotStarted(Cancelled),
}

impl<F, M> Future for TaskRoot<F, M>
where
    F: Future,
    F::Output: TaskOutput<M>,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        // Also where it ends here without having begun: the destructors are the task's.
        let _in_span = this.span.as_ref().map(|span| span.enter());
        loop {
            match this.state {
                State::Running(_) => break,
                _ if this.kind.always_starts() => *this.state = State::Running(None),
                State::New(_) | State::Queued(_) if this.frame.node().effective_request().is_some() => {
                    let request = this.frame.node().effective_request();
                    let Some(request) = request else { continue };
                    let end = End::NotStarted(Cancelled::new(request));
                    finish(&mut this.future, this.frame, *this.kind, *this.begun, this.account, end);
                    *this.state = State::Running(None);
                    return Poll::Ready(());
                }
                State::New(place) => *this.state = State::Running(place.take()),
                State::Queued(place) => {
                    this.frame.register(cx);
                    if this.frame.node().effective_request().is_some() {
                        continue;
                    }
                    *this.state = State::New(ready!(place.as_mut().poll(cx)));
                }
            }
        }
        if let (None, Some(account)) = (&*this.begun, &*this.account) {
            *this.begun = account.core.keep_report.then(Instant::now);
        }
        let Some(future) = this.future.as_mut().as_pin_mut() else { return Poll::Ready(()) };
        let end = match catch(|| this.frame.poll(future, cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ended::Finished(output))) => End::Output(output),
            Ok(Poll::Ready(Ended::Cut(cut))) => End::Cut(cut),
            Err(payload) => End::Panic(payload),
        };
        finish(&mut this.future, this.frame, *this.kind, *this.begun, this.account, end);
        // The place is free for the next one.
        *this.state = State::Running(None);
        Poll::Ready(())
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
        let mut this = self.project();
        if this.account.is_none() {
            return;
        }
        let _in_span = this.span.as_ref().map(|span| span.enter());
        let node = this.frame.node();
        let request = node.effective_request();
        let request = request.unwrap_or_else(|| node.request(Reason::OwnerGone, Origin::Library));
        let end = match this.state {
            State::Running(_) => End::Cut(Cut { request, answered: false, after_grace: false }),
            _ => End::NotStarted(Cancelled::new(request)),
        };
        finish(&mut this.future, this.frame, *this.kind, *this.begun, this.account, end);
    }
}

/// Drops the future, judges its end, and leaves it in the books. Users' destructors run first, so that a
/// panic in one is a failure like any other.
fn finish<F, M>(
    future: &mut Pin<&mut Option<F>>,
    frame: &Frame,
    kind: Kind,
    begun: Option<Instant>,
    account: &mut Option<Account<<F::Output as TaskOutput<M>>::Value>>,
    end: End<F::Output>,
) where
    F: Future,
    F::Output: TaskOutput<M>,
{
    let Some(Account { core, slot }) = account.take() else { return };
    let node = frame.node();
    if let End::Cut(cut) = &end {
        cut.log(node);
    }
    let dropped = catch(|| future.set(None));
    let (value, mut outcome) = match judge_end(&core, node, kind, end) {
        Ok((value, outcome)) => (value, outcome),
        Err(payload) => (None, failed(node, payload)),
    };
    if let (Err(payload), false) = (dropped, outcome.is_failed()) {
        outcome = failed(node, payload);
    }
    // A value that nobody wants is dropped here, where its destructor may panic.
    let unwanted = slot.is_unwanted();
    let value = if unwanted || outcome.is_failed() {
        if let (Err(payload), false) = (catch(|| drop(value)), outcome.is_failed()) {
            outcome = failed(node, payload);
        }
        None
    } else {
        value
    };
    let as_usual = matches!(outcome, Outcome::Ok | Outcome::Failed(_)) && !node.has_answered();
    let disturbed = !as_usual && !ends_by_plan(node, &outcome);
    let report = TaskReport {
        id: node.id(),
        name: node.name().clone(),
        site: node.site(),
        outcome: outcome.clone(),
        ran_for: begun.map(|begun| begun.elapsed()),
        last_wait: node.last_wait(),
    };
    let heard = kind == Kind::Shielded && !unwanted;
    let consequence = match kind {
        Kind::Closers => Consequence::None,
        // Whoever waits hears of it; what he makes of it is his.
        Kind::Shielded if heard => core.record(report, disturbed, Effect::None),
        Kind::Shielded => core.record(report, disturbed, Effect::Keep),
        // A service that ends well has nothing to do with how the others do.
        _ if kind.is_service() && outcome.is_ok() => core.record(report, disturbed, Effect::None),
        _ => core.record(report, disturbed, Effect::Cancel),
    };
    let result = match (outcome, value) {
        (Outcome::Ok, Some(value)) => Ok(value),
        (Outcome::Failed(failure), _) => Err(HandleError::Failed(failure)),
        (Outcome::Cancelled(cancelled), _) => {
            Err(HandleError::Cancelled { task: node.name().clone(), cancelled })
        }
        (Outcome::NotStarted(cancelled), _) => {
            Err(HandleError::NotStarted { task: node.name().clone(), cancelled })
        }
        (Outcome::Abandoned | Outcome::Ok, _) => Err(HandleError::Abandoned { task: node.name().clone() }),
    };
    if let Err(result) = slot.complete(result) {
        // The waiter left at this very moment.
        if let (true, Err(HandleError::Failed(failure))) = (heard, &result) {
            core.keep_failure(failure);
        }
        if catch(|| drop(result)).is_err() {
            tracing::error!(task = %node.name(), "the value of a task panicked when it was dropped");
        }
    }
    // Who waits for this task has its failure before he is cancelled because of it.
    core.follow(consequence, node);
    core.leave(node, kind.is_service());
}

/// Whether it was asked to leave because its group had all it wanted, before anything else was requested.
fn ends_by_plan(node: &Arc<Node>, outcome: &Outcome) -> bool {
    let by = match outcome {
        Outcome::Cancelled(by) | Outcome::NotStarted(by) => Some(by.request().clone()),
        _ => node.effective_request(),
    };
    let (Some(own), Some(by)) = (node.own_request(), by) else { return false };
    matches!(own.reason(), Reason::GroupEnded | Reason::SiblingSucceeded(_)) && own.at() <= by.at()
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
