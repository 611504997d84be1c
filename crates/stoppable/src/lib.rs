#![doc = include_str!("../README.md")]

pub use stoppable_group::{
    Close, Collected, Deferred, GroupBuilder, GroupError, GroupReport, GroupRun, GroupRunReported,
    HandleError, Handles, JoinNext, KeyedGroup, Lifeline, Outcome, Policy, Restart, RestartError, Root,
    Shield, SpawnWhenFree, StopFlag, TaskBuilder, TaskFailure, TaskGroup, TaskHandle, TaskOutput, TaskReport,
    defer, hedge, race, root,
};
pub use stoppable_scope::{
    Cancelled, Checkpoint, Cleanup, Deadline, Elapsed, InScope, InScopeExt, Limit, Name, OrCancelled,
    OrCancelledExt, Reason, Request, RescheduleError, Scope, ScopeCancelled, ScopeId, ScopeKind, ScopeRun,
    Stopping, TaskError, TaskFailureError, Timeout, TimeoutError, TimeoutHandle, Tree, WaitPoint,
    WithoutDeadline, checkpoint, cleanup, failure, ok, with_timeout, with_timeout_handle, without_deadline,
};
pub use stoppable_sync::queue;
pub use stoppable_sync::{
    AbandonPolicy, Batch, DeadLetter, DeadLetterReason, Item, ItemRef, JoinByError, JoinReport, Leftovers,
    Permit, PermitVoidError, Producer, QueueStats, RecvByError, RequeueError, ReserveError, ReserveManyError,
    SendByError, SendError, SendManyError, ShutdownQueue, SinkError, TaskDoneError, TryRecvError,
    TryReserveError, TrySendError, Unfinished, UnfinishedItem, WeakQueue,
};

/// What most programs need. Nothing in it has the name of something in tokio.
///
/// ```
/// use stoppable::prelude::*;
/// ```
pub mod prelude {
    pub use crate::{
        Cancelled, Deadline, GroupError, InScopeExt, OrCancelledExt, Policy, Reason, Scope, ShutdownQueue,
        TaskError, TaskGroup, TaskHandle, TimeoutError, checkpoint, cleanup, defer, failure, with_timeout,
    };
}
