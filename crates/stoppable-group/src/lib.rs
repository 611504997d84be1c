//! Task groups for tokio: every task has an owner that waits for it and accounts for it. Part of
//! [`stoppable`](https://docs.rs/stoppable).
//!
//! Start with [`TaskGroup`]. [`defer`] is for cleanup that happens however a future is left,
//! [`TaskGroup::shield`] for work that goes on when its waiter leaves, [`root`] for what no group is left to own.

mod attendance;
mod catch;
mod close;
mod closers;
mod core;
mod deferred;
mod group_builder;
mod group_error;
mod group_report;
mod group_run;
mod handle_error;
mod handles;
mod join_next;
mod judge;
mod keyed_group;
mod ledger;
mod lifeline;
mod map;
mod on_thread;
mod outcome;
mod own;
mod policy;
mod race;
mod restart;
mod root;
mod shield;
mod spawn_when_free;
mod stop_flag;
mod task_builder;
mod task_failure;
mod task_group;
mod task_handle;
mod task_output;
mod task_root;

pub use close::Close;
pub use deferred::{Deferred, defer};
pub use group_builder::GroupBuilder;
pub use group_error::GroupError;
pub use group_report::{GroupReport, TaskReport};
pub use group_run::{GroupRun, GroupRunReported};
pub use handle_error::HandleError;
pub use handles::{Collected, Handles};
pub use join_next::JoinNext;
pub use keyed_group::KeyedGroup;
pub use lifeline::Lifeline;
pub use outcome::Outcome;
pub use policy::Policy;
pub use race::{hedge, race};
pub use restart::{Restart, RestartError};
pub use root::{Root, root};
pub use shield::Shield;
pub use spawn_when_free::SpawnWhenFree;
pub use stop_flag::StopFlag;
pub use task_builder::TaskBuilder;
pub use task_failure::TaskFailure;
pub use task_group::TaskGroup;
pub use task_handle::TaskHandle;
pub use task_output::{IsResult, IsUnit, TaskOutput};

// What bodies of tasks are written with.
pub use stoppable_scope::{TaskError, ok, with_timeout};
