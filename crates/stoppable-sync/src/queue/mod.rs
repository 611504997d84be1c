//! The queue and all that belongs to it; the futures of its methods are here under their own names.
//!
//! From the ground up: `store` (the order), `waiters` (first-come lists), `ends` (which items
//! are done, without the lock), `core` (the state machine, without async), `shared` (the core behind its
//! lock), `lease` (what keeps it), the guards and futures, and [`ShutdownQueue`].

mod abandon_policy;
mod batch;
mod batch_items;
mod batches;
mod builder;
mod core;
mod dead_letter;
mod ends;
mod error;
mod gathering;
mod held;
mod hints;
mod item;
mod item_ref;
mod items;
mod join;
mod join_by;
mod join_report;
mod lease;
mod leftovers;
mod limited;
mod permit;
mod producer;
mod producer_sink;
mod queue_stats;
mod receiving;
mod recv;
mod recv_batch;
mod recv_by;
mod recv_many;
mod recv_ref;
mod reserve;
mod reserve_many;
mod reserving;
mod send;
mod send_by;
mod send_many;
mod shared;
mod shutdown_queue;
mod store;
mod unfinished;
mod waiters;
mod wakes;
mod weak_queue;

pub use abandon_policy::AbandonPolicy;
pub use batch::Batch;
pub use batch_items::BatchItems;
pub use builder::Builder;
pub use dead_letter::{DeadLetter, DeadLetterReason};
pub use error::{
    JoinByError, PermitVoidError, RecvByError, RequeueError, ReserveError, ReserveManyError, SendByError,
    SendError, SendManyError, SinkError, TaskDoneError, TryRecvError, TryReserveError, TrySendError,
};
pub use item::Item;
pub use item_ref::ItemRef;
pub use items::Items;
pub use join::Join;
pub use join_by::JoinBy;
pub use join_report::JoinReport;
pub use leftovers::Leftovers;
pub use permit::Permit;
pub use producer::Producer;
pub use producer_sink::ProducerSink;
pub use queue_stats::QueueStats;
pub use recv::Recv;
pub use recv_batch::RecvBatch;
pub use recv_by::RecvBy;
pub use recv_many::RecvMany;
pub use recv_ref::RecvRef;
pub use reserve::Reserve;
pub use reserve_many::ReserveMany;
pub use send::Send;
pub use send_by::SendBy;
pub use send_many::SendMany;
pub use shutdown_queue::ShutdownQueue;
pub use unfinished::{Unfinished, UnfinishedItem};
pub use weak_queue::WeakQueue;
