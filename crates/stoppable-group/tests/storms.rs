//! Races on several threads, 200 rounds in a row; many tasks; deep groups; both runtimes.

mod support;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stoppable_group::{HandleError, Policy, TaskError, TaskGroup, defer, ok, root, with_timeout};
use stoppable_scope::{OrCancelledExt, Scope, checkpoint, cleanup};
use support::{Alive, ms, runtimes, secs};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

const ROUNDS: usize = 200;

fn threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap()
}

/// Rounds on several threads, none of which may hang.
fn storm<F: Future<Output = ()> + Send + 'static>(round: impl Fn(usize) -> F) {
    threads().block_on(async {
        for n in 0..ROUNDS {
            timeout(secs(20), tokio::spawn(round(n))).await.expect("a round hangs").unwrap();
        }
    });
}

// Spawn while the group is cancelled: each task runs, never starts, or is refused; none is left.
#[test]
fn spawning_races_with_a_cancel() {
    storm(|n| async move {
        let (alive, spawned) = (Alive::default(), Arc::new(AtomicUsize::new(0)));
        let (seen, count) = (alive.clone(), spawned.clone());
        let (result, report) = TaskGroup::builder()
            .run_reported(|group| async move {
                for _ in 0..3 {
                    let (group, seen, count) = (group.clone(), seen.clone(), count.clone());
                    drop(tokio::spawn(async move {
                        for k in 0..20 {
                            let guard = seen.guard();
                            let handle = group.spawn(async move {
                                let _guard = guard;
                                pending::<()>().await;
                            });
                            if !handle.is_finished() {
                                count.fetch_add(1, Ordering::SeqCst);
                            }
                            if k % 4 == 0 {
                                yield_now().await;
                            }
                        }
                    }));
                }
                for _ in 0..n % 7 {
                    yield_now().await;
                }
                group.cancel(());
                ok(())
            })
            .await;
        result.unwrap();
        assert_eq!((report.live, report.ok), (0, 0));
        assert!(report.ended() >= spawned.load(Ordering::SeqCst).saturating_sub(60));
        // What is still to be spawned is refused.
        for _ in 0..1000 {
            if alive.now() == 0 {
                break;
            }
            sleep(ms(1)).await;
        }
        assert_eq!(alive.now(), 0);
    });
}

// Several fail at the same instant: at least one is told, and nobody is left.
#[test]
fn failing_at_the_same_instant() {
    storm(|_| async move {
        let alive = Alive::default();
        let seen = alive.clone();
        let error = TaskGroup::run(|group| async move {
            let barrier = Arc::new(tokio::sync::Barrier::new(4));
            for n in 0..8 {
                let (guard, barrier) = (seen.guard(), barrier.clone());
                group.spawn(async move {
                    let _guard = guard;
                    if n >= 4 {
                        pending::<()>().or_cancelled().await?;
                    }
                    barrier.wait().await;
                    assert!(n % 2 == 0, "boom");
                    Err::<(), TaskError>("E".into())
                });
            }
            pending::<()>().await;
            ok(())
        })
        .await
        .unwrap_err();
        assert!((1..=4).contains(&error.failures().len()), "{error}");
        assert_eq!(alive.now(), 0);
    });
}

// The future of a group is dropped while its tasks end: who adopts it has waited for all.
#[test]
fn dropping_a_group_while_its_tasks_end() {
    storm(|n| async move {
        let alive = Alive::default();
        let seen = alive.clone();
        let (result, report) = TaskGroup::builder()
            .run_reported(|_| async move {
                for _ in 0..3 {
                    let seen = seen.clone();
                    let inner = TaskGroup::run(|group| async move {
                        for k in 0..6 {
                            let guard = seen.guard();
                            group.spawn(async move {
                                let _guard = guard;
                                for _ in 0..k {
                                    yield_now().await;
                                }
                                let _closed = defer((), secs(9), |()| yield_now());
                                cleanup(secs(9), yield_now()).await?;
                                ok(())
                            });
                        }
                        ok(())
                    });
                    tokio::select! {
                        biased;
                        _ = inner => {}
                        () = async { for _ in 0..n % 9 { yield_now().await; } } => {}
                    }
                }
                ok(())
            })
            .await;
        result.unwrap();
        assert_eq!((alive.now(), report.live), (0, 0));
        assert!(report.adopted.iter().all(|adopted| adopted.live == 0));
    });
}

// Groups are dropped outside of any other while others wait for the root.
#[test]
fn the_root_is_joined_from_many_places() {
    let runtime = threads();
    runtime.block_on(async {
        for n in 0..ROUNDS {
            let alive = Alive::default();
            for _ in 0..3 {
                let guard = alive.guard();
                let run = TaskGroup::run(|group| async move {
                    group.spawn(async move {
                        let _guard = guard;
                        let _ = pending::<()>().or_cancelled().await;
                        let _ = cleanup(secs(9), yield_now()).await;
                    });
                    pending::<()>().await;
                    ok(())
                });
                drop(tokio::spawn(async move {
                    tokio::select! {
                        biased;
                        _ = run => {}
                        () = async { for _ in 0..n % 5 { yield_now().await; } } => {}
                    }
                }));
            }
            let joins: Vec<_> = (0..4)
                .map(|k| {
                    tokio::spawn(async move {
                        if k == 0 {
                            let _ = timeout(Duration::from_micros(50), root().join()).await;
                        }
                        timeout(secs(20), root().join()).await.expect("a join hangs").unwrap()
                    })
                })
                .collect();
            for join in joins {
                join.await.unwrap();
            }
            for _ in 0..10_000 {
                if alive.now() == 0 {
                    break;
                }
                yield_now().await;
            }
            timeout(secs(20), root().join()).await.expect("a join hangs").unwrap();
        }
        let report = root().join().await.unwrap();
        let tasks: usize = report.adopted.iter().map(|adopted| adopted.ended()).sum();
        assert!(report.adopted.len() <= ROUNDS * 3, "nothing is told twice");
        assert!(tasks <= ROUNDS * 3);
    });
}

// A guard is dropped while its group ends: the closer runs once, here or above.
#[test]
fn a_deferred_drop_races_with_the_end_of_its_group() {
    storm(|n| async move {
        let closed = Arc::new(AtomicUsize::new(0));
        let seen = closed.clone();
        TaskGroup::run(|_| async move {
            let (send, recv) = tokio::sync::oneshot::channel();
            let dropper = tokio::spawn(async move {
                let guard = recv.await;
                for _ in 0..n % 4 {
                    yield_now().await;
                }
                drop(guard);
            });
            let count = seen.clone();
            TaskGroup::run(|_| async move {
                let guard = defer(count, secs(9), |count| async move {
                    yield_now().await;
                    count.fetch_add(1, Ordering::SeqCst);
                });
                let _ = send.send(guard);
                for _ in 0..n % 3 {
                    yield_now().await;
                }
                ok(())
            })
            .await?;
            dropper.await?;
            ok(())
        })
        .await
        .unwrap();
        assert_eq!(closed.load(Ordering::SeqCst), 1);
    });
}

// A cancel from outside, a failure and the end of the tasks all at once: the result is one of those allowed.
#[test]
fn everything_ends_at_once() {
    storm(|n| async move {
        let scope = Scope::new();
        let remote = scope.clone();
        let alive = Alive::default();
        let seen = alive.clone();
        let result = scope
            .run(TaskGroup::builder().limit(2).run(|group| async move {
                let outside = tokio::spawn(async move {
                    for _ in 0..n % 5 {
                        yield_now().await;
                    }
                    remote.cancel("outside");
                });
                for k in 0..4 {
                    let guard = seen.guard();
                    group.spawn(async move {
                        let _guard = guard;
                        for _ in 0..k {
                            checkpoint().await?;
                        }
                        if n % 3 == 0 && k == 2 { Err(TaskError::from("E")) } else { Ok(()) }
                    });
                }
                let _ = outside.await;
                checkpoint().await?;
                ok(())
            }))
            .await;
        match result {
            Ok(Err(error)) => assert!(error.is_cancelled() || error.failures().len() == 1, "{error}"),
            Ok(Ok(())) => panic!("the body ends as cancelled"),
            Err(_) => {}
        }
        assert_eq!(alive.now(), 0);
    });
}

// A shield's waiter leaves at the instant of the failure: heard, or kept, never lost.
#[test]
fn a_shielded_failure_is_never_lost() {
    storm(|n| async move {
        let heard = Arc::new(AtomicUsize::new(0));
        let seen = heard.clone();
        let result = TaskGroup::run(|group| async move {
            let shield = group.shield(async move {
                for _ in 0..n % 4 {
                    yield_now().await;
                }
                Err::<(), TaskError>("E".into())
            });
            tokio::select! {
                biased;
                end = shield => {
                    assert!(matches!(end, Err(HandleError::Failed(_))));
                    seen.fetch_add(1, Ordering::SeqCst);
                }
                () = async { for _ in 0..n % 5 { yield_now().await; } } => {}
            }
            ok(())
        })
        .await;
        assert_eq!(usize::from(result.is_err()) + heard.load(Ordering::SeqCst), 1);
    });
}

// 20 000 tasks: all end well, all are cut, and half of them fail.
#[test]
fn twenty_thousand_tasks() {
    const TASKS: usize = 20_000;
    for runtime in runtimes() {
        runtime.block_on(async {
            let sum = TaskGroup::run(|group| async move {
                let handles: Vec<_> = (0..TASKS)
                    .map(|n| {
                        group.spawn(async move {
                            yield_now().await;
                            ok(n)
                        })
                    })
                    .collect();
                let mut sum = 0;
                for handle in handles {
                    sum += handle.await?;
                }
                ok(sum)
            });
            assert_eq!(sum.await.unwrap(), TASKS * (TASKS - 1) / 2);

            let alive = Alive::default();
            let seen = alive.clone();
            let (_, report) = TaskGroup::builder()
                .run_reported(|group| async move {
                    for _ in 0..TASKS {
                        let guard = seen.guard();
                        group.spawn(async move {
                            let _guard = guard;
                            pending::<()>().or_cancelled().await?;
                            ok(())
                        });
                    }
                    yield_now().await;
                    group.cancel(());
                    ok(())
                })
                .await;
            assert_eq!((alive.now(), report.ended(), report.live), (0, TASKS, 0));

            let error = TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
                for n in 0..TASKS / 4 {
                    group.spawn(async move { if n % 2 == 0 { Err(TaskError::from("E")) } else { Ok(()) } });
                }
                ok(())
            });
            assert_eq!(error.await.unwrap_err().failures().len(), TASKS / 8);
        });
    }
}

/// Groups in one another, each in a task of the one around or in its body; at the bottom something waits.
fn nest(depth: usize, alive: Alive) -> futures::future::BoxFuture<'static, Result<usize, TaskError>> {
    Box::pin(async move {
        let guard = alive.guard();
        let deepest = TaskGroup::run(|group| async move {
            let _guard = guard;
            if depth == 0 {
                pending::<()>().or_cancelled().await?;
            }
            if depth % 2 == 0 && depth > 0 {
                return ok(nest(depth - 1, alive).await? + 1);
            }
            let inner = group.spawn(nest(depth.saturating_sub(1), alive));
            ok(inner.await? + 1)
        });
        Ok(deepest.await?)
    })
}

// 200 nested groups: cut from the outside, dropped from the outside, and found in one error.
#[test]
fn two_hundred_nested_groups() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let alive = Alive::default();
            let seen = alive.clone();
            let result = with_timeout(ms(200), nest(200, seen)).await;
            assert!(result.unwrap_err().is_elapsed());
            assert_eq!(alive.now(), 0);

            let seen = alive.clone();
            assert!(timeout(ms(200), nest(200, seen)).await.is_err());
            timeout(secs(20), root().join()).await.unwrap().unwrap();
            assert_eq!(alive.now(), 0);
        });
    }
}

// An error that is nested 200 deep is taken apart, printed and dropped.
#[test]
fn an_error_nested_two_hundred_deep() {
    fn fail(depth: usize) -> futures::future::BoxFuture<'static, Result<(), TaskError>> {
        Box::pin(async move {
            TaskGroup::run(|group| async move {
                if depth == 0 {
                    return Err(std::io::Error::other("leaf").into());
                }
                group.spawn(fail(depth - 1));
                ok(())
            })
            .await?;
            ok(())
        })
    }
    let error = threads().block_on(TaskGroup::run(|group| async move {
        group.spawn(fail(200));
        ok(())
    }));
    let error = error.unwrap_err();
    assert_eq!(error.flatten().len(), 1);
    assert!(error.find::<std::io::Error>().is_some());
    assert_eq!(error.to_string().lines().count(), 203);
    let (hit, rest) = error.split::<std::io::Error>();
    assert_eq!((hit.len(), rest.is_none()), (1, true));
}
