use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::node::{Node, Registration};

/// The future of [`Scope::stopping`](crate::Scope::stopping).
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Stopping {
    node: Arc<Node>,
    registration: Option<Registration>,
}

impl Stopping {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, registration: None }
    }
}

impl Clone for Stopping {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.node))
    }
}

impl Future for Stopping {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.node.is_stopping() {
            return Poll::Ready(());
        }
        let this = &mut *self;
        Registration::ensure(&mut this.registration, &this.node, cx, true);
        // A signal that came before the registration has woken nobody.
        if self.node.is_stopping() { Poll::Ready(()) } else { Poll::Pending }
    }
}
