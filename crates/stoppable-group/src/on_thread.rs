use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use stoppable_scope::machinery::Node;
use stoppable_scope::{Reason, Scope};
use tokio::task::JoinHandle;

use crate::stop_flag::StopFlag;

/// Work on a blocking thread, as a future: the thread is asked for at the first poll.
pub(crate) struct OnThread<O, W> {
    state: State<O, W>,
    node: Arc<Node>,
}

enum State<O, W> {
    New(W),
    Running(JoinHandle<O>),
    Ended,
}

impl<O, W> OnThread<O, W> {
    pub(crate) fn new(work: W, node: Arc<Node>) -> Self {
        Self { state: State::New(work), node }
    }
}

impl<O, W> Unpin for OnThread<O, W> {}

impl<O, W> Future for OnThread<O, W>
where
    O: Send + 'static,
    W: FnOnce(StopFlag) -> O + Send + 'static,
{
    type Output = O;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<O> {
        let this = &mut *self;
        if let State::New(_) = this.state {
            let State::New(work) = std::mem::replace(&mut this.state, State::Ended) else {
                unreachable!("matched")
            };
            let (node, flag) = (Arc::clone(&this.node), StopFlag::new(Arc::clone(&this.node)));
            let span = tracing::Span::current();
            let run = move || span.in_scope(|| Scope::of(node).in_sync(|| work(flag)));
            this.state = State::Running(tokio::task::spawn_blocking(run));
        }
        let State::Running(thread) = &mut this.state else { panic!("polled after it was ready") };
        match ready!(Pin::new(thread).poll(cx)) {
            Ok(output) => Poll::Ready(output),
            Err(error) => match error.try_into_panic() {
                Ok(payload) => resume_unwind(payload),
                // The runtime is going down and never gave it a thread.
                Err(_) => {
                    this.node.request(Reason::OwnerGone, stoppable_scope::machinery::Origin::Library);
                    Poll::Pending
                }
            },
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
