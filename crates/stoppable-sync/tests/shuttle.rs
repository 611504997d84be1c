//! Random schedules of the queue's races. Run with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p stoppable-sync --test shuttle --release`.
//!
//! A lost wake-up is a deadlock here, and shuttle reports it with the schedule that led to it.
#![cfg(shuttle)]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use stoppable_sync::{AbandonPolicy, QueueStats, ShutdownQueue, TrySendError};

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

#[test]
fn producers_consumers_and_a_join() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let producers: Vec<_> = (0..2)
            .map(|n| {
                let queue = queue.clone();
                thread::spawn(move || {
                    block_on(async {
                        queue.send(n).await.unwrap();
                        queue.send(n + 2).await.unwrap();
                    })
                })
            })
            .collect();
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || recv_all(&queue))
            })
            .collect();
        for producer in producers {
            producer.join().unwrap();
        }
        let report = block_on(queue.join()).unwrap();
        assert_eq!(report.done, 4);
        queue.shutdown();
        let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        assert_eq!(received, 4);
        at_rest(&queue);
    });
}

#[test]
fn a_shutdown_in_the_middle_tells_everybody() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let producers: Vec<_> = (0..2)
            .map(|n| {
                let queue = queue.clone();
                thread::spawn(move || {
                    let sent = block_on(queue.send(n)).is_ok();
                    sent as u32 + block_on(queue.send(n)).is_ok() as u32
                })
            })
            .collect();
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || recv_all(&queue))
            })
            .collect();
        let joiner = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.join()).unwrap())
        };
        queue.shutdown();
        balanced(&queue.stats());
        let sent: u32 = producers.into_iter().map(|producer| producer.join().unwrap()).sum();
        let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        joiner.join().unwrap();
        assert_eq!(sent, received);
        at_rest(&queue);
    });
}

#[test]
fn an_immediate_shutdown_gives_what_nobody_received() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(2);
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || (0..3).filter(|n| block_on(queue.send(*n)).is_ok()).count())
        };
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || recv_all(&queue))
            })
            .collect();
        let leftovers = queue.shutdown_immediate();
        let joined = block_on(queue.join()).unwrap();
        let sent = producer.join().unwrap();
        let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        assert_eq!(sent, received as usize + leftovers.len());
        assert_eq!(joined.returned, leftovers.len() as u64);
        at_rest(&queue);
    });
}

#[test]
fn no_departure_of_a_receiver_loses_a_wake_up() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let leavers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || {
                    if let Some(item) = poll_and_drop(queue.recv()) {
                        item.unwrap().unwrap().requeue().unwrap();
                    }
                })
            })
            .collect();
        let stayers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || block_on(queue.recv()).unwrap().unwrap().done())
            })
            .collect();
        block_on(queue.send(1)).unwrap();
        block_on(queue.send(2)).unwrap();
        for thread in stayers.into_iter().chain(leavers) {
            thread.join().unwrap();
        }
        at_rest(&queue);
    });
}

#[test]
fn no_departure_of_a_sender_loses_a_slot() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        queue.try_send(0).unwrap();
        let leaver = {
            let queue = queue.clone();
            thread::spawn(move || drop(poll_and_drop(queue.send(1))))
        };
        let reserver = {
            let queue = queue.clone();
            thread::spawn(move || drop(poll_and_drop(queue.reserve())))
        };
        let stayer = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.send(2)).unwrap())
        };
        block_on(queue.recv()).unwrap().unwrap().done();
        let mut last = 0;
        while last != 2 {
            let item = block_on(queue.recv()).unwrap().unwrap();
            last = *item;
            item.done();
        }
        leaver.join().unwrap();
        reserver.join().unwrap();
        stayer.join().unwrap();
        queue.shutdown();
        recv_all(&queue);
        at_rest(&queue);
    });
}

#[test]
fn done_and_join_do_not_miss_each_other() {
    check(|| {
        let queue = ShutdownQueue::<u32>::unbounded();
        let workers: Vec<_> = (0..2)
            .map(|n| {
                queue.try_send(n).unwrap();
                let item = queue.try_recv().unwrap();
                thread::spawn(move || item.done())
            })
            .collect();
        let joiners: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || assert_eq!(block_on(queue.join()).unwrap().done, 2))
            })
            .collect();
        let leaver = {
            let queue = queue.clone();
            thread::spawn(move || drop(poll_and_drop(queue.join())))
        };
        balanced(&queue.stats());
        for thread in workers.into_iter().chain(joiners) {
            thread.join().unwrap();
        }
        leaver.join().unwrap();
        at_rest(&queue);
    });
}

#[test]
fn an_abandoned_item_is_put_back_or_buried_but_not_lost_in_a_shutdown() {
    check(|| {
        let buried = Arc::new(AtomicUsize::new(0));
        let sink = Arc::clone(&buried);
        let queue = ShutdownQueue::builder()
            .capacity(1)
            .abandon_policy(AbandonPolicy::Requeue)
            .dead_letters(move |_| {
                sink.fetch_add(1, Ordering::SeqCst);
            })
            .build();
        queue.try_send(1).unwrap();
        let item = queue.try_recv().unwrap();
        let dropper = thread::spawn(move || drop(item));
        let closer = {
            let queue = queue.clone();
            thread::spawn(move || queue.shutdown())
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || recv_all(&queue))
        };
        let report = block_on(queue.join()).unwrap();
        dropper.join().unwrap();
        closer.join().unwrap();
        let received = consumer.join().unwrap() as usize + recv_all(&queue) as usize;
        assert_eq!(received + buried.load(Ordering::SeqCst), 1);
        assert_eq!(report.done + report.abandoned, 1);
        at_rest(&queue);
    });
}

#[test]
fn a_wait_that_moves_to_another_thread_is_woken_there() {
    check(|| {
        let queue = Arc::new(ShutdownQueue::<u32>::bounded(1));
        let producer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                block_on(queue.send(1)).unwrap();
                block_on(queue.send(2)).unwrap();
            })
        };
        let moved = {
            let queue = Arc::clone(&queue);
            async move {
                let first = queue.recv().await.unwrap().unwrap();
                let second = queue.recv().await.unwrap().unwrap();
                assert_eq!((*first, *second), (1, 2));
                first.done();
                second.done();
            }
        };
        let mut moved = Box::pin(moved);
        let ready = block_on(async { futures::poll!(&mut moved).is_ready() });
        if !ready {
            thread::spawn(move || block_on(moved)).join().unwrap();
        }
        producer.join().unwrap();
        at_rest(&queue);
    });
}

#[test]
fn a_permit_and_a_shutdown() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let holder = {
            let queue = queue.clone();
            thread::spawn(move || {
                block_on(async {
                    let Ok(permit) = queue.reserve().await else {
                        return 0;
                    };
                    permit.send(1).is_ok() as u32
                })
            })
        };
        let sender = {
            let queue = queue.clone();
            thread::spawn(move || match queue.try_send(2) {
                Ok(()) => 1,
                Err(TrySendError::Full(value)) => block_on(queue.send(value)).is_ok() as u32,
                Err(TrySendError::ShutDown(_)) => 0,
            })
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || recv_all(&queue))
        };
        queue.shutdown();
        let sent = holder.join().unwrap() + sender.join().unwrap();
        assert_eq!(consumer.join().unwrap(), sent);
        at_rest(&queue);
    });
}

#[test]
fn whatever_others_do_and_leave_a_producer_and_a_consumer_get_through() {
    check(|| {
        let queue =
            ShutdownQueue::<u32>::builder().capacity(1).abandon_policy(AbandonPolicy::Requeue).build();
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || {
                block_on(queue.send(0)).unwrap();
                block_on(queue.send(0)).unwrap();
            })
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || recv_all(&queue))
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || {
                    for _ in 0..3 {
                        anything(&queue);
                    }
                })
            })
            .collect();
        for thread in others.into_iter().chain([producer]) {
            thread.join().unwrap();
        }
        block_on(queue.join()).unwrap();
        queue.shutdown();
        consumer.join().unwrap();
        at_rest(&queue);
    });
}

/// Something at random that does not block.
fn anything(queue: &ShutdownQueue<u32>) {
    match thread_rng().gen_range(0..8) {
        0 => drop(poll_and_drop(queue.send(1))),
        1 => drop(poll_and_drop(queue.recv())),
        2 => drop(poll_and_drop(queue.join())),
        3 => drop(poll_and_drop(queue.reserve())),
        4 => drop(queue.try_send(1)),
        5 => {
            if let Ok(item) = queue.try_recv() {
                item.requeue().unwrap();
            }
        }
        6 => {
            if let Ok(permit) = queue.try_reserve() {
                permit.send(1).unwrap();
            }
        }
        _ => {
            if let Ok(item) = queue.try_recv() {
                assert!(item.detach() < 2);
                queue.task_done().unwrap();
            }
            balanced(&queue.stats());
        }
    }
}
