use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;

use crate::cancelled::Cancelled;
use crate::cut::Ended;
use crate::entry::Entry;
use crate::frame::Rule;
use crate::node::Node;
use crate::wait_point::WaitPoint;

/// The future of [`Scope::run`](crate::Scope::run).
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
#[pin_project]
pub struct ScopeRun<F> {
    #[pin]
    future: Option<F>,
    scope: Arc<Node>,
    site: &'static Location<'static>,
    entry: Option<Entry>,
}

impl<F> ScopeRun<F> {
    pub(crate) fn new(scope: Arc<Node>, future: F, site: &'static Location<'static>) -> Self {
        Self { future: Some(future), scope, site, entry: None }
    }
}

impl<F: Future> Future for ScopeRun<F> {
    type Output = Result<F::Output, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.entry.is_none() {
            let request = this.scope.effective_request().or_else(WaitPoint::pending_request);
            if let Some(request) = request {
                let cancelled = ready!(WaitPoint::answer(request));
                this.future.set(None);
                return Poll::Ready(Err(cancelled));
            }
        }
        let site = *this.site;
        let entry = this.entry.get_or_insert_with(|| Entry::new(this.scope, Rule::Wait, site));
        let Some(future) = this.future.as_mut().as_pin_mut() else {
            panic!("`ScopeRun` polled after it was ready");
        };
        WaitPoint::note(site);
        match ready!(entry.poll(future, cx)) {
            Ended::Finished(output) => Poll::Ready(Ok(output)),
            Ended::Cut(cut) => {
                this.future.set(None);
                // Silent or not, the future is gone, so there is an answer to give.
                let _ = WaitPoint::answer(cut.request.clone());
                Poll::Ready(Err(Cancelled::new(cut.request)))
            }
        }
    }
}
