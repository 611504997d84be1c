use stoppable_sync::{SendError, ShutdownQueue, TryReserveError, TrySendError};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok};

use crate::{assert_no_waiters, by_hand, drain, take};

#[test]
fn values_come_out_in_the_order_in_which_they_were_sent() {
    let queue = ShutdownQueue::unbounded();
    for n in [1, 3, 2] {
        queue.try_send(n).unwrap();
    }
    assert_eq!(drain(&queue), [1, 3, 2]);
}

#[test]
fn an_unbounded_queue_is_never_full() {
    let queue = ShutdownQueue::unbounded();
    for n in 0..10_000 {
        assert!(!queue.is_full());
        assert_ready_ok!(by_hand(queue.send(n)).poll());
    }
    assert_eq!((queue.len(), queue.capacity()), (10_000, None));
    assert_eq!(drain(&queue), (0..10_000).collect::<Vec<_>>());
}

#[test]
fn a_queue_of_one_is_full_with_one() {
    let queue = ShutdownQueue::bounded(1);
    assert!(!queue.is_full());
    queue.try_send('a').unwrap();
    assert!(queue.is_full());
    assert_eq!(queue.try_send('b'), Err(TrySendError::Full('b')));
}

#[test]
fn a_huge_capacity_allocates_nothing_in_advance() {
    let queue = ShutdownQueue::bounded(usize::MAX - 1);
    queue.try_send([0_u8; 1024]).unwrap();
    let _permit = queue.try_reserve().unwrap();
    assert!(!queue.is_full());
}

#[test]
#[should_panic(expected = "capacity 0 can hold nothing")]
fn capacity_zero_is_refused() {
    let _ = ShutdownQueue::<()>::bounded(0);
}

#[test]
fn a_send_waits_for_room_and_is_woken_by_a_take() {
    let queue = ShutdownQueue::bounded(2);
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    let mut third = by_hand(queue.send(3));
    assert_pending!(third.poll());
    assert_eq!(queue.stats().waiting_senders, 1);

    take(&queue).done();
    assert!(third.is_woken());
    assert_ready_ok!(third.poll());
    assert_eq!(drain(&queue), [2, 3]);
}

#[test]
fn the_first_poll_gives_the_place_in_the_line_not_the_call() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(0).unwrap();
    let mut made_first = by_hand(queue.send(1));
    let mut polled_first = by_hand(queue.send(2));
    assert_pending!(polled_first.poll());
    assert_pending!(made_first.poll());
    assert_eq!(*take(&queue), 0);
    assert!(polled_first.is_woken() && !made_first.is_woken());
}

#[test]
fn a_newcomer_never_overtakes_a_sender_that_waits() {
    let queue = ShutdownQueue::bounded(2);
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    let mut waiting = by_hand(queue.send(3));
    assert_pending!(waiting.poll());
    take(&queue).done();
    take(&queue).done();
    // The slot is granted, its sender did not run yet. The second slot is free.
    queue.try_send(4).unwrap();
    assert_eq!(queue.try_send(5), Err(TrySendError::Full(5)));
    assert_eq!(drain(&queue), [3, 4]);
    assert_ready_ok!(waiting.poll());
    assert_no_waiters(&queue);
}

#[test]
fn senders_that_were_granted_slots_keep_their_order_whoever_is_polled_first() {
    let queue = ShutdownQueue::bounded(2);
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    let mut third = by_hand(queue.send(3));
    let mut fourth = by_hand(queue.send(4));
    assert_pending!(third.poll());
    assert_pending!(fourth.poll());
    take(&queue).done();
    take(&queue).done();
    assert_ready_ok!(fourth.poll());
    assert_ready_ok!(third.poll());
    assert_eq!(drain(&queue), [3, 4]);
}

#[test]
fn a_receiver_in_need_takes_the_value_of_a_sender_that_did_not_run_yet() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut sender = by_hand(queue.send(2));
    assert_pending!(sender.poll());
    take(&queue).done();
    assert_eq!(queue.stats().accepted, 1);
    assert_eq!(*take(&queue), 2);
    assert_eq!(queue.stats().accepted, 2);
    // It was accepted, so it is sent whatever comes.
    queue.shutdown();
    assert_ready_ok!(sender.poll());
    assert_no_waiters(&queue);
}

#[test]
fn a_dropped_send_drops_its_value_and_the_slot_passes_on() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut leaver = by_hand(queue.send(2));
    let mut stayer = by_hand(queue.send(3));
    assert_pending!(leaver.poll());
    assert_pending!(stayer.poll());
    take(&queue).done();
    assert!(leaver.is_woken() && !stayer.is_woken());
    drop(leaver);
    assert!(stayer.is_woken());
    assert_ready_ok!(stayer.poll());
    assert_eq!(drain(&queue), [3]);
    assert_no_waiters(&queue);
}

#[test]
fn a_sender_dropped_in_the_middle_of_the_line_leaves_no_ghost() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut senders: Vec<_> = (2..5).map(|n| by_hand(queue.send(n))).collect();
    for sender in &mut senders {
        assert_pending!(sender.poll());
    }
    drop(senders.remove(1));
    assert_eq!(queue.stats().waiting_senders, 2);
    assert_eq!(*take(&queue), 1);
    assert_ready_ok!(senders[0].poll());
    assert_eq!(*take(&queue), 2);
    assert_ready_ok!(senders[1].poll());
    assert_eq!(*take(&queue), 4);
    assert_no_waiters(&queue);
}

#[test]
fn a_dropped_send_that_was_accepted_already_loses_nothing() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut sender = by_hand(queue.send(2));
    assert_pending!(sender.poll());
    assert_eq!(drain(&queue), [1, 2]);
    drop(sender);
    assert_eq!(queue.stats().accepted, 2);
    assert_no_waiters(&queue);
}

#[test]
fn an_unpolled_send_does_nothing() {
    let queue = ShutdownQueue::bounded(1);
    drop(queue.send(1));
    assert!(queue.is_empty());
    assert_eq!(queue.stats().accepted, 0);
}

#[test]
fn a_take_without_waiting_lets_a_sender_in() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut sender = by_hand(queue.send(2));
    assert_pending!(sender.poll());
    assert_eq!(drain(&queue), [1, 2]);
    assert_ready_ok!(sender.poll());
}

#[test]
fn a_permit_holds_a_slot_until_it_is_used_or_dropped() {
    let queue = ShutdownQueue::bounded(1);
    let permit = queue.try_reserve().unwrap();
    assert_eq!(queue.try_send(1), Err(TrySendError::Full(1)));
    assert_eq!(queue.try_reserve().unwrap_err(), TryReserveError::Full);
    let mut sender = by_hand(queue.send(2));
    assert_pending!(sender.poll());
    drop(permit);
    assert!(sender.is_woken());
    assert_ready_ok!(sender.poll());
    assert_eq!(drain(&queue), [2]);

    let permit = assert_ready_ok!(by_hand(queue.reserve()).poll());
    permit.send(3).unwrap();
    assert_eq!(drain(&queue), [3]);
    assert_no_waiters(&queue);
}

#[test]
fn senders_and_reservers_wait_in_one_line() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut reserve = by_hand(queue.reserve());
    let mut send = by_hand(queue.send(3));
    assert_pending!(reserve.poll());
    assert_pending!(send.poll());
    take(&queue).done();
    assert!(reserve.is_woken() && !send.is_woken());
    let permit = assert_ready_ok!(reserve.poll());
    permit.send(2).unwrap();
    assert_eq!(*take(&queue), 2);
    assert_ready_ok!(send.poll());
    assert_eq!(*take(&queue), 3);
}

#[test]
fn a_dropped_reserve_passes_its_slot_on() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let mut leaver = by_hand(queue.reserve());
    let mut stayer = by_hand(queue.reserve());
    assert_pending!(leaver.poll());
    assert_pending!(stayer.poll());
    take(&queue).done();
    assert!(leaver.is_woken());
    drop(leaver);
    assert!(stayer.is_woken());
    drop(assert_ready_ok!(stayer.poll()));
    assert_no_waiters(&queue);
}

#[test]
fn one_held_permit_leaves_the_other_slots_to_the_others() {
    let queue = ShutdownQueue::bounded(3);
    let permit = queue.try_reserve().unwrap();
    queue.try_send(1).unwrap();
    let mut senders: Vec<_> = (2..30).map(|n| by_hand(queue.send(n))).collect();
    let mut received = Vec::new();
    for sender in &mut senders {
        match sender.poll() {
            std::task::Poll::Ready(sent) => sent.unwrap(),
            std::task::Poll::Pending => {
                received.extend(drain(&queue));
                assert_ready_ok!(sender.poll())
            }
        };
    }
    received.extend(drain(&queue));
    assert_eq!(received, (1..30).collect::<Vec<_>>());
    permit.send(30).unwrap();
}

#[test]
fn a_send_after_the_shutdown_gives_the_value_back() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    queue.shutdown();
    assert_eq!(queue.try_send(2), Err(TrySendError::ShutDown(2)));
    let error = assert_ready_err!(by_hand(queue.send(3)).poll());
    assert!(matches!(error, SendError::ShutDown(3)));
    assert_eq!(queue.try_reserve().unwrap_err(), TryReserveError::ShutDown);
    assert!(assert_ready!(by_hand(queue.reserve()).poll()).is_err());
}

#[test]
fn unit_values_work() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(()).unwrap();
    let mut sender = by_hand(queue.send(()));
    assert_pending!(sender.poll());
    assert_eq!(drain(&queue), [(), ()]);
    assert_ready_ok!(sender.poll());
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    queue.shutdown();
    assert!(assert_ready_ok!(receiver.poll()).is_none());
}
