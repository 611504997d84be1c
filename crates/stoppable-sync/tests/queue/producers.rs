use std::time::Duration;

use stoppable_sync::{ShutdownQueue, TryRecvError, TryReserveError, TrySendError, WeakQueue};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok};

use crate::{assert_no_waiters, by_hand, drain, take};

#[test]
fn the_last_producer_shuts_the_queue_down() {
    let queue = ShutdownQueue::bounded(4);
    let first = queue.producer();
    let second = first.clone();
    let third = queue.producer();
    for (producer, n) in [(first, 0), (second, 1)] {
        producer.try_send(n).unwrap();
        drop(producer);
        assert!(!queue.is_shut_down());
    }
    third.try_send(2).unwrap();
    drop(third);
    assert!(queue.is_shut_down());
    assert_eq!(queue.try_send(3), Err(TrySendError::ShutDown(3)));
    assert_eq!(drain(&queue), [0, 1, 2]);
    assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::ShutDown);
}

#[test]
fn a_queue_that_never_had_a_producer_stays_open() {
    let queue = ShutdownQueue::<u32>::bounded(4);
    drop(queue.clone());
    assert!(!queue.is_shut_down());
}

#[test]
fn the_last_producer_wakes_receivers_and_joins() {
    let queue = ShutdownQueue::<u32>::bounded(4);
    let producer = queue.producer();
    let mut receivers: Vec<_> = (0..2).map(|_| by_hand(queue.recv())).collect();
    let mut collector = by_hand(queue.recv_batch(3, Duration::MAX));
    for receiver in &mut receivers {
        assert_pending!(receiver.poll());
    }
    assert_pending!(collector.poll());
    producer.try_send(1).unwrap();
    drop(producer);
    assert_eq!(*assert_ready_ok!(receivers[0].poll()).unwrap(), 1);
    assert!(assert_ready_ok!(receivers[1].poll()).is_none());
    assert!(assert_ready_ok!(collector.poll()).is_none());
    assert_no_waiters(&queue);
}

#[test]
fn the_last_producer_flushes_a_partial_batch() {
    let queue = ShutdownQueue::bounded(4);
    let producer = queue.producer();
    let mut collector = by_hand(queue.recv_batch(3, Duration::MAX));
    assert_pending!(collector.poll());
    producer.try_send(1).unwrap();
    drop(producer);
    assert_eq!(*assert_ready_ok!(collector.poll()).unwrap(), [1]);
}

#[test]
fn the_last_producer_gives_others_that_wait_to_send_their_values_back() {
    let queue = ShutdownQueue::bounded(1);
    let producer = queue.producer();
    producer.try_send(1).unwrap();
    let mut sender = by_hand(queue.send(2));
    assert_pending!(sender.poll());
    drop(producer);
    assert_eq!(assert_ready_err!(sender.poll()).into_inner(), 2);
}

#[test]
fn a_producer_made_after_the_last_one_finds_the_queue_shut_down() {
    let queue = ShutdownQueue::bounded(4);
    drop(queue.producer());
    let late = queue.producer();
    assert_eq!(late.try_send(1), Err(TrySendError::ShutDown(1)));
    assert_eq!(late.try_reserve().unwrap_err(), TryReserveError::ShutDown);
    assert!(late.clone().try_send(1).is_err());
}

#[test]
fn a_producer_sends_in_every_way() {
    let queue = ShutdownQueue::bounded(8);
    let producer = queue.producer();
    assert_eq!(assert_ready_ok!(by_hand(producer.send(1)).poll()), 1);
    assert_eq!(producer.try_send(2), Ok(2));
    assert_ready_ok!(by_hand(producer.send_many(&mut [3, 4].into())).poll());
    assert_ready_ok!(by_hand(producer.reserve()).poll()).send(5).unwrap();
    producer.try_reserve().unwrap().send(6).unwrap();
    for permit in assert_ready_ok!(by_hand(producer.reserve_many(1)).poll()) {
        permit.send(7).unwrap();
    }
    assert_eq!(drain(&queue), (1..8).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_producer_sends_with_a_limit() {
    let queue = ShutdownQueue::bounded(1);
    let producer = queue.producer();
    assert_eq!(producer.send_by(1, Duration::from_secs(1)).await.unwrap(), 1);
    assert_eq!(producer.send_by(2, Duration::from_secs(1)).await.unwrap_err().into_inner(), 2);
}

#[test]
fn a_producer_does_not_keep_the_queue() {
    let queue = ShutdownQueue::bounded(1);
    let producer = queue.producer();
    producer.try_send(1).unwrap();
    let mut sender = by_hand(producer.send(2));
    assert_pending!(sender.poll());
    drop(queue);
    assert!(sender.is_woken());
    assert_eq!(assert_ready_err!(sender.poll()).into_inner(), 2);
    assert_eq!(producer.try_send(3), Err(TrySendError::ShutDown(3)));
}

#[test]
fn an_immediate_shutdown_is_not_undone_by_producers() {
    let queue = ShutdownQueue::bounded(1);
    let producer = queue.producer();
    producer.try_send(1).unwrap();
    let item = take(&queue);
    assert!(queue.shutdown_immediate().is_empty());
    drop(producer);
    assert!(item.requeue().is_err());
}

#[test]
fn a_weak_queue_gives_a_handle_as_long_as_there_is_one() {
    let queue = ShutdownQueue::bounded(4);
    let weak: WeakQueue<u32> = queue.downgrade();
    let handle = weak.upgrade().unwrap();
    drop(queue);
    handle.try_send(1).unwrap();
    let item = take(&weak.clone().upgrade().unwrap());
    assert!(!handle.is_shut_down());
    drop(handle);
    // The guard is still out, but the queue is gone.
    assert!(weak.upgrade().is_none());
    assert!(weak.upgrade().is_none(), "also when asked again");
    item.done();
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_weak_queue_does_not_keep_what_is_queued() {
    let queue = ShutdownQueue::bounded(4);
    let value = std::sync::Arc::new(());
    queue.try_send(value.clone()).unwrap();
    let weak = queue.downgrade();
    drop(queue);
    assert_eq!(std::sync::Arc::strong_count(&value), 1);
    assert!(weak.upgrade().is_none());
}
