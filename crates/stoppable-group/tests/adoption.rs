//! R1: who owns the tasks of a group whose future is dropped, and who may spawn.

mod support;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use stoppable_group::{HandleError, Outcome, TaskError, TaskGroup, ok, root, with_timeout};
use stoppable_scope::{Deadline, OrCancelledExt, Scope, checkpoint, cleanup};
use support::{Alive, ends, events, ms, secs};
use tokio::time::{Instant, sleep};

/// A group with a task that needs a second to clean up, and fails after that if `fails`.
fn slow_group(
    alive: &Alive,
    fails: bool,
) -> impl Future<Output = Result<(), stoppable_group::GroupError>> + Send + 'static {
    let guard = alive.guard();
    TaskGroup::builder().name("inner").run(move |group| async move {
        group.task("slow").spawn(async move {
            let _guard = guard;
            let _ = pending::<()>().or_cancelled().await;
            cleanup(secs(9), sleep(secs(1))).await?;
            if fails { Err::<(), TaskError>("unclean".into()) } else { Ok(()) }
        });
        pending::<()>().await;
        ok(())
    })
}

// "If the future of a group is itself dropped, its tasks are cancelled and adopted by the enclosing group,
// which waits for them; failures of adopted tasks are in the adopter's report and a tracing event, not in its
// error, and never cancel it."
#[tokio::test(start_paused = true)]
async fn the_enclosing_group_adopts_and_waits() {
    for fails in [false, true] {
        let (log, _guard) = events();
        let (alive, started) = (Alive::default(), Instant::now());
        let seen = alive.clone();
        let (result, report) = TaskGroup::builder()
            .name("outer")
            .run_reported(|group| async move {
                let bystander = group.spawn(async {
                    sleep(secs(3)).or_cancelled().await?;
                    ok(())
                });
                tokio::select! {
                    _ = slow_group(&seen, fails) => unreachable!(),
                    () = sleep(secs(1)) => {}
                }
                assert_eq!(seen.now(), 1, "its task still cleans up");
                sleep(ms(1500)).or_cancelled().await?;
                assert_eq!(seen.now(), 0);
                bystander.await?;
                ok(())
            })
            .await;
        result.unwrap();
        assert_eq!((alive.now(), started.elapsed()), (0, secs(3)));
        assert_eq!((report.ok, report.failed, report.adopted.len()), (1, 0, 1));
        let adopted = &report.adopted[0];
        assert_eq!((adopted.failed, adopted.live), (usize::from(fails), 0));
        let told = log.lines().iter().any(|line| line.starts_with("WARN") && line.contains("unclean"));
        assert_eq!(told, fails, "{:?}", log.lines());
    }
}

// The same where the adopter has nothing else to wait for, and where it is a task of the group that drops it.
#[tokio::test(start_paused = true)]
async fn the_enclosing_group_waits_for_what_it_adopted_from_a_task() {
    let (alive, started) = (Alive::default(), Instant::now());
    let seen = alive.clone();
    let run = TaskGroup::run(|group| async move {
        group.spawn(async move {
            let _ = tokio::time::timeout(secs(1), slow_group(&seen, false)).await;
        });
        ok(())
    });
    ends(run).await.unwrap();
    assert_eq!((alive.now(), started.elapsed()), (0, secs(2)));
}

// "With no enclosing group they belong to the root of their runtime, which `stoppable::root().join()` waits for."
#[tokio::test(start_paused = true)]
async fn the_root_adopts_what_has_no_enclosing_group() {
    let (alive, started) = (Alive::default(), Instant::now());
    let _ = tokio::time::timeout(secs(1), slow_group(&alive, true)).await;
    assert_eq!(alive.now(), 1);
    let report = ends(root().join()).await.unwrap();
    assert_eq!((alive.now(), started.elapsed(), report.live), (0, secs(2), 0));
    assert_eq!((report.failed, report.adopted.len(), report.adopted[0].failed), (0, 1, 1));
    // It is told once.
    assert_eq!(ends(root().join()).await.unwrap().adopted.len(), 1);
}

// Several may wait for the root at once, and one may leave; nobody is forgotten, nothing told twice.
#[tokio::test(start_paused = true)]
async fn several_may_wait_for_the_root() {
    let alive = Alive::default();
    let _ = tokio::time::timeout(secs(1), slow_group(&alive, false)).await;
    let joins: Vec<_> = (0..5).map(|_| tokio::spawn(async { root().join().await.unwrap() })).collect();
    assert!(tokio::time::timeout(ms(1), root().join()).await.is_err());
    for join in joins {
        let report = ends(join).await.unwrap();
        assert_eq!((report.adopted.len(), alive.now()), (1, 0));
    }
}

// Waiting for the root is a stoppable wait.
#[tokio::test(start_paused = true)]
async fn waiting_for_the_root_can_be_cancelled() {
    let alive = Alive::default();
    let _ = tokio::time::timeout(secs(1), slow_group(&alive, false)).await;
    let waited = with_timeout(ms(10), async { ok(root().join().await?) });
    assert!(waited.await.unwrap_err().is_elapsed());
    ends(root().join()).await.unwrap();
}

// A group is dropped whose child itself runs a group: all is waited for by the one that is left.
#[tokio::test(start_paused = true)]
async fn a_nested_drop_is_adopted_as_a_whole() {
    let (alive, started) = (Alive::default(), Instant::now());
    let seen = alive.clone();
    let (result, report) = TaskGroup::builder()
        .run_reported(|_| async move {
            let (in_child, in_body) = (seen.clone(), seen.clone());
            let middle = TaskGroup::run(move |group| async move {
                group.spawn(async move { slow_group(&in_child, false).await });
                slow_group(&in_body, false).await?;
                ok(())
            });
            let _ = tokio::time::timeout(secs(1), middle).await;
            assert_eq!(seen.now(), 2);
            ok(())
        })
        .await;
    result.unwrap();
    assert_eq!((alive.now(), started.elapsed(), report.adopted.len()), (0, secs(2), 1));
    let middle = &report.adopted[0];
    assert_eq!((middle.adopted.len(), middle.live), (1, 0), "the body's group was adopted by the middle one");
}

// An adopted group that has ended is not kept for as long as its adopter lives. G-24.
#[tokio::test(start_paused = true)]
async fn adopted_groups_are_forgotten_when_they_have_ended() {
    let alive = Alive::default();
    let seen = alive.clone();
    TaskGroup::run(|group| async move {
        group.spawn(sleep(secs(100)));
        for _ in 0..100 {
            let _ = tokio::time::timeout(ms(100), slow_group(&seen, false)).await;
        }
        // At most ten are alive at a time.
        assert!(group.report().adopted.len() >= 60, "their reports are there before the group has ended");
        ok(())
    })
    .await
    .unwrap();
    assert_eq!(alive.now(), 0);
}

// Dropped before its first poll a group does nothing.
#[tokio::test(start_paused = true)]
async fn an_unpolled_group_is_just_dropped() {
    let alive = Alive::default();
    drop(slow_group(&alive, false));
    assert_eq!(alive.now(), 0);
    assert_eq!(ends(root().join()).await.unwrap().adopted.len(), 0);
}

// "A task takes its scope and deadline from its group, whoever spawns it."
#[tokio::test(start_paused = true)]
async fn a_task_takes_scope_and_deadline_from_its_group() {
    let run = TaskGroup::builder().name("mine").deadline(secs(60)).run(|group| async move {
        let (send, mut recv) = tokio::sync::mpsc::unbounded_channel();
        let report = move |from: &'static str, group: TaskGroup| {
            let send = send.clone();
            drop(group.spawn(async move {
                let left = Deadline::current().remaining().unwrap();
                sleep(ms(1)).await;
                send.send((from, left)).unwrap();
                pending::<()>().await;
            }));
        };
        // From the body in a shorter timeout and another scope.
        let spawned = with_timeout(secs(5), async {
            Scope::new().run(async { report("timeout", group.clone()) }).await?;
            ok(())
        });
        spawned.await?;
        // From a task of the group, from another group, from plain tokio and from a thread.
        let (inner, say) = (group.clone(), report.clone());
        group.spawn(with_timeout(secs(9), async move {
            say("task", inner);
            ok(())
        }));
        let (inner, say) = (group.clone(), report.clone());
        TaskGroup::builder()
            .deadline(secs(3))
            .run(|other| async move {
                other.spawn(async move { say("group", inner) });
                ok(())
            })
            .await?;
        let (inner, say) = (group.clone(), report.clone());
        tokio::spawn(async move { say("tokio", inner) }).await?;
        let (inner, say) = (group.clone(), report.clone());
        std::thread::spawn(move || say("thread", inner)).join().unwrap();
        drop(report);
        for _ in 0..5 {
            let (from, left) = recv.recv().await.unwrap();
            assert!(left > secs(59), "{from}: {left:?}");
        }
        assert_eq!(group.live(), 5, "none was cut with whoever spawned it");
        group.cancel(());
        ok(())
    });
    ends(run).await.unwrap();
}

// "spawn from a child while the body has ended": the group waits for the new ones too. G-25.
#[tokio::test(start_paused = true)]
async fn a_child_may_spawn_after_the_body_has_ended() {
    let started = Instant::now();
    let (result, report) = TaskGroup::builder()
        .run_reported(|group| async move {
            let inner = group.clone();
            group.spawn(async move {
                sleep(secs(1)).await;
                let again = inner.clone();
                inner.spawn(async move {
                    sleep(secs(1)).await;
                    again.spawn(sleep(secs(1)));
                });
            });
            ok(())
        })
        .await;
    result.unwrap();
    assert_eq!((started.elapsed(), report.ok), (secs(3), 3));
}

// "A spawn into a closing group is refused: the future is dropped unpolled and its handle says so; the refusal
// is no failure." G-29, G-32, G-75.
#[tokio::test(start_paused = true)]
async fn a_closing_group_refuses_and_drops_the_future_unpolled() {
    let (alive, polled) = (Alive::default(), Arc::new(AtomicBool::new(false)));
    let future = |alive: &Alive| {
        let (guard, polled) = (alive.guard(), polled.clone());
        async move {
            let _guard = guard;
            polled.store(true, Ordering::Relaxed);
            ok(1)
        }
    };
    let run = TaskGroup::builder().run_reported(|group| {
        let (alive, future) = (&alive, &future);
        async move {
            group.cancel("closing");
            let refused = group.task("late").spawn(future(alive));
            assert_eq!((alive.now(), refused.is_finished(), refused.cancel()), (0, true, false));
            // The waiter is cancelled too; in a section it is not.
            let error = cleanup(secs(1), refused).await?.unwrap_err();
            assert!(matches!(&error, HandleError::Refused { task, cancelled: Some(_) } if task == "late"));
            assert!(error.to_string().contains("`late` was refused"), "{error}");
            let inner = group.clone();
            ok(inner)
        }
    });
    let (result, report) = run.await;
    let group = result.unwrap();
    assert_eq!((report.ended(), report.tasks.len()), (0, 0));
    // Cancelled and ended; then one that has ended without a cancel.
    assert!(matches!(group.spawn(future(&alive)).await, Err(HandleError::Refused { .. })));
    let group = TaskGroup::run(|group| async move { ok(group) }).await.unwrap();
    let error = group.spawn(future(&alive)).await.unwrap_err();
    assert!(matches!(error, HandleError::Refused { cancelled: None, .. }));
    assert!(error.to_string().contains("takes no more"), "{error}");
    let blocking = group.spawn_blocking(|_| -> Result<(), TaskError> { unreachable!("refused") });
    assert!(matches!(blocking.await, Err(HandleError::Refused { .. })));
    assert_eq!((alive.now(), polled.load(Ordering::Relaxed), group.live()), (0, false, 0));
}

// A refusal that is passed on in the group that was cancelled is a cancellation of that.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_passed_on_is_no_failure() {
    let result = TaskGroup::run(|group| async move {
        group.cancel("own");
        cleanup(secs(1), group.spawn(async { ok(()) })).await??;
        ok(())
    });
    assert!(result.await.unwrap_err().is_cancelled());
}

// A dropped group refuses too, and what its tasks had deferred or spawned is over with them.
#[tokio::test(start_paused = true)]
async fn a_dropped_group_refuses() {
    let kept = Arc::new(parking_lot::Mutex::new(None));
    let out = kept.clone();
    let mut run = Box::pin(TaskGroup::run(move |group| async move {
        *out.lock() = Some(group.clone());
        pending::<()>().await;
        ok(())
    }));
    assert!(run.as_mut().now_or_never().is_none());
    drop(run);
    let group = kept.lock().take().unwrap();
    let refused = group.spawn(async { ok(()) }).await.unwrap_err();
    assert!(matches!(refused, HandleError::Refused { cancelled: Some(_), .. }), "{refused}");
    assert!(refused.to_string().contains("its owner is gone"), "{refused}");
}

// Where the body or a task panics in a destructor while the group is dropped, the rest is still owned.
#[tokio::test(start_paused = true)]
async fn a_panic_while_it_is_dropped_loses_no_task() {
    let alive = Alive::default();
    let seen = alive.clone();
    let mut run = Box::pin(TaskGroup::run(move |group| async move {
        let _bomb = support::PanicOnDrop("body");
        let guard = seen.guard();
        group.spawn(async move {
            let _guard = guard;
            let _ = pending::<()>().or_cancelled().await;
            let _ = cleanup(secs(2), sleep(secs(1))).await;
        });
        pending::<()>().await;
        ok(())
    }));
    assert!(run.as_mut().now_or_never().is_none());
    tokio::task::yield_now().await;
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(run)));
    assert!(dropped.is_err());
    assert_eq!(alive.now(), 1);
    ends(root().join()).await.unwrap();
    assert_eq!(alive.now(), 0);
}

// A group that is moved to another task belongs to the scope that polls it, and so do those that adopt it.
#[tokio::test(start_paused = true)]
async fn a_moved_group_is_adopted_where_it_is_polled() {
    let alive = Alive::default();
    let seen = alive.clone();
    let (result, report) = TaskGroup::builder()
        .run_reported(|group| async move {
            let mut moved = Box::pin(slow_group(&seen, false));
            assert!(futures::poll!(&mut moved).is_pending());
            let other = group.spawn(async move {
                TaskGroup::run(|_| async move {
                    let _ = tokio::time::timeout(secs(1), moved).await;
                    ok(())
                })
                .await?;
                ok(seen.now())
            });
            ok(other.await?)
        })
        .await;
    assert_eq!(result.unwrap(), 0, "the group in which it was polled has waited");
    assert!(report.adopted.is_empty());
    assert_eq!(alive.now(), 0);
}

// What is adopted is listed with its outcome.
#[tokio::test(start_paused = true)]
async fn adopted_tasks_are_in_the_report_with_their_outcome() {
    let (_, report) = TaskGroup::builder()
        .run_reported(|_| async move {
            let inner = TaskGroup::run(|group| async move {
                group.task("cut").spawn(pending::<()>());
                checkpoint().await?;
                pending::<()>().await;
                ok(())
            });
            let _ = tokio::time::timeout(secs(1), inner).await;
            ok(())
        })
        .await;
    let task = &report.adopted[0].tasks[0];
    assert_eq!(task.name, "cut");
    let Outcome::Cancelled(cancelled) = &task.outcome else { panic!("{task:?}") };
    assert_eq!(cancelled.to_string(), "cancelled: its owner is gone");
}

// A group whose runtime has gone: a task is dropped at once, also where its destructor spawns again. Nothing hangs.
#[test]
fn spawning_after_the_runtime_has_gone_does_not_hang() {
    struct SpawnsAgain(TaskGroup, Alive);
    impl Drop for SpawnsAgain {
        fn drop(&mut self) {
            let guard = self.1.guard();
            drop(self.0.spawn(async move { drop(guard) }));
        }
    }
    let alive = Alive::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let kept = Arc::new(parking_lot::Mutex::new(None));
    let out = kept.clone();
    // Held outside of the runtime, so that the group itself is not gone.
    let mut run = Box::pin(TaskGroup::run(move |group| async move {
        *out.lock() = Some(group);
        pending::<()>().await;
        ok(())
    }));
    {
        let _inside = runtime.enter();
        assert!(run.as_mut().now_or_never().is_none());
    }
    let group = kept.lock().take().unwrap();
    drop(runtime);
    let (ended, again) = (group.clone(), SpawnsAgain(group, alive.clone()));
    drop(ended.spawn(async move { drop(again) }));
    assert_eq!((alive.now(), ended.live()), (0, 0));
}
