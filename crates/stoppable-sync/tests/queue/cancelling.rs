use std::time::Duration;

use stoppable_scope::{Deadline, InScopeExt, Scope, TimeoutError, with_timeout};
use stoppable_sync::{
    JoinByError, RecvByError, ReserveError, SendByError, SendError, ShutdownQueue, TrySendError,
};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok};

use crate::{assert_balanced, assert_no_waiters, by_hand, drain, take};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_cancelled_recv_passes_the_wake_up_on() {
    let queue = ShutdownQueue::bounded(1);
    let scope = Scope::new();
    let mut leaver = by_hand(queue.recv().in_scope(&scope));
    let mut stayer = by_hand(queue.recv());
    assert_pending!(leaver.poll());
    assert_pending!(stayer.poll());
    queue.try_send(1).unwrap();
    assert!(leaver.is_woken());
    scope.cancel("enough");
    assert_eq!(assert_ready_err!(leaver.poll()).to_string(), "cancelled: enough");
    assert!(stayer.is_woken());
    assert_eq!(*assert_ready_ok!(stayer.poll()).unwrap(), 1);
    assert_no_waiters(&queue);
}

#[test]
fn a_cancelled_recv_leaves_its_item_in_the_queue_and_in_order() {
    let queue = ShutdownQueue::unbounded();
    let scope = Scope::new();
    let mut receiver = by_hand(queue.recv().in_scope(&scope));
    assert_pending!(receiver.poll());
    scope.cancel(());
    assert!(receiver.is_woken());
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    assert_ready_err!(receiver.poll());
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn a_cancelled_send_gives_its_value_back_and_the_slot_passes_on() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let scope = Scope::new();
    let mut leaver = by_hand(queue.send(2).in_scope(&scope));
    let mut stayer = by_hand(queue.send(3));
    assert_pending!(leaver.poll());
    assert_pending!(stayer.poll());
    take(&queue).done();
    assert!(leaver.is_woken() && !stayer.is_woken());
    scope.cancel(());
    let error = assert_ready_err!(leaver.poll());
    assert!(matches!(error, SendError::Cancelled(2, _)));
    assert!(std::error::Error::source(&error).is_some());
    assert!(stayer.is_woken());
    assert_ready_ok!(stayer.poll());
    assert_eq!(drain(&queue), [3]);
}

#[test]
fn a_send_that_was_accepted_answers_ok_although_cancelled() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let scope = Scope::new();
    let mut sender = by_hand(queue.send(2).in_scope(&scope));
    assert_pending!(sender.poll());
    assert_eq!(drain(&queue), [1, 2]);
    scope.cancel(());
    assert_ready_ok!(sender.poll());
}

#[test]
fn a_cancelled_reserve_passes_its_slot_on() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let scope = Scope::new();
    let mut leaver = by_hand(queue.reserve().in_scope(&scope));
    let mut stayer = by_hand(queue.send(2));
    assert_pending!(leaver.poll());
    assert_pending!(stayer.poll());
    take(&queue).done();
    scope.cancel(());
    assert!(matches!(assert_ready_err!(leaver.poll()), ReserveError::Cancelled(_)));
    assert_ready_ok!(stayer.poll());
    assert_no_waiters(&queue);
}

#[test]
fn a_cancelled_join_disturbs_no_count() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let scope = Scope::new();
    let mut join = by_hand(queue.join().in_scope(&scope));
    assert_pending!(join.poll());
    take(&queue).done();
    assert!(join.is_woken());
    scope.cancel(());
    // The request wins over the result.
    assert_ready_err!(join.poll());
    assert_no_waiters(&queue);
    assert_balanced(&queue);
    assert!(assert_ready_ok!(by_hand(queue.join()).poll()).all_done());
}

#[test]
fn a_wait_that_starts_in_a_cancelled_scope_does_nothing() {
    let queue = ShutdownQueue::bounded(2);
    queue.try_send(1).unwrap();
    let scope = Scope::new();
    scope.cancel(());
    assert_ready_err!(by_hand(queue.recv().in_scope(&scope)).poll());
    assert_ready_err!(by_hand(queue.recv_ref().in_scope(&scope)).poll());
    assert_ready_err!(by_hand(queue.reserve().in_scope(&scope)).poll());
    assert_ready_err!(by_hand(queue.join().in_scope(&scope)).poll());
    let error = assert_ready_err!(by_hand(queue.send(2).in_scope(&scope)).poll());
    assert!(matches!(error, SendError::Cancelled(2, _)));
    assert_eq!(queue.stats().accepted, 1);
    // What does not wait is not cancelled.
    scope.in_sync(|| assert_eq!(drain(&queue), [1]));
}

#[test]
fn a_cancel_wins_over_a_shutdown_in_either_order() {
    for cancel_first in [false, true] {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let scope = Scope::new();
        let mut receiver = by_hand(queue.recv().in_scope(&scope));
        assert_pending!(receiver.poll());
        if cancel_first {
            scope.cancel(());
        }
        queue.shutdown();
        scope.cancel(());
        assert_ready_err!(receiver.poll());

        let queue = ShutdownQueue::bounded(1);
        queue.try_send(1).unwrap();
        let scope = Scope::new();
        let mut sender = by_hand(queue.send(2).in_scope(&scope));
        assert_pending!(sender.poll());
        if cancel_first {
            scope.cancel(());
        }
        queue.shutdown();
        scope.cancel(());
        assert!(matches!(assert_ready_err!(sender.poll()), SendError::Cancelled(2, _)));
    }
}

#[test]
fn after_an_uncancel_waits_work_again() {
    let queue = ShutdownQueue::bounded(1);
    let scope = Scope::new();
    scope.cancel(());
    assert_ready_err!(by_hand(queue.recv().in_scope(&scope)).poll());
    scope.uncancel();
    let mut receiver = by_hand(queue.recv().in_scope(&scope));
    assert_pending!(receiver.poll());
    queue.try_send(1).unwrap();
    assert_eq!(*assert_ready_ok!(receiver.poll()).unwrap(), 1);
}

#[test]
fn a_loop_that_swallows_its_cancel_comes_to_rest_and_holds_nothing() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(0).unwrap();
    let scope = Scope::new();
    let mut receiving = {
        let queue = queue.clone();
        by_hand(async move { while queue.recv().await.is_err() {} }.in_scope(&scope))
    };
    let mut sending = {
        let queue = queue.clone();
        by_hand(async move { while queue.send(1).await.is_err() {} }.in_scope(&scope))
    };
    scope.cancel(());
    assert_pending!(receiving.poll());
    assert_pending!(sending.poll());
    assert!(!receiving.is_woken() && !sending.is_woken());
    assert_no_waiters(&queue);
    assert_eq!(queue.try_send(2), Err(TrySendError::Full(2)));
    assert_eq!(drain(&queue), [0]);
}

#[tokio::test(start_paused = true)]
async fn an_enclosing_cancel_is_not_the_own_limit() {
    let queue = ShutdownQueue::bounded(1);
    queue.send(1).await.unwrap();
    let scope = Scope::new();
    let remote = scope.clone();
    tokio::spawn(async move {
        tokio::time::sleep(10 * MS).await;
        remote.cancel(());
    });
    let empty = ShutdownQueue::<u32>::bounded(1);
    let (send, recv, join) =
        async { tokio::join!(queue.send_by(2, 50 * MS), empty.recv_by(50 * MS), queue.join_by(50 * MS)) }
            .in_scope(&scope)
            .await;
    assert!(matches!(send, Err(SendByError::Cancelled(2, _))), "{send:?}");
    assert!(matches!(recv, Err(RecvByError::Cancelled(_))), "{recv:?}");
    assert!(matches!(join, Err(JoinByError::Cancelled(_))), "{join:?}");
    assert_no_waiters(&queue);
    assert_no_waiters(&empty);
}

#[tokio::test(start_paused = true)]
async fn an_enclosing_deadline_is_not_the_own_limit() {
    let queue = ShutdownQueue::bounded(1);
    queue.send(1).await.unwrap();
    let deadline = Deadline::after(10 * MS);
    let outer = with_timeout(deadline, async {
        let error = queue.send_by(2, 50 * MS).await.unwrap_err();
        assert!(matches!(error, SendByError::Cancelled(2, _)), "{error:?}");
        Err::<(), _>(error)
    });
    assert!(matches!(outer.await, Err(TimeoutError::Elapsed(_))));
    // Both at the same instant: the outer one is meant.
    let deadline = Deadline::after(10 * MS);
    let outer = with_timeout(deadline, async {
        let error = queue.send_by(2, deadline).await.unwrap_err();
        assert!(matches!(error, SendByError::Cancelled(2, _)), "{error:?}");
        Err::<(), _>(error)
    });
    assert!(matches!(outer.await, Err(TimeoutError::Elapsed(_))));
}

#[tokio::test(start_paused = true)]
async fn a_recv_in_a_timeout_leaves_no_ghost() {
    let queue = ShutdownQueue::bounded(1);
    let timed = with_timeout(10 * MS, queue.recv());
    assert!(matches!(timed.await, Err(TimeoutError::Elapsed(_))));
    assert_no_waiters(&queue);
    queue.send(1).await.unwrap();
    assert_eq!(queue.stats().promised, 0);
    assert_eq!(drain(&queue), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_limited_send_drops_its_value_and_leaves_no_ghost() {
    let queue = ShutdownQueue::bounded(1);
    let value = std::sync::Arc::new(());
    queue.send(value.clone()).await.unwrap();
    let mut send = by_hand(queue.send_by(value.clone(), 50 * MS));
    assert_pending!(send.poll());
    assert_eq!(std::sync::Arc::strong_count(&value), 3);
    drop(send);
    assert_eq!(std::sync::Arc::strong_count(&value), 2);
    assert_no_waiters(&queue);
}

#[tokio::test(start_paused = true)]
async fn a_limited_send_accepted_before_its_limit_is_sent_whenever_it_is_polled() {
    let queue = ShutdownQueue::bounded(1);
    queue.send(1).await.unwrap();
    let mut send = by_hand(queue.send_by(2, 50 * MS));
    assert_pending!(send.poll());
    assert_eq!(drain(&queue), [1, 2]);
    tokio::time::advance(60 * MS).await;
    assert_ready_ok!(send.poll());
}

#[tokio::test(start_paused = true)]
async fn the_consumer_of_the_guide_compiles_and_counts_failures_apart() {
    async fn handle(job: &u32) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if *job == 2 { Err("no".into()) } else { Ok(()) }
    }
    async fn consume(jobs: &ShutdownQueue<u32>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        while let Some(job) = jobs.recv().await? {
            handle(&job).await?;
            job.done();
        }
        Ok(())
    }
    let jobs = ShutdownQueue::bounded(8);
    for n in 1..=3 {
        jobs.send(n).await.unwrap();
    }
    jobs.shutdown();
    assert!(consume(&jobs).await.is_err());
    assert!(consume(&jobs).await.is_ok());
    let report = jobs.join().await.unwrap();
    assert_eq!((report.done, report.abandoned), (2, 1));
}
