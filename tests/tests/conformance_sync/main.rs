//! Conformance of queues and locks: `tests/conformance/{queues,locks,bugs-queue,bugs-lock}.md` tell what is
//! asked for, the tests here are named after the rows. What happens "in the same step" happens between two
//! polls by hand. Locks, semaphores, events and barriers are tokio's own, in a stoppable wait.

mod kit;
mod lock_bugs;
mod locks;
mod queue_basics;
mod queue_bugs;
mod queue_closing;
mod queue_leaving;
mod queue_orders;
mod semaphores;
mod signals;
#[path = "../support/tables.rs"]
mod support;
mod tables;

/// A queue of each order: first in first out, last in first out, by priority.
fn kinds(capacity: Option<usize>) -> [stoppable::ShutdownQueue<i32>; 3] {
    let builder = stoppable::ShutdownQueue::builder;
    [builder(), builder().lifo(), builder().priority(|n: &i32| *n)].map(|builder| match capacity {
        None => builder.build(),
        Some(capacity) => builder.capacity(capacity).build(),
    })
}
