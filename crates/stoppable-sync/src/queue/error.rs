//! What can be wrong. Who would lose a value by an error finds it inside.

use std::fmt;

use stoppable_scope::{Cancelled, Elapsed};
use thiserror::Error;

/// Why [`send`](super::ShutdownQueue::send) did not send. The value is inside.
#[derive(Error)]
pub enum SendError<T> {
    /// The queue was shut down, before or during the wait.
    #[error("the queue was shut down; the value was not sent and is in this error")]
    ShutDown(T),
    /// The scope around the wait was cancelled.
    #[error("cancelled while waiting for room in the queue; the value is in this error")]
    Cancelled(T, #[source] Cancelled),
}

impl<T> SendError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::ShutDown(value) | Self::Cancelled(value, _) => value,
        }
    }
}

/// Why [`send_by`](super::ShutdownQueue::send_by) did not send. The value is inside.
#[derive(Error)]
pub enum SendByError<T> {
    /// The queue was shut down, before or during the wait.
    #[error("the queue was shut down; the value was not sent and is in this error")]
    ShutDown(T),
    /// A scope around the call was cancelled, or its deadline has passed.
    #[error("cancelled while waiting for room in the queue; the value is in this error")]
    Cancelled(T, #[source] Cancelled),
    /// There was no room before the deadline.
    #[error("the queue had no room before the deadline; the value is in this error")]
    Elapsed(T, #[source] Elapsed),
}

impl<T> SendByError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::ShutDown(value) | Self::Cancelled(value, _) | Self::Elapsed(value, _) => value,
        }
    }
}

/// Why [`try_send`](super::ShutdownQueue::try_send) did not send. The value is inside.
#[derive(Error, Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room, or senders that came earlier wait for it.
    #[error("the queue is full; wait with `send`, or do without; the value is in this error")]
    Full(T),
    /// The queue was shut down. This is the answer also where it is full.
    #[error("the queue was shut down; the value was not sent and is in this error")]
    ShutDown(T),
}

impl<T> TrySendError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::ShutDown(value) => value,
        }
    }
}

/// The queue was shut down while a [`Permit`](super::Permit) was held. The value is inside.
#[derive(Error, Clone, Copy, PartialEq, Eq)]
#[error("the queue was shut down and the permit is void; the value is in this error")]
pub struct PermitVoidError<T>(pub T);

impl<T> PermitVoidError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// Why [`reserve`](super::ShutdownQueue::reserve) gave no permit.
#[derive(Debug, Error)]
pub enum ReserveError {
    /// The queue was shut down, before or during the wait.
    #[error("the queue was shut down; nothing can be sent any more")]
    ShutDown,
    /// The scope around the wait was cancelled.
    #[error("cancelled while waiting for room in the queue")]
    Cancelled(#[from] Cancelled),
}

/// Why [`reserve_many`](super::ShutdownQueue::reserve_many) gave no permits.
#[derive(Debug, Error)]
pub enum ReserveManyError {
    /// The queue was shut down, before or during the wait.
    #[error("the queue was shut down; nothing can be sent any more")]
    ShutDown,
    /// The scope around the wait was cancelled.
    #[error("cancelled while waiting for room in the queue")]
    Cancelled(#[from] Cancelled),
    /// The queue can never hold so many.
    #[error("{wanted} permits are more than a queue of capacity {capacity} has; reserve fewer at a time")]
    BeyondCapacity {
        /// How many were to be reserved.
        wanted: usize,
        /// The capacity of the queue.
        capacity: usize,
    },
}

/// Why [`send_many`](super::ShutdownQueue::send_many) did not send all. What was not sent is in the deque.
#[derive(Debug, Error)]
pub enum SendManyError {
    /// The queue was shut down, before or during the wait.
    #[error("the queue was shut down; what was not sent is still in the deque")]
    ShutDown,
    /// The scope around the wait was cancelled.
    #[error("cancelled while waiting for room in the queue; what was not sent is still in the deque")]
    Cancelled(#[from] Cancelled),
}

/// Why [`try_reserve`](super::ShutdownQueue::try_reserve) gave no permit.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum TryReserveError {
    /// There is no room, or senders that came earlier wait for it.
    #[error("the queue is full; wait with `reserve`, or do without")]
    Full,
    /// The queue was shut down. This is the answer also where it is full.
    #[error("the queue was shut down; nothing can be sent any more")]
    ShutDown,
}

/// Why a [`ProducerSink`](super::ProducerSink) takes no more.
#[derive(Error)]
pub enum SinkError<T> {
    /// The queue was shut down, or the sink closed. If that happened after it was ready, the value is inside.
    #[error("the queue was shut down; nothing can be sent any more")]
    ShutDown(Option<T>),
    /// The scope around the wait was cancelled. The value was not handed over.
    #[error("cancelled while waiting for room in the queue")]
    Cancelled(#[from] Cancelled),
}

impl<T> SinkError<T> {
    /// The value that was not sent, if it was handed over.
    pub fn into_inner(self) -> Option<T> {
        match self {
            Self::ShutDown(value) => value,
            Self::Cancelled(_) => None,
        }
    }
}

/// Why [`try_recv`](super::ShutdownQueue::try_recv) gave no item.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum TryRecvError {
    /// Nothing is queued that is not promised to a receiver; something may still come.
    #[error("the queue is empty; wait with `recv`, or try again later")]
    Empty,
    /// The queue was shut down and nothing is queued.
    #[error("the queue was shut down and is drained")]
    ShutDown,
}

/// Why [`recv_by`](super::ShutdownQueue::recv_by) gave no answer.
#[derive(Debug, Error)]
pub enum RecvByError {
    /// No item came before the deadline.
    #[error("no item came before the deadline")]
    Elapsed(#[from] Elapsed),
    /// A scope around the call was cancelled, or its deadline has passed.
    #[error("cancelled while waiting for an item")]
    Cancelled(#[from] Cancelled),
}

/// Why [`join_by`](super::ShutdownQueue::join_by) gave no report.
#[derive(Debug, Error)]
pub enum JoinByError {
    /// The deadline came first. Inside is what was unfinished then.
    #[error("the queue was not finished before the deadline: {0}")]
    Elapsed(super::Unfinished),
    /// A scope around the call was cancelled, or its deadline has passed.
    #[error("cancelled while waiting for the queue to finish")]
    Cancelled(#[from] Cancelled),
}

/// [`task_done`](super::ShutdownQueue::task_done) was called more often than items were detached.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error("`task_done` was called more often than items were detached; settle a guard with `done`")]
pub struct TaskDoneError;

/// The queue takes nothing back any more: it was shut down at once, or its last handle is gone.
///
/// The guard is inside, so that the item can still be settled. If it is dropped with the error, the item
/// is abandoned.
#[derive(Error)]
#[error("the queue takes nothing back any more; the item is in this error, settle it otherwise")]
pub struct RequeueError<I>(pub(crate) I);

impl<I> RequeueError<I> {
    /// The guard, unsettled.
    pub fn into_item(self) -> I {
        self.0
    }
}

/// `Debug` without asking it of the value, so that every error is an `Error` for every value.
macro_rules! debug_without_the_value {
    ($($error:ident { $($variant:ident $(, $cause:ident)?;)+ })+) => {$(
        impl<T> fmt::Debug for $error<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {$(
                    Self::$variant(_, $($cause)?) => {
                        f.debug_tuple(stringify!($variant))$(.field($cause))?.finish_non_exhaustive()
                    }
                )+}
            }
        }
    )+};
}

debug_without_the_value! {
    SendError { ShutDown; Cancelled, cause; }
    SendByError { ShutDown; Cancelled, cause; Elapsed, cause; }
    TrySendError { Full; ShutDown; }
}

impl<T> fmt::Debug for SinkError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShutDown(_) => f.debug_tuple("ShutDown").finish_non_exhaustive(),
            Self::Cancelled(cancelled) => f.debug_tuple("Cancelled").field(cancelled).finish(),
        }
    }
}

impl<T> fmt::Debug for PermitVoidError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PermitVoidError").finish_non_exhaustive()
    }
}

impl<I> fmt::Debug for RequeueError<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequeueError").finish_non_exhaustive()
    }
}
