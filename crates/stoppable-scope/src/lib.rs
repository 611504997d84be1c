//! Cancellation scopes, deadlines and cleanup sections for tokio: the ground floor of
//! [`stoppable`](https://docs.rs/stoppable).
//!
//! A cancel is a request, made on a [`Scope`]. The waits in it that are stoppable
//! ([`or_cancelled`](OrCancelledExt::or_cancelled), [`Scope::run`], [`checkpoint`] and those of the other
//! crates) *answer* it with [`Cancelled`], and the code after them runs. What then still waits is *cut*,
//! which means dropped, as tokio would drop it. Cut is not what stands in a [`cleanup`] section, before its
//! limit. A [`with_timeout`] is a scope that cancels itself; a [`Deadline`] is one instant that all
//! calls below share.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! use std::time::Duration;
//! use stoppable_scope::{OrCancelledExt, cleanup, ok, with_timeout};
//! use tokio::time::sleep;
//!
//! let upload = with_timeout(Duration::from_secs(5), async {
//!     let sent = sleep(Duration::from_secs(60)).or_cancelled().await;
//!     if sent.is_err() {
//!         // Two more seconds to tell the other side. No cancel reaches this.
//!         cleanup(Duration::from_secs(2), sleep(Duration::from_secs(1))).await?;
//!     }
//!     sent?;
//!     ok(())
//! });
//! assert!(upload.await.unwrap_err().is_elapsed());
//! # }
//! ```

mod alarm;
mod ambient;
mod cancelled;
mod chain;
mod checkpoint;
mod cleanup;
mod cut;
mod deadline;
mod elapsed;
mod entry;
mod frame;
mod in_scope;
mod kept;
mod limit;
mod name;
mod node;
mod or_cancelled;
mod reason;
mod request;
mod scope;
mod scope_cancelled;
mod scope_run;
mod section;
mod short_mutex;
mod stopping;
mod sync;
mod task_error;
mod timeout;
mod timeout_error;
mod timeout_handle;
mod token;
mod tree;
mod wait_point;
mod without_deadline;

pub use cancelled::Cancelled;
pub use checkpoint::{Checkpoint, checkpoint};
pub use cleanup::{Cleanup, cleanup};
pub use deadline::Deadline;
pub use elapsed::Elapsed;
pub use in_scope::{InScope, InScopeExt};
pub use limit::Limit;
pub use name::Name;
pub use node::ScopeKind;
pub use or_cancelled::{OrCancelled, OrCancelledExt};
pub use reason::Reason;
pub use request::{Request, ScopeId};
pub use scope::Scope;
pub use scope_cancelled::ScopeCancelled;
pub use scope_run::ScopeRun;
pub use stopping::Stopping;
pub use task_error::{DerefsToError, IsError, TaskError, TaskFailureError, failure, ok};
pub use timeout::{Timeout, with_timeout, with_timeout_handle};
pub use timeout_error::TimeoutError;
pub use timeout_handle::{RescheduleError, TimeoutHandle};
pub use tree::Tree;
pub use wait_point::WaitPoint;
pub use without_deadline::{WithoutDeadline, without_deadline};

/// The machinery that the other crates of the workspace stand on. No promise is made about it.
#[doc(hidden)]
pub mod machinery {
    pub use crate::ambient::{node as ambient_node, root as ambient_root};
    pub use crate::cut::{Cut, Ended};
    pub use crate::frame::{Frame, Rule};
    pub use crate::kept::shown;
    pub use crate::node::Node;
    pub use crate::request::Origin;
    pub use crate::section::Section;
    pub use crate::short_mutex::ShortMutex;
    pub use crate::task_error::request_in;
}
