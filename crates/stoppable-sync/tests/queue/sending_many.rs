use std::collections::VecDeque;
use std::time::Duration;

use stoppable_scope::{InScopeExt, Scope, TimeoutError, with_timeout};
use stoppable_sync::{ReserveManyError, SendManyError, ShutdownQueue, TryReserveError, TrySendError};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok};

use crate::{assert_balanced, assert_no_waiters, by_hand, drain, take};

fn values(range: std::ops::Range<u32>) -> VecDeque<u32> {
    range.collect()
}

#[test]
fn all_go_in_at_once_where_there_is_room() {
    let queue = ShutdownQueue::bounded(3);
    let mut many = values(0..3);
    assert_ready_ok!(by_hand(queue.send_many(&mut many)).poll());
    assert!(many.is_empty());
    assert_eq!(drain(&queue), [0, 1, 2]);
}

#[test]
fn nothing_to_send_waits_for_nothing() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    assert_ready_ok!(by_hand(queue.send_many(&mut VecDeque::new())).poll());
    assert_no_waiters(&queue);
}

#[test]
fn what_finds_room_goes_in_and_the_rest_waits() {
    let queue = ShutdownQueue::bounded(2);
    let mut many = values(0..5);
    let mut sending = by_hand(queue.send_many(&mut many));
    assert_pending!(sending.poll());
    assert_eq!(queue.len(), 2);
    assert_eq!(queue.stats().waiting_senders, 1);
    take(&queue).done();
    assert!(sending.is_woken());
    // Further slots are its own, without a wake for each.
    take(&queue).done();
    assert_eq!(queue.stats().reserved, 2);
    assert_eq!(queue.try_send(9), Err(TrySendError::Full(9)));
    assert_pending!(sending.poll());
    assert_eq!(queue.len(), 2);
    assert_eq!(drain(&queue), [2, 3]);
    assert_ready_ok!(sending.poll());
    assert_eq!(drain(&queue), [4]);
    assert_no_waiters(&queue);
}

#[test]
fn more_than_one_turn_is_sent_in_one_poll_where_there_is_room() {
    let queue = ShutdownQueue::unbounded();
    let mut many = values(0..10_000);
    assert_ready_ok!(by_hand(queue.send_many(&mut many)).poll());
    assert_eq!(drain(&queue), (0..10_000).collect::<Vec<_>>());
}

#[test]
fn a_sender_behind_it_waits_until_all_is_sent() {
    let queue = ShutdownQueue::bounded(1);
    let mut many = values(0..3);
    let mut sending = by_hand(queue.send_many(&mut many));
    let mut behind = by_hand(queue.send(7));
    assert_pending!(sending.poll());
    assert_pending!(behind.poll());
    let mut received = Vec::new();
    for _ in 0..2 {
        received.extend(drain(&queue));
        assert!(!behind.is_woken());
        let _ = sending.poll();
    }
    received.extend(drain(&queue));
    assert!(behind.is_woken());
    assert_ready_ok!(behind.poll());
    received.extend(drain(&queue));
    assert_eq!(received, [0, 1, 2, 7]);
}

#[test]
fn a_sender_before_it_that_has_a_slot_goes_first_and_one_behind_it_does_not() {
    let queue = ShutdownQueue::bounded(3);
    let mut many = values(10..11);
    for _ in 0..3 {
        queue.try_send(0).unwrap();
    }
    let mut before = by_hand(queue.send(1));
    let mut sending = by_hand(queue.send_many(&mut many));
    let mut behind = by_hand(queue.send(2));
    assert_pending!(before.poll());
    assert_pending!(sending.poll());
    assert_pending!(behind.poll());
    for _ in 0..3 {
        take(&queue).done();
    }
    // All three have a slot now, and the one in the middle runs first.
    assert_ready_ok!(sending.poll());
    assert_ready_ok!(behind.poll());
    assert_ready_ok!(before.poll());
    assert_eq!(drain(&queue), [1, 10, 2]);
}

#[test]
fn dropped_it_leaves_the_rest_in_the_deque_and_its_slots_to_the_next() {
    let queue = ShutdownQueue::bounded(1);
    let mut many = values(0..4);
    let mut next = by_hand(queue.send(9));
    {
        let mut sending = by_hand(queue.send_many(&mut many));
        assert_pending!(sending.poll());
        assert_pending!(next.poll());
        take(&queue).done();
        assert!(!next.is_woken());
    }
    assert!(next.is_woken());
    assert_ready_ok!(next.poll());
    assert_eq!(many, [1, 2, 3]);
    assert_eq!(drain(&queue), [9]);
    assert_no_waiters(&queue);
}

#[test]
fn a_cancel_leaves_what_was_not_sent_in_the_deque() {
    let queue = ShutdownQueue::bounded(1);
    let scope = Scope::new();
    let mut many = values(0..3);
    {
        let mut sending = by_hand(queue.send_many(&mut many).in_scope(&scope));
        assert_pending!(sending.poll());
        take(&queue).done();
        scope.cancel(());
        assert!(matches!(assert_ready_err!(sending.poll()), SendManyError::Cancelled(_)));
    }
    assert_eq!(many, [1, 2]);
    assert_no_waiters(&queue);
    let mut sending = by_hand(queue.send_many(&mut many).in_scope(&scope));
    assert!(matches!(assert_ready_err!(sending.poll()), SendManyError::Cancelled(_)));
    drop(sending);
    assert_eq!(many, [1, 2]);
}

#[test]
fn a_shutdown_leaves_what_was_not_sent_in_the_deque() {
    for immediate in [false, true] {
        let queue = ShutdownQueue::bounded(2);
        let mut many = values(0..5);
        {
            let mut sending = by_hand(queue.send_many(&mut many));
            assert_pending!(sending.poll());
            take(&queue).done();
            if immediate {
                assert_eq!(queue.shutdown_immediate().into_iter().collect::<Vec<_>>(), [1]);
            } else {
                queue.shutdown();
            }
            assert!(sending.is_woken());
            assert!(matches!(assert_ready_err!(sending.poll()), SendManyError::ShutDown));
        }
        assert_eq!(many, [2, 3, 4]);
        assert_no_waiters(&queue);
        assert_balanced(&queue);
        assert!(by_hand(queue.send_many(&mut many)).poll().is_ready());
        assert_eq!(many, [2, 3, 4]);
    }
}

#[test]
fn many_are_sent_by_priority_too() {
    let queue = ShutdownQueue::builder().capacity(2).priority(|n: &u32| *n).build();
    let mut many = VecDeque::from([3, 1, 2]);
    let mut sending = by_hand(queue.send_many(&mut many));
    assert_pending!(sending.poll());
    assert_eq!(*take(&queue), 1);
    assert_ready_ok!(sending.poll());
    assert_eq!(drain(&queue), [2, 3]);
}

#[test]
fn many_permits_come_all_or_not_at_all() {
    let queue = ShutdownQueue::bounded(3);
    queue.try_send(0).unwrap();
    let mut reserve = by_hand(queue.reserve_many(3));
    assert_pending!(reserve.poll());
    // What is free is kept for it.
    assert_eq!(queue.try_reserve().unwrap_err(), TryReserveError::Full);
    take(&queue).done();
    assert!(reserve.is_woken());
    let permits = assert_ready_ok!(reserve.poll());
    assert_eq!(permits.len(), 3);
    for (permit, n) in permits.into_iter().zip(1..) {
        permit.send(n).unwrap();
    }
    assert_eq!(drain(&queue), [1, 2, 3]);
    assert_no_waiters(&queue);
}

#[test]
fn permits_that_are_not_used_give_their_slots_back() {
    let queue = ShutdownQueue::bounded(2);
    let mut permits = assert_ready_ok!(by_hand(queue.reserve_many(2)).poll());
    permits.pop().unwrap().send(1).unwrap();
    drop(permits);
    queue.try_send(2).unwrap();
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn more_permits_than_the_capacity_are_an_error_at_once() {
    let queue = ShutdownQueue::<u32>::bounded(2);
    let error = assert_ready_err!(by_hand(queue.reserve_many(3)).poll());
    assert!(matches!(error, ReserveManyError::BeyondCapacity { wanted: 3, capacity: 2 }));
    let none = assert_ready_ok!(by_hand(queue.reserve_many(0)).poll());
    assert!(none.is_empty());
    queue.shutdown();
    let error = assert_ready_err!(by_hand(queue.reserve_many(3)).poll());
    assert!(matches!(error, ReserveManyError::ShutDown));
}

#[test]
fn a_dropped_or_cancelled_reserve_many_passes_its_slots_on() {
    for cancelled in [false, true] {
        let queue = ShutdownQueue::bounded(2);
        queue.try_send(0).unwrap();
        let scope = Scope::new();
        let mut leaver = by_hand(queue.reserve_many(2).in_scope(&scope));
        let mut stayer = by_hand(queue.send(1));
        assert_pending!(leaver.poll());
        assert_pending!(stayer.poll());
        if cancelled {
            take(&queue).done();
            scope.cancel(());
            assert!(matches!(assert_ready_err!(leaver.poll()), ReserveManyError::Cancelled(_)));
        }
        drop(leaver);
        assert!(stayer.is_woken());
        assert_ready_ok!(stayer.poll());
        drain(&queue);
        assert_no_waiters(&queue);
    }
}

#[test]
fn granted_permits_are_void_after_a_shutdown() {
    let queue = ShutdownQueue::bounded(2);
    queue.try_send(0).unwrap();
    let mut reserve = by_hand(queue.reserve_many(2));
    assert_pending!(reserve.poll());
    take(&queue).done();
    queue.shutdown();
    assert!(matches!(assert_ready_err!(reserve.poll()), ReserveManyError::ShutDown));
    assert_no_waiters(&queue);
}

#[test]
fn two_that_want_many_do_not_block_each_other_for_ever() {
    let queue = ShutdownQueue::<u32>::bounded(3);
    let held = assert_ready_ok!(by_hand(queue.reserve_many(2)).poll());
    let mut first = by_hand(queue.reserve_many(2));
    let mut second = by_hand(queue.reserve_many(3));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    drop(held);
    let permits = assert_ready_ok!(first.poll());
    assert_pending!(second.poll());
    drop(permits);
    assert_eq!(assert_ready_ok!(second.poll()).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_around_it_leaves_no_ghost() {
    let queue = ShutdownQueue::bounded(1);
    let mut many = values(0..2);
    let timed = with_timeout(Duration::from_millis(10), queue.send_many(&mut many));
    assert!(matches!(timed.await, Err(TimeoutError::Elapsed(_))));
    assert_eq!(many, [1]);
    let timed = with_timeout(Duration::from_millis(10), queue.reserve_many(1));
    assert!(matches!(timed.await, Err(TimeoutError::Elapsed(_))));
    assert_no_waiters(&queue);
}
