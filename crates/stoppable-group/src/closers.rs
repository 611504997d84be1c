//! Closers that run after their guard was dropped: those of one task one after another, in the order of
//! the drops.

use std::collections::{HashMap, VecDeque};
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use stoppable_scope::machinery::Node;
use stoppable_scope::{Name, ScopeId, ScopeKind, TaskError, cleanup};

use crate::catch::{Payload, catch};
use crate::core::Core;
use crate::group_report::TaskReport;
use crate::ledger::Effect;
use crate::outcome::Outcome;
use crate::task_failure::TaskFailure;
use crate::task_output::Value;
use crate::task_root::{Kind, TaskRoot};

pub(crate) type Closing = Pin<Box<dyn Future<Output = Result<(), TaskError>> + Send>>;

/// A closer with its value, begun or not.
pub(crate) struct Closer {
    pub(crate) name: Name,
    pub(crate) site: &'static Location<'static>,
    pub(crate) limit: Duration,
    pub(crate) begin: Box<dyn FnOnce() -> Closing + Send>,
}

/// The closers that wait, by the task they belong to. A task with an entry has a runner.
pub(crate) type Lanes = HashMap<ScopeId, VecDeque<Closer>>;

impl Core {
    /// Takes a closer over, or gives it back where this group has ended.
    pub(crate) fn close_later(self: &Arc<Self>, lane: ScopeId, closer: Closer) -> Result<(), Closer> {
        let site = closer.site;
        let mut closer = Some(closer);
        let started = self.queue_closer(|lanes| {
            let waiting = lanes.get_mut(&lane);
            let start = waiting.is_none();
            match (waiting, closer.take()) {
                (Some(waiting), Some(closer)) => waiting.push_back(closer),
                (None, Some(closer)) => {
                    lanes.insert(lane, VecDeque::from([closer]));
                }
                (_, None) => {}
            }
            start
        });
        match (started, closer) {
            (None, Some(closer)) => return Err(closer),
            (Some(true), _) => self.start_runner(lane, site),
            _ => {}
        }
        Ok(())
    }

    fn start_runner(self: &Arc<Self>, lane: ScopeId, site: &'static Location<'static>) {
        let name = Name::from_static("closers");
        let node = Node::new(ScopeKind::Task, name, site, Some(Arc::clone(&self.node)));
        let core = Arc::clone(self);
        let run = async move {
            while let Some(closer) = core.next_closer(lane) {
                let (name, site) = (closer.name, closer.site);
                let closing = CatchPanic(Begin::New(closer.begin));
                let end = cleanup(closer.limit, closing).await;
                let error = match end {
                    Ok(Ok(Ok(()))) => continue,
                    Ok(Ok(Err(error))) => Ok(error),
                    Ok(Err(payload)) => Err(payload),
                    Err(elapsed) => Ok(TaskError::from(elapsed)),
                };
                let id = core.node.id();
                let failure = match error {
                    Ok(error) => TaskFailure::error_of(id, name, site, error),
                    Err(payload) => TaskFailure::panic_of(id, name, site, payload),
                };
                core.record_closer(failure);
            }
            Value(())
        };
        let root = TaskRoot::new(run, Kind::Closers, node, Arc::clone(self), None);
        drop(self.runtime.spawn(root));
    }

    fn next_closer(&self, lane: ScopeId) -> Option<Closer> {
        self.with_lanes(|lanes| {
            let next = lanes.get_mut(&lane).and_then(VecDeque::pop_front);
            if next.is_none() {
                lanes.remove(&lane);
            }
            next
        })
    }

    fn record_closer(&self, failure: TaskFailure) {
        let report = TaskReport {
            id: failure.id(),
            name: failure.name().clone(),
            site: failure.site(),
            outcome: Outcome::Failed(failure),
            ran_for: None,
            last_wait: None,
        };
        let _none = self.record(report, false, Effect::Keep, None);
    }
}

/// Calls the closer at the first poll, and keeps its panic.
struct CatchPanic(Begin);

enum Begin {
    New(Box<dyn FnOnce() -> Closing + Send>),
    Running(Closing),
    Ended,
}

impl Future for CatchPanic {
    type Output = Result<Result<(), TaskError>, Payload>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = &mut self.get_mut().0;
        if let Begin::New(_) = state {
            let Begin::New(begin) = std::mem::replace(state, Begin::Ended) else { unreachable!("matched") };
            match catch(begin) {
                Ok(closing) => *state = Begin::Running(closing),
                Err(payload) => return Poll::Ready(Err(payload)),
            }
        }
        let Begin::Running(closing) = state else { panic!("closer polled after it has ended") };
        match catch(|| closing.as_mut().poll(cx)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => {
                // Its destructor is code of the user too.
                let dropped = catch(|| *state = Begin::Ended);
                Poll::Ready(dropped.map(|()| result))
            }
            Err(payload) => Poll::Ready(Err(payload)),
        }
    }
}

/// At its limit a closer is dropped: what panics then must not take along those that wait behind it.
impl Drop for CatchPanic {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut self.0, Begin::Ended);
        if catch(|| drop(state)).is_err() {
            tracing::error!("a closer panicked when it was dropped at its limit");
        }
    }
}
