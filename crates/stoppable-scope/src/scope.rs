use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::ambient;
use crate::cancelled::Cancelled;
use crate::deadline::Deadline;
use crate::name::Name;
use crate::node::{Node, ScopeKind};
use crate::reason::Reason;
use crate::request::{Origin, ScopeId};
use crate::scope_cancelled::ScopeCancelled;
use crate::scope_run::ScopeRun;
use crate::stopping::Stopping;
use crate::tree::Tree;

/// A node in the tree of cancellation.
///
/// Every group, task and timed call has one, and one can be made by hand. A scope hears two signals,
/// both inherited by all scopes below: [`stop`](Self::stop) asks to finish and to take nothing new,
/// [`cancel`](Self::cancel) asks to leave now. A cancel is a request: stoppable waits answer it with
/// [`Cancelled`], the code after them runs, and what then still waits is dropped by the wrapper of the
/// scope. It stands until it is taken back with [`uncancel`](Self::uncancel).
///
/// A `Scope` is a handle: clones mean the same scope, and dropping the last one cancels nothing.
///
/// # Compared with `CancellationToken`
///
/// A token is a flag that each wait has to be told of and has to register with. A scope is found by the
/// waits themselves, has a reason, a tree and deadlines, and can be taken back. Keep tokens at the border
/// to code that knows only them: [`from_token`](Self::from_token) and [`token`](Self::token) convert.
/// trio's `CancelScope` is the model.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_scope::{OrCancelledExt, Scope};
///
/// let scope = Scope::named("import");
/// let remote = scope.clone();
/// let import = scope.run(async move {
///     remote.cancel("the user pressed escape");
///     std::future::pending::<()>().or_cancelled().await
/// });
/// let error = import.await.unwrap().unwrap_err();
/// assert_eq!(error.to_string(), "cancelled: the user pressed escape");
/// # }
/// ```
#[derive(Clone)]
pub struct Scope {
    node: Arc<Node>,
}

impl Scope {
    /// A new scope below the one that is running, or on its own where there is none.
    #[track_caller]
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self::named("scope")
    }

    /// [`new`](Self::new), with a name for errors and reports.
    #[track_caller]
    #[must_use]
    pub fn named(name: impl Into<Name>) -> Self {
        Self::below(name.into(), Location::caller(), ambient::node())
    }

    /// A new scope below this one.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use stoppable_scope::Scope;
    ///
    /// let app = Scope::named("app");
    /// let request = app.child("request");
    /// app.cancel("closing");
    /// assert!(request.is_cancelled());
    /// assert_eq!(request.cancelling(), 0); // it was not made on this one
    /// # }
    /// ```
    #[track_caller]
    #[must_use]
    pub fn child(&self, name: impl Into<Name>) -> Self {
        Self::below(name.into(), Location::caller(), Some(Arc::clone(&self.node)))
    }

    /// A scope that is cancelled when `token` is, and never cancels it.
    ///
    /// A request that came from the token cannot be taken back.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_scope::Scope;
    /// use tokio_util::sync::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// let scope = Scope::from_token(token.clone());
    /// token.cancel();
    /// assert!(scope.is_cancelled());
    /// ```
    #[track_caller]
    #[must_use]
    pub fn from_token(token: CancellationToken) -> Self {
        let scope = Self::below(Name::from_static("token"), Location::caller(), ambient::node());
        scope.node.link_token(token);
        scope
    }

    fn below(name: Name, site: &'static Location<'static>, parent: Option<Arc<Node>>) -> Self {
        Self { node: Node::new(ScopeKind::Scope, name, site, parent) }
    }

    /// The scope of the code that is running, where there is one.
    pub fn current() -> Option<Self> {
        ambient::node().map(Self::of)
    }

    #[doc(hidden)]
    pub fn of(node: Arc<Node>) -> Self {
        Self { node }
    }

    #[doc(hidden)]
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Which scope this is.
    pub fn id(&self) -> ScopeId {
        self.node.id()
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        self.node.name()
    }

    /// Asks everything in this scope to leave now.
    ///
    /// The reason may be a text, an error ([`Reason::error`]) or `()`. The first one stands. A request on
    /// a scope that is cancelled is counted and changes nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_scope::Scope;
    ///
    /// let scope = Scope::new();
    /// scope.cancel("first");
    /// scope.cancel("second");
    /// assert_eq!(scope.cancelling(), 2);
    /// assert_eq!(scope.check().unwrap_err().to_string(), "cancelled: first");
    /// ```
    pub fn cancel(&self, reason: impl Into<Reason>) {
        self.node.request(reason.into(), Origin::User);
    }

    /// Takes back the latest request that a user made on this scope, and tells how many are left.
    ///
    /// Never one of a scope above, of the library (a deadline, a failed sibling) or of a token. What runs
    /// below works again at once; a group or timed call that is winding down goes on doing so. It is for
    /// rare, stated reasons. asyncio's `uncancel` is the model; where there is nothing to take back the
    /// answer is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_scope::Scope;
    ///
    /// let scope = Scope::new();
    /// scope.cancel(());
    /// assert_eq!(scope.uncancel(), 0);
    /// assert!(scope.check().is_ok());
    /// ```
    #[allow(clippy::must_use_candidate)]
    pub fn uncancel(&self) -> usize {
        self.node.uncancel()
    }

    /// How many requests that users made on this very scope stand.
    pub fn cancelling(&self) -> usize {
        self.node.cancelling()
    }

    /// Whether a request stands on this scope or one above, up to a cleanup section.
    pub fn is_cancelled(&self) -> bool {
        self.node.effective_request().is_some()
    }

    /// `Err(Cancelled)` if a request stands on this scope or one above.
    ///
    /// Does not wait and does not look at the clock; see [`checkpoint`](crate::checkpoint).
    ///
    /// # Errors
    ///
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        self.node.check()
    }

    /// Waits until this scope is cancelled, and tells why. For `select!` and for code outside the scope.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it holds nothing but its registration.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_scope::Scope;
    ///
    /// let scope = Scope::new();
    /// scope.cancel("over");
    /// assert_eq!(scope.cancelled().await.to_string(), "cancelled: over");
    /// # }
    /// ```
    pub fn cancelled(&self) -> ScopeCancelled {
        ScopeCancelled::new(Arc::clone(&self.node))
    }

    /// Asks everything in this scope to finish and to take nothing new. No wait is cancelled by it.
    pub fn stop(&self) {
        self.node.stop();
    }

    /// Whether this scope or one above was asked to stop, or was cancelled.
    pub fn is_stopping(&self) -> bool {
        self.node.is_stopping()
    }

    /// Ends when this scope is asked to stop or is cancelled. `'static`, and works in any task: it is
    /// what `axum::serve(..).with_graceful_shutdown(..)` takes.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it holds nothing but its registration.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_scope::Scope;
    ///
    /// let scope = Scope::new();
    /// let server = tokio::spawn(scope.stopping());
    /// scope.stop();
    /// server.await.unwrap();
    /// # }
    /// ```
    pub fn stopping(&self) -> Stopping {
        Stopping::new(Arc::clone(&self.node))
    }

    /// Runs `future` in this scope. A stoppable wait: on a cancel of this scope, or of one around the
    /// caller, the future is asked first, and dropped if it still waits after that.
    ///
    /// In a scope that is cancelled already the future is not polled. Cleanup sections inside are
    /// honoured.
    ///
    /// # Cancel safety
    ///
    /// That of `future`, which a cancel drops.
    ///
    /// # Errors
    ///
    /// [`Cancelled`] if the future did not end after it was asked.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_scope::Scope;
    ///
    /// let scope = Scope::new();
    /// let remote = scope.clone();
    /// tokio::spawn(async move {
    ///     tokio::time::sleep(Duration::from_secs(1)).await;
    ///     remote.cancel("too slow");
    /// });
    /// assert!(scope.run(std::future::pending::<()>()).await.is_err());
    /// # }
    /// ```
    #[track_caller]
    pub fn run<F: Future>(&self, future: F) -> ScopeRun<F> {
        ScopeRun::new(Arc::clone(&self.node), future, Location::caller())
    }

    /// Runs synchronous code in this scope: what it spawns or checks finds the scope.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_scope::Scope;
    ///
    /// let scope = Scope::named("config");
    /// let name = scope.in_sync(|| Scope::current().unwrap().name().to_string());
    /// assert_eq!(name, "config");
    /// ```
    pub fn in_sync<T>(&self, run: impl FnOnce() -> T) -> T {
        let _within = ambient::Within::new(Arc::clone(&self.node));
        run()
    }

    /// A token that is cancelled with this scope; cancelling it is a request on the scope.
    ///
    /// It is made on demand. A token that was cancelled stays so: after an `uncancel` the next call gives
    /// a new one, while the request of a token cannot be taken back. A scope that was made from a token
    /// gives a child of that token.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_scope::Scope;
    ///
    /// let scope = Scope::new();
    /// let token = scope.token();
    /// scope.cancel(());
    /// assert!(token.is_cancelled());
    /// ```
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.node.hand_out_token()
    }

    /// The nearest deadline here: the earliest of this scope and those around it.
    pub fn deadline(&self) -> Deadline {
        self.node.effective_deadline()
    }

    /// How long all cleanup sections together may take after a request on this scope or below; 60 s
    /// where it is not set.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_scope::{Scope, cleanup};
    /// use tokio::time::sleep;
    ///
    /// let scope = Scope::new();
    /// scope.set_cleanup_limit(Duration::from_secs(5));
    /// let work = scope.run(async {
    ///     scope.cancel(());
    ///     cleanup(Duration::from_secs(3), sleep(Duration::from_secs(3))).await.unwrap();
    ///     // Two seconds are left of the five.
    ///     cleanup(Duration::from_secs(3), sleep(Duration::from_secs(3))).await.is_err()
    /// });
    /// assert!(work.await.unwrap());
    /// # }
    /// ```
    pub fn set_cleanup_limit(&self, limit: std::time::Duration) {
        self.node.set_cleanup_limit(limit);
    }

    /// A picture of this scope and all below it, as of now.
    pub fn tree(&self) -> Tree {
        Tree::of(&self.node)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("id", &self.id())
            .field("name", self.name())
            .field("cancelled", &self.node.effective_request().map(|r| r.reason().clone()))
            .finish_non_exhaustive()
    }
}
