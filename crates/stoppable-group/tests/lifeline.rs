//! A group that a struct holds: the same rules, without a body.

mod support;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use stoppable_group::{HandleError, Lifeline, Policy, TaskError, TaskGroup, defer, ok, root, with_timeout};
use stoppable_scope::{OrCancelledExt, Reason, Scope, checkpoint, cleanup};
use stoppable_test::{End, Intervention, Sweep};
use support::{Alive, Log, ends, ms, runtimes, secs};
use tokio::time::{Instant, sleep, timeout};

/// A service as one would write it.
struct Mailer {
    tasks: Lifeline,
}

impl Mailer {
    fn send(&self, alive: &Alive, takes: u64) {
        let guard = alive.guard();
        self.tasks.spawn(async move {
            let _guard = guard;
            sleep(ms(takes)).await;
        });
    }
}

// What is under way is finished, nothing new is taken, and after `join` nobody is alive.
#[tokio::test(start_paused = true)]
async fn close_refuses_new_tasks_and_join_waits_for_the_old() {
    let (alive, started) = (Alive::default(), Instant::now());
    let mut mailer = Mailer { tasks: TaskGroup::new() };
    mailer.send(&alive, 100);
    mailer.send(&alive, 300);
    mailer.tasks.close();
    let refused = mailer.tasks.spawn(async { ok(1) }).await.unwrap_err();
    assert!(matches!(refused, HandleError::Refused { cancelled: None, .. }));
    ends(mailer.tasks.join()).await.unwrap();
    assert_eq!((started.elapsed(), alive.now()), (ms(300), 0));
}

// Without `close` what the tasks spawn meanwhile is waited for; after the end all is refused.
#[tokio::test(start_paused = true)]
async fn join_waits_for_what_is_spawned_meanwhile() {
    let mut group = TaskGroup::new();
    let (inner, log) = (TaskGroup::clone(&group), Log::default());
    let seen = log.clone();
    group.spawn(async move {
        sleep(ms(10)).await;
        inner.spawn(async move {
            sleep(ms(10)).await;
            seen.add("child");
        });
    });
    ends(group.join()).await.unwrap();
    assert_eq!(log.lines(), ["child"]);
    assert!(matches!(group.spawn(async {}).await, Err(HandleError::Refused { .. })));
    // Once more is no harm.
    ends(group.join()).await.unwrap();
}

// Nothing in it.
#[tokio::test(start_paused = true)]
async fn an_empty_lifeline_ends_at_once() {
    let mut group = TaskGroup::new();
    assert!(group.join().now_or_never().unwrap().is_ok());
    drop(TaskGroup::new());
    assert_eq!(root().live(), 0);
}

// R6: a failure cancels the siblings at once, also while nobody waits; `join` tells it.
#[tokio::test(start_paused = true)]
async fn a_failure_cancels_the_siblings_and_is_told_by_join() {
    let (alive, mut group) = (Alive::default(), TaskGroup::builder().name("mailer").open());
    let guard = alive.guard();
    group.spawn(async move {
        let _guard = guard;
        pending::<()>().await;
    });
    group.task("smtp").spawn(async {
        sleep(ms(10)).await;
        Err::<(), _>(TaskError::from("refused"))
    });
    sleep(ms(20)).await;
    assert_eq!(alive.now(), 0);
    let error = ends(group.join()).await.unwrap_err();
    assert_eq!((error.name().as_str(), error.failures()[0].name().as_str()), ("mailer", "smtp"));
}

// Policies and limits hold; services end once `join` finds nobody else.
#[tokio::test(start_paused = true)]
async fn a_lifeline_has_policies_limits_and_services() {
    let started = Instant::now();
    let mut group = TaskGroup::builder().policy(Policy::Supervise).limit(1).open();
    group.task("idle").service().spawn(pending::<()>());
    for _ in 0..3 {
        group.spawn(async {
            sleep(secs(1)).await;
            Err::<(), _>(TaskError::from("bad"))
        });
    }
    assert_eq!(ends(group.join()).await.unwrap_err().failures().len(), 3);
    assert_eq!(started.elapsed(), secs(3));
}

// Its own cancel is a good end; cleanup is waited for.
#[tokio::test(start_paused = true)]
async fn a_lifeline_that_was_cancelled_ends_well() {
    let (mut group, started) = (TaskGroup::new(), Instant::now());
    group.spawn(async {
        let _ = pending::<()>().or_cancelled().await;
        cleanup(secs(5), sleep(secs(2))).await?;
        ok(())
    });
    sleep(ms(1)).await;
    group.cancel("shutting down");
    ends(group.join()).await.unwrap();
    assert_eq!(started.elapsed(), ms(2001));
}

// R1: dropped, its tasks are cancelled and adopted by the group in which it was made.
#[tokio::test(start_paused = true)]
async fn a_dropped_lifeline_leaves_its_tasks_to_the_group_around() {
    let (alive, log, started) = (Alive::default(), Log::default(), Instant::now());
    let (guard, seen) = (alive.guard(), log.clone());
    let (_, report) = ends(TaskGroup::builder().run_reported(|_group| async move {
        let lifeline = TaskGroup::new();
        lifeline.spawn(async move {
            let _guard = guard;
            let asked = pending::<()>().or_cancelled().await.unwrap_err();
            seen.add(format!("{:?}", asked.reason()));
            cleanup(secs(5), sleep(secs(1))).await?;
            Err::<(), TaskError>(asked.into())
        });
        sleep(ms(1)).await;
        drop(lifeline);
        ok(())
    }))
    .await;
    assert_eq!(log.lines(), ["OwnerGone"]);
    assert_eq!((alive.now(), started.elapsed()), (0, ms(1001)));
    assert_eq!(report.adopted[0].cancelled, 1);
}

// Outside of any group they go to the root, also when the dropping thread has no runtime.
#[tokio::test(start_paused = true)]
async fn a_lifeline_may_be_dropped_anywhere() {
    let alive = Alive::default();
    let lifeline = TaskGroup::new();
    let guard = alive.guard();
    lifeline.spawn(async move {
        let _guard = guard;
        pending::<()>().await;
    });
    std::thread::spawn(move || drop(lifeline)).join().unwrap();
    ends(root().join()).await.unwrap();
    assert_eq!(alive.now(), 0);
}

// A task takes its scope from its group, whoever spawns it, and not from where the spawner runs.
#[tokio::test(start_paused = true)]
async fn a_spawner_that_is_cancelled_does_not_take_the_tasks_along() {
    let mut group = TaskGroup::new();
    let scope = Scope::named("request");
    let mut task = None;
    let request = async {
        task = Some(group.spawn(async { ok(sleep(ms(10)).or_cancelled().await?) }));
        scope.cancel("client gone");
    };
    let _ = scope.run(request).await;
    ends(group.join()).await.unwrap();
    assert!(task.unwrap().await.is_ok());
}

// While it is awaited it lies below whoever awaits it: his cancel reaches the tasks.
#[tokio::test(start_paused = true)]
async fn a_cancel_of_who_joins_reaches_the_tasks() {
    let (mut group, scope) = (TaskGroup::new(), Scope::named("owner"));
    group.spawn(async { ok(pending::<()>().or_cancelled().await?) });
    let cancel = async {
        sleep(ms(10)).await;
        scope.cancel("enough");
    };
    let (result, ()) = tokio::join!(ends(scope.run(group.join())), cancel);
    let error = result.unwrap().unwrap_err();
    assert_eq!(error.cancelled().unwrap().to_string(), "cancelled: enough");

    let mut group = TaskGroup::new();
    group.spawn(pending::<()>());
    assert!(ends(with_timeout(secs(1), group.join())).await.unwrap_err().is_elapsed());
}

// Who has left the wait is out of it: his later cancel is not theirs, and who drops the lifeline then leaves the
// tasks to the group in which it was made.
#[tokio::test(start_paused = true)]
async fn a_wait_that_was_left_leaves_the_tasks_alone() {
    let (mut group, scope) = (TaskGroup::new(), Scope::named("visitor"));
    let task = group.spawn(async { ok(sleep(secs(1)).or_cancelled().await?) });
    let left = scope.run(async { timeout(ms(10), group.join()).await.is_err() }).await;
    assert!(left.unwrap());
    scope.cancel("visitor gone");
    let late = group.spawn(async { ok(()) });
    ends(group.join()).await.unwrap();
    assert!(task.await.is_ok() && late.await.is_ok());
}

// The winding down is not left open in who has left: he is cut like anybody (R2).
#[tokio::test(start_paused = true)]
async fn who_left_a_join_that_wound_down_can_be_cut() {
    let started = Instant::now();
    let mut lifeline = TaskGroup::new();
    lifeline.spawn(async {
        let _ = pending::<()>().or_cancelled().await;
        cleanup(secs(50), sleep(secs(40))).await?;
        ok(())
    });
    let task = TaskGroup::run(|group| async move {
        let waiter = group.spawn(async move {
            // A foreign timeout drops the wait while the lifeline winds down.
            lifeline.cancel("stop");
            assert!(timeout(ms(10), lifeline.join()).await.is_err());
            pending::<()>().await;
            drop(lifeline);
        });
        sleep(secs(1)).await;
        assert!(waiter.shutdown().await.unwrap_err().is_cancelled());
        assert_eq!(started.elapsed(), secs(1));
        ok(())
    });
    ends(task).await.unwrap();
    ends(root().join()).await.unwrap();
}

// Made in a scope that is cancelled it takes nothing, and that is no failure.
#[tokio::test(start_paused = true)]
async fn a_lifeline_in_a_cancelled_scope_refuses() {
    let scope = Scope::named("outer");
    ends(scope.run(async {
        scope.cancel("too late");
        let mut group = TaskGroup::new();
        let refused = group.spawn(async {}).await.unwrap_err();
        assert!(matches!(refused, HandleError::WaiterCancelled(_) | HandleError::Refused { .. }));
        group.join().await
    }))
    .await
    .unwrap()
    .unwrap();
}

// Its deadline is looked at by who joins, and by a checkpoint.
#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_lifeline() {
    let (mut group, started) = (TaskGroup::builder().deadline(secs(1)).open(), Instant::now());
    let task = group.spawn(pending::<()>());
    ends(group.join()).await.unwrap();
    assert_eq!(started.elapsed(), secs(1));
    match task.await {
        Err(HandleError::Cancelled { cancelled, .. }) => {
            assert!(matches!(cancelled.reason(), Reason::Deadline(_)));
        }
        other => panic!("{other:?}"),
    }

    let group = TaskGroup::builder().deadline(secs(1)).open();
    let task = group.spawn(async {
        loop {
            checkpoint().await?;
            sleep(ms(300)).await;
        }
        #[allow(unreachable_code)]
        ok(())
    });
    assert!(ends(task).await.unwrap_err().is_cancelled());
}

// What is deferred in a task is closed before `join` returns.
#[tokio::test(start_paused = true)]
async fn join_waits_for_closers() {
    let (mut group, log) = (TaskGroup::new(), Log::default());
    let seen = log.clone();
    group.spawn(async move {
        let _conn = defer(seen, secs(2), |log| async move {
            sleep(secs(1)).await;
            log.add("closed");
        });
        pending::<()>().await;
    });
    sleep(ms(1)).await;
    group.cancel(());
    ends(group.join()).await.unwrap();
    assert_eq!(log.lines(), ["closed"]);
}

// Left at every point; there is one, for only the last task wakes who joins.
#[tokio::test(start_paused = true)]
async fn a_join_can_be_left_at_every_point() {
    let alive = Alive::default();
    let swept = Sweep::new(|| {
        let guards = [alive.guard(), alive.guard()];
        async move {
            let mut group = TaskGroup::new();
            for (guard, time) in guards.into_iter().zip([10, 20]) {
                group.spawn(async move {
                    let _guard = guard;
                    sleep(ms(time)).or_cancelled().await?;
                    cleanup(secs(1), sleep(ms(5))).await?;
                    ok(())
                });
            }
            group.join().await
        }
    })
    .run(|round| match round.end {
        End::Finished(Ok(())) => {}
        End::Finished(Err(error)) => assert!(error.is_cancelled(), "{error}"),
        End::Cut => panic!("a group answers by itself"),
        End::Dropped => assert_eq!(round.intervention, Intervention::Drop),
    })
    .await;
    assert_eq!(swept.points(), 3, "{swept:?}");
    ends(root().join()).await.unwrap();
    assert_eq!(alive.now(), 0);
}

// On both runtimes: spawns race with the close; each task is accounted for, and `join` ends.
#[test]
fn spawns_that_race_with_the_close_are_run_or_refused() {
    for runtime in runtimes() {
        runtime.block_on(async {
            for _ in 0..200 {
                let ran = Arc::new(AtomicUsize::new(0));
                let mut lifeline = TaskGroup::new();
                let spawners: Vec<_> = (0..3)
                    .map(|_| {
                        let (group, ran) = (TaskGroup::clone(&lifeline), Arc::clone(&ran));
                        tokio::spawn(async move {
                            let mut refused = 0;
                            for _ in 0..8 {
                                let ran = Arc::clone(&ran);
                                let task = group.spawn(async move {
                                    ran.fetch_add(1, Ordering::Relaxed);
                                });
                                refused += usize::from(task.await.is_err());
                            }
                            refused
                        })
                    })
                    .collect();
                tokio::task::yield_now().await;
                lifeline.close();
                timeout(secs(10), lifeline.join()).await.expect("it hangs").unwrap();
                let ran_by_then = ran.load(Ordering::Relaxed);
                let mut refused = 0;
                for spawner in spawners {
                    refused += spawner.await.unwrap();
                }
                assert_eq!((ran_by_then + refused, lifeline.live()), (24, 0));
            }
        });
    }
}
