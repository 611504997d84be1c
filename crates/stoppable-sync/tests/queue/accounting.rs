use std::sync::Arc;

use stoppable_sync::{Item, ShutdownQueue};
use tokio_test::{assert_pending, assert_ready, task};

use crate::{assert_balanced, by_hand, take};

#[test]
fn the_books_balance_after_every_kind_of_end() {
    let queue = ShutdownQueue::unbounded();
    for n in 0..8 {
        queue.try_send(n).unwrap();
        assert_balanced(&queue);
    }
    take(&queue).done();
    assert_balanced(&queue);
    take(&queue).reject();
    assert_balanced(&queue);
    drop(take(&queue));
    assert_balanced(&queue);
    take(&queue).requeue().unwrap();
    assert_balanced(&queue);
    let value = take(&queue).detach();
    assert_eq!(value, 4);
    assert_balanced(&queue);
    queue.task_done().unwrap();
    let in_flight = take(&queue);
    drop(queue.shutdown_immediate());
    assert_balanced(&queue);
    let stats = queue.stats();
    assert_eq!((stats.done, stats.rejected, stats.abandoned), (2, 1, 1));
    assert_eq!((stats.returned, stats.requeued, stats.in_flight), (3, 1, 1));
    in_flight.done();
    assert_balanced(&queue);
}

#[test]
fn more_items_in_flight_than_have_a_seat_are_on_record_too() {
    let queue = ShutdownQueue::unbounded();
    for n in 0..1000 {
        queue.try_send(n).unwrap();
    }
    let mut items: Vec<_> = (0..1000).map(|_| take(&queue)).collect();
    assert_eq!(queue.stats().in_flight, 1000);
    // Every second one, first the late ones.
    for at in (0..1000).rev().step_by(2) {
        items.remove(at).done();
    }
    assert_eq!(queue.stats().in_flight, 500);
    let unfinished = unfinished(&queue);
    assert_eq!(unfinished.len(), 500);
    assert!(unfinished.iter().all(|ticket| ticket % 2 == 1));
    for item in items {
        item.reject();
    }
    assert_eq!(queue.stats().unfinished(), 0);
}

/// The tickets of what is unfinished.
fn unfinished<T>(queue: &ShutdownQueue<T>) -> Vec<u64> {
    let Err(stoppable_sync::JoinByError::Elapsed(unfinished)) =
        tokio_test::block_on(queue.join_by(std::time::Duration::ZERO))
    else {
        panic!("a limit of zero has always elapsed")
    };
    unfinished.items().iter().map(|item| item.ticket).collect()
}

#[test]
fn unfinished_names_the_queued_the_in_flight_and_the_detached() {
    let queue = ShutdownQueue::unbounded();
    for n in 0..4 {
        queue.try_send(n).unwrap();
    }
    let first = take(&queue);
    let _ = take(&queue).detach();
    take(&queue).requeue().unwrap();
    assert_eq!(unfinished(&queue), [3, 4, 1, 2]);
    first.done();
    queue.task_done().unwrap();
    assert_eq!(unfinished(&queue), [3, 4]);
}

#[test]
fn the_peak_is_not_reset_by_draining() {
    let queue = ShutdownQueue::unbounded();
    for n in 0..5 {
        queue.try_send(n).unwrap();
    }
    crate::drain(&queue);
    assert_eq!((queue.len(), queue.stats().peak_len), (0, 5));
}

#[test]
fn debug_prints_the_facts() {
    let queue = ShutdownQueue::builder().name("jobs").capacity(2).build();
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    let mut sender = by_hand(queue.send(3));
    assert_pending!(sender.poll());
    let text = format!("{queue:?}");
    for fact in ["jobs", "len: 2", "capacity: Some(2)", "waiting_senders: 1", "is_shut_down: false"] {
        assert!(text.contains(fact), "{text}");
    }
    queue.shutdown();
    assert!(format!("{queue:?}").contains("is_shut_down: true"));
}

#[test]
fn more_items_than_have_a_seat_of_their_own_are_all_counted() {
    let queue = ShutdownQueue::unbounded();
    for round in 1..=3 {
        (0..200).for_each(|n| {
            queue.try_send(n).unwrap();
        });
        let mut items: Vec<_> = (0..200).map(|_| queue.try_recv().unwrap()).collect();
        let late = items.split_off(100);
        items.into_iter().rev().for_each(Item::done);
        assert_eq!((queue.stats().done, queue.stats().in_flight), (round * 200 - 100, 100));
        late.into_iter().for_each(Item::done);
        assert_eq!((queue.stats().done, queue.stats().in_flight), (round * 200, 0));
    }
}

#[tokio::test]
async fn a_join_hears_of_items_received_before_it_and_after() {
    let queue = ShutdownQueue::unbounded();
    (0..4).for_each(|n| {
        queue.try_send(n).unwrap();
    });
    let before = [queue.try_recv().unwrap(), queue.try_recv().unwrap()];
    let mut join = task::spawn(queue.join());
    assert_pending!(join.poll());
    let after = [queue.try_recv().unwrap(), queue.try_recv().unwrap()];
    for item in after.into_iter().chain(before) {
        assert!(!join.is_woken());
        item.done();
    }
    assert!(join.is_woken());
    assert_eq!(assert_ready!(join.poll()).unwrap().done, 4);
}

#[test]
fn nothing_keeps_a_queue_without_handles_but_its_items() {
    let kept = Arc::new(());
    let in_sink = Arc::clone(&kept);
    let queue = ShutdownQueue::builder().dead_letters(move |_| drop(Arc::clone(&in_sink))).build();
    (0..3).for_each(|n| {
        queue.try_send(n).unwrap();
    });
    queue.try_recv().unwrap().done();
    let (done, dropped) = (queue.try_recv().unwrap(), queue.try_recv().unwrap());
    drop(queue);
    assert_eq!(Arc::strong_count(&kept), 2);
    done.done();
    drop(dropped);
    assert_eq!(Arc::strong_count(&kept), 1);
}
