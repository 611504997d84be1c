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
    #[track_caller]
    pub fn join(&self) -> impl Future<Output = Result<GroupReport, Cancelled>> + Send + use<> {
        let (core, mut point) = (Arc::clone(&self.core), WaitPoint::new());
        poll_fn(move |cx| {
            loop {
                // Nothing is lost by an answer, so a request comes first.
                ready!(point.check())?;
                if core.poll_empty(false, cx).is_ready() {
                    return Poll::Ready(Ok(core.report()));
                }
                ready!(point.park(cx));
            }
        })
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
    let (core, idle) = {
        let mut roots = ROOTS.lock();
        let roots = roots.get_or_insert_default();
        if let Some(core) = roots.get(&runtime.id()) {
            return Arc::clone(core);
        }
        // With a new runtime those go that nobody uses: their runtimes may have ended.
        let unused = |core: &Arc<Core>| Arc::strong_count(core) == 1 && core.is_idle();
        let idle: Vec<Id> = roots.iter().filter(|(_, core)| unused(core)).map(|(id, _)| *id).collect();
        let idle: Vec<Arc<Core>> = idle.iter().filter_map(|id| roots.remove(id)).collect();
        let node = Node::new(ScopeKind::Group, Name::from_static("root"), Location::caller(), None);
        let core = Core::new(node, runtime.clone(), Policy::Supervise, false, None, None);
        roots.insert(runtime.id(), Arc::clone(&core));
        (core, idle)
    };
    drop(idle);
    core
}
