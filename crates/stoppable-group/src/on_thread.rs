use std::error::Error;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use stoppable_scope::machinery::{Node, Origin};
use stoppable_scope::{Cancelled, Reason, Scope, TaskError};
use tokio::task::JoinHandle;

use crate::stop_flag::StopFlag;
use crate::task_output::TaskOutput;

/// Work on a blocking thread, as a future: the thread is asked for at the first poll.
pub(crate) struct OnThread<O, W> {
    state: State<O, W>,
    node: Arc<Node>,
    /// Set by whoever is first: the thread, which then begins, or a cancel while none was free.
    decided: Arc<AtomicBool>,
}

enum State<O, W> {
    New(W),
    Running(JoinHandle<Option<O>>),
    Ended,
}

impl<O, W> OnThread<O, W> {
    pub(crate) fn new(work: W, node: Arc<Node>) -> Self {
        Self { state: State::New(work), node, decided: Arc::default() }
    }
}

impl<O, W> Unpin for OnThread<O, W> {}

impl<O, W> Future for OnThread<O, W>
where
    O: Send + 'static,
    W: FnOnce(StopFlag) -> O + Send + 'static,
{
    type Output = Ran<O>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ran<O>> {
        let this = &mut *self;
        if let State::New(_) = this.state {
            let State::New(work) = std::mem::replace(&mut this.state, State::Ended) else {
                unreachable!("matched")
            };
            let (node, flag) = (Arc::clone(&this.node), StopFlag::new(Arc::clone(&this.node)));
            let (span, decided) = (tracing::Span::current(), Arc::clone(&this.decided));
            let run = move || {
                let begins = !decided.swap(true, Ordering::AcqRel);
                begins.then(|| span.in_scope(|| Scope::of(node).in_sync(|| work(flag))))
            };
            this.state = State::Running(tokio::task::spawn_blocking(run));
        }
        if let Some(request) = this.node.effective_request() {
            if !this.decided.swap(true, Ordering::AcqRel) {
                return Poll::Ready(Ran::NotBegun(NotBegun(Cancelled::new(request))));
            }
        }
        let State::Running(thread) = &mut this.state else { panic!("polled after it was ready") };
        match ready!(Pin::new(thread).poll(cx)).map_err(|error| error.try_into_panic()) {
            Ok(Some(output)) => Poll::Ready(Ran::Output(output)),
            Err(Ok(payload)) => resume_unwind(payload),
            // The runtime is going down and never gave it a thread.
            Ok(None) | Err(Err(_)) => {
                let request = this.node.request(Reason::OwnerGone, Origin::Library);
                Poll::Ready(Ran::NotBegun(NotBegun(Cancelled::new(request))))
            }
        }
    }
}

impl<O, W> Drop for OnThread<O, W> {
    fn drop(&mut self) {
        if let State::Running(thread) = &self.state {
            // Where it still waits for a thread, it need not begin.
            thread.abort();
        }
    }
}

/// What came of work on a thread.
pub(crate) enum Ran<O> {
    Output(O),
    NotBegun(NotBegun),
}

/// It was cancelled before a thread was free.
#[derive(Debug, thiserror::Error)]
#[error("no thread was free before it was cancelled")]
pub(crate) struct NotBegun(#[source] Cancelled);

/// Marker of [`TaskOutput`]: an output with the marker `M`, if there is one.
pub(crate) struct IsRan<M>(PhantomData<M>);

impl<O: TaskOutput<M>, M: 'static> TaskOutput<IsRan<M>> for Ran<O> {
    type Value = O::Value;

    fn as_error(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Output(output) => output.as_error(),
            Self::NotBegun(not_begun) => Some(not_begun),
        }
    }

    fn into_result(self) -> Result<O::Value, TaskError> {
        match self {
            Self::Output(output) => output.into_result(),
            Self::NotBegun(not_begun) => Err(not_begun.into()),
        }
    }
}
