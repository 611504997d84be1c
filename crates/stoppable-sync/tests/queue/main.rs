//! The queue's behaviour, through its public face.
#![cfg(not(shuttle))]

mod abandoning;
mod accounting;
mod batches;
mod cancelling;
mod closing;
mod collecting;
mod deadlines;
mod foreign_code;
mod joining;
mod model;
mod orders;
mod producers;
mod receiving;
mod resizing;
mod sending;
mod sending_many;
mod storms;
mod storms_many;
mod streaming;
mod tickets;
mod types;

use stoppable_sync::{Item, ShutdownQueue};
use tokio_test::task::{self, Spawn};

/// Polls by hand, and tells whether it was woken.
fn by_hand<F: Future>(future: F) -> Spawn<F> {
    task::spawn(future)
}

fn take<T>(queue: &ShutdownQueue<T>) -> Item<T> {
    queue.try_recv().expect("something is queued")
}

/// Receives and settles all that can be had at once.
fn drain<T: Clone>(queue: &ShutdownQueue<T>) -> Vec<T> {
    std::iter::from_fn(|| queue.try_recv().ok())
        .map(|item| {
            let value = item.clone();
            item.done();
            value
        })
        .collect()
}

/// Nobody is on record, nothing is set aside.
fn assert_no_waiters<T>(queue: &ShutdownQueue<T>) {
    let stats = queue.stats();
    assert_eq!((stats.waiting_receivers, stats.waiting_senders, stats.waiting_joiners), (0, 0, 0));
    assert_eq!((stats.promised, stats.reserved), (0, 0));
}

fn assert_balanced<T>(queue: &ShutdownQueue<T>) {
    let stats = queue.stats();
    let ended = stats.done + stats.rejected + stats.abandoned + stats.returned;
    assert_eq!(stats.accepted, ended + stats.len as u64 + stats.in_flight, "{stats:?}");
}
