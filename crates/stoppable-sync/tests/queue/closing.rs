use std::sync::{Arc, Mutex};

use stoppable_sync::{DeadLetterReason, SendError, ShutdownQueue, TryRecvError, TrySendError};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok};

use crate::{assert_balanced, assert_no_waiters, by_hand, drain, take};

#[test]
fn a_shutdown_wakes_all_receivers_of_an_empty_queue() {
    let queue = ShutdownQueue::<u32>::bounded(1);
    let mut receivers: Vec<_> = (0..3).map(|_| by_hand(queue.recv())).collect();
    for receiver in &mut receivers {
        assert_pending!(receiver.poll());
    }
    queue.shutdown();
    for receiver in &mut receivers {
        assert!(receiver.is_woken());
        assert!(assert_ready_ok!(receiver.poll()).is_none());
    }
    assert_ready_ok!(by_hand(queue.join()).poll());
    assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::ShutDown);
    assert!(assert_ready_ok!(by_hand(queue.recv()).poll()).is_none());
    assert_no_waiters(&queue);
}

#[test]
fn a_shutdown_drains() {
    let queue = ShutdownQueue::bounded(100);
    for n in 1..=100 {
        queue.try_send(n).unwrap();
    }
    queue.shutdown();
    assert_eq!(queue.try_send(0), Err(TrySendError::ShutDown(0)));
    assert_eq!(drain(&queue), (1..=100).collect::<Vec<_>>());
    assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::ShutDown);
}

#[test]
fn a_blocked_sender_gets_its_value_back_and_a_blocked_join_goes_on_waiting() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut sender = by_hand(queue.send(2));
    let mut join = by_hand(queue.join());
    assert_pending!(sender.poll());
    assert_pending!(join.poll());

    queue.shutdown();
    assert!(sender.is_woken() && !join.is_woken());
    assert!(matches!(assert_ready_err!(sender.poll()), SendError::ShutDown(2)));

    let item = take(&queue);
    assert_eq!(*item, 1);
    assert_pending!(join.poll());
    item.done();
    assert!(join.is_woken());
    assert!(assert_ready_ok!(join.poll()).all_done());
    assert!(queue.task_done().is_err());
    assert_no_waiters(&queue);
}

#[test]
fn a_granted_slot_is_not_yet_an_acceptance() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut sender = by_hand(queue.send(2));
    assert_pending!(sender.poll());
    let item = take(&queue);
    assert!(sender.is_woken());
    queue.shutdown();
    assert!(matches!(assert_ready_err!(sender.poll()), SendError::ShutDown(2)));
    assert_eq!((queue.len(), queue.stats().unfinished()), (0, 1));
    item.done();
    assert_no_waiters(&queue);
}

#[test]
fn a_promised_item_is_received_after_a_shutdown_and_the_next_receiver_is_told() {
    for second_first in [false, true] {
        let queue = ShutdownQueue::bounded(1);
        let mut first = by_hand(queue.recv());
        let mut second = by_hand(queue.recv());
        assert_pending!(first.poll());
        assert_pending!(second.poll());
        queue.try_send(1).unwrap();
        queue.shutdown();
        if second_first {
            // Not yet: should the first leave, the item is the second's.
            assert_pending!(second.poll());
        }
        assert_eq!(*assert_ready_ok!(first.poll()).unwrap(), 1);
        assert!(second.is_woken());
        assert!(assert_ready_ok!(second.poll()).is_none());
    }
}

#[test]
fn a_promise_passes_on_also_after_a_shutdown() {
    let queue = ShutdownQueue::bounded(1);
    let mut first = by_hand(queue.recv());
    let mut second = by_hand(queue.recv());
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.try_send(1).unwrap();
    queue.shutdown();
    drop(first);
    assert!(second.is_woken());
    assert_eq!(*assert_ready_ok!(second.poll()).unwrap(), 1);
}

#[test]
fn an_immediate_shutdown_takes_promised_items_back() {
    let queue = ShutdownQueue::bounded(4);
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    queue.try_send(1).unwrap();
    let leftovers = queue.shutdown_immediate();
    assert_eq!(leftovers.into_iter().collect::<Vec<_>>(), [1]);
    assert!(assert_ready_ok!(receiver.poll()).is_none());
    assert_eq!(queue.stats().unfinished(), 0);
    assert_eq!(assert_ready_ok!(by_hand(queue.join()).poll()).returned, 1);
    assert_no_waiters(&queue);
}

#[test]
fn an_immediate_shutdown_returns_what_is_queued_and_join_waits_for_what_is_in_flight() {
    let queue = ShutdownQueue::bounded(2);
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    let item = take(&queue);
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    let leftovers = queue.shutdown_immediate();
    assert_eq!((leftovers.len(), leftovers.in_flight()), (1, 1));
    assert_eq!(queue.stats().unfinished(), 1);
    assert!(!join.is_woken());
    item.done();
    assert!(join.is_woken());
    let report = assert_ready_ok!(join.poll());
    assert_eq!((report.done, report.returned), (1, 1));
}

#[test]
fn an_immediate_shutdown_releases_a_join() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    drop(queue.shutdown_immediate());
    assert!(join.is_woken());
    assert_ready_ok!(join.poll());
    assert_ready_ok!(by_hand(queue.join()).poll());
}

#[test]
fn the_leftovers_are_each_there_once_and_in_order() {
    for capacity in [10, 100_000] {
        let value = Arc::new(());
        let queue = ShutdownQueue::bounded(capacity);
        for n in 0..5 {
            queue.try_send((n, value.clone())).unwrap();
        }
        let leftovers = queue.shutdown_immediate();
        assert_eq!(leftovers.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!((&leftovers).into_iter().count(), 5);
        assert_eq!(Arc::strong_count(&value), 6);
        drop(leftovers);
        assert_eq!(Arc::strong_count(&value), 1);
        assert_balanced(&queue);
    }
}

#[test]
fn a_shutdown_may_be_repeated_and_only_escalate() {
    let queue = ShutdownQueue::bounded(2);
    queue.try_send(1).unwrap();
    queue.shutdown();
    queue.shutdown();
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.shutdown_immediate().len(), 1);
    assert!(queue.shutdown_immediate().is_empty());
    queue.shutdown();
    assert!(queue.is_shut_down());
    assert!(assert_ready_ok!(by_hand(queue.recv()).poll()).is_none());
    assert_ready_ok!(by_hand(queue.join()).poll());
}

#[test]
fn a_permit_is_void_after_a_shutdown() {
    let queue = ShutdownQueue::bounded(1);
    let permit = queue.try_reserve().unwrap();
    let mut waiting = by_hand(queue.reserve());
    assert_pending!(waiting.poll());
    queue.shutdown();
    assert!(waiting.is_woken());
    assert_ready_err!(waiting.poll());
    assert_eq!(permit.send(7).unwrap_err().into_inner(), 7);
    assert_no_waiters(&queue);
}

#[test]
fn a_granted_reservation_is_void_after_a_shutdown() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut granted = by_hand(queue.reserve());
    let mut dropped = by_hand(queue.reserve());
    assert_pending!(granted.poll());
    assert_pending!(dropped.poll());
    take(&queue).done();
    assert!(granted.is_woken());
    queue.shutdown();
    drop(dropped);
    assert_ready_err!(granted.poll());
    assert_no_waiters(&queue);
}

#[test]
fn what_is_requeued_while_draining_is_served() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let item = take(&queue);
    queue.shutdown();
    assert!(assert_ready_ok!(by_hand(queue.recv()).poll()).is_none());
    item.requeue().unwrap();
    let again = assert_ready_ok!(by_hand(queue.recv()).poll()).unwrap();
    assert_eq!(*again, 1);
    again.done();
    assert!(assert_ready_ok!(by_hand(queue.recv()).poll()).is_none());
}

#[test]
fn a_receiver_told_of_the_end_takes_what_was_requeued_before_it_ran() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let item = take(&queue);
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    queue.shutdown();
    assert!(receiver.is_woken());
    item.requeue().unwrap();
    assert_eq!(*assert_ready_ok!(receiver.poll()).unwrap(), 1);
}

#[test]
fn a_requeue_after_an_immediate_shutdown_gives_the_guard_back() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let item = take(&queue);
    drop(queue.shutdown_immediate());
    let item = item.requeue().unwrap_err().into_item();
    assert_eq!(*item, 1);
    assert_eq!(queue.stats().in_flight, 1);
    item.done();
    assert_eq!(queue.stats().done, 1);
    assert_eq!(queue.stats().requeued, 0);
}

#[test]
fn the_last_handle_gives_what_is_queued_to_the_sink() {
    let dead = Arc::new(Mutex::new(Vec::new()));
    let sink = dead.clone();
    let queue = ShutdownQueue::builder()
        .dead_letters(move |letter| sink.lock().unwrap().push((letter.value, letter.reason)))
        .build();
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    let item = take(&queue);
    let other = queue.clone();
    drop(queue);
    assert!(dead.lock().unwrap().is_empty());
    drop(other);
    assert_eq!(*dead.lock().unwrap(), [(2, DeadLetterReason::QueueDropped)]);
    // The item that is out can be settled, but nobody would ever receive it again.
    let item = item.requeue().unwrap_err().into_item();
    drop(item);
    assert_eq!(dead.lock().unwrap()[1], (1, DeadLetterReason::Abandoned));
}

#[test]
fn the_last_handle_without_a_sink_drops_what_is_queued() {
    let value = Arc::new(());
    let queue = ShutdownQueue::unbounded();
    queue.try_send(value.clone()).unwrap();
    let item = take(&queue);
    queue.try_send(value.clone()).unwrap();
    drop(queue);
    assert_eq!(Arc::strong_count(&value), 2);
    item.done();
    assert_eq!(Arc::strong_count(&value), 1);
}
