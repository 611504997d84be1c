use stoppable_sync::{ShutdownQueue, TaskDoneError};
use tokio_test::{assert_pending, assert_ready_ok};

use crate::{assert_no_waiters, by_hand, take};

#[test]
fn joining_an_empty_queue_returns_at_once_twice() {
    let queue = ShutdownQueue::<u32>::unbounded();
    assert_ready_ok!(by_hand(queue.join()).poll());
    assert_ready_ok!(by_hand(queue.join()).poll());
}

#[test]
fn join_waits_for_what_is_queued_and_in_flight() {
    let queue = ShutdownQueue::unbounded();
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    let first = take(&queue);
    let second = take(&queue);
    first.done();
    assert!(!join.is_woken());
    second.done();
    assert!(join.is_woken());
    assert!(assert_ready_ok!(join.poll()).all_done());
}

#[test]
fn every_join_is_released() {
    let queue = ShutdownQueue::unbounded();
    queue.try_send(1).unwrap();
    let mut joins: Vec<_> = (0..3).map(|_| by_hand(queue.join())).collect();
    for join in &mut joins {
        assert_pending!(join.poll());
    }
    assert_eq!(queue.stats().waiting_joiners, 3);
    take(&queue).done();
    for join in &mut joins {
        assert!(join.is_woken());
        assert_ready_ok!(join.poll());
    }
    assert_no_waiters(&queue);
}

#[test]
fn a_released_join_stays_released_when_more_is_sent() {
    let queue = ShutdownQueue::unbounded();
    queue.try_send(1).unwrap();
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    take(&queue).done();
    queue.try_send(2).unwrap();
    let report = assert_ready_ok!(join.poll());
    assert_eq!((report.accepted, report.done), (1, 1));
}

#[test]
fn a_dropped_join_disturbs_nothing() {
    let queue = ShutdownQueue::unbounded();
    queue.try_send(1).unwrap();
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    drop(join);
    assert_no_waiters(&queue);
    take(&queue).done();
    assert_ready_ok!(by_hand(queue.join()).poll());
}

#[test]
fn a_shutdown_alone_does_not_release_join() {
    let queue = ShutdownQueue::unbounded();
    queue.try_send(1).unwrap();
    let item = take(&queue);
    queue.shutdown();
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    item.done();
    assert_ready_ok!(join.poll());
}

#[test]
fn join_waits_for_a_task_done_of_a_detached_item() {
    let queue = ShutdownQueue::unbounded();
    queue.try_send("a").unwrap();
    assert_eq!(queue.task_done(), Err(TaskDoneError));
    let value = take(&queue).detach();
    assert_eq!(value, "a");
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    assert_eq!(queue.task_done(), Ok(()));
    assert!(join.is_woken());
    assert_ready_ok!(join.poll());
    assert_eq!(queue.task_done(), Err(TaskDoneError));
    assert_eq!(queue.stats().done, 1);
}

#[test]
fn a_task_done_does_not_settle_a_guard() {
    let queue = ShutdownQueue::unbounded();
    queue.try_send("a").unwrap();
    let item = take(&queue);
    assert_eq!(queue.task_done(), Err(TaskDoneError));
    assert_eq!(queue.stats().in_flight, 1);
    item.done();
}
