use std::time::Duration;

use stoppable_scope::{InScopeExt, Scope, TimeoutError, with_timeout};
use stoppable_sync::{ShutdownQueue, TryRecvError};
use tokio::time::{Instant, advance, sleep};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok};

use crate::{assert_balanced, assert_no_waiters, by_hand, drain};

const MS: Duration = Duration::from_millis(1);

fn send_all(queue: &ShutdownQueue<u32>, values: std::ops::Range<u32>) {
    for value in values {
        queue.try_send(value).unwrap();
    }
}

/// Collects all batches of a queue, each with the instant at which it came.
async fn flushes(queue: ShutdownQueue<u32>, max: usize, max_age: Duration) -> Vec<(u128, Vec<u32>)> {
    let start = Instant::now();
    let mut flushes = Vec::new();
    while let Some(batch) = queue.recv_batch(max, max_age).await.unwrap() {
        flushes.push((start.elapsed().as_millis(), batch.to_vec()));
        batch.done();
    }
    flushes
}

/// B-93: the age counts from the first item of the batch, and no further one starts it again.
#[tokio::test(start_paused = true)]
async fn a_steady_trickle_is_flushed_at_its_age() {
    let queue = ShutdownQueue::unbounded();
    let collector = tokio::spawn(flushes(queue.clone(), 100, 250 * MS));
    tokio::task::yield_now().await;
    for n in 0..9 {
        queue.send(n).await.unwrap();
        sleep(120 * MS).await;
    }
    queue.shutdown();
    let expected = [(250, vec![0, 1, 2]), (610, vec![3, 4, 5]), (970, vec![6, 7, 8])];
    assert_eq!(collector.await.unwrap(), expected);
}

/// B-94: a partial batch comes out once, at the shutdown.
#[tokio::test(start_paused = true)]
async fn a_shutdown_flushes_a_partial_batch_at_once() {
    let queue = ShutdownQueue::unbounded();
    let collector = tokio::spawn(flushes(queue.clone(), 10, 5000 * MS));
    send_all(&queue, 0..7);
    sleep(100 * MS).await;
    queue.shutdown();
    assert_eq!(collector.await.unwrap(), [(100, (0..7).collect())]);
    assert_eq!(queue.join().await.unwrap().done, 7);
}

/// B-94: or it is returned, never both.
#[tokio::test(start_paused = true)]
async fn an_immediate_shutdown_returns_a_partial_batch() {
    let queue = ShutdownQueue::unbounded();
    let collector = tokio::spawn(flushes(queue.clone(), 10, 5000 * MS));
    send_all(&queue, 0..7);
    sleep(100 * MS).await;
    assert_eq!(queue.shutdown_immediate().into_iter().collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    assert!(collector.await.unwrap().is_empty());
    assert_balanced(&queue);
    assert_no_waiters(&queue);
}

#[tokio::test(start_paused = true)]
async fn a_partial_batch_comes_out_on_an_idle_queue() {
    let queue = ShutdownQueue::unbounded();
    send_all(&queue, 0..2);
    let start = Instant::now();
    let batch = queue.recv_batch(10, 250 * MS).await.unwrap().unwrap();
    assert_eq!((start.elapsed(), &*batch), (250 * MS, &[0, 1][..]));
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_does_not_wait() {
    let queue = ShutdownQueue::unbounded();
    send_all(&queue, 0..7);
    let start = Instant::now();
    for expected in [[0, 1, 2], [3, 4, 5]] {
        assert_eq!(*queue.recv_batch(3, 250 * MS).await.unwrap().unwrap(), expected);
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[test]
fn while_it_collects_the_items_are_promised_and_occupy_no_slot() {
    let queue = ShutdownQueue::bounded(1);
    let mut collector = by_hand(queue.recv_batch(3, Duration::MAX));
    assert_pending!(collector.poll());
    queue.try_send(0).unwrap();
    assert!(collector.is_woken());
    assert_pending!(collector.poll());
    queue.try_send(1).unwrap();
    assert!(!collector.is_woken(), "only the first item and the last wake it");
    assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
    let stats = queue.stats();
    assert_eq!((stats.len, stats.promised, stats.waiting_receivers, stats.in_flight), (2, 2, 1, 0));
    assert!(!queue.is_full());
    queue.try_send(2).unwrap();
    assert!(collector.is_woken());
    queue.try_send(3).unwrap();
    assert_eq!(*assert_ready_ok!(collector.poll()).unwrap(), [0, 1, 2]);
    assert_eq!(drain(&queue), [3]);
}

#[test]
fn a_batch_takes_the_values_of_senders_that_wait() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(0).unwrap();
    let mut senders: Vec<_> = (1..4).map(|n| by_hand(queue.send(n))).collect();
    for sender in &mut senders {
        assert_pending!(sender.poll());
    }
    let mut collector = by_hand(queue.recv_batch(3, Duration::MAX));
    assert_eq!(*assert_ready_ok!(collector.poll()).unwrap(), [0, 1, 2]);
    for sender in &mut senders {
        assert_ready_ok!(sender.poll());
    }
    assert_eq!(drain(&queue), [3]);
}

#[test]
fn without_an_age_it_takes_what_is_there_and_waits_only_where_nothing_is() {
    let queue = ShutdownQueue::unbounded();
    let mut collector = by_hand(queue.recv_batch(8, Duration::ZERO));
    assert_pending!(collector.poll());
    send_all(&queue, 0..3);
    assert_eq!(*assert_ready_ok!(collector.poll()).unwrap(), [0, 1, 2]);
    send_all(&queue, 3..4);
    assert_eq!(*assert_ready_ok!(by_hand(queue.recv_batch(8, Duration::ZERO)).poll()).unwrap(), [3]);
}

#[test]
fn who_waits_behind_a_collector_is_served_after_it() {
    let queue = ShutdownQueue::unbounded();
    let mut collector = by_hand(queue.recv_batch(2, Duration::MAX));
    let mut second = by_hand(queue.recv_batch(2, Duration::MAX));
    let mut single = by_hand(queue.recv());
    assert_pending!(collector.poll());
    assert_pending!(second.poll());
    assert_pending!(single.poll());
    send_all(&queue, 0..3);
    assert!(collector.is_woken() && second.is_woken() && !single.is_woken());
    assert_pending!(second.poll());
    send_all(&queue, 3..5);
    assert!(single.is_woken());
    assert_eq!(*assert_ready_ok!(collector.poll()).unwrap(), [0, 1]);
    assert_eq!(*assert_ready_ok!(second.poll()).unwrap(), [2, 3]);
    assert_eq!(*assert_ready_ok!(single.poll()).unwrap(), 4);
}

#[test]
fn a_collector_that_leaves_loses_nothing_and_the_next_is_served() {
    for cancelled in [false, true] {
        let queue = ShutdownQueue::unbounded();
        let scope = Scope::new();
        let mut leaver = by_hand(queue.recv_batch(5, Duration::MAX).in_scope(&scope));
        let mut single = by_hand(queue.recv());
        let mut next = by_hand(queue.recv_batch(5, Duration::MAX));
        assert_pending!(leaver.poll());
        assert_pending!(single.poll());
        assert_pending!(next.poll());
        send_all(&queue, 0..3);
        assert_pending!(leaver.poll());
        assert!(!single.is_woken());
        if cancelled {
            scope.cancel(());
            assert_ready_err!(leaver.poll());
        }
        drop(leaver);
        assert!(single.is_woken() && next.is_woken());
        let item = assert_ready_ok!(single.poll()).unwrap();
        assert_eq!((*item, item.attempt()), (0, 1));
        assert_pending!(next.poll());
        queue.shutdown();
        let batch = assert_ready_ok!(next.poll()).unwrap();
        assert_eq!(*batch, [1, 2]);
        assert!(batch.into_iter().all(|item| item.attempt() == 1));
        assert_no_waiters(&queue);
    }
}

#[test]
fn a_cancel_wins_over_a_full_batch_and_leaves_it_in_the_queue() {
    let queue = ShutdownQueue::unbounded();
    let scope = Scope::new();
    let mut collector = by_hand(queue.recv_batch(2, Duration::MAX).in_scope(&scope));
    assert_pending!(collector.poll());
    send_all(&queue, 0..2);
    scope.cancel(());
    assert_ready_err!(collector.poll());
    assert_eq!(drain(&queue), [0, 1]);
    assert_no_waiters(&queue);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_around_it_at_the_same_instant_loses_nothing() {
    let queue = ShutdownQueue::unbounded();
    send_all(&queue, 0..2);
    let timed = with_timeout(250 * MS, queue.recv_batch(5, 250 * MS));
    match timed.await {
        Ok(batch) => batch.unwrap().done(),
        Err(TimeoutError::Elapsed(_)) => assert_eq!(drain(&queue), [0, 1]),
        Err(error) => panic!("{error:?}"),
    }
    assert_no_waiters(&queue);
    assert_balanced(&queue);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_with_its_timer_running_leaves_all_to_the_next_whose_age_starts_again() {
    let queue = ShutdownQueue::unbounded();
    send_all(&queue, 0..2);
    let mut leaver = by_hand(queue.recv_batch(5, 250 * MS));
    assert_pending!(leaver.poll());
    advance(200 * MS).await;
    drop(leaver);
    let start = Instant::now();
    let batch = queue.recv_batch(5, 250 * MS).await.unwrap().unwrap();
    assert_eq!((start.elapsed(), &*batch), (250 * MS, &[0, 1][..]));
}

#[tokio::test(start_paused = true)]
async fn items_cancelled_while_they_are_collected_are_not_in_the_batch() {
    let queue = ShutdownQueue::unbounded();
    send_all(&queue, 0..2);
    let mut collector = by_hand(queue.recv_batch(2, 250 * MS));
    let mut single = by_hand(queue.recv());
    queue.cancel(1);
    assert_pending!(collector.poll());
    assert_pending!(single.poll());
    // Full, and then not full any more.
    send_all(&queue, 2..3);
    queue.cancel(2);
    assert_pending!(collector.poll());
    assert!(!single.is_woken());
    // Empty: when the next comes, its age starts anew.
    advance(200 * MS).await;
    queue.cancel(3);
    assert_pending!(collector.poll());
    assert_eq!(queue.stats().promised, 0);
    advance(200 * MS).await;
    send_all(&queue, 3..4);
    assert_pending!(collector.poll());
    advance(200 * MS).await;
    assert_pending!(collector.poll());
    advance(51 * MS).await;
    assert!(collector.is_woken());
    assert_eq!(*assert_ready_ok!(collector.poll()).unwrap(), [3]);
}

#[tokio::test(start_paused = true)]
async fn a_requeue_while_draining_is_flushed_to_a_collector_that_waits() {
    let queue = ShutdownQueue::unbounded();
    send_all(&queue, 0..2);
    let mut first = queue.recv_many(2).await.unwrap().unwrap().into_iter();
    queue.shutdown();
    let (one, two) = (first.next().unwrap(), first.next().unwrap());
    one.requeue().unwrap();
    assert_eq!(*queue.recv_batch(9, 250 * MS).await.unwrap().unwrap(), [0]);
    two.done();
    assert!(queue.recv_batch(9, 250 * MS).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn workers_fill_one_batch_after_another() {
    let queue = ShutdownQueue::unbounded();
    let workers: Vec<_> = (0..2).map(|_| tokio::spawn(flushes(queue.clone(), 4, 1000 * MS))).collect();
    tokio::task::yield_now().await;
    for n in 0..8 {
        queue.send(n).await.unwrap();
        sleep(100 * MS).await;
    }
    queue.shutdown();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.unwrap());
    }
    all.sort_unstable();
    assert_eq!(all, [(300, vec![0, 1, 2, 3]), (700, vec![4, 5, 6, 7])]);
}

#[test]
fn the_order_decides_what_is_in_the_batch_when_it_comes_out() {
    let queue = ShutdownQueue::builder().priority(|n: &u32| *n).build();
    let mut collector = by_hand(queue.recv_batch(2, Duration::MAX));
    assert_pending!(collector.poll());
    for n in [5, 9, 1] {
        queue.try_send(n).unwrap();
    }
    assert_eq!(*assert_ready_ok!(collector.poll()).unwrap(), [1, 5]);
}

#[test]
fn without_a_runtime_an_age_that_has_to_be_waited_for_panics_and_loses_nothing() {
    let queue = ShutdownQueue::unbounded();
    send_all(&queue, 0..1);
    let collect = || by_hand(queue.recv_batch(2, MS)).poll().is_ready();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(collect)).is_err());
    assert_eq!(drain(&queue), [0]);
    assert_no_waiters(&queue);
}
