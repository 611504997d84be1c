//! The two ways between a scope and a `CancellationToken`.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::node::Node;
use crate::reason::Reason;
use crate::request::Origin;
use crate::sync::Mutex;

/// A token whose cancel is a request on a scope. No task watches it: the waker that the token wakes
/// makes the request.
pub(crate) struct TokenLink {
    token: CancellationToken,
    watch: Pin<Box<WaitForCancellationFutureOwned>>,
}

struct Watch {
    node: Weak<Node>,
    token: CancellationToken,
    done: Mutex<bool>,
}

impl TokenLink {
    fn new(node: &Arc<Node>, token: CancellationToken) -> Self {
        let watch = Box::pin(token.clone().cancelled_owned());
        Self { token, watch }.started(node)
    }

    fn started(mut self, node: &Arc<Node>) -> Self {
        let watch = Arc::new(Watch {
            node: Arc::downgrade(node),
            token: self.token.clone(),
            done: Mutex::new(false),
        });
        let waker = Waker::from(Arc::clone(&watch));
        let cancelled = pin!(&mut self.watch);
        if cancelled.poll(&mut Context::from_waker(&waker)).is_ready() {
            watch.wake();
        }
        self
    }

    pub(crate) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// A token that was cancelled stays so; the scope needs a new one.
    pub(crate) fn is_spent(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Cancels the token without hearing it as a request.
    pub(crate) fn cancel(self) {
        drop(self.watch);
        self.token.cancel();
    }
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        if !self.token.is_cancelled() || std::mem::replace(&mut *self.done.lock(), true) {
            return;
        }
        if let Some(node) = self.node.upgrade() {
            node.request(Reason::Token, Origin::Token);
        }
    }
}

impl fmt::Debug for TokenLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenLink").finish_non_exhaustive()
    }
}

impl Node {
    /// Links an outside token: its cancel is a request that nobody can take back.
    pub(crate) fn link_token(self: &Arc<Self>, token: CancellationToken) {
        let link = TokenLink::new(self, token);
        self.set_outside_token(link);
    }

    /// A token that is cancelled with this scope: a child of the one it was made from, if it was.
    pub(crate) fn hand_out_token(self: &Arc<Self>) -> CancellationToken {
        if let Some(token) = self.known_token() {
            return token;
        }
        let token = self.outside_token().map_or_else(CancellationToken::new, |outside| outside.child_token());
        let link = TokenLink::new(self, token.clone());
        if let Some(first) = self.set_token(link) {
            // Another thread was first.
            return first;
        }
        if self.effective_request().is_some() {
            if let Some(link) = self.take_token() {
                link.cancel();
            }
        }
        token
    }
}
