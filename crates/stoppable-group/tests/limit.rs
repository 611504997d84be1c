//! A limit on running tasks, where the spawner may wait before the task is made.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stoppable_group::{HandleError, Outcome, Policy, TaskError, TaskGroup, ok, with_timeout};
use stoppable_scope::{OrCancelledExt, Scope};
use support::{Alive, Log, ends, ms, secs};
use tokio::time::{Instant, sleep};

// Places are given in the order of spawning, whichever way.
#[tokio::test(start_paused = true)]
async fn tasks_run_in_the_order_of_spawning() {
    for limit in [1, 2, 3, usize::MAX] {
        let log = Log::default();
        let seen = log.clone();
        let alive = Alive::default();
        let running = alive.clone();
        TaskGroup::builder()
            .limit(limit)
            .run(|group| async move {
                for n in 0..12 {
                    let (log, alive) = (seen.clone(), running.clone());
                    let work = async move {
                        let _guard = alive.guard();
                        assert!(alive.now() <= limit);
                        log.add(n.to_string());
                        sleep(ms(10)).await;
                    };
                    if n % 3 == 2 {
                        group.spawn_when_free(work).await?;
                    } else {
                        group.spawn(work);
                    }
                }
                ok(())
            })
            .await
            .unwrap();
        let order: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        assert_eq!(log.lines(), order, "{limit}");
        assert_eq!(alive.now(), 0);
    }
}

// B-07: "queued tasks still start after a sibling has already failed" must not be.
#[tokio::test(start_paused = true)]
async fn queued_tasks_do_not_start_after_a_failure() {
    let (count, started) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let seen = count.clone();
    let (result, report) = TaskGroup::builder()
        .limit(1)
        .run_reported(|group| async move {
            for _ in 0..5 {
                let count = seen.clone();
                group.spawn(async move {
                    count.fetch_add(1, Ordering::Relaxed);
                    sleep(ms(10)).await;
                    Err::<(), TaskError>("E1".into())
                });
            }
            assert_eq!(group.live(), 5, "made, and waiting for a place");
            ok(())
        })
        .await;
    assert_eq!((count.load(Ordering::Relaxed), started.elapsed()), (1, ms(10)));
    assert_eq!(result.unwrap_err().failures().len(), 1);
    assert_eq!((report.failed, report.not_started), (1, 4));
    let queued = report.tasks.iter().filter(|task| matches!(task.outcome, Outcome::NotStarted(_)));
    assert_eq!(queued.count(), 4);
}

// B-08: the error that counts is not hidden by the cancel of the loop that waits for a place.
#[tokio::test(start_paused = true)]
async fn the_spawning_loop_does_not_hide_the_error() {
    let started = Instant::now();
    let error = TaskGroup::builder().limit(2).run(|group| async move {
        for n in 0..1000 {
            group
                .spawn_when_free(async move {
                    if n == 3 {
                        sleep(ms(20)).await;
                        return Err(TaskError::from("disk full"));
                    }
                    sleep(ms(1)).await;
                    if n > 3 {
                        sleep(secs(9)).await;
                    }
                    Ok(())
                })
                .await?;
        }
        ok(())
    });
    let error = ends(error).await.unwrap_err();
    assert_eq!((error.failures().len(), started.elapsed()), (1, ms(21)));
    assert!(error.to_string().contains("disk full"));
}

// Supervise with a limit: those that wait get their turn after a failure. B-96.
#[tokio::test(start_paused = true)]
async fn failures_use_up_no_places() {
    let started = Instant::now();
    let (result, report) = TaskGroup::builder()
        .limit(2)
        .policy(Policy::Supervise)
        .run_reported(|group| async move {
            for n in 0..8 {
                group.spawn(async move {
                    assert!(n >= 4, "bad job");
                    sleep(ms(100)).await;
                });
            }
            ok(())
        })
        .await;
    assert_eq!((report.ok, report.failed, started.elapsed()), (4, 4, ms(200)));
    assert_eq!(result.unwrap_err().failures().len(), 4);
}

// "spawn_when_free waits first": nothing is made until there is a place; it is a stoppable wait.
#[tokio::test(start_paused = true)]
async fn spawn_when_free_waits_before_the_task_is_made() {
    let alive = Alive::default();
    let seen = alive.clone();
    TaskGroup::builder()
        .limit(1)
        .run(|group| async move {
            let first = group.spawn(sleep(secs(2)));
            let (scope, started) = (Scope::new(), Instant::now());
            let guard = seen.guard();
            let waited = with_timeout(secs(1), group.spawn_when_free(async move { drop(guard) }));
            assert!(waited.await.unwrap_err().is_elapsed());
            assert_eq!((group.live(), seen.now(), started.elapsed()), (1, 0, secs(1)), "nothing was spawned");
            // In a scope that is cancelled it does not even wait, and takes no place.
            let refused = scope
                .run(async {
                    scope.cancel(());
                    group.spawn_when_free(async {}).await.is_err()
                })
                .await?;
            assert!(refused);
            first.await?;
            let handle = group.spawn_when_free(async { ok(5) }).await?;
            assert_eq!(started.elapsed(), secs(2));
            assert_eq!(handle.await?, 5);
            ok(())
        })
        .await
        .unwrap();
}

// In a group that closes meanwhile the task is refused.
#[tokio::test(start_paused = true)]
async fn spawn_when_free_is_refused_by_a_group_that_was_cancelled() {
    let handle = TaskGroup::builder().limit(1).run(|group| async move {
        group.spawn(std::future::pending::<()>());
        let inner = group.clone();
        let outside = tokio::spawn(async move {
            let handle = inner.spawn_when_free(async { ok(1) }).await.unwrap();
            handle.await
        });
        sleep(secs(1)).await;
        group.cancel(());
        ok(outside)
    });
    let result = ends(handle).await.unwrap().await.unwrap();
    assert!(matches!(result, Err(HandleError::Refused { .. })));
}

// A place comes back however a task ends, and one that is cancelled while it waits takes none.
#[tokio::test(start_paused = true)]
async fn places_come_back_however_a_task_ends() {
    TaskGroup::builder()
        .limit(1)
        .policy(Policy::Supervise)
        .run(|group| async move {
            for how in 0..5 {
                let task = group.spawn(async move {
                    match how {
                        0 => panic!("boom"),
                        1 => return Err(TaskError::from("E")),
                        2 => std::future::pending::<()>().or_cancelled().await?,
                        3 => std::future::pending::<()>().await,
                        _ => {}
                    }
                    ok(())
                });
                let queued = group.spawn(async { ok(()) });
                tokio::task::yield_now().await;
                queued.cancel();
                task.cancel();
                let _ = task.await;
                assert!(matches!(queued.await, Err(HandleError::NotStarted { .. })), "{how}");
                // A shield takes a place too.
                group.shield(async { ok(()) }).await?;
            }
            ok(())
        })
        .await
        .unwrap_err();
}

#[test]
#[should_panic(expected = "limit of 0")]
fn a_limit_of_zero_is_refused() {
    let _ = TaskGroup::builder().limit(0);
}
