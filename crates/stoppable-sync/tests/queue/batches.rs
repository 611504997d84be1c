use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use stoppable_scope::{InScopeExt, Scope};
use stoppable_sync::{AbandonPolicy, Batch, JoinByError, ShutdownQueue, TryRecvError};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok};

use crate::{assert_balanced, assert_no_waiters, by_hand, drain, take};

fn with(values: std::ops::Range<u32>) -> ShutdownQueue<u32> {
    filled(ShutdownQueue::unbounded(), values)
}

fn filled(queue: ShutdownQueue<u32>, values: std::ops::Range<u32>) -> ShutdownQueue<u32> {
    for value in values {
        queue.try_send(value).unwrap();
    }
    queue
}

fn take_many<T>(queue: &ShutdownQueue<T>, max: usize) -> Batch<T> {
    assert_ready_ok!(by_hand(queue.recv_many(max)).poll()).expect("something is queued")
}

#[test]
fn recv_many_takes_what_is_there_up_to_its_maximum() {
    let queue = with(0..5);
    assert_eq!(*take_many(&queue, 3), [0, 1, 2]);
    assert_eq!(*take_many(&queue, 3), [3, 4]);
    assert_pending!(by_hand(queue.recv_many(3)).poll());
    queue.shutdown();
    assert!(assert_ready_ok!(by_hand(queue.recv_many(3)).poll()).is_none());
}

#[test]
fn recv_many_waits_for_one_item_and_takes_what_came_with_it() {
    let queue = with(0..0);
    let mut receiver = by_hand(queue.recv_many(8));
    assert_pending!(receiver.poll());
    let queue = filled(queue.clone(), 0..3);
    assert!(receiver.is_woken());
    assert_eq!(queue.stats().promised, 1);
    assert_eq!(*assert_ready_ok!(receiver.poll()).unwrap(), [0, 1, 2]);
}

#[test]
fn recv_many_leaves_to_others_what_is_promised_to_them() {
    let queue = with(0..0);
    let mut one = by_hand(queue.recv());
    let mut many = by_hand(queue.recv_many(8));
    let mut other = by_hand(queue.recv());
    assert_pending!(one.poll());
    assert_pending!(many.poll());
    assert_pending!(other.poll());
    let queue = filled(queue.clone(), 0..4);
    assert_eq!(*assert_ready_ok!(many.poll()).unwrap(), [0, 1]);
    assert_eq!(*assert_ready_ok!(one.poll()).unwrap(), 2);
    assert_eq!(*assert_ready_ok!(other.poll()).unwrap(), 3);
    assert!(queue.is_empty());
}

#[test]
fn a_batch_makes_room_for_all_that_it_took() {
    let queue = filled(ShutdownQueue::bounded(2), 0..2);
    let mut senders: Vec<_> = (2..5).map(|n| by_hand(queue.send(n))).collect();
    for sender in &mut senders {
        assert_pending!(sender.poll());
    }
    let batch = take_many(&queue, 2);
    assert_eq!(*batch, [0, 1]);
    assert!(senders[0].is_woken() && senders[1].is_woken() && !senders[2].is_woken());
    batch.done();
    assert_eq!(drain(&queue), [2, 3, 4]);
}

#[test]
fn one_done_settles_all() {
    let queue = with(0..3);
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    let mut batch = take_many(&queue, 8);
    assert_eq!((queue.stats().len, queue.stats().in_flight), (0, 3));
    batch[0] = 7;
    assert_eq!(batch.iter().sum::<u32>(), 10);
    batch.done();
    assert_eq!(assert_ready_ok!(join.poll()).done, 3);
    assert_balanced(&queue);
}

#[test]
fn each_item_can_be_settled_in_its_own_way() {
    let queue = with(0..5);
    let items: Vec<_> = take_many(&queue, 8).into_iter().collect();
    for item in items.into_iter().rev() {
        assert_eq!(item.attempt(), 1);
        assert_eq!(item.ticket(), u64::from(*item) + 1);
        match *item {
            0 => item.done(),
            1 => item.reject(),
            2 => item.requeue().unwrap(),
            3 => drop(item),
            _ => assert_eq!(item.detach(), 4),
        }
        assert_balanced(&queue);
    }
    queue.task_done().unwrap();
    let stats = queue.stats();
    assert_eq!((stats.done, stats.rejected, stats.abandoned, stats.requeued), (2, 1, 1, 1));
    assert_eq!((stats.len, stats.in_flight), (1, 0));
    assert_eq!(take(&queue).attempt(), 2);
}

#[test]
fn a_dropped_batch_is_abandoned_item_by_item() {
    let dead = Arc::new(Mutex::new(Vec::new()));
    let sink = dead.clone();
    let queue = ShutdownQueue::builder()
        .abandon_policy(AbandonPolicy::Sink)
        .dead_letters(move |letter| sink.lock().unwrap().push((letter.value, letter.ticket, letter.attempt)))
        .build();
    let queue = filled(queue, 0..3);
    drop(take_many(&queue, 8));
    assert_eq!(*dead.lock().unwrap(), [(0, 1, 1), (1, 2, 1), (2, 3, 1)]);
    assert_eq!(queue.stats().abandoned, 3);
}

#[test]
fn a_dropped_batch_is_put_back_in_order_where_the_policy_says_so() {
    let queue = filled(ShutdownQueue::builder().abandon_policy(AbandonPolicy::Requeue).build(), 0..4);
    drop(take_many(&queue, 3));
    let batch = take_many(&queue, 8);
    assert_eq!(*batch, [3, 0, 1, 2]);
    let attempts: Vec<_> = batch.into_iter().map(|item| item.attempt()).collect();
    assert_eq!(attempts, [1, 2, 2, 2]);
}

#[test]
fn what_is_left_of_an_iteration_is_abandoned() {
    let queue = with(0..4);
    let mut items = take_many(&queue, 8).into_iter();
    assert_eq!(items.len(), 4);
    items.next().unwrap().done();
    let second = items.next().unwrap();
    drop(items);
    assert_eq!((queue.stats().done, queue.stats().abandoned, queue.stats().in_flight), (1, 2, 1));
    second.done();
    assert_eq!(queue.stats().unfinished(), 0);
}

struct Panics(bool);

impl Drop for Panics {
    fn drop(&mut self) {
        assert!(!self.0, "this value panics when dropped");
    }
}

#[test]
fn a_value_that_panics_does_not_keep_its_batch_from_being_counted() {
    let queue = ShutdownQueue::unbounded();
    for _ in 0..2 {
        for panics in [false, true, false] {
            assert!(queue.try_send(Panics(panics)).is_ok());
        }
    }
    let (done, dropped) = (take_many(&queue, 3), take_many(&queue, 3));
    assert!(catch_unwind(AssertUnwindSafe(|| done.done())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(dropped))).is_err());
    assert_eq!((queue.stats().done, queue.stats().abandoned), (3, 3));
    assert_eq!(queue.stats().unfinished(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_items_of_a_batch_are_on_record() {
    let queue = with(0..6);
    let first = take_many(&queue, 2);
    let mut second = take_many(&queue, 3).into_iter();
    second.next().unwrap().done();
    let Err(JoinByError::Elapsed(unfinished)) = queue.join_by(std::time::Duration::ZERO).await else {
        panic!()
    };
    assert_eq!(unfinished.to_string(), "5 items unfinished: 1 queued (#6), 4 in flight (#1; #2; #4; #5)");
    drop(second);
    first.done();
    // Its record is used again.
    let third = take_many(&queue, 3);
    let single = with(0..1);
    take(&single).done();
    let Err(JoinByError::Elapsed(unfinished)) = queue.join_by(std::time::Duration::ZERO).await else {
        panic!()
    };
    assert_eq!(unfinished.to_string(), "1 item unfinished: 0 queued, 1 in flight (#6)");
    third.done();
    assert!(queue.join().await.is_ok());
}

#[test]
fn a_large_batch_that_is_out_takes_no_seat_from_single_items() {
    let queue = with(0..200);
    let batch = take_many(&queue, 100);
    let singles: Vec<_> = (0..64).map(|_| take(&queue)).collect();
    batch.done();
    for item in singles {
        item.done();
    }
    assert_balanced(&queue);
    assert_eq!(queue.stats().in_flight, 0);
}

#[test]
fn a_batch_outlives_its_queue() {
    let queue = with(0..3);
    let mut items = take_many(&queue, 8).into_iter();
    drop(queue);
    items.next().unwrap().done();
    let item = items.next().unwrap().requeue().unwrap_err().into_item();
    item.done();
    drop(items);
}

#[test]
fn batches_come_in_the_order_of_the_queue() {
    let lifo = filled(ShutdownQueue::builder().lifo().build(), 0..3);
    assert_eq!(*take_many(&lifo, 2), [2, 1]);
    let levels = filled(ShutdownQueue::builder().priority(|n: &u32| 9 - i64::from(*n)).build(), 0..3);
    assert_eq!(*take_many(&levels, 2), [2, 1]);
}

#[test]
fn a_departing_recv_many_passes_its_promise_on() {
    for cancelled in [false, true] {
        let queue = ShutdownQueue::unbounded();
        let scope = Scope::new();
        let mut leaver = by_hand(queue.recv_many(4).in_scope(&scope));
        let mut stayer = by_hand(queue.recv());
        assert_pending!(leaver.poll());
        assert_pending!(stayer.poll());
        queue.try_send(1).unwrap();
        if cancelled {
            scope.cancel(());
            assert_ready_err!(leaver.poll());
        }
        drop(leaver);
        assert!(stayer.is_woken());
        assert_eq!(assert_ready_ok!(stayer.poll()).unwrap().attempt(), 1);
        assert_no_waiters(&queue);
    }
}

#[test]
fn an_immediate_shutdown_takes_the_promise_of_a_recv_many_back() {
    let queue = ShutdownQueue::unbounded();
    let mut receiver = by_hand(queue.recv_many(4));
    assert_pending!(receiver.poll());
    queue.try_send(1).unwrap();
    assert_eq!(queue.shutdown_immediate().len(), 1);
    assert!(assert_ready_ok!(receiver.poll()).is_none());
    assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::ShutDown);
}

#[test]
#[should_panic(expected = "ask for at least 1")]
fn a_batch_of_nothing_is_refused() {
    drop(ShutdownQueue::<u32>::unbounded().recv_many(0));
}
