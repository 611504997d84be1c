use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Poll, ready};

use parking_lot::Mutex;
use stoppable_scope::machinery::Node;
use stoppable_scope::{Cancelled, Name, Scope, ScopeKind, WaitPoint};
use tokio::runtime::{Handle, Id};

use crate::core::Core;
use crate::group_report::GroupReport;
use crate::policy::Policy;

/// The root of the running runtime: the owner of what no group is left to own.
///
/// The tasks of a group whose future was dropped outside of any other group, and closers that were deferred
/// outside of one, belong to it. Nothing is detached, but somebody has to wait: call
/// [`Root::join`] last, before the runtime ends.
///
/// # Panics
///
/// Outside of a tokio runtime.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let report = stoppable_group::root().join().await.unwrap();
/// assert_eq!(report.live, 0);
/// # }
/// ```
#[track_caller]
pub fn root() -> Root {
    Root { core: root_core(&Handle::current()) }
}

/// See [`root`].
#[derive(Clone)]
pub struct Root {
    core: Arc<Core>,
}

impl Root {
    /// Waits until nothing is left of what the runtime's root owns, and reports it. A stoppable wait.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only waits.
    ///
    /// # Errors
    ///
    /// [`Cancelled`] for whoever waits.
    pub async fn join(&self) -> Result<GroupReport, Cancelled> {
        let mut point = WaitPoint::new();
        poll_fn(|cx| {
            loop {
                if self.core.poll_empty(false, cx).is_ready() {
                    return Poll::Ready(Ok(self.core.report()));
                }
                ready!(point.check())?;
                ready!(point.park(cx));
            }
        })
        .await
    }

    /// The scope of all that the root owns: cancel it to ask whatever is left to leave.
    pub fn scope(&self) -> Scope {
        Scope::of(Arc::clone(&self.core.node))
    }

    /// How many tasks of its own are alive.
    pub fn live(&self) -> usize {
        self.core.report().live
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("live", &self.live()).finish_non_exhaustive()
    }
}

static ROOTS: Mutex<Option<HashMap<Id, Arc<Core>>>> = Mutex::new(None);

pub(crate) fn root_core(runtime: &Handle) -> Arc<Core> {
    let mut roots = ROOTS.lock();
    let roots = roots.get_or_insert_default();
    let core = roots.entry(runtime.id()).or_insert_with(|| {
        let node = Node::new(ScopeKind::Group, Name::from_static("root"), Location::caller(), None);
        Core::new(node, runtime.clone(), Policy::Supervise, false, None, None)
    });
    Arc::clone(core)
}
