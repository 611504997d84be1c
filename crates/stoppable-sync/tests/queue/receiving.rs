use stoppable_sync::{ShutdownQueue, TryRecvError};
use tokio_test::{assert_pending, assert_ready, assert_ready_ok};

use crate::{assert_no_waiters, by_hand, drain, take};

#[test]
fn a_recv_does_not_wait_where_something_is_queued() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let item = assert_ready_ok!(by_hand(queue.recv()).poll()).unwrap();
    assert_eq!(*item, 1);
    item.done();
}

#[test]
fn a_recv_waits_and_is_woken_by_a_send() {
    let queue = ShutdownQueue::bounded(1);
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    assert_eq!(queue.stats().waiting_receivers, 1);
    assert_ready_ok!(by_hand(queue.send(1)).poll());
    assert!(receiver.is_woken());
    assert_eq!(*assert_ready_ok!(receiver.poll()).unwrap(), 1);
}

#[test]
fn try_recv_on_an_empty_live_queue_is_empty_not_shut_down() {
    let queue = ShutdownQueue::<u32>::bounded(1);
    assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
}

#[test]
fn receivers_are_served_in_the_order_of_their_first_poll() {
    let queue = ShutdownQueue::unbounded();
    let mut receivers: Vec<_> = (0..3).map(|_| by_hand(queue.recv())).collect();
    for receiver in &mut receivers {
        assert_pending!(receiver.poll());
    }
    for (n, receiver) in receivers.iter_mut().enumerate() {
        assert!(!receiver.is_woken());
        queue.try_send(n).unwrap();
        assert!(receiver.is_woken());
    }
    for (n, receiver) in receivers.iter_mut().enumerate() {
        assert_eq!(*assert_ready_ok!(receiver.poll()).unwrap(), n);
    }
}

#[test]
fn a_dropped_recv_passes_the_wake_up_on_in_the_same_instant() {
    let queue = ShutdownQueue::bounded(1);
    let mut leaver = by_hand(queue.recv());
    let mut stayer = by_hand(queue.recv());
    assert_pending!(leaver.poll());
    assert_pending!(stayer.poll());
    queue.try_send(1).unwrap();
    assert!(leaver.is_woken() && !stayer.is_woken());
    drop(leaver);
    assert!(stayer.is_woken());
    assert_eq!(*assert_ready_ok!(stayer.poll()).unwrap(), 1);
    assert_no_waiters(&queue);
}

#[test]
fn a_dropped_recv_loses_no_item_and_changes_no_order() {
    let queue = ShutdownQueue::unbounded();
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    drop(receiver);
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn many_waiting_receivers_and_one_that_leaves() {
    let queue = ShutdownQueue::unbounded();
    let mut receivers: Vec<_> = (0..3).map(|_| by_hand(queue.recv())).collect();
    for receiver in &mut receivers {
        assert_pending!(receiver.poll());
    }
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    drop(receivers.remove(0));
    assert!(receivers.iter().all(|receiver| receiver.is_woken()));
    let got: Vec<_> =
        receivers.iter_mut().map(|receiver| *assert_ready_ok!(receiver.poll()).unwrap()).collect();
    assert_eq!(got, [1, 2]);
}

#[test]
fn a_recv_dropped_without_a_promise_leaves_no_ghost() {
    let queue = ShutdownQueue::bounded(1);
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    drop(receiver);
    assert_no_waiters(&queue);
    queue.try_send(1).unwrap();
    assert_eq!(queue.stats().promised, 0);
    assert_eq!(drain(&queue), [1]);
}

#[test]
fn a_promised_item_cannot_be_taken_away_by_a_newcomer() {
    let queue = ShutdownQueue::unbounded();
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    queue.try_send(1).unwrap();
    assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
    let mut newcomer = by_hand(queue.recv());
    assert_pending!(newcomer.poll());
    assert_eq!(*assert_ready_ok!(receiver.poll()).unwrap(), 1);
    assert!(!newcomer.is_woken());
}

#[test]
fn a_promise_is_for_an_item_and_the_order_decides_which() {
    let queue = ShutdownQueue::unbounded();
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    // One of the two is promised; whoever takes first gets the first.
    assert_eq!(*take(&queue), 1);
    assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
    assert_eq!(*assert_ready_ok!(receiver.poll()).unwrap(), 2);
}

#[test]
fn promised_items_are_visible_and_occupy_no_slot() {
    let queue = ShutdownQueue::bounded(1);
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    queue.try_send(1).unwrap();
    let stats = queue.stats();
    assert_eq!((stats.len, stats.promised, stats.waiting_receivers), (1, 1, 0));
    queue.try_send(2).unwrap();
    assert!(queue.is_full());
    drop(receiver);
    // One more than the capacity now, without a promise.
    assert_eq!((queue.len(), queue.is_full()), (2, true));
    take(&queue).done();
    assert!(queue.is_full());
    take(&queue).done();
    assert!(!queue.is_full());
}

#[test]
fn a_spurious_poll_keeps_the_place() {
    let queue = ShutdownQueue::unbounded();
    let mut first = by_hand(queue.recv());
    let mut second = by_hand(queue.recv());
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    assert_pending!(first.poll());
    queue.try_send(1).unwrap();
    assert!(first.is_woken() && !second.is_woken());
}

#[test]
fn the_latest_waker_is_the_one_that_is_woken() {
    use std::future::Future;
    use std::task::Context;
    let queue = ShutdownQueue::unbounded();
    let mut receiver = Box::pin(queue.recv());
    let (old, old_count) = futures_waker();
    let (new, new_count) = futures_waker();
    assert!(receiver.as_mut().poll(&mut Context::from_waker(&old)).is_pending());
    assert!(receiver.as_mut().poll(&mut Context::from_waker(&new)).is_pending());
    queue.try_send(1).unwrap();
    assert_eq!((old_count.get(), new_count.get()), (0, 1));
}

fn futures_waker() -> (std::task::Waker, std::sync::Arc<crate::foreign_code::Count>) {
    let count = std::sync::Arc::new(crate::foreign_code::Count::default());
    (std::task::Waker::from(count.clone()), count)
}

#[test]
fn recv_ref_serves_from_the_same_line() {
    let queue = ShutdownQueue::unbounded();
    let mut first = by_hand(queue.recv_ref());
    let mut second = by_hand(queue.recv());
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.try_send(1).unwrap();
    assert!(first.is_woken() && !second.is_woken());
    let item = assert_ready_ok!(first.poll()).unwrap();
    assert_eq!(*item, 1);
    item.requeue().unwrap();
    assert!(second.is_woken());
    let item = assert_ready_ok!(second.poll()).unwrap();
    assert_eq!((*item, item.attempt()), (1, 2));
}

#[test]
fn a_requeued_item_goes_to_the_back_beyond_capacity() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let item = take(&queue);
    queue.try_send(2).unwrap();
    item.requeue().unwrap();
    assert_eq!((queue.len(), queue.is_full()), (2, true));
    let mut sender = by_hand(queue.send(3));
    assert_pending!(sender.poll());
    assert_eq!(*take(&queue), 2);
    assert_pending!(sender.poll());
    let again = take(&queue);
    assert_eq!((*again, again.attempt(), again.ticket()), (1, 2, 1));
    assert_ready_ok!(sender.poll());
    assert_eq!(queue.stats().requeued, 1);
}

#[tokio::test]
async fn selecting_over_two_queues_loses_nothing() {
    let (a, b) = (ShutdownQueue::bounded(1), ShutdownQueue::bounded(1));
    a.send('a').await.unwrap();
    b.send('b').await.unwrap();
    let mut got = Vec::new();
    while got.len() < 2 {
        let item = tokio::select! {
            item = a.recv() => item,
            item = b.recv() => item,
        };
        let item = item.unwrap().unwrap();
        got.push(*item);
        item.done();
    }
    got.sort_unstable();
    assert_eq!(got, ['a', 'b']);
}

#[tokio::test]
async fn a_receiving_loop_leaves_room_for_others() {
    let queue = ShutdownQueue::unbounded();
    for n in 0..10_000 {
        queue.try_send(n).unwrap();
    }
    let consumer = {
        let queue = queue.clone();
        tokio::spawn(async move {
            while let Some(item) = queue.recv().await.unwrap() {
                item.done();
            }
        })
    };
    tokio::task::yield_now().await;
    let left = queue.len();
    assert!(0 < left && left < 10_000, "{left}");
    queue.shutdown();
    consumer.await.unwrap();
}

#[test]
fn asking_takes_nothing() {
    let queue = ShutdownQueue::bounded(4);
    queue.try_send(1).unwrap();
    for _ in 0..100 {
        assert!(!queue.is_empty() && !queue.is_shut_down() && queue.len() == 1);
    }
    assert_eq!(drain(&queue), [1]);
}

#[test]
fn an_item_can_be_changed_in_place() {
    let queue = ShutdownQueue::bounded(4);
    queue.try_send(vec![1]).unwrap();
    let mut item = take(&queue);
    item.push(2);
    item.requeue().unwrap();
    assert_eq!(drain(&queue), [vec![1, 2]]);
    assert!(assert_ready!(by_hand(queue.join()).poll()).is_ok());
}
