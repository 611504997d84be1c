//! What real users ran into with queues: B-39 to B-54, and B-93 to B-95 as far as they are the queue's part.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use stoppable::{
    InScopeExt, JoinReport, Policy, Scope, SendByError, SendError, ShutdownQueue, TaskGroup, TrySendError,
    ok, with_timeout,
};
use tokio::time::{Instant, sleep, sleep_until};

use crate::kit::{Rounds, block_on, both, drain, ms, paused, secs};

#[test]
fn b_39_shutdown_of_an_empty_queue_wakes_all_who_wait() {
    paused(async {
        let queue = ShutdownQueue::<()>::unbounded();
        let started = Instant::now();
        let consumers = [(); 3].map(|()| {
            let queue = queue.clone();
            tokio::spawn(async move { (queue.recv().await.unwrap().is_none(), started.elapsed()) })
        });
        sleep(ms(10)).await;
        queue.shutdown();
        for consumer in consumers {
            assert_eq!(consumer.await.unwrap(), (true, ms(10)));
        }
    });
}

// Real threads.
#[test]
fn b_41_done_and_immediate_shutdown_at_one_moment_keep_the_count_right() {
    const ROUNDS: usize = 10_000;
    let queues: Vec<_> = (0..ROUNDS).map(|_| ShutdownQueue::bounded(1)).collect();
    let rounds = Rounds::new(2);
    let (mut by_a, mut by_b) = (0, 0);
    thread::scope(|threads| {
        let a = threads.spawn(|| {
            let mut taken = Vec::new();
            for (round, queue) in queues.iter().enumerate() {
                queue.try_send(round).unwrap();
                rounds.wait(round);
                taken.push(queue.try_recv().ok().map(|item| {
                    let value = *item;
                    item.done();
                    value
                }));
            }
            taken
        });
        let b = threads.spawn(|| {
            let mut left = Vec::new();
            for (round, queue) in queues.iter().enumerate() {
                rounds.wait(round);
                left.push(queue.shutdown_immediate().into_iter().next());
            }
            left
        });
        for (round, (a, b)) in a.join().unwrap().into_iter().zip(b.join().unwrap()).enumerate() {
            assert_eq!(a.or(b), Some(round));
            assert!(a.is_none() || b.is_none(), "{round}: taken and left over");
            by_a += usize::from(a.is_some());
            by_b += usize::from(b.is_some());
        }
    });
    for queue in &queues {
        let stats = queue.stats();
        assert_eq!((stats.unfinished(), stats.in_flight, stats.len), (0, 0, 0));
        assert_eq!((stats.accepted, stats.done + stats.returned), (1, 1));
        block_on(queue.join()).unwrap();
    }
    assert_eq!(by_a + by_b, ROUNDS);
}

#[test]
fn b_43_join_ends_with_an_immediate_shutdown() {
    paused(async {
        let queue = ShutdownQueue::bounded(1);
        queue.send(1).await.unwrap();
        assert_eq!(queue.shutdown_immediate().len(), 1);
        let started = Instant::now();
        assert_eq!(queue.join().await.unwrap().returned, 1);
        assert_eq!((started.elapsed(), queue.stats().unfinished()), (ms(0), 0));

        let queue = ShutdownQueue::bounded(1);
        queue.send(1).await.unwrap();
        let started = Instant::now();
        let join = tokio::spawn({
            let queue = queue.clone();
            async move { (queue.join().await.unwrap().returned, started.elapsed()) }
        });
        sleep(secs(1)).await;
        assert!(!join.is_finished());
        assert_eq!(queue.shutdown_immediate().len(), 1);
        assert_eq!(join.await.unwrap(), (1, secs(1)));
        assert_eq!(queue.stats().unfinished(), 0);
    });
}

#[test]
fn b_45_a_held_permit_starves_nobody() {
    both(|| async {
        let run = TaskGroup::run(|group| async move {
            let queue = ShutdownQueue::bounded(3);
            let for_push_back = queue.clone();
            let permit = for_push_back.reserve().await?;
            for producer in 0..3 {
                let queue = queue.clone();
                group.spawn(async move {
                    for n in 0..10 {
                        queue.send(producer * 10 + n).await?;
                    }
                    ok(())
                });
            }
            let mut received = HashSet::new();
            for _ in 0..30 {
                // An item that is promised to the consumer occupies no slot.
                let stats = queue.stats();
                assert!(stats.len - stats.promised <= 2 && stats.reserved >= 1, "{stats:?}");
                let item = queue.recv().await?.unwrap();
                assert!(received.insert(*item));
                item.done();
            }
            drop(permit);
            ok(received)
        });
        assert_eq!(run.await.unwrap(), (0..30).collect());
    });
    // Nobody waits here, so that what is queued is what occupies a slot.
    let queue = ShutdownQueue::bounded(3);
    let _permit = queue.try_reserve().unwrap();
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    assert_eq!(queue.try_send(3), Err(TrySendError::Full(3)));
}

// Real threads.
#[test]
fn b_47_the_last_item_of_a_producer_that_leaves_at_once_is_received() {
    const ROUNDS: usize = 100_000;
    const CHUNK: usize = 1_000;
    let mut received = 0;
    for chunk in 0..ROUNDS / CHUNK {
        let queues: Vec<_> = (0..CHUNK).map(|_| ShutdownQueue::bounded(1)).collect();
        let producers: Vec<_> = queues.iter().map(ShutdownQueue::producer).collect();
        let rounds = Rounds::new(2);
        thread::scope(|threads| {
            threads.spawn(|| {
                for (round, producer) in producers.into_iter().enumerate() {
                    rounds.wait(round);
                    block_on(producer.send(chunk * CHUNK + round)).unwrap();
                    drop(producer);
                }
            });
            for (round, queue) in queues.iter().enumerate() {
                rounds.wait(round);
                let item = block_on(queue.recv()).unwrap().expect("the item was lost");
                assert_eq!(*item, chunk * CHUNK + round);
                item.done();
                received += 1;
                assert!(block_on(queue.recv()).unwrap().is_none());
            }
        });
    }
    assert_eq!(received, ROUNDS);
}

#[test]
fn b_49_select_over_two_queues_loses_neither_value() {
    both(|| async {
        let (a, b) = (ShutdownQueue::bounded(1), ShutdownQueue::bounded(1));
        a.send("a").await.unwrap();
        b.send("b").await.unwrap();
        let mut received = Vec::new();
        while received.len() < 2 {
            let item = tokio::select! {
                item = a.recv() => item,
                item = b.recv() => item,
            };
            let item = item.unwrap().unwrap();
            received.push(*item);
            item.done();
        }
        received.sort_unstable();
        assert_eq!(received, ["a", "b"]);
        for queue in [a, b] {
            assert_eq!((queue.stats().done, queue.stats().unfinished()), (1, 0));
        }
    });
}

#[test]
fn b_50_a_timed_send_gives_the_value_back() {
    paused(async {
        let queue = ShutdownQueue::bounded(1);
        queue.send(1).await.unwrap();
        let started = Instant::now();
        let error = queue.send_by(42, ms(50)).await.unwrap_err();
        assert_eq!(started.elapsed(), ms(50));
        assert!(matches!(error, SendByError::Elapsed(42, _)));

        // The other way: with the value in hand, wait for room only.
        let started = Instant::now();
        let reserved = with_timeout(ms(50), async { queue.reserve().await.map(drop) });
        assert!(reserved.await.unwrap_err().is_elapsed());
        assert_eq!(started.elapsed(), ms(50));
        // And one that loses a `select!`.
        let mut value = Some(42);
        tokio::select! {
            permit = queue.reserve() => drop(permit.unwrap().send(value.take().unwrap())),
            () = sleep(ms(50)) => {}
        }
        assert_eq!(value, Some(42));

        assert_eq!(drain(&queue), [1]);
        sleep(secs(1)).await;
        assert_eq!((drain(&queue), queue.stats().accepted), (vec![], 1));
    });
}

#[test]
fn b_51_a_graceful_shutdown_keeps_what_was_accepted() {
    both(|| async {
        let queue = ShutdownQueue::bounded(100);
        for n in 1..=100 {
            queue.send(n).await.unwrap();
        }
        queue.shutdown();
        assert!(matches!(queue.send(101).await, Err(SendError::ShutDown(101))));
        let consumer = tokio::spawn({
            let queue = queue.clone();
            async move {
                let mut received = Vec::new();
                while let Some(item) = queue.recv().await.unwrap() {
                    received.push(*item);
                    item.done();
                }
                received
            }
        });
        assert_eq!(consumer.await.unwrap(), (1..=100).collect::<Vec<_>>());
        assert!(matches!(queue.send(101).await, Err(SendError::ShutDown(101))));
    });
}

// Real threads. Two sends a round: the second one waits, or meets the shutdown on its way.
#[test]
fn b_52_no_send_is_pending_after_a_shutdown() {
    const ROUNDS: usize = 100_000;
    const CHUNK: usize = 1_000;
    for _ in 0..ROUNDS / CHUNK {
        let queues: Vec<_> = (0..CHUNK).map(|_| ShutdownQueue::bounded(1)).collect();
        thread::scope(|threads| {
            let puts = threads.spawn(|| {
                let put = |queue: &ShutdownQueue<i32>, n| match block_on(queue.send(n)) {
                    Ok(_) => 1,
                    Err(SendError::ShutDown(value)) => {
                        assert_eq!(value, n);
                        0
                    }
                    Err(other) => panic!("{other:?}"),
                };
                queues.iter().map(|queue| put(queue, 1) + put(queue, 2)).collect::<Vec<u64>>()
            });
            for queue in &queues {
                let item = block_on(queue.recv()).unwrap().unwrap();
                queue.shutdown();
                item.done();
            }
            for (queue, put) in queues.iter().zip(puts.join().unwrap()) {
                let left = drain(queue).len() as u64;
                let stats = queue.stats();
                assert_eq!((put, stats.accepted), (1 + left, 1 + left));
                assert_eq!((stats.waiting_senders, stats.reserved), (0, 0));
            }
        });
    }
}

#[test]
fn b_53_an_immediate_shutdown_reports_what_was_not_delivered() {
    struct Counted(usize, Arc<[AtomicUsize; 5]>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.1[self.0].fetch_add(1, Ordering::SeqCst);
        }
    }
    for queue in [ShutdownQueue::bounded(10), ShutdownQueue::bounded(1_000_000), ShutdownQueue::unbounded()] {
        let drops: Arc<[AtomicUsize; 5]> = Arc::default();
        for n in 0..5 {
            assert!(queue.try_send(Counted(n, drops.clone())).is_ok());
        }
        let leftovers = queue.shutdown_immediate();
        drop(queue);
        assert_eq!(leftovers.iter().map(|left| left.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert!(drops.iter().all(|drops| drops.load(Ordering::SeqCst) == 0));
        drop(leftovers);
        assert!(drops.iter().all(|drops| drops.load(Ordering::SeqCst) == 1));
    }

    both(|| async {
        let queue = ShutdownQueue::bounded(100);
        for n in 0..100 {
            queue.send(n).await.unwrap();
        }
        let mut delivered = Vec::new();
        for _ in 0..60 {
            let scope = Scope::named("consumer");
            let consumer = tokio::spawn({
                let (queue, remote) = (queue.clone(), scope.clone());
                async move {
                    let item = queue.recv().await.unwrap().unwrap();
                    let value = *item;
                    item.done();
                    // From now on it is cancelled, and would get the next one.
                    remote.cancel("received one");
                    (value, queue.recv().await.is_err())
                }
                .in_scope(&scope)
            });
            let (value, cancelled) = consumer.await.unwrap();
            assert!(cancelled);
            delivered.push(value);
        }
        let leftovers = queue.shutdown_immediate();
        assert_eq!(delivered.len() + leftovers.len(), 100);
        delivered.extend(leftovers);
        assert_eq!(delivered, (0..100).collect::<Vec<_>>());
    });
}

// Real threads.
#[test]
fn b_54_probes_take_nothing() {
    const ITEMS: usize = 100_000;
    let queue = ShutdownQueue::bounded(64);
    let over = AtomicBool::new(false);
    thread::scope(|threads| {
        let prober = threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // One item may be promised beyond the capacity, for there is one receiver.
                assert!(queue.len() <= 65);
                let _ = (queue.is_empty(), queue.is_full(), queue.stats(), queue.is_shut_down());
            }
        });
        threads.spawn(|| {
            for n in 0..ITEMS {
                block_on(queue.send(n)).unwrap();
            }
            queue.shutdown();
            // Not by the receiver, which may fail.
            over.store(true, Ordering::Relaxed);
        });
        let mut received = 0;
        while let Some(item) = block_on(queue.recv()).unwrap() {
            assert_eq!(*item, received);
            received += 1;
            item.done();
        }
        prober.join().unwrap();
        assert_eq!(received, ITEMS);
    });
    assert_eq!(queue.stats().done, ITEMS as u64);
}

#[test]
fn b_93_a_steady_trickle_is_flushed_at_the_age_of_its_first_item() {
    // Polled when it is woken, and polled every 7 ms as well: neither may start the timer again.
    paused(trickle(secs(9)));
    paused(trickle(ms(7)));
}

async fn trickle(polled_every: Duration) {
    let queue = ShutdownQueue::bounded(100);
    let started = Instant::now();
    let producer = tokio::spawn({
        let queue = queue.clone();
        async move {
            for n in 0..9 {
                sleep_until(started + ms(120 * n)).await;
                queue.send(started.elapsed()).await.unwrap();
            }
        }
    });
    let mut flushes = Vec::new();
    for _ in 0..3 {
        let mut receive = pin!(queue.recv_batch(100, ms(250)));
        let batch = loop {
            tokio::select! {
                biased;
                batch = &mut receive => break batch.unwrap().unwrap(),
                () = sleep(polled_every) => {}
            }
        };
        let now = started.elapsed();
        assert!(batch.iter().all(|sent| now - *sent <= ms(250)));
        flushes.push((now, batch.to_vec()));
        batch.done();
    }
    // "At 250 ms" allows 1 ms of rounding; none is needed.
    let expected = [(250, [0, 120, 240]), (610, [360, 480, 600]), (970, [720, 840, 960])];
    assert_eq!(flushes, expected.map(|(at, sent)| (ms(at), sent.map(ms).to_vec())));
    producer.await.unwrap();
    assert_eq!((queue.len(), queue.stats().done), (0, 9));
}

#[test]
fn b_94_a_part_filled_batch_is_flushed_once_or_left_over() {
    paused(async {
        for immediate in [false, true] {
            let queue = ShutdownQueue::bounded(10);
            let started = Instant::now();
            for n in 0..7 {
                queue.send(n).await.unwrap();
            }
            let consumer = tokio::spawn({
                let queue = queue.clone();
                async move {
                    let mut flushes = Vec::new();
                    while let Some(batch) = queue.recv_batch(10, secs(5)).await.unwrap() {
                        flushes.push((started.elapsed(), batch.to_vec()));
                        batch.done();
                    }
                    (flushes, started.elapsed())
                }
            });
            sleep(ms(100)).await;
            let all: Vec<_> = (0..7).collect();
            if immediate {
                assert_eq!(queue.shutdown_immediate().into_iter().collect::<Vec<_>>(), all);
                assert_eq!(consumer.await.unwrap(), (vec![], ms(100)));
                assert_eq!((queue.stats().done, queue.stats().returned), (0, 7));
            } else {
                queue.shutdown();
                assert_eq!(consumer.await.unwrap(), (vec![(ms(100), all)], ms(100)));
                assert_eq!(queue.shutdown_immediate().len(), 0);
                assert_eq!((queue.stats().done, queue.stats().returned), (7, 0));
            }
        }
    });
}

// With a worker by hand, one task an item. Overruled in one point: the item that panicked is not done but
// abandoned.
#[test]
fn b_95_a_worker_that_fails_on_an_item_does_not_hang_join() {
    both(|| async {
        let queue = ShutdownQueue::bounded(3);
        for n in 1..=3 {
            queue.send(n).await.unwrap();
        }
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        let run = TaskGroup::builder().policy(Policy::Supervise).run({
            let (queue, outcomes) = (queue.clone(), outcomes.clone());
            |group| async move {
                let worker = group.spawn({
                    let (queue, group) = (queue.clone(), group.clone());
                    async move {
                        while let Some(item) = queue.recv().await? {
                            let work = group.spawn(async move {
                                if *item == 2 {
                                    panic!("item 2");
                                }
                                item.done();
                                ok(())
                            });
                            let outcome = work.await.is_ok();
                            outcomes.lock().unwrap().push(outcome);
                        }
                        ok(())
                    }
                });
                queue.join().await?;
                assert!(!worker.is_finished(), "the worker is gone");
                queue.shutdown();
                Ok(worker.await?)
            }
        });
        let error = run.await.unwrap_err();
        assert_eq!(error.failures().len(), 1);
        assert!(error.failures()[0].to_string().contains("item 2"), "{error}");
        assert_eq!(*outcomes.lock().unwrap(), [true, false, true]);
        let JoinReport { accepted, done, abandoned, .. } = queue.join().await.unwrap();
        assert_eq!((accepted, done, abandoned), (3, 2, 1));
    });
}
