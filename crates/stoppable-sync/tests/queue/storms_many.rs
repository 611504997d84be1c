//! Many rounds on real threads, of what sends and receives many.

use std::collections::VecDeque;
use std::time::Duration;

use stoppable_sync::{AbandonPolicy, ShutdownQueue};

use crate::storms::{consume, on_threads};
use crate::{assert_balanced, assert_no_waiters};

const MS: Duration = Duration::from_millis(1);

async fn consume_batches(queue: ShutdownQueue<usize>, max: usize, max_age: Duration) -> Vec<usize> {
    let mut received = Vec::new();
    while let Some(batch) = queue.recv_batch(max, max_age).await.unwrap() {
        assert!((1..=max).contains(&batch.len()));
        received.extend_from_slice(&batch);
        batch.done();
    }
    received
}

#[test]
fn every_value_arrives_once_through_batches_producers_and_permits() {
    on_threads(|round| async move {
        let queue = ShutdownQueue::bounded(1 + round % 5);
        let consumers = [
            tokio::spawn(consume(queue.clone())),
            tokio::spawn(consume_batches(queue.clone(), 7, MS)),
            tokio::spawn(consume_batches(queue.clone(), 3, Duration::ZERO)),
        ];
        let handles = [queue.producer(), queue.producer(), queue.producer()];
        for (producer, handle) in handles.into_iter().enumerate() {
            tokio::spawn(async move {
                let mut values: VecDeque<_> = (0..50).map(|n| producer * 1000 + n).collect();
                while values.len() > 20 {
                    handle.send(values.pop_front().unwrap()).await.unwrap();
                    let permits = handle.reserve_many(1).await.unwrap();
                    permits.into_iter().for_each(|permit| {
                        permit.send(values.pop_front().unwrap()).unwrap();
                    });
                }
                handle.send_many(&mut values).await.unwrap();
            });
        }
        let mut all = Vec::new();
        for consumer in consumers {
            let received = consumer.await.unwrap();
            for producer in 0..3 {
                assert!(received.iter().filter(|n| *n / 1000 == producer).is_sorted());
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
fn an_immediate_shutdown_in_a_storm_of_batches_loses_and_doubles_nothing() {
    on_threads(|round| async move {
        let queue = ShutdownQueue::bounded(1 + round % 3);
        let consumers = [
            tokio::spawn(consume_batches(queue.clone(), 5, MS)),
            tokio::spawn(consume_batches(queue.clone(), 5, Duration::MAX)),
        ];
        let producers: Vec<_> = (0..3)
            .map(|producer| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    let mut values: VecDeque<_> = (0..10_000).map(|n| producer * 100_000 + n).collect();
                    let _ = queue.send_many(&mut values).await;
                    let unsent = values.front().copied().unwrap_or(producer * 100_000 + 10_000);
                    (producer * 100_000..unsent).collect::<Vec<_>>()
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
fn waits_that_give_up_cancels_and_resizes_lose_nothing() {
    on_threads(|round| async move {
        let queue = ShutdownQueue::builder()
            .capacity(2)
            .abandon_policy(AbandonPolicy::Requeue)
            .priority(|n: &u32| n % 3)
            .build();
        let consumers: Vec<_> = (0..3)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    let mut received: u64 = 0;
                    loop {
                        let batch = tokio::select! {
                            biased;
                            batch = queue.recv_batch(3, MS) => batch.unwrap(),
                            () = tokio::task::yield_now() => continue,
                        };
                        let Some(batch) = batch else { return received };
                        received += batch.len() as u64;
                        batch.done();
                    }
                })
            })
            .collect();
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    let mut cancelled: u64 = 0;
                    let mut values: VecDeque<u32> = (0..60).collect();
                    while !values.is_empty() {
                        tokio::select! {
                            biased;
                            sent = queue.send_many(&mut values) => sent.unwrap(),
                            () = tokio::task::yield_now() => {}
                        }
                        if let Ok(ticket) = queue.try_send(0) {
                            tokio::task::yield_now().await;
                            cancelled += queue.cancel(ticket).is_some() as u64;
                        }
                        queue.resize(1 + round % 4);
                        drop(queue.try_reserve());
                    }
                    cancelled
                })
            })
            .collect();
        let mut cancelled = 0;
        for producer in producers {
            cancelled += producer.await.unwrap();
        }
        queue.shutdown();
        let mut received = 0;
        for consumer in consumers {
            received += consumer.await.unwrap();
        }
        let stats = queue.stats();
        assert_eq!((stats.done, stats.returned), (received, cancelled));
        assert_eq!(stats.accepted, received + cancelled);
        assert_no_waiters(&queue);
    });
}

/// B-47, on real threads.
#[test]
fn the_last_producer_sends_and_leaves_at_once_and_nothing_is_lost() {
    on_threads(|_| async {
        for _ in 0..20 {
            let queue = ShutdownQueue::bounded(1);
            let producer = queue.producer();
            let consumer = tokio::spawn(consume(queue.clone()));
            tokio::spawn(async move { producer.send(7).await.unwrap() });
            assert_eq!(consumer.await.unwrap(), [7]);
        }
    });
}
