//! Q rows: shutdown, and what it does to those who wait, to items and to `join`.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use stoppable::{
    Item, ReserveError, SendByError, SendError, ShutdownQueue, TaskDoneError, TaskGroup, TryRecvError,
    TryReserveError, TrySendError, ok,
};

use crate::kit::{Wait, assert_no_waiters, both, drain, paused, secs, take};

/// Every way in and every way out answers "shut down", at once, and again.
async fn assert_all_shut_down(queue: &ShutdownQueue<i32>) {
    for _ in 0..2 {
        assert!(matches!(queue.send(9).await, Err(SendError::ShutDown(9))));
        assert!(matches!(queue.send_by(9, secs(1)).await, Err(SendByError::ShutDown(9))));
        assert_eq!(queue.try_send(9), Err(TrySendError::ShutDown(9)));
        assert!(matches!(queue.reserve().await, Err(ReserveError::ShutDown)));
        assert_eq!(queue.try_reserve().unwrap_err(), TryReserveError::ShutDown);
        assert!(queue.recv().await.unwrap().is_none());
        assert!(queue.recv_ref().await.unwrap().is_none());
        assert!(matches!(queue.recv_by(secs(1)).await, Ok(None)));
        assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::ShutDown);
    }
}

// Adapted: in the snapshot, and in `Debug`.
#[test]
fn q_35_a_snapshot_shows_the_shutdown() {
    for queue in crate::kinds(None) {
        assert!(!queue.is_shut_down() && !queue.stats().is_shut_down);
        queue.shutdown();
        assert!(queue.is_shut_down() && queue.stats().is_shut_down);
        assert!(format!("{queue:?}").contains("is_shut_down: true"));
    }
}

#[test]
fn q_36_shutdown_of_an_empty_queue_ends_the_wait_and_all_later_calls() {
    paused(async {
        for queue in crate::kinds(Some(1)) {
            let mut receiver = Wait::blocked(queue.recv());
            queue.shutdown();
            assert!(receiver.is_woken());
            assert!(receiver.ready().unwrap().is_none());
            assert!(Wait::new(queue.join()).ready().is_ok());
            assert_all_shut_down(&queue).await;
        }
    });
}

#[test]
fn q_37_shutdown_of_a_full_queue_frees_the_sender_and_drains() {
    paused(async {
        let settled = [true, false].map(|detach| crate::kinds(Some(1)).map(|queue| (queue, detach)));
        for (queue, detach) in settled.into_iter().flatten() {
            queue.try_send(1).unwrap();
            let mut join = Wait::blocked(queue.join());
            let mut sender = Wait::blocked(queue.send(2));
            queue.shutdown();
            assert!(matches!(sender.ready(), Err(SendError::ShutDown(2))));
            assert_eq!(queue.len(), 1);
            join.pending();

            let item = Wait::new(queue.recv()).ready().unwrap().unwrap();
            assert_eq!(*item, 1);
            join.pending();
            if detach {
                let _value = item.detach();
                join.pending();
                queue.task_done().unwrap();
            } else {
                item.done();
            }
            assert!(join.is_woken());
            assert!(join.ready().unwrap().all_done());
            assert_all_shut_down(&queue).await;
            assert_eq!(queue.task_done(), Err(TaskDoneError));
            assert_eq!((queue.stats().done, queue.stats().accepted), (1, 1));
        }
    });
}

#[test]
fn q_39_immediate_shutdown_leaves_work_in_flight_to_be_settled_once() {
    for queue in crate::kinds(None) {
        queue.try_send(1).unwrap();
        queue.try_send(2).unwrap();
        let first = take(&queue).detach();
        let mut join = Wait::blocked(queue.join());
        assert_eq!(queue.stats().unfinished(), 2);
        let leftovers = queue.shutdown_immediate();
        assert_eq!(leftovers.in_flight(), 1);
        assert_eq!(leftovers.into_iter().collect::<Vec<_>>(), [3 - first]);
        assert_eq!(queue.stats().unfinished(), 1);
        join.pending();
        assert_eq!(queue.task_done(), Ok(()));
        assert!(join.is_woken());
        let report = join.ready().unwrap();
        assert_eq!((report.done, report.returned), (1, 1));
        assert_eq!(queue.task_done(), Err(TaskDoneError));
    }
}

#[test]
fn q_40_of_two_receivers_the_first_gets_the_last_item_whoever_is_polled_first() {
    for first_polled_first in [true, false] {
        let queue = ShutdownQueue::unbounded();
        let mut first = Wait::blocked(queue.recv());
        let mut second = Wait::blocked(queue.recv());
        queue.try_send(1).unwrap();
        queue.shutdown();
        if first_polled_first {
            assert_eq!(*first.ready().unwrap().unwrap(), 1);
            assert!(second.ready().unwrap().is_none());
        } else {
            // It may not take what is promised; and the first may still leave it behind, so it waits.
            second.pending();
            assert_eq!(*first.ready().unwrap().unwrap(), 1);
            assert!(second.is_woken());
            assert!(second.ready().unwrap().is_none());
        }
    }
}

// "Discarded" is given back here.
#[test]
fn q_41_immediate_shutdown_takes_a_promised_item_back() {
    let queue = ShutdownQueue::unbounded();
    let mut receiver = Wait::blocked(queue.recv());
    queue.try_send(1).unwrap();
    assert!(receiver.is_woken());
    assert_eq!(queue.shutdown_immediate().into_iter().collect::<Vec<_>>(), [1]);
    assert!(receiver.ready().unwrap().is_none());
    assert_eq!(queue.stats().unfinished(), 0);
    assert!(Wait::new(queue.join()).ready().is_ok());
}

#[test]
fn q_42_a_granted_slot_is_no_acceptance_when_the_queue_is_shut_down() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut sender = Wait::blocked(queue.send(2));
    let taken = take(&queue);
    assert!(sender.is_woken());
    queue.shutdown();
    assert!(matches!(sender.ready(), Err(SendError::ShutDown(2))));
    assert_eq!((queue.len(), queue.stats().unfinished()), (0, 1));
    taken.done();
    assert_no_waiters(&queue);
}

#[test]
fn q_44_immediate_shutdown_after_a_graceful_one_escalates() {
    let queue = ShutdownQueue::unbounded();
    queue.try_send(1).unwrap();
    queue.shutdown();
    let mut join = Wait::blocked(queue.join());
    assert_eq!(queue.shutdown_immediate().into_iter().collect::<Vec<_>>(), [1]);
    assert_eq!(queue.stats().unfinished(), 0);
    assert!(join.is_woken());
    join.ready().unwrap();
    Wait::new(queue.join()).ready().unwrap();
}

#[test]
fn q_45_graceful_shutdown_after_an_immediate_one_revives_nothing() {
    paused(async {
        let queue = ShutdownQueue::unbounded();
        queue.try_send(1).unwrap();
        drop(queue.shutdown_immediate());
        queue.shutdown();
        assert!(queue.is_shut_down());
        assert_all_shut_down(&queue).await;
    });
}

#[test]
fn q_46_shut_down_wins_over_full() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    assert!(queue.is_full());
    queue.shutdown();
    assert_eq!(queue.try_send(2), Err(TrySendError::ShutDown(2)));
    assert_eq!(queue.try_reserve().unwrap_err(), TryReserveError::ShutDown);
}

#[test]
fn q_60_immediate_shutdown_does_not_forgive_work_in_flight() {
    let queue = ShutdownQueue::unbounded();
    for n in 0..4 {
        queue.try_send(n).unwrap();
    }
    let items = [take(&queue), take(&queue)];
    let mut join = Wait::blocked(queue.join());
    assert_eq!(queue.shutdown_immediate().len(), 2);
    for item in items {
        join.pending();
        item.done();
    }
    assert!(join.is_woken());
    let report = join.ready().unwrap();
    assert_eq!((report.done, report.returned, report.accepted), (2, 2, 4));
}

// Adapted: to close the sending side is a graceful shutdown.
#[test]
fn q_61_limits_then_close_then_the_rest_then_the_end() {
    paused(async {
        let queue = ShutdownQueue::bounded(3);
        assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
        for n in 1..=3 {
            queue.try_send(n).unwrap();
        }
        assert_eq!(queue.try_send(4), Err(TrySendError::Full(4)));
        queue.shutdown();
        queue.shutdown();
        assert_eq!(queue.try_send(4), Err(TrySendError::ShutDown(4)));
        for n in 1..=3 {
            let item = queue.recv().await.unwrap().unwrap();
            assert_eq!(*item, n);
            item.done();
        }
        assert_all_shut_down(&queue).await;
    });
}

// The producer that goes closes the sending side.
#[test]
fn q_64_many_consumers_share_the_items_and_all_end_with_the_producer() {
    both(|| async {
        let run = TaskGroup::run(|group| async move {
            let queue = ShutdownQueue::bounded(1);
            let producer = queue.producer();
            let mut consumers = Vec::new();
            for _ in 0..5 {
                let mut items = queue.stream();
                consumers.push(group.spawn(async move {
                    let mut received = Vec::new();
                    while let Some(item) = items.next().await {
                        let item: Item<i32> = item?;
                        received.push(*item);
                        item.done();
                    }
                    ok(received)
                }));
            }
            // All wait, so that each is promised one of the first five.
            while queue.stats().waiting_receivers < 5 {
                tokio::task::yield_now().await;
            }
            let sender = group.spawn(async move {
                for n in 0..5 {
                    producer.try_send(n)?;
                }
                for n in 5..10 {
                    producer.send(n).await?;
                }
                ok(())
            });
            sender.await?;
            let mut all = Vec::new();
            for consumer in consumers {
                let received = consumer.await?;
                assert!(!received.is_empty());
                all.extend(received);
            }
            all.sort_unstable();
            ok(all)
        });
        assert_eq!(run.await.unwrap(), (0..10).collect::<Vec<_>>());
    });
}

// Adapted: a wait borrows its handle, so it is the task with both that goes.
#[test]
fn q_66_the_end_of_one_handle_leaves_the_waits_of_the_others() {
    both(|| async {
        let queue = ShutdownQueue::bounded(1);
        queue.try_send(0).unwrap();
        let [first, second] = [1, 2].map(|n| {
            let producer = queue.producer();
            tokio::spawn(async move { producer.send(n).await.is_ok() })
        });
        while queue.stats().waiting_senders < 2 {
            tokio::task::yield_now().await;
        }
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        assert_eq!(queue.stats().waiting_senders, 1);
        assert!(!queue.is_shut_down());
        assert_eq!(*queue.recv().await.unwrap().unwrap(), 0);
        assert!(second.await.unwrap());
        // That was the last producer. Neither did the value of the first come.
        assert!(queue.is_shut_down());
        assert_eq!(drain(&queue), [2]);

        let queue = ShutdownQueue::bounded(1);
        let [first, second] = [(); 2].map(|()| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.recv().await.unwrap().map(|item: Item<i32>| *item) })
        });
        while queue.stats().waiting_receivers < 2 {
            tokio::task::yield_now().await;
        }
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        queue.send(1).await.unwrap();
        assert_eq!(second.await.unwrap(), Some(1));
    });
}

// Adapted: what is dropped cannot be cloned. What is queued goes with the last handle that could receive it.
#[test]
fn q_67_a_queue_is_usable_until_the_last_receiving_handle_goes() {
    paused(async {
        let first = ShutdownQueue::bounded(1);
        let (second, third) = (first.clone(), first.clone());
        let producer = first.producer();
        drop(first);
        drop(second);
        producer.send(1).await.unwrap();
        assert_eq!(*third.recv().await.unwrap().unwrap(), 1);
        producer.send(2).await.unwrap();
        let mut blocked = Wait::blocked(producer.send(3));
        drop(third);
        assert!(blocked.is_woken());
        assert!(matches!(blocked.ready(), Err(SendError::ShutDown(3))));
        assert!(matches!(producer.send(4).await, Err(SendError::ShutDown(4))));
        assert_eq!(producer.try_send(4), Err(TrySendError::ShutDown(4)));
        assert_eq!(producer.clone().try_send(4), Err(TrySendError::ShutDown(4)));
    });
}

// Adapted: one word, shut down, for all of them.
#[test]
fn q_65_all_who_wait_are_released_at_once_and_for_good() {
    paused(async {
        let full = ShutdownQueue::bounded(1);
        full.try_send(0).unwrap();
        let empty = ShutdownQueue::<i32>::bounded(1);
        let mut sender = Wait::blocked(full.send(1));
        let mut reserve = Wait::blocked(full.reserve());
        let mut sender_by = Wait::blocked(full.send_by(2, secs(50)));
        let mut receiver = Wait::blocked(empty.recv());
        let mut borrower = Wait::blocked(empty.recv_ref());
        let mut receiver_by = Wait::blocked(empty.recv_by(secs(50)));
        full.shutdown();
        empty.shutdown();
        assert!(sender.is_woken() && reserve.is_woken() && sender_by.is_woken());
        assert!(receiver.is_woken() && borrower.is_woken() && receiver_by.is_woken());
        assert!(matches!(sender.ready(), Err(SendError::ShutDown(1))));
        assert!(matches!(reserve.ready(), Err(ReserveError::ShutDown)));
        assert!(matches!(sender_by.ready(), Err(SendByError::ShutDown(2))));
        assert!(receiver.ready().unwrap().is_none());
        assert!(borrower.ready().unwrap().is_none());
        assert!(matches!(receiver_by.ready(), Ok(None)));
        assert_all_shut_down(&empty).await;
        assert_eq!(drain(&full), [0]);
        assert_all_shut_down(&full).await;
    });
}

#[derive(Debug, PartialEq, Eq)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("closed")
    }
}

impl std::error::Error for Closed {}

// Adapted: the end of the items is `None`, which the task of this row takes for its failure. A unit is an item.
#[test]
fn q_76_a_task_whose_queue_was_closed_fails_its_group_with_exactly_that() {
    both(|| async {
        let queue = ShutdownQueue::<()>::bounded(1);
        let seen = Arc::new(Mutex::new(0));
        let run = TaskGroup::run({
            let (queue, seen) = (queue.clone(), seen.clone());
            |group| async move {
                let consumer = queue.clone();
                group.spawn(async move {
                    loop {
                        consumer.recv().await?.ok_or(Closed)?.done();
                        *seen.lock().unwrap() += 1;
                    }
                    #[allow(unreachable_code)]
                    ok(())
                });
                queue.send(()).await?;
                while queue.stats().waiting_receivers == 0 || queue.stats().done == 0 {
                    tokio::task::yield_now().await;
                }
                queue.shutdown();
                ok(())
            }
        });
        let error = run.await.unwrap_err();
        assert_eq!(error.failures().len(), 1);
        assert_eq!(error.failures()[0].downcast_ref::<Closed>(), Some(&Closed));
        assert_eq!(*seen.lock().unwrap(), 1);

        let queue = ShutdownQueue::<()>::bounded(1);
        queue.try_send(()).unwrap();
        let run = TaskGroup::run({
            let queue = queue.clone();
            |group| async move {
                let producer = queue.clone();
                group.spawn(async move { producer.send(()).await });
                while queue.stats().waiting_senders == 0 {
                    tokio::task::yield_now().await;
                }
                queue.shutdown();
                ok(())
            }
        });
        let error = run.await.unwrap_err();
        assert_eq!(error.failures().len(), 1);
        assert!(matches!(error.failures()[0].downcast_ref(), Some(SendError::ShutDown(()))));
        assert_eq!(drain(&queue), [()]);
    });
}
