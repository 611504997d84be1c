use std::time::Duration;

use stoppable_scope::Deadline;
use stoppable_sync::{JoinByError, RecvByError, SendByError, ShutdownQueue};

use crate::{assert_no_waiters, drain, take};

const MS: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn a_send_that_finds_no_room_in_time_gives_the_value_back() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let start = tokio::time::Instant::now();
    let error = queue.send_by(42, 50 * MS).await.unwrap_err();
    assert!(matches!(error, SendByError::Elapsed(42, _)));
    assert_eq!(start.elapsed(), 50 * MS);
    assert_no_waiters(&queue);
    assert_eq!(drain(&queue), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_send_in_time_is_sent() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let taker = queue.clone();
    tokio::spawn(async move {
        tokio::time::sleep(10 * MS).await;
        take(&taker).done();
    });
    queue.send_by(2, 50 * MS).await.unwrap();
    assert_eq!(drain(&queue), [2]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_gives_the_value_of_a_limited_send_back() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let closer = queue.clone();
    tokio::spawn(async move { closer.shutdown() });
    assert!(matches!(queue.send_by(2, 50 * MS).await, Err(SendByError::ShutDown(2))));
}

#[tokio::test(start_paused = true)]
async fn a_recv_that_finds_nothing_in_time_leaves_no_ghost() {
    let queue = ShutdownQueue::bounded(1);
    let start = tokio::time::Instant::now();
    assert!(matches!(queue.recv_by(50 * MS).await, Err(RecvByError::Elapsed(_))));
    assert_eq!(start.elapsed(), 50 * MS);
    assert_no_waiters(&queue);
    queue.send(1).await.unwrap();
    assert_eq!(queue.stats().promised, 0);
    assert_eq!(*queue.recv_by(50 * MS).await.unwrap().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_has_passed_starts_nothing() {
    let queue = ShutdownQueue::bounded(2);
    queue.try_send(1).unwrap();
    for deadline in [Deadline::from(Duration::ZERO), Deadline::at(tokio::time::Instant::now())] {
        assert!(matches!(queue.send_by(2, deadline).await, Err(SendByError::Elapsed(2, _))));
        assert!(matches!(queue.recv_by(deadline).await, Err(RecvByError::Elapsed(_))));
        assert!(matches!(queue.join_by(deadline).await, Err(JoinByError::Elapsed(_))));
    }
    assert_eq!(drain(&queue), [1]);
}

#[tokio::test(start_paused = true)]
async fn the_longest_limit_works() {
    let queue = ShutdownQueue::bounded(2);
    queue.send_by(1, Duration::MAX).await.unwrap();
    queue.send_by(2, Deadline::never()).await.unwrap();
    queue.recv_by(Duration::MAX).await.unwrap().unwrap().done();
    queue.recv_by(Deadline::never()).await.unwrap().unwrap().done();
    assert!(queue.join_by(Duration::MAX).await.unwrap().all_done());
}

#[tokio::test(start_paused = true)]
async fn join_by_says_how_many_and_which() {
    let queue = ShutdownQueue::bounded(20);
    for n in 0..20 {
        queue.send(n).await.unwrap();
    }
    let item = queue.recv().await.unwrap().unwrap();
    item.requeue().unwrap();
    let item = queue.recv().await.unwrap().unwrap();
    let Err(JoinByError::Elapsed(unfinished)) = queue.join_by(50 * MS).await else { panic!() };
    assert_eq!((unfinished.len(), unfinished.queued(), unfinished.in_flight()), (20, 19, 1));
    assert_eq!((unfinished.items()[0].ticket, unfinished.items()[0].attempt), (1, 1));
    assert!(unfinished.items()[19].in_flight);
    assert_eq!(
        unfinished.to_string(),
        "20 items unfinished: 19 queued (#1; #3; #4; #5; #6; #7; #8; #9 and 11 more), 1 in flight (#2)"
    );
    assert_no_waiters(&queue);
    item.done();
}

#[tokio::test(start_paused = true)]
async fn join_by_in_time_reports() {
    let queue = ShutdownQueue::bounded(1);
    queue.send(1).await.unwrap();
    let worker = queue.clone();
    tokio::spawn(async move {
        let item = worker.recv().await.unwrap().unwrap();
        tokio::time::sleep(10 * MS).await;
        item.done();
    });
    assert_eq!(queue.join_by(50 * MS).await.unwrap().done, 1);
}
