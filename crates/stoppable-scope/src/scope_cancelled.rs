use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::cancelled::Cancelled;
use crate::node::{Node, Registration};

/// The future of [`Scope::cancelled`](crate::Scope::cancelled).
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct ScopeCancelled {
    node: Arc<Node>,
    registration: Option<Registration>,
}

impl ScopeCancelled {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, registration: None }
    }

    fn answer(&self) -> Poll<Cancelled> {
        self.node.effective_request().map_or(Poll::Pending, |request| Poll::Ready(Cancelled::new(request)))
    }
}

impl Future for ScopeCancelled {
    type Output = Cancelled;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Cancelled> {
        if let Poll::Ready(cancelled) = self.answer() {
            return Poll::Ready(cancelled);
        }
        let this = &mut *self;
        Registration::ensure(&mut this.registration, &this.node, cx, false);
        // A request that came before the registration has woken nobody.
        self.answer()
    }
}
