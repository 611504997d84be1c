//! Many rounds on real threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stoppable_sync::{AbandonPolicy, ShutdownQueue};

use crate::{assert_balanced, assert_no_waiters};

const ROUNDS: usize = 200;

pub(crate) fn on_threads<F: Future<Output = ()>>(storm: impl Fn(usize) -> F) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    runtime.block_on(async {
        for round in 0..ROUNDS {
            storm(round).await;
        }
    });
}

pub(crate) async fn consume(queue: ShutdownQueue<usize>) -> Vec<usize> {
    let mut received = Vec::new();
    while let Some(item) = queue.recv().await.unwrap() {
        received.push(*item);
        item.done();
    }
    received
}

#[test]
fn every_value_arrives_once_and_in_the_order_of_its_producer() {
    on_threads(|round| async move {
        let queue = ShutdownQueue::bounded(1 + round % 5);
        let consumers: Vec<_> = (0..3).map(|_| tokio::spawn(consume(queue.clone()))).collect();
        let producers: Vec<_> = (0..3)
            .map(|producer| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    for n in 0..50 {
                        queue.send(producer * 1000 + n).await.unwrap();
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.await.unwrap();
        }
        queue.shutdown();
        let mut all = Vec::new();
        for consumer in consumers {
            let received = consumer.await.unwrap();
            for producer in 0..3 {
                let of_one: Vec<_> = received.iter().filter(|n| *n / 1000 == producer).collect();
                assert!(of_one.is_sorted());
            }
            all.extend(received);
        }
        all.sort_unstable();
        let expected: Vec<_> = (0..3).flat_map(|p| (0..50).map(move |n| p * 1000 + n)).collect();
        assert_eq!(all, expected);
        assert!(queue.join().await.unwrap().all_done());
        assert_no_waiters(&queue);
    });
}

#[test]
fn an_immediate_shutdown_in_a_storm_loses_and_doubles_nothing() {
    on_threads(|round| async move {
        let queue = ShutdownQueue::bounded(1 + round % 3);
        let consumers: Vec<_> = (0..2).map(|_| tokio::spawn(consume(queue.clone()))).collect();
        let producers: Vec<_> = (0..3)
            .map(|producer| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    let mut sent = Vec::new();
                    for n in 0.. {
                        match queue.send(producer * 100_000 + n).await {
                            Ok(_) => sent.push(producer * 100_000 + n),
                            Err(error) => {
                                assert_eq!(error.into_inner(), producer * 100_000 + n);
                                break;
                            }
                        }
                    }
                    sent
                })
            })
            .collect();
        for _ in 0..round % 20 {
            tokio::task::yield_now().await;
        }
        let mut got: Vec<_> = queue.shutdown_immediate().into_iter().collect();
        let mut sent = Vec::new();
        for producer in producers {
            sent.extend(producer.await.unwrap());
        }
        for consumer in consumers {
            got.extend(consumer.await.unwrap());
        }
        sent.sort_unstable();
        got.sort_unstable();
        assert_eq!(sent, got);
        queue.join().await.unwrap();
        assert_balanced(&queue);
        assert_no_waiters(&queue);
    });
}

#[test]
fn waits_that_give_up_at_random_lose_nothing() {
    on_threads(|round| async move {
        let buried = Arc::new(AtomicUsize::new(0));
        let sink = buried.clone();
        let queue = ShutdownQueue::<u32>::builder()
            .capacity(2)
            .abandon_policy(AbandonPolicy::Requeue)
            .dead_letters(move |_| {
                sink.fetch_add(1, Ordering::SeqCst);
            })
            .build();
        let consumers: Vec<_> = (0..3)
            .map(|consumer| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    for turn in 0.. {
                        let given_up = tokio::select! {
                            biased;
                            item = queue.recv() => item.unwrap(),
                            () = tokio::task::yield_now() => continue,
                        };
                        match given_up {
                            None => break,
                            Some(item) if (turn + consumer + round) % 7 == 0 => drop(item),
                            Some(item) => item.done(),
                        }
                    }
                })
            })
            .collect();
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    let mut sent = 0;
                    for n in 0..40 {
                        // Values that are sent or not: only what was accepted counts.
                        tokio::select! {
                            biased;
                            result = queue.send(n) => { result.unwrap(); sent += 1; }
                            () = tokio::task::yield_now() => {}
                        }
                        if let Ok(permit) = queue.try_reserve() {
                            permit.send(n).unwrap();
                            sent += 1;
                        }
                    }
                    sent
                })
            })
            .collect();
        let mut sent: u64 = 0;
        for producer in producers {
            sent += producer.await.unwrap();
        }
        queue.join().await.unwrap();
        queue.shutdown();
        for consumer in consumers {
            consumer.await.unwrap();
        }
        let stats = queue.stats();
        // A dropped send may have been accepted already.
        assert!(stats.accepted >= sent);
        assert_eq!(stats.accepted, stats.done + stats.abandoned);
        assert_eq!(stats.abandoned, buried.load(Ordering::SeqCst) as u64);
        assert_no_waiters(&queue);
    });
}

#[test]
fn a_done_at_the_moment_of_an_immediate_shutdown_counts_once() {
    on_threads(|_| async {
        let queue = ShutdownQueue::bounded(1);
        queue.send(1_usize).await.unwrap();
        let taker = tokio::spawn(consume(queue.clone()));
        let closer = {
            let queue = queue.clone();
            tokio::spawn(async move { queue.shutdown_immediate().len() })
        };
        let report = queue.join().await.unwrap();
        let returned = closer.await.unwrap();
        assert_eq!(taker.await.unwrap().len() + returned, 1);
        assert_eq!((report.done, report.returned), (1 - returned as u64, returned as u64));
        assert_eq!(queue.stats().unfinished(), 0);
    });
}

#[test]
fn no_send_slips_in_between_the_steps_of_a_shutdown() {
    on_threads(|_| async {
        let queue = ShutdownQueue::bounded(1);
        let sender = {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut sent = 0;
                while queue.send(1).await.is_ok() {
                    sent += 1;
                }
                sent
            })
        };
        queue.recv().await.unwrap().unwrap().done();
        queue.shutdown();
        let mut received = 1;
        while let Some(item) = queue.recv().await.unwrap() {
            item.done();
            received += 1;
        }
        assert_eq!(sender.await.unwrap(), received);
    });
}

#[test]
fn stats_balance_while_everything_moves() {
    on_threads(|_| async {
        let queue = ShutdownQueue::bounded(4);
        let consumer = tokio::spawn(consume(queue.clone()));
        let producer = {
            let queue = queue.clone();
            tokio::spawn(async move {
                for n in 0..200 {
                    queue.send(n).await.unwrap();
                }
                queue.shutdown();
            })
        };
        while !queue.is_shut_down() {
            assert_balanced(&queue);
            tokio::task::yield_now().await;
        }
        producer.await.unwrap();
        assert_eq!(consumer.await.unwrap(), (0..200).collect::<Vec<_>>());
    });
}
