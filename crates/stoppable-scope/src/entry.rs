//! Entering a scope that exists already.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::ambient::{self, Ambient};
use crate::cut::Ended;
use crate::frame::{Frame, Rule};
use crate::name::Name;
use crate::node::{Node, ScopeKind};

/// One future's stay in a scope.
///
/// Where the scope lies directly below the one that polls, the frame is the scope's own. Elsewhere the
/// future is in both: it gets a scope below the one entered, and also below the one around it, for a
/// cancel of either has to reach its waits.
#[derive(Debug)]
pub(crate) struct Entry {
    scope: Arc<Node>,
    site: &'static Location<'static>,
    frame: Frame,
    around: Option<Arc<Node>>,
}

impl Entry {
    pub(crate) fn new(scope: &Arc<Node>, rule: Rule, site: &'static Location<'static>) -> Self {
        let frame = Frame::new(Arc::clone(scope), rule);
        Self { scope: Arc::clone(scope), site, frame, around: None }
    }

    pub(crate) fn poll<F: Future>(
        &mut self,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<Ended<F::Output>> {
        self.settle(cx);
        self.frame.poll(future, cx)
    }

    fn settle(&mut self, cx: &Context<'_>) {
        let entered = Arc::ptr_eq(self.frame.node(), &self.scope);
        let settled = ambient::with(|ambient| match (ambient, &self.around) {
            (Some(now), _) if entered => self.is_direct(now, cx),
            (Some(now), Some(before)) => Arc::ptr_eq(now.node(), before),
            (now, before) => !entered && now.is_none() && before.is_none(),
        });
        if settled {
            return;
        }
        if entered {
            let parent = Some(Arc::clone(&self.scope));
            let name: Name = self.scope.name().clone();
            self.frame.change_scope(Node::new(ScopeKind::Entry, name, self.site, parent));
        }
        let around = ambient::node();
        if around.is_none() && self.around.is_none() {
            return;
        }
        let also = around.as_ref().filter(|around| !self.scope.is_within(around.id()));
        self.frame.node().also_below(also);
        self.around = around;
    }

    /// Whether the scope lies directly below the one that polls it, with the same waker.
    fn is_direct(&self, around: &Ambient, cx: &Context<'_>) -> bool {
        let child = self.scope.kind() == ScopeKind::Scope && self.scope.is_child_of(around.node());
        child && around.is_polled_with(cx)
    }
}
