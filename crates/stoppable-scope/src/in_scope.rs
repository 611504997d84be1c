use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;

use crate::ambient;
use crate::cut::Ended;
use crate::entry::Entry;
use crate::frame::Rule;
use crate::node::Node;
use crate::scope::Scope;

/// Gives a future a scope that the task which polls it does not have.
pub trait InScopeExt: Future + Sized {
    /// Polls this future in `scope`: its stoppable waits answer the requests of that scope.
    ///
    /// The future is never dropped by this, since it has no error to say so with; see
    /// [`Scope::run`] for that.
    ///
    /// # Cancel safety
    ///
    /// That of the future.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_scope::{InScopeExt, OrCancelledExt, Scope};
    ///
    /// let scope = Scope::new();
    /// let wait = tokio::spawn(std::future::pending::<()>().or_cancelled().in_scope(&scope));
    /// scope.cancel(());
    /// assert!(wait.await.unwrap().is_err());
    /// # }
    /// ```
    #[track_caller]
    fn in_scope(self, scope: &Scope) -> InScope<Self> {
        InScope::new(self, Some(Arc::clone(scope.node())), Location::caller())
    }

    /// Polls this future in the scope of the code that calls this, wherever it is spawned.
    ///
    /// A plain `tokio::spawn` carries no scope; with this it does. Such a task still has no owner: prefer
    /// to spawn it in a group.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use stoppable_scope::{InScopeExt, OrCancelledExt, Scope};
    ///
    /// let scope = Scope::new();
    /// let wait = scope.in_sync(|| {
    ///     tokio::spawn(std::future::pending::<()>().or_cancelled().in_current_scope())
    /// });
    /// scope.cancel(());
    /// assert!(wait.await.unwrap().is_err());
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// That of the future.
    #[track_caller]
    fn in_current_scope(self) -> InScope<Self> {
        InScope::new(self, ambient::node(), Location::caller())
    }
}

impl<F: Future> InScopeExt for F {}

/// The future of [`in_scope`](InScopeExt::in_scope) and [`in_current_scope`](InScopeExt::in_current_scope).
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
#[pin_project]
pub struct InScope<F> {
    #[pin]
    future: F,
    entry: Option<Entry>,
}

impl<F> InScope<F> {
    fn new(future: F, scope: Option<Arc<Node>>, site: &'static Location<'static>) -> Self {
        Self { future, entry: scope.map(|scope| Entry::new(&scope, Rule::Never, site)) }
    }
}

impl<F: Future> Future for InScope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(entry) = this.entry else { return this.future.poll(cx) };
        match ready!(entry.poll(this.future, cx)) {
            Ended::Finished(output) => Poll::Ready(output),
            Ended::Cut(_) => unreachable!("a frame with `Rule::Never` does not cut"),
        }
    }
}
