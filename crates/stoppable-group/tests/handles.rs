//! `TaskHandle`: waiting borrows the task; its error tells five ends apart.

mod support;

use std::future::pending;

use futures::FutureExt;
use stoppable_group::{HandleError, Policy, TaskError, TaskGroup, TaskHandle, ok, with_timeout};
use stoppable_scope::{OrCancelledExt, Scope, cleanup};
use support::{Alive, PanicOnDrop, ends, ms, runtimes, secs};
use tokio::time::{Instant, sleep};

// "Waiting for a handle borrows the task: leaving the wait does not cancel it."
#[tokio::test(start_paused = true)]
async fn leaving_the_wait_leaves_the_task_running() {
    let started = Instant::now();
    let value = TaskGroup::run(|group| async move {
        let mut task = group.spawn(async {
            sleep(secs(5)).or_cancelled().await?;
            ok(9)
        });
        tokio::select! {
            _ = &mut task => unreachable!(),
            () = sleep(secs(1)) => {}
        }
        assert!(with_timeout(secs(1), &mut task).await.unwrap_err().is_elapsed());
        let scope = Scope::new();
        let waiter = scope.run(async {
            scope.cancel("leave");
            (&mut task).await.unwrap_err()
        });
        assert!(waiter.await?.is_waiter_cancelled());
        assert!(!task.is_finished());
        ok(task.await?)
    });
    assert_eq!((ends(value).await.unwrap(), started.elapsed()), (9, secs(5)));
}

// A dropped handle detaches nothing: the group owns the task.
#[tokio::test(start_paused = true)]
async fn a_dropped_handle_cancels_nothing() {
    let alive = Alive::default();
    let (guard, seen) = (alive.guard(), alive.clone());
    let started = Instant::now();
    TaskGroup::run(|group| async move {
        drop(group.spawn(async move {
            let _guard = guard;
            sleep(secs(1)).or_cancelled().await?;
            ok(seen.now())
        }));
        ok(())
    })
    .await
    .unwrap();
    assert_eq!((alive.now(), started.elapsed()), (0, secs(1)));
}

// Every variant of `HandleError`, and what it says. G-89, G-90.
#[tokio::test(start_paused = true)]
async fn the_error_of_a_handle_tells_the_ends_apart() {
    TaskGroup::builder()
        .policy(Policy::Supervise)
        .run(|group| async move {
            let failed = group.task("t").spawn(async { Err::<(), TaskError>("E".into()) }).await.unwrap_err();
            assert_eq!(failed.to_string(), "task `t` failed: E");
            assert!(failed.failure().is_some() && !failed.is_cancelled() && !failed.is_waiter_cancelled());

            let panicked = group.task("t").spawn_value(async move { assert!(failed.is_cancelled(), "boom") });
            let panicked = panicked.await.unwrap_err();
            assert_eq!(panicked.to_string(), "task `t` panicked: boom");

            for stoppable in [true, false] {
                let task = group.task("t").spawn(async move {
                    if stoppable {
                        pending::<()>().or_cancelled().await?;
                    }
                    pending::<()>().await;
                    ok(())
                });
                tokio::task::yield_now().await;
                assert!(task.cancel_because("why"));
                let error = task.await.unwrap_err();
                assert!(matches!(&error, HandleError::Cancelled { .. }), "{error:?}");
                assert_eq!(error.to_string(), "task `t` was cancelled: why");
                assert!(error.is_cancelled() && !error.is_waiter_cancelled());
            }

            let task = group.task("t").spawn(pending::<()>());
            task.cancel();
            let error = task.await.unwrap_err();
            assert!(matches!(&error, HandleError::NotStarted { .. }) && error.is_cancelled());
            assert_eq!(error.to_string(), "task `t` never ran, cancelled: requested");

            let scope = Scope::new();
            let mut task = group.task("t").spawn(pending::<()>());
            let waiter = scope.run(async {
                scope.cancel("me");
                (&mut task).await.unwrap_err()
            });
            let error = waiter.await?;
            assert!(matches!(&error, HandleError::WaiterCancelled(_)));
            assert_eq!(error.to_string(), "cancelled: me");
            task.cancel();
            ok(())
        })
        .await
        .unwrap_err();
}

// "`handle.shutdown()` cancels and waits", also where it cleans up; a value that comes all the same is kept.
#[tokio::test(start_paused = true)]
async fn shutdown_cancels_and_waits() {
    let started = Instant::now();
    TaskGroup::run(|group| async move {
        let tidy = group.spawn(async {
            let answer = pending::<()>().or_cancelled().await;
            cleanup(secs(9), sleep(secs(2))).await?;
            answer?;
            ok(0)
        });
        sleep(secs(1)).await;
        assert!(matches!(tidy.shutdown().await, Err(HandleError::Cancelled { .. })));
        assert_eq!(started.elapsed(), secs(3));
        let value = group.spawn(async {
            let _ = pending::<()>().or_cancelled().await;
            ok(4)
        });
        sleep(secs(1)).await;
        assert_eq!(value.shutdown().await?, 4);
        let done = group.spawn(async { ok(5) });
        sleep(secs(1)).await;
        assert!(!done.cancel(), "G-91: it has ended");
        assert_eq!(done.shutdown().await?, 5);
        ok(())
    })
    .await
    .unwrap();
}

// S-25, S-27: the result stays on the handle when the waiter is cancelled, and can be had later.
#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_does_not_consume_the_result() {
    let value = TaskGroup::run(|group| async move {
        let mut task = group.spawn(async { ok(6) });
        sleep(secs(1)).await;
        assert!(task.is_finished());
        let scope = Scope::new();
        scope
            .run(async {
                scope.cancel(());
                assert!((&mut task).await.unwrap_err().is_waiter_cancelled());
            })
            .await?;
        ok(task.await?)
    });
    assert_eq!(value.await.unwrap(), 6);
}

// The choice table: a wait that was under way when result and cancel come at one instant gives the result.
#[tokio::test(start_paused = true)]
async fn a_result_wins_where_the_wait_was_under_way() {
    let value = TaskGroup::run(|group| async move {
        let (send, recv) = tokio::sync::oneshot::channel();
        let mut task = group.spawn(async move { ok(recv.await?) });
        let scope = Scope::new();
        let waited = scope.run(async { (&mut task).await });
        let mut waited = Box::pin(waited);
        assert!(futures::poll!(&mut waited).is_pending());
        send.send(7).unwrap();
        // The task ends before the waiter is polled again.
        tokio::task::yield_now().await;
        scope.cancel(());
        ok(waited.await??)
    });
    assert_eq!(value.await.unwrap(), 7);
}

// Many handles in any order, from any task, after the group has ended.
#[tokio::test(start_paused = true)]
async fn a_handle_can_be_waited_for_anywhere() {
    let handles = TaskGroup::run(|group| async move {
        let handles: Vec<TaskHandle<_>> = (0..5).map(|n| group.spawn(async move { ok(n) })).collect();
        ok(handles)
    })
    .await
    .unwrap();
    let mut sum = 0;
    for handle in handles.into_iter().rev() {
        sum += tokio::spawn(handle).await.unwrap().unwrap();
    }
    assert_eq!(sum, 10);
}

// A value that nobody asks for is dropped in its task; one whose handle goes later, with the handle.
#[tokio::test(start_paused = true)]
async fn values_are_dropped_where_nobody_asks() {
    let alive = Alive::default();
    let (one, two) = (alive.guard(), alive.guard());
    let seen = alive.clone();
    TaskGroup::run(|group| async move {
        group.spawn(async move { ok(one) });
        let kept = group.spawn(async move { ok(two) });
        sleep(ms(1)).await;
        assert_eq!(seen.now(), 1);
        drop(kept);
        assert_eq!(seen.now(), 0);
        ok(())
    })
    .await
    .unwrap();
    let error = TaskGroup::run(|group| async move {
        drop(group.spawn(async { ok(PanicOnDrop("value")) }));
        ok(())
    });
    assert!(error.await.unwrap_err().failures()[0].is_panic());
}

// Polled after it gave its result a handle panics, as futures do; the task is none the wiser.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "polled after it gave its result")]
async fn a_handle_gives_its_result_once() {
    let mut kept = TaskGroup::run(|group| async move {
        let mut task = group.spawn(async { ok(1) });
        assert_eq!((&mut task).await?, 1);
        ok(task)
    })
    .await
    .unwrap();
    let _ = (&mut kept).await;
}

// A cancel of a task and of its group at once: the outermost is the reason. R4.
#[tokio::test(start_paused = true)]
async fn the_outermost_request_is_the_reason() {
    let error = TaskGroup::run(|group| async move {
        let task = group.task("t").grace(secs(1)).spawn(pending::<()>());
        sleep(ms(1)).await;
        task.cancel_because("task");
        group.cancel("group");
        ok(task)
    });
    let error = ends(error).await.unwrap().await.unwrap_err();
    assert_eq!(error.to_string(), "task `t` was cancelled: group");
}

// The failure of a task is known before the cancel that follows from it, on whatever threads the two are.
#[test]
fn who_waits_for_a_task_has_its_failure_and_not_the_cancel_that_it_causes() {
    for runtime in runtimes() {
        for _ in 0..500 {
            let run = TaskGroup::run(|group| async move {
                let task = group.spawn(async { Err::<(), _>(std::io::Error::other("disk")) });
                let seen = task.await.unwrap_err();
                assert!(seen.failure().is_some(), "{seen:?}");
                ok(())
            });
            let spawned = runtime.spawn(run);
            let error = runtime.block_on(async { ends(spawned).await.unwrap().unwrap_err() });
            assert_eq!(error.failures().len(), 1);
        }
    }
}

// What has left the group is there for whoever looks next, on whatever thread that is.
#[test]
fn a_task_that_is_counted_out_has_left_its_result() {
    for runtime in runtimes() {
        let run = TaskGroup::run(|group| async move {
            for round in 0..500 {
                let task = group.spawn(async move { ok(round) });
                while group.live() > 0 {
                    tokio::task::yield_now().await;
                }
                assert!(task.is_finished());
                assert_eq!(task.now_or_never().expect("it is there")?, round);
            }
            ok(())
        });
        let spawned = runtime.spawn(run);
        runtime.block_on(async { ends(spawned).await.unwrap().unwrap() });
    }
}

// The result of a task goes with its runtime, what became of it does not.
#[test]
fn a_handle_outlives_the_runtime_of_its_task() {
    let [runtime, other] = runtimes();
    let (give, take) = std::sync::mpsc::channel();
    runtime.spawn(TaskGroup::run(|group| async move {
        let running = group.task("running").spawn(pending::<()>());
        let broken = PanicOnDrop("at the end");
        let failing = group.task("failing").spawn(async move {
            let _broken = broken;
            pending::<()>().await;
        });
        tokio::task::yield_now().await;
        give.send((group, running, failing)).unwrap();
        pending::<()>().await;
        ok(())
    }));
    let (running, failing, fresh) = runtime.block_on(async {
        let (group, running, failing) = loop {
            match take.try_recv() {
                Ok(given) => break given,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        // Not polled before the runtime is gone.
        (running, failing, group.task("fresh").spawn(async {}))
    });
    drop(runtime);
    other.block_on(async {
        let cancelled = ends(running).await.unwrap_err();
        assert!(matches!(cancelled, HandleError::Cancelled { .. }), "{cancelled:?}");
        assert!(ends(failing).await.unwrap_err().failure().is_some());
        let fresh = ends(fresh).await.unwrap_err();
        assert!(matches!(fresh, HandleError::NotStarted { .. }), "{fresh:?}");
    });
}
