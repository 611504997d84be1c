//! Random schedules of the queue's races. Run with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p stoppable-sync --test shuttle --release`.
//!
//! A lost wake-up is a deadlock here, and shuttle reports it with the schedule that led to it.
#![cfg(shuttle)]

mod anything;
mod batches;
mod closing;
mod joining;
mod many;
mod producers;
mod tickets;
mod waiting;

use std::future::Future;
use std::pin::pin;

use shuttle::future::block_on;
use shuttle::thread;
use stoppable_sync::{QueueStats, ShutdownQueue};

const SCHEDULES: usize = 10_000;

fn check(race: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(race, SCHEDULES);
}

/// Polls once, with the waker of this thread, and drops the future.
fn poll_and_drop<F: Future>(future: F) -> Option<F::Output> {
    block_on(async {
        let mut future = pin!(future);
        match futures::poll!(&mut future) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => {
                thread::yield_now();
                None
            }
        }
    })
}

fn recv_all(queue: &ShutdownQueue<u32>) -> u32 {
    block_on(async {
        let mut received = 0;
        while let Some(item) = queue.recv().await.unwrap() {
            item.done();
            received += 1;
        }
        received
    })
}

fn balanced(stats: &QueueStats) {
    let ended = stats.done + stats.rejected + stats.abandoned + stats.returned;
    assert_eq!(stats.accepted, ended + stats.len as u64 + stats.in_flight);
}

fn at_rest(queue: &ShutdownQueue<u32>) {
    let stats = queue.stats();
    balanced(&stats);
    assert_eq!((stats.waiting_receivers, stats.waiting_senders, stats.waiting_joiners), (0, 0, 0));
    assert_eq!((stats.promised, stats.reserved, stats.unfinished()), (0, 0, 0));
}
