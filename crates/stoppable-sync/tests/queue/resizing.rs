use std::collections::VecDeque;

use stoppable_sync::{ReserveManyError, ShutdownQueue, TrySendError};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok};

use crate::{assert_no_waiters, by_hand, drain, take};

#[test]
fn a_larger_queue_lets_in_who_waits() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(0).unwrap();
    let mut senders: Vec<_> = (1..4).map(|n| by_hand(queue.send(n))).collect();
    for sender in &mut senders {
        assert_pending!(sender.poll());
    }
    queue.resize(3);
    assert_eq!(queue.capacity(), Some(3));
    assert!(senders[0].is_woken() && senders[1].is_woken() && !senders[2].is_woken());
    assert_ready_ok!(senders[0].poll());
    assert_ready_ok!(senders[1].poll());
    assert_eq!(queue.len(), 3);
    assert_eq!(drain(&queue), [0, 1, 2, 3]);
}

#[test]
fn below_the_fill_nothing_is_lost_and_sends_wait() {
    let queue = ShutdownQueue::unbounded();
    for n in 0..4 {
        queue.try_send(n).unwrap();
    }
    let permit = queue.try_reserve().unwrap();
    queue.resize(2);
    assert!(queue.is_full());
    let mut sender = by_hand(queue.send(5));
    assert_pending!(sender.poll());
    // A permit stays good.
    permit.send(4).unwrap();
    for n in 0..3 {
        assert!(!sender.is_woken());
        assert_eq!(*take(&queue), n);
    }
    assert_pending!(sender.poll());
    assert_eq!(*take(&queue), 3);
    assert!(sender.is_woken());
    assert_ready_ok!(sender.poll());
    assert_eq!(drain(&queue), [4, 5]);
    assert_no_waiters(&queue);
}

#[test]
fn a_slot_that_was_granted_stays_good() {
    let queue = ShutdownQueue::bounded(2);
    queue.try_send(0).unwrap();
    queue.try_send(1).unwrap();
    let mut sender = by_hand(queue.send(2));
    assert_pending!(sender.poll());
    take(&queue).done();
    queue.resize(1);
    assert_ready_ok!(sender.poll());
    assert_eq!(queue.len(), 2);
    assert_eq!(queue.try_send(3), Err(TrySendError::Full(3)));
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn who_wants_more_permits_than_there_can_be_is_told_and_the_next_goes_on() {
    let queue = ShutdownQueue::bounded(4);
    for n in 0..2 {
        queue.try_send(n).unwrap();
    }
    let mut small = by_hand(queue.reserve_many(3));
    let mut large = by_hand(queue.reserve_many(4));
    let mut sender = by_hand(queue.send(9));
    assert_pending!(small.poll());
    assert_pending!(large.poll());
    assert_pending!(sender.poll());
    queue.resize(3);
    assert!(large.is_woken() && !small.is_woken() && !sender.is_woken());
    let error = assert_ready_err!(large.poll());
    assert!(matches!(error, ReserveManyError::BeyondCapacity { wanted: 4, capacity: 3 }));
    // The first in line held what was free; now that is the next one's.
    queue.resize(2);
    assert_eq!(drain(&queue), [0, 1, 9]);
    assert!(matches!(assert_ready_err!(small.poll()), ReserveManyError::BeyondCapacity { .. }));
    assert_ready_ok!(sender.poll());
    assert_no_waiters(&queue);
}

#[test]
fn who_was_turned_away_and_fits_again_when_it_is_polled_gets_its_permits() {
    let queue = ShutdownQueue::<u32>::bounded(2);
    queue.try_send(0).unwrap();
    let mut reserve = by_hand(queue.reserve_many(2));
    assert_pending!(reserve.poll());
    queue.resize(1);
    queue.resize(4);
    assert_eq!(assert_ready_ok!(reserve.poll()).len(), 2);
}

#[test]
fn a_send_many_goes_on_with_the_new_limit() {
    let queue = ShutdownQueue::bounded(1);
    let mut many = VecDeque::from([0, 1, 2, 3]);
    let mut sending = by_hand(queue.send_many(&mut many));
    assert_pending!(sending.poll());
    queue.resize(2);
    assert!(sending.is_woken());
    assert_pending!(sending.poll());
    assert_eq!(queue.len(), 2);
    queue.resize(usize::MAX);
    assert_eq!(queue.capacity(), None);
    assert_ready_ok!(sending.poll());
    assert_eq!(drain(&queue), [0, 1, 2, 3]);
}

#[test]
fn resizing_a_queue_that_was_shut_down_changes_nothing_else() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(0).unwrap();
    let mut sender = by_hand(queue.send(1));
    assert_pending!(sender.poll());
    queue.shutdown();
    queue.resize(5);
    assert_ready_err!(sender.poll());
    assert_eq!(drain(&queue), [0]);
}

#[test]
#[should_panic(expected = "capacity 0 can hold nothing")]
fn capacity_zero_is_refused() {
    ShutdownQueue::<u32>::unbounded().resize(0);
}
