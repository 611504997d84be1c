//! A queue that can be shut down, with accounting.
//!
//! [`ShutdownQueue`] is for work that is handed from producers to consumers in a service that must be
//! able to stop: it has a limit, so that pressure travels upstream; it closes by a protocol, so that
//! everybody who waits is told; and it knows how every item ended, so that [`join`] always ends and
//! tells what was not processed.
//!
//! Its waits answer a cancel of the `stoppable-scope` scope they are in. They do not need one.
//!
//! ```
//! # #[derive(Debug)] struct Failed;
//! # impl From<stoppable_scope::Cancelled> for Failed { fn from(_: stoppable_scope::Cancelled) -> Self { Failed } }
//! # async fn handle(_: &u32) -> Result<(), Failed> { Ok(()) }
//! use stoppable_sync::ShutdownQueue;
//!
//! # async fn worker(jobs: ShutdownQueue<u32>) -> Result<(), Failed> {
//! while let Some(job) = jobs.recv().await? {       // None: closed and drained. Err: cancelled
//!     handle(&job).await?;                         // a failure here must not count as done
//!     job.done();
//! }
//! # Ok(())
//! # }
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let jobs = ShutdownQueue::bounded(100);
//! let worker = tokio::spawn(worker(jobs.clone()));
//! for n in 0..1000 {
//!     jobs.send(n).await.unwrap();                 // waits while 100 are queued
//! }
//! jobs.shutdown();
//! let report = jobs.join().await.unwrap();
//! assert_eq!(report.done, 1000);
//! worker.await.unwrap().unwrap();
//! # }
//! ```
//!
//! [`join`]: ShutdownQueue::join

pub mod queue;
mod sync;

pub use queue::{
    AbandonPolicy, Batch, DeadLetter, DeadLetterReason, Item, ItemRef, JoinByError, JoinReport, Leftovers,
    Permit, PermitVoidError, Producer, QueueStats, RecvByError, RequeueError, ReserveError, ReserveManyError,
    SendByError, SendError, SendManyError, ShutdownQueue, SinkError, TaskDoneError, TryRecvError,
    TryReserveError, TrySendError, Unfinished, UnfinishedItem, WeakQueue,
};
