use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project::{pin_project, pinned_drop};
use stoppable_scope::machinery::{Ended, Frame, Node, Origin, Rule, Section, ambient_node};
use stoppable_scope::{Cancelled, Name, Reason, ScopeKind, TaskError};
use tokio::runtime::Handle;

use crate::catch::{Payload, catch};
use crate::core::Core;
use crate::group_builder::GroupBuilder;
use crate::group_error::GroupError;
use crate::group_report::GroupReport;
use crate::judge::{Verdict, judge};
use crate::root::root_core;
use crate::task_failure::TaskFailure;
use crate::task_group::TaskGroup;
use crate::task_output::IsResult;

/// The future of [`TaskGroup::run`].
#[must_use = "futures do nothing unless awaited"]
#[pin_project(PinnedDrop)]
pub struct GroupRun<B, F, T> {
    start: Option<(GroupBuilder, B)>,
    site: &'static Location<'static>,
    #[pin]
    body: Option<F>,
    running: Option<Running>,
    body_end: Option<BodyEnd<T>>,
    ended: bool,
}

struct Running {
    core: Arc<Core>,
    frame: Frame,
    /// Open while the group winds down: nobody drops it then.
    section: Option<Section>,
}

enum BodyEnd<T> {
    Value(T),
    Cancelled(Cancelled),
    /// In the error, last.
    Failed(TaskFailure),
}

impl<B, F, T> GroupRun<B, F, T> {
    pub(crate) fn new(builder: GroupBuilder, body: B, site: &'static Location<'static>) -> Self {
        let start = Some((builder, body));
        Self { start, site, body: None, running: None, body_end: None, ended: false }
    }
}

impl<B, F> GroupRun<B, F, ()> {
    /// A group that has begun and whose body has ended well.
    pub(crate) fn without_body(
        builder: GroupBuilder,
        site: &'static Location<'static>,
        home: Arc<Node>,
    ) -> (Self, TaskGroup) {
        let running = Running::begin(builder, site, Some(home));
        let group = TaskGroup::of(Arc::clone(&running.core));
        let body_end = Some(BodyEnd::Value(()));
        (Self { start: None, site, body: None, running: Some(running), body_end, ended: false }, group)
    }

    /// Whoever polled this does so no longer: he is not in its winding down, nor it below his scope.
    pub(crate) fn go_home(self: Pin<&mut Self>, home: &Arc<Node>) {
        if let Some(running) = self.project().running {
            running.section = None;
            running.core.node.move_below(home);
        }
    }
}

impl<B, F, T> Future for GroupRun<B, F, T>
where
    B: FnOnce(TaskGroup) -> F,
    F: Future<Output = Result<T, TaskError>>,
{
    type Output = Result<T, GroupError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some((builder, make)) = this.start.take() {
            let running = this.running.insert(Running::begin(builder, this.site, ambient_node()));
            let group = TaskGroup::of(Arc::clone(&running.core));
            match catch(|| running.core.scope().in_sync(|| make(group))) {
                Ok(body) => this.body.set(Some(body)),
                Err(payload) => {
                    let end = running.body_panicked(payload);
                    *this.body_end = Some(running.body_has_ended(end));
                }
            }
        }
        let Some(running) = this.running.as_mut().filter(|_| !*this.ended) else {
            panic!("`GroupRun` polled after it was ready");
        };
        if let Some(body) = this.body.as_mut().as_pin_mut() {
            let end = match catch(|| running.frame.poll(body, cx)) {
                Ok(Poll::Pending) => None,
                Ok(Poll::Ready(Ended::Finished(result))) => Some(running.judge_body(result)),
                Ok(Poll::Ready(Ended::Cut(cut))) => {
                    cut.log(&running.core.node);
                    Some(BodyEnd::Cancelled(Cancelled::new(cut.request)))
                }
                Err(payload) => Some(running.body_panicked(payload)),
            };
            if let Some(mut end) = end {
                if let Err(payload) = catch(|| this.body.set(None)) {
                    end = running.body_panicked(payload);
                }
                *this.body_end = Some(running.body_has_ended(end));
            }
        }
        if this.body_end.is_some() {
            running.frame.attend(cx);
            if running.core.poll_empty(true, cx).is_ready() {
                running.section = None;
                *this.ended = true;
                running.core.node.end();
                let Some(end) = this.body_end.take() else { unreachable!("looked at above") };
                return Poll::Ready(running.leave(end));
            }
        }
        running.wind_down();
        Poll::Pending
    }
}

impl Running {
    fn begin(builder: GroupBuilder, site: &'static Location<'static>, parent: Option<Arc<Node>>) -> Self {
        let Ok(runtime) = Handle::try_current() else {
            panic!(
                "a `TaskGroup` needs a tokio runtime; poll it inside `#[tokio::main]` or `Runtime::block_on`"
            );
        };
        let node = Node::new(ScopeKind::Group, builder.name, site, parent);
        if let Some(grace) = builder.grace {
            node.set_grace(grace);
        }
        if let Some(limit) = builder.cleanup_limit {
            node.set_cleanup_limit(limit);
        }
        if let Some(deadline) = builder.deadline {
            node.set_deadline(deadline.begin());
        }
        let core = Core::new(
            Arc::clone(&node),
            runtime,
            builder.policy,
            builder.keep_report,
            builder.limit,
            builder.cancelled_if,
        );
        Self { core, frame: Frame::new(node, Rule::Any), section: None }
    }

    fn judge_body<T>(&self, result: Result<T, TaskError>) -> BodyEnd<T> {
        let core = &self.core;
        let mut value = None;
        // The value of a body need not be `Send`, so only its error is judged.
        let result = result.map(|body_value| value = Some(body_value));
        let judged = catch(|| judge::<_, IsResult<_>>(core, &core.node, &BODY, result));
        match (judged, value) {
            (Ok(Verdict::Value(())), Some(value)) => BodyEnd::Value(value),
            (Ok(Verdict::Cancelled(cancelled)), _) => BodyEnd::Cancelled(cancelled),
            (Ok(Verdict::Failed(failure)), _) => BodyEnd::Failed(failure),
            (Ok(Verdict::Value(())), None) => unreachable!("an `Ok` left its value"),
            (Err(payload), _) => self.body_panicked(payload),
        }
    }

    fn body_panicked<T>(&self, payload: Payload) -> BodyEnd<T> {
        let node = &self.core.node;
        BodyEnd::Failed(TaskFailure::panic_of(node.id(), BODY, node.site(), payload))
    }

    /// A body that did not end with a value takes its tasks along.
    fn body_has_ended<T>(&self, end: BodyEnd<T>) -> BodyEnd<T> {
        let reason = match &end {
            BodyEnd::Value(_) => return end,
            BodyEnd::Failed(_) => Reason::SiblingFailed(BODY),
            BodyEnd::Cancelled(cancelled) => cancelled.reason().clone(),
        };
        if self.core.node.effective_request().is_none() {
            self.core.node.request(reason, Origin::Library);
        }
        end
    }

    /// Whoever waits for a group lets its tasks be cut first.
    fn wind_down(&mut self) {
        if self.core.node.effective_request().is_none() {
            self.section = None;
        } else if self.section.is_none() {
            self.section = Some(Section::begin());
        }
    }

    fn leave<T>(&self, end: BodyEnd<T>) -> Result<T, GroupError> {
        let (core, name) = (&self.core, self.core.node.name().clone());
        let mut failures = core.failures();
        if let BodyEnd::Failed(failure) = &end {
            // The one it passed on may be in already; not so in a group that a success has decided.
            if !failures.iter().any(|known| known.is(failure)) {
                failures.push(failure.clone());
            }
        }
        if !failures.is_empty() {
            return Err(GroupError::failed(name, failures));
        }
        let undisturbed = !core.is_disturbed() && !core.node.has_answered();
        match end {
            BodyEnd::Value(value) if undisturbed => Ok(value),
            end => match (core.node.request_above(), end) {
                (Some(above), _) => Err(GroupError::cancelled_by(name, Cancelled::new(above))),
                (None, BodyEnd::Value(value)) => Ok(value),
                (None, BodyEnd::Cancelled(by)) => {
                    let own = core.node.own_request().map_or(by, Cancelled::new);
                    Err(GroupError::cancelled_by(name, own))
                }
                (None, BodyEnd::Failed(_)) => unreachable!("a failure was found above"),
            },
        }
    }
}

const BODY: Name = Name::from_static("body");

/// Rust cannot await in `Drop`: the tasks get another owner.
#[pinned_drop]
impl<B, F, T> PinnedDrop for GroupRun<B, F, T> {
    fn drop(self: Pin<&mut Self>) {
        let mut this = self.project();
        let Some(running) = this.running.take().filter(|_| !*this.ended) else { return };
        let core = Arc::clone(&running.core);
        core.set_orphan();
        core.node.request(Reason::OwnerGone, Origin::Library);
        // What the body leaves to close goes to the group, before that goes to its new owner.
        let dropped = catch(|| this.body.set(None));
        drop(running);
        if !core.poll_now_empty() {
            let adopted =
                core.node.above().and_then(|above| Core::find(&above, |owner| owner.adopt(&core).ok()));
            if adopted.is_none() {
                let _ = root_core(&core.runtime).adopt(&core);
            }
        }
        if let Err(payload) = dropped {
            if !std::thread::panicking() {
                std::panic::resume_unwind(payload);
            }
        }
    }
}

impl<B, F, T> fmt::Debug for GroupRun<B, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.running.as_ref().map(|running| &running.core);
        f.debug_struct("GroupRun")
            .field("name", &core.map(|core| core.node.name()))
            .field("live", &core.map(|core| core.live()))
            .finish_non_exhaustive()
    }
}

/// The future of [`GroupBuilder::run_reported`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
#[pin_project]
pub struct GroupRunReported<B, F, T> {
    #[pin]
    run: GroupRun<B, F, T>,
}

impl<B, F, T> GroupRunReported<B, F, T> {
    pub(crate) fn new(run: GroupRun<B, F, T>) -> Self {
        Self { run }
    }
}

impl<B, F, T> Future for GroupRunReported<B, F, T>
where
    B: FnOnce(TaskGroup) -> F,
    F: Future<Output = Result<T, TaskError>>,
{
    type Output = (Result<T, GroupError>, GroupReport);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut run = self.project().run;
        let result = ready!(run.as_mut().poll(cx));
        let report = run.project().running.take().map(|running| running.core.into_report());
        Poll::Ready((result, report.unwrap_or_default()))
    }
}
