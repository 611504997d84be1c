//! Q rows: what a queue does when nobody leaves and nothing is closed.

use std::sync::{Arc, Mutex};

use stoppable::{JoinByError, ShutdownQueue, TaskDoneError, TaskGroup, TryRecvError, TrySendError, ok};
use tokio::time::{Instant, sleep};

use crate::kit::{Wait, both, drain, ms, paused, secs, settle, take};

// Adapted: a snapshot, and `Debug` shows it. Values need not be `Debug`, so they are counted, not printed.
#[test]
fn q_01_a_snapshot_shows_size_items_waiters_and_unfinished_work() {
    let queue = ShutdownQueue::bounded(2);
    let facts = |queue: &ShutdownQueue<i32>| {
        let stats = queue.stats();
        (stats.len, stats.waiting_receivers, stats.waiting_senders, stats.unfinished())
    };
    assert_eq!(queue.stats().capacity, Some(2));
    assert_eq!(ShutdownQueue::<i32>::unbounded().stats().capacity, None);
    assert_eq!(facts(&queue), (0, 0, 0, 0));
    let receiver = Wait::blocked(queue.recv());
    assert_eq!(facts(&queue), (0, 1, 0, 0));
    drop(receiver);
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    assert_eq!(facts(&queue), (2, 0, 0, 2));
    let sender = Wait::blocked(queue.send(3));
    assert_eq!(facts(&queue), (2, 0, 1, 2));
    drop(sender);
    let item = take(&queue);
    assert_eq!(facts(&queue), (1, 0, 0, 2));
    let text = format!("{queue:?}");
    for part in ["capacity: Some(2)", "len: 1", "waiting_receivers: 0", "in_flight: 1", "is_shut_down: false"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    item.done();
    assert_eq!(facts(&queue), (1, 0, 0, 1));
}

#[test]
fn q_04_unbounded_is_never_full_and_bounded_is_at_its_capacity() {
    let unbounded = ShutdownQueue::unbounded();
    assert!(!unbounded.is_full());
    unbounded.try_send(1).unwrap();
    assert!(!unbounded.is_full());
    let bounded = ShutdownQueue::bounded(1);
    assert!(!bounded.is_full());
    bounded.try_send(1).unwrap();
    assert!(bounded.is_full());
}

#[test]
fn q_05_first_in_first_out() {
    let queue = ShutdownQueue::unbounded();
    for n in [1, 3, 2] {
        queue.try_send(n).unwrap();
    }
    assert_eq!(drain(&queue), [1, 3, 2]);
}

#[test]
fn q_06_a_sender_stops_at_the_capacity_and_goes_on_as_items_are_taken() {
    paused(async {
        let queue = ShutdownQueue::bounded(2);
        let sender = tokio::spawn({
            let queue = queue.clone();
            async move {
                for n in 1..=3 {
                    queue.send(n).await.unwrap();
                }
            }
        });
        settle().await;
        assert_eq!((queue.len(), queue.is_full(), sender.is_finished()), (2, true, false));
        assert_eq!(*queue.recv().await.unwrap().unwrap(), 1);
        settle().await;
        assert_eq!((queue.len(), sender.is_finished()), (2, true));
        sender.await.unwrap();
        assert_eq!(drain(&queue), [2, 3]);
    });
}

#[test]
fn q_07_an_item_that_is_there_is_taken_without_a_wait() {
    let queue = ShutdownQueue::unbounded();
    queue.try_send(1).unwrap();
    assert_eq!(*Wait::new(queue.recv()).ready().unwrap().unwrap(), 1);
}

#[test]
fn q_09_a_receiver_waits_for_an_item_that_comes_later() {
    let queue = ShutdownQueue::unbounded();
    let mut receiver = Wait::blocked(queue.recv());
    receiver.pending();
    assert!(!receiver.is_woken());
    queue.try_send(1).unwrap();
    assert!(receiver.is_woken());
    assert_eq!(*receiver.ready().unwrap().unwrap(), 1);
}

#[test]
fn q_10_try_recv_takes_what_is_there() {
    let queue = ShutdownQueue::unbounded();
    queue.try_send(1).unwrap();
    assert_eq!(*queue.try_recv().unwrap(), 1);
}

#[test]
fn q_11_try_recv_on_an_empty_live_queue_is_empty() {
    let queue = ShutdownQueue::<()>::unbounded();
    assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
}

#[test]
fn q_14_producer_and_consumer_over_one_slot_both_finish() {
    both(|| async {
        let received = TaskGroup::run(|group| async move {
            let queue = ShutdownQueue::bounded(1);
            let producer = queue.clone();
            group.spawn(async move {
                for n in 0..5 {
                    producer.send(n).await?;
                }
                ok(())
            });
            let consumer = group.spawn(async move {
                let mut received = Vec::new();
                for _ in 0..5 {
                    let item = queue.recv().await?.unwrap();
                    received.push(*item);
                    item.done();
                }
                ok(received)
            });
            Ok(consumer.await?)
        });
        assert_eq!(received.await.unwrap(), [0, 1, 2, 3, 4]);
    });
}

#[test]
fn q_16_a_send_without_a_limit_does_not_wait() {
    let queue = ShutdownQueue::unbounded();
    Wait::new(queue.send(1)).ready().unwrap();
    assert_eq!(drain(&queue), [1]);
}

#[test]
fn q_17_a_second_send_waits_until_one_item_is_taken() {
    paused(async {
        let queue = ShutdownQueue::bounded(1);
        let started = Instant::now();
        let sender = tokio::spawn({
            let queue = queue.clone();
            async move {
                queue.send("a").await.unwrap();
                let first = started.elapsed();
                queue.send("b").await.unwrap();
                (first, started.elapsed())
            }
        });
        sleep(ms(10)).await;
        assert!(!sender.is_finished());
        assert_eq!(*queue.recv().await.unwrap().unwrap(), "a");
        assert_eq!(sender.await.unwrap(), (ms(0), ms(10)));
        assert_eq!(drain(&queue), ["b"]);
    });
}

#[test]
fn q_22_try_send_on_a_full_queue_gives_the_value_back() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    assert_eq!(queue.try_send(2), Err(TrySendError::Full(2)));
    assert_eq!(drain(&queue), [1]);
}

#[test]
fn q_24_one_task_sends_while_another_receives() {
    both(|| async {
        let queue = ShutdownQueue::unbounded();
        let sender = tokio::spawn({
            let queue = queue.clone();
            async move { queue.send(1).await }
        });
        assert_eq!(*queue.recv().await.unwrap().unwrap(), 1);
        assert!(sender.await.unwrap().is_ok());
    });
}

#[test]
fn q_26_a_waiting_receiver_gets_what_is_sent() {
    both(|| async {
        let queue = ShutdownQueue::<&str>::unbounded();
        let receiver = tokio::spawn({
            let queue = queue.clone();
            async move { queue.recv().await.unwrap().unwrap().detach() }
        });
        while queue.stats().waiting_receivers == 0 {
            tokio::task::yield_now().await;
        }
        queue.send("item").await.unwrap();
        assert_eq!(receiver.await.unwrap(), "item");
    });
}

#[test]
fn q_27_all_senders_finish_when_the_queue_is_drained_in_one_go() {
    let queue = ShutdownQueue::bounded(2);
    Wait::new(queue.send(0)).ready().unwrap();
    Wait::new(queue.send(1)).ready().unwrap();
    let mut third = Wait::blocked(queue.send(2));
    let mut fourth = Wait::blocked(queue.send(3));
    let mut drained = drain(&queue);
    assert!(drained.starts_with(&[0, 1]));
    assert!(third.is_woken() && fourth.is_woken());
    third.ready().unwrap();
    fourth.ready().unwrap();
    drained.extend(drain(&queue));
    assert_eq!(drained, [0, 1, 2, 3]);
}

// Adapted: an error, and only what was detached from its guard is settled by it.
#[test]
fn q_32_task_done_once_too_often_is_an_error() {
    for queue in crate::kinds(None) {
        assert_eq!(queue.task_done(), Err(TaskDoneError));
        assert_eq!((queue.stats().done, queue.stats().unfinished()), (0, 0));
        queue.try_send(1).unwrap();
        assert_eq!(queue.task_done(), Err(TaskDoneError));
        assert_eq!((queue.stats().done, queue.stats().unfinished()), (0, 1));
    }
}

#[test]
fn q_34_join_on_a_queue_that_never_had_items_returns_at_once() {
    for queue in crate::kinds(None) {
        for _ in 0..2 {
            let report = Wait::new(queue.join()).ready().unwrap();
            assert_eq!((report.accepted, report.all_done()), (0, true));
        }
    }
}

// "join never returns": for an hour of virtual time, and for a second join as well.
#[test]
fn q_47_an_item_that_is_drained_and_never_settled_holds_join() {
    for detach in [true, false] {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let queue = ShutdownQueue::unbounded();
            queue.try_send(1).unwrap();
            queue.shutdown();
            let item = queue.recv().await.unwrap().unwrap();
            let held = if detach { Err(item.detach()) } else { Ok(item) };
            assert!(queue.recv().await.unwrap().is_none());
            for _ in 0..2 {
                let started = Instant::now();
                let unfinished = match queue.join_by(secs(3600)).await {
                    Err(JoinByError::Elapsed(unfinished)) => unfinished,
                    other => panic!("{other:?}"),
                };
                assert_eq!((unfinished.queued(), unfinished.in_flight()), (0, 1));
                assert_eq!(started.elapsed(), secs(3600));
            }
            drop(held);
        });
    }
}

// On one thread. Which item a receiver gets is decided when it is taken, so on two the set is all there is.
#[test]
fn q_59_waiting_receivers_are_served_in_order() {
    both(|| async {
        let queue = ShutdownQueue::<&str>::unbounded();
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut receivers = Vec::new();
        for who in 0..3 {
            receivers.push(tokio::spawn({
                let (queue, log) = (queue.clone(), log.clone());
                async move {
                    let item = queue.recv().await.unwrap().unwrap();
                    log.lock().unwrap().push((who, *item));
                    item.done();
                }
            }));
            while queue.stats().waiting_receivers <= who {
                tokio::task::yield_now().await;
            }
        }
        for item in ["a", "b", "c"] {
            queue.try_send(item).unwrap();
        }
        assert_eq!(queue.stats().waiting_receivers, 0);
        for receiver in receivers {
            receiver.await.unwrap();
        }
        let mut served = log.lock().unwrap().clone();
        if tokio::runtime::Handle::current().metrics().num_workers() == 1 {
            assert_eq!(served, [(0, "a"), (1, "b"), (2, "c")]);
        }
        served.sort_by_key(|(_, item)| *item);
        assert_eq!(served.iter().map(|(_, item)| *item).collect::<Vec<_>>(), ["a", "b", "c"]);
        served.sort_unstable();
        assert_eq!(served.iter().map(|(who, _)| *who).collect::<Vec<_>>(), [0, 1, 2]);
    });
}

// Adapted: 0 is refused rather than taken for no limit, and a rendezvous is not offered.
#[test]
fn q_69_capacity_zero_is_refused_and_unbounded_never_waits() {
    let refused = std::panic::catch_unwind(|| ShutdownQueue::<()>::bounded(0)).unwrap_err();
    let text = refused
        .downcast_ref::<&str>()
        .map_or_else(|| refused.downcast_ref::<String>().unwrap().clone(), |text| (*text).to_owned());
    assert!(text.contains("unbounded"), "it says what to use instead: {text}");
    let queue = ShutdownQueue::unbounded();
    for n in 0..10_000 {
        Wait::new(queue.send(n)).ready().unwrap();
    }
    assert_eq!(queue.len(), 10_000);
}

#[test]
fn q_77_a_try_recv_unblocks_a_sender() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send("a").unwrap();
    let mut sender = Wait::blocked(queue.send("b"));
    take(&queue).done();
    assert!(sender.is_woken());
    sender.ready().unwrap();
    assert_eq!(drain(&queue), ["b"]);
}
