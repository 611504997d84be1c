use std::time::Duration;

use shuttle::future::block_on;
use shuttle::thread;
use stoppable_sync::ShutdownQueue;

use crate::{at_rest, balanced, check, poll_and_drop, recv_all};

fn collect_all(queue: &ShutdownQueue<u32>, max: usize, max_age: Duration) -> u32 {
    block_on(async {
        let mut received = 0;
        while let Some(batch) = queue.recv_batch(max, max_age).await.unwrap() {
            assert!((1..=max).contains(&batch.len()));
            received += batch.len() as u32;
            batch.done();
        }
        received
    })
}

#[test]
fn collectors_and_a_receiver_share_what_comes_and_end_with_the_queue() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || {
                    block_on(queue.send(1)).unwrap();
                    block_on(queue.send(1)).unwrap();
                })
            })
            .collect();
        let consumers: Vec<_> = (0..3)
            .map(|n| {
                let queue = queue.clone();
                thread::spawn(move || match n {
                    0 => collect_all(&queue, 2, Duration::MAX),
                    1 => collect_all(&queue, 3, Duration::ZERO),
                    _ => recv_all(&queue),
                })
            })
            .collect();
        for producer in producers {
            producer.join().unwrap();
        }
        queue.shutdown();
        let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        assert_eq!(received, 4);
        at_rest(&queue);
    });
}

#[test]
fn a_partial_batch_comes_out_or_is_returned_never_both() {
    check(|| {
        let queue = ShutdownQueue::<u32>::unbounded();
        let collector = {
            let queue = queue.clone();
            thread::spawn(move || collect_all(&queue, 3, Duration::MAX))
        };
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || (0..2).filter(|n| queue.try_send(*n).is_ok()).count() as u32)
        };
        let graceful = {
            let queue = queue.clone();
            thread::spawn(move || queue.shutdown())
        };
        let returned = queue.shutdown_immediate().len() as u32;
        let sent = producer.join().unwrap();
        graceful.join().unwrap();
        assert_eq!(collector.join().unwrap() + returned, sent);
        at_rest(&queue);
    });
}

#[test]
fn a_collector_that_leaves_loses_nothing() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let leavers: Vec<_> = (0..2)
            .map(|n| {
                let queue = queue.clone();
                thread::spawn(move || {
                    let left = match n {
                        0 => poll_and_drop(queue.recv_batch(3, Duration::MAX)),
                        _ => poll_and_drop(queue.recv_many(3)),
                    };
                    if let Some(batch) = left {
                        batch.unwrap().unwrap().into_iter().for_each(|item| item.requeue().unwrap());
                    }
                })
            })
            .collect();
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || {
                block_on(queue.send(1)).unwrap();
                block_on(queue.send(1)).unwrap();
            })
        };
        let batch = block_on(queue.recv_batch(2, Duration::MAX)).unwrap().unwrap();
        assert_eq!(batch.len(), 2);
        for thread in leavers.into_iter().chain([producer]) {
            thread.join().unwrap();
        }
        batch.done();
        at_rest(&queue);
    });
}

#[test]
fn the_items_of_a_batch_and_a_join_do_not_miss_each_other() {
    check(|| {
        let queue = ShutdownQueue::<u32>::unbounded();
        for n in 0..4 {
            queue.try_send(n).unwrap();
        }
        let whole = block_on(queue.recv_many(2)).unwrap().unwrap();
        let mut parts = block_on(queue.recv_many(2)).unwrap().unwrap().into_iter();
        let part = parts.next().unwrap();
        let settlers = [
            thread::spawn(move || whole.done()),
            thread::spawn(move || part.done()),
            thread::spawn(move || parts.for_each(|item| item.reject())),
        ];
        let joiner = {
            let queue = queue.clone();
            thread::spawn(move || {
                let report = block_on(queue.join()).unwrap();
                assert_eq!((report.done, report.rejected), (3, 1));
            })
        };
        balanced(&queue.stats());
        for thread in settlers.into_iter().chain([joiner]) {
            thread.join().unwrap();
        }
        at_rest(&queue);
    });
}
