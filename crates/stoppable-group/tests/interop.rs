//! With tokio's own handles: `JoinHandle`, `AbortHandle`, and `TaskTracker`.

mod support;

use std::future::pending;

use stoppable_group::{HandleError, TaskGroup, defer, ok, root, with_timeout};
use stoppable_test::{End, Intervention, Sweep};
use support::{Alive, AliveGuard, PanicOnDrop, ends, ms, runtimes, secs};
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

async fn for_ever(guard: AliveGuard) {
    let _guard = guard;
    pending::<()>().await;
}

// The group waits for it, and gives its value.
#[tokio::test(start_paused = true)]
async fn a_foreign_task_is_waited_for() {
    let started = Instant::now();
    let value = ends(TaskGroup::run(|group| async move {
        let task = group.own(tokio::spawn(async {
            sleep(secs(1)).await;
            7
        }));
        drop(group.own(tokio::spawn(async { sleep(secs(2)).await })));
        ok(task.await?)
    }));
    assert_eq!(value.await.unwrap(), 7);
    assert_eq!(started.elapsed(), secs(2));
}

// A cancel of the group aborts it, and waits until it is gone.
#[tokio::test(start_paused = true)]
async fn a_cancel_aborts_the_foreign_task() {
    let alive = Alive::default();
    let foreign = tokio::spawn(for_ever(alive.guard()));
    let (result, report) = ends(TaskGroup::builder().run_reported(|group| async move {
        let task = group.own(foreign);
        sleep(ms(1)).await;
        group.cancel("enough");
        drop(task);
        ok(())
    }))
    .await;
    assert!(result.is_ok());
    assert_eq!((alive.now(), report.cancelled, report.failed), (0, 1, 0));
}

// It runs already, so it is ended and waited for also where a task would never have begun: with a request that is
// there before the first poll, and in a full group.
#[tokio::test(start_paused = true)]
async fn a_foreign_task_that_was_never_waited_for_is_aborted() {
    let alive = Alive::default();
    let foreign = tokio::spawn(for_ever(alive.guard()));
    let (_, report) = ends(TaskGroup::builder().limit(1).run_reported(|group| async move {
        group.spawn(pending::<()>());
        sleep(ms(1)).await;
        group.own(foreign);
        group.cancel("at once");
        ok(())
    }))
    .await;
    assert_eq!((alive.now(), report.not_started, report.cancelled), (0, 0, 2));
}

// A group that takes no more aborts what it is given: nothing is detached.
#[tokio::test(start_paused = true)]
async fn a_refused_foreign_task_is_aborted() {
    let alive = Alive::default();
    let group = TaskGroup::new();
    group.close();
    let foreign = tokio::spawn(for_ever(alive.guard()));
    assert!(matches!(group.own(foreign).await, Err(HandleError::Refused { .. })));
    tokio::task::yield_now().await;
    assert_eq!(alive.now(), 0);
}

// A panic is a failure with its payload; an abort by somebody else is a failure too, for nobody here has asked.
#[tokio::test(start_paused = true)]
async fn the_failure_of_a_foreign_task_is_a_failure() {
    let error = ends(TaskGroup::run(|group| async move {
        group.own(tokio::spawn(async {
            let _bomb = PanicOnDrop("boom");
        }));
        ok(())
    }))
    .await
    .unwrap_err();
    assert_eq!(error.failures()[0].panic_message(), Some("boom"));

    let error = ends(TaskGroup::run(|group| async move {
        let foreign = tokio::spawn(pending::<()>());
        let abort = foreign.abort_handle();
        group.own(foreign);
        sleep(ms(1)).await;
        abort.abort();
        ok(())
    }))
    .await
    .unwrap_err();
    assert!(!error.is_cancelled() && !error.failures()[0].is_panic());
}

// A panic while it is aborted is a failure, not a cancellation.
#[tokio::test(start_paused = true)]
async fn a_panic_during_the_abort_is_a_failure() {
    let error = ends(TaskGroup::run(|group| async move {
        group.own(tokio::spawn(async {
            let _bomb = PanicOnDrop("destructor");
            pending::<()>().await;
        }));
        sleep(ms(1)).await;
        group.cancel(());
        ok(())
    }))
    .await
    .unwrap_err();
    assert_eq!(error.failures()[0].panic_message(), Some("destructor"));
}

// A value that is there wins over a request at the same instant.
#[tokio::test(start_paused = true)]
async fn a_value_wins_over_a_cancel() {
    let value = ends(TaskGroup::run(|group| async move {
        let task = group.own(tokio::spawn(async {
            sleep(ms(10)).await;
            7
        }));
        sleep(ms(10)).await;
        tokio::task::yield_now().await;
        task.cancel();
        ok(task.await?)
    }));
    assert_eq!(value.await.unwrap(), 7);
}

// Left at every point, the foreign task is gone too.
#[tokio::test(start_paused = true)]
async fn an_owner_can_be_left_at_every_point() {
    let alive = Alive::default();
    let swept = Sweep::new(|| {
        let foreign = tokio::spawn(for_ever(alive.guard()));
        with_timeout(
            ms(20),
            TaskGroup::run(|group| async move {
                let task = group.own(foreign);
                sleep(ms(10)).await;
                ok(task.await?)
            }),
        )
    })
    .run(|round| match round.end {
        End::Finished(result) => assert!(result.is_err()),
        End::Cut => panic!("a timeout answers by itself"),
        End::Dropped => assert_eq!(round.intervention, Intervention::Drop),
    })
    .await;
    assert!(swept.points() > 3, "{swept:?}");
    ends(root().join()).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(alive.now(), 0);
}

// An `AbortHandle` alone: a closer aborts, however the task that holds it is left, also unpolled.
#[tokio::test(start_paused = true)]
async fn an_abort_handle_is_deferred() {
    for polled in [true, false] {
        let alive = Alive::default();
        let abort = tokio::spawn(for_ever(alive.guard())).abort_handle();
        ends(TaskGroup::run(|group| async move {
            let abort = defer(abort, secs(1), |abort| async move { abort.abort() });
            group.spawn(async move {
                let _abort = abort;
                pending::<()>().await;
            });
            if polled {
                sleep(ms(1)).await;
            }
            group.cancel(());
            ok(())
        }))
        .await
        .unwrap();
        tokio::task::yield_now().await;
        assert_eq!(alive.now(), 0, "{polled}");
    }
}

// A tracker counts what is spawned in a group as anywhere else.
#[tokio::test(start_paused = true)]
async fn a_tracker_counts_tasks_of_a_group() {
    let tracker = TaskTracker::new();
    let seen = tracker.clone();
    ends(TaskGroup::run(|group| async move {
        let task = group.spawn(seen.track_future(async { sleep(secs(1)).await }));
        assert_eq!(seen.len(), 1);
        ok(task.await?)
    }))
    .await
    .unwrap();
    tracker.close();
    ends(tracker.wait()).await;
}

// On both runtimes: ends, cancels and aborts at once.
#[test]
fn foreign_tasks_end_with_their_group() {
    for runtime in runtimes() {
        runtime.block_on(async {
            for round in 0..200 {
                let alive = Alive::default();
                let guards: Vec<_> = (0..4).map(|_| alive.guard()).collect();
                let group = TaskGroup::run(|group| async move {
                    for guard in guards {
                        group.own(tokio::spawn(for_ever(guard)));
                    }
                    if round % 2 == 0 {
                        tokio::task::yield_now().await;
                    }
                    group.cancel(());
                    ok(())
                });
                tokio::time::timeout(secs(10), group).await.expect("it hangs").unwrap();
                assert_eq!(alive.now(), 0);
            }
        });
    }
}
