use stoppable_sync::{AbandonPolicy, ShutdownQueue, TryRecvError};
use tokio_test::{assert_pending, assert_ready_ok};

use crate::{assert_balanced, assert_no_waiters, by_hand, drain, take};

fn with(values: &[u32]) -> ShutdownQueue<u32> {
    let queue = ShutdownQueue::unbounded();
    for value in values {
        queue.try_send(*value).unwrap();
    }
    queue
}

#[test]
fn every_way_to_send_gives_the_ticket_of_the_item() {
    let queue = ShutdownQueue::bounded(2);
    assert_eq!(queue.try_send('a'), Ok(1));
    assert_eq!(queue.try_reserve().unwrap().send('b'), Ok(2));
    let mut polled = by_hand(queue.send('c'));
    let mut taken = by_hand(queue.send('d'));
    assert_pending!(polled.poll());
    assert_pending!(taken.poll());
    for expected in [1, 2] {
        let item = take(&queue);
        assert_eq!(item.ticket(), expected);
        item.done();
    }
    assert_eq!(assert_ready_ok!(polled.poll()), 3);
    assert_eq!(take(&queue).ticket(), 3);
    assert_eq!(take(&queue).ticket(), 4);
    assert_eq!(assert_ready_ok!(taken.poll()), 4);
}

#[test]
fn a_cancelled_item_is_given_back_and_never_received() {
    let queue = with(&[10, 20, 30]);
    assert_eq!(queue.cancel(2), Some(20));
    assert_eq!(queue.cancel(2), None);
    assert_eq!(drain(&queue), [10, 30]);
    let stats = queue.stats();
    assert_eq!((stats.done, stats.returned), (2, 1));
    assert_balanced(&queue);
}

#[test]
fn what_is_not_queued_cannot_be_cancelled() {
    let queue = with(&[10]);
    let item = take(&queue);
    assert_eq!(queue.cancel(item.ticket()), None);
    assert_eq!(queue.cancel(0), None);
    assert_eq!(queue.cancel(7), None);
    item.requeue().unwrap();
    assert_eq!(queue.cancel(1), Some(10));
    assert!(queue.is_empty());
}

#[test]
fn cancelling_works_in_every_order() {
    let lifo = ShutdownQueue::builder().lifo().build();
    let levels = ShutdownQueue::builder().priority(|n: &i64| *n).build();
    for (queue, expected) in [(lifo, [5, 70, -3]), (levels, [-3, 5, 70])] {
        for value in [-3, 70, -3, 5, 70] {
            queue.try_send(value).unwrap();
        }
        assert_eq!(queue.cancel(3), Some(-3));
        assert_eq!(queue.cancel(5), Some(70));
        assert_eq!(drain(&queue), expected);
        queue.try_send(5).unwrap();
        assert_eq!(queue.cancel(6), Some(5));
        assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
    }
}

#[test]
fn a_cancel_makes_room() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut sender = by_hand(queue.send(2));
    assert_pending!(sender.poll());
    assert_eq!(queue.cancel(1), Some(1));
    assert!(sender.is_woken());
    assert_ready_ok!(sender.poll());
    assert_eq!(drain(&queue), [2]);
}

#[test]
fn a_cancelled_item_that_was_promised_leaves_its_receiver_first_in_line() {
    let queue = ShutdownQueue::unbounded();
    let mut receivers: Vec<_> = (0..3).map(|_| by_hand(queue.recv())).collect();
    for receiver in &mut receivers {
        assert_pending!(receiver.poll());
    }
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    assert_eq!(queue.stats().promised, 2);
    assert_eq!(queue.cancel(1), Some(1));
    assert_eq!((queue.stats().promised, queue.stats().waiting_receivers), (1, 2));
    // Who was served last goes without, and is the first to be served again.
    assert_pending!(receivers[1].poll());
    assert_eq!(*assert_ready_ok!(receivers[0].poll()).unwrap(), 2);
    queue.try_send(3).unwrap();
    assert!(receivers[1].is_woken() && !receivers[2].is_woken());
    assert_eq!(*assert_ready_ok!(receivers[1].poll()).unwrap(), 3);
}

#[test]
fn a_receiver_that_lost_its_promise_before_it_was_polled_is_served_without_a_second_wake() {
    let queue = ShutdownQueue::unbounded();
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    queue.try_send(1).unwrap();
    assert!(receiver.is_woken());
    queue.cancel(1);
    queue.try_send(2).unwrap();
    assert_eq!(*assert_ready_ok!(receiver.poll()).unwrap(), 2);
    assert_no_waiters(&queue);
}

#[test]
fn a_cancelled_promise_is_made_good_by_a_sender_that_has_a_slot() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut sender = by_hand(queue.send(2));
    assert_pending!(sender.poll());
    take(&queue).done();
    let mut receiver = by_hand(queue.recv());
    // It is given the value of the sender, which was not polled since.
    assert_eq!(*assert_ready_ok!(receiver.poll()).unwrap(), 2);
    let mut waits = by_hand(queue.recv());
    assert_pending!(waits.poll());
    queue.try_send(3).unwrap();
    queue.try_send(4).unwrap();
    let mut late = by_hand(queue.send(5));
    assert_pending!(late.poll());
    assert_eq!(queue.cancel(3), Some(3));
    assert_eq!(queue.cancel(4), Some(4));
    assert_eq!(*assert_ready_ok!(waits.poll()).unwrap(), 5);
    assert_ready_ok!(late.poll());
}

#[test]
fn cancelling_the_last_item_of_a_draining_queue_ends_it() {
    let queue = with(&[1]);
    queue.shutdown();
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    assert_eq!(queue.cancel(1), Some(1));
    assert_eq!(assert_ready_ok!(join.poll()).returned, 1);
    assert!(assert_ready_ok!(by_hand(queue.recv()).poll()).is_none());

    let queue = ShutdownQueue::unbounded();
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    queue.try_send(1).unwrap();
    queue.shutdown();
    assert_eq!(queue.cancel(1), Some(1));
    assert!(receiver.is_woken());
    assert!(assert_ready_ok!(receiver.poll()).is_none());
    assert_no_waiters(&queue);
}

#[test]
fn an_abandoned_item_keeps_its_ticket_when_it_is_put_back() {
    let queue = ShutdownQueue::builder().abandon_policy(AbandonPolicy::Requeue).build();
    let ticket = queue.try_send(1).unwrap();
    drop(take(&queue));
    assert_eq!(queue.cancel(ticket), Some(1));
    assert_balanced(&queue);
}

/// B-100: a job that was cancelled while it was queued never runs.
#[tokio::test(start_paused = true)]
async fn a_job_cancelled_while_its_worker_is_busy_never_runs() {
    use std::time::Duration;
    let queue = ShutdownQueue::<&str>::bounded(8);
    let worker = {
        let queue = queue.clone();
        tokio::spawn(async move {
            let mut ran = Vec::new();
            while let Some(job) = queue.recv().await.unwrap() {
                tokio::time::sleep(Duration::from_secs(1)).await;
                ran.push(*job);
                job.done();
            }
            ran
        })
    };
    queue.send("busy").await.unwrap();
    let waits = queue.send("waits").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(queue.cancel(waits), Some("waits"));
    queue.shutdown();
    assert_eq!(worker.await.unwrap(), ["busy"]);
    assert_eq!(queue.join().await.unwrap().returned, 1);
}
