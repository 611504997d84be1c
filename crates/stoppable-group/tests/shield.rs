//! `group.shield(fut)`: "the work becomes a task of the group; a waiter that goes away does not stop it".

mod support;

use std::future::pending;

use futures::future::join_all;
use stoppable_group::{HandleError, TaskError, TaskGroup, ok, root, with_timeout};
use stoppable_scope::{Cancelled, OrCancelledExt, Scope, cleanup};
use support::{Alive, Log, ends, ms, secs};
use tokio::time::{Instant, sleep};

// S-16, S-19, S-22: passed through unchanged; done already; a bare future.
#[tokio::test(start_paused = true)]
async fn a_result_passes_through_unchanged() {
    TaskGroup::run(|group| async move {
        assert_eq!(group.shield(async { ok(1) }).await?, 1);
        group.shield(async {}).await?;
        let done = group.shield(async { ok(2) });
        sleep(secs(1)).await;
        assert_eq!(done.await?, 2);
        let error = group.shield(async { Err::<(), TaskError>("E".into()) }).await.unwrap_err();
        assert_eq!(error.failure().unwrap().error().unwrap().to_string(), "E");
        ok(())
    })
    .await
    .expect("whoever waits has heard of the failure, and kept it to himself");
}

// S-20, S-24, B-57: the waiter leaves, the work goes on, the group waits for it.
#[tokio::test(start_paused = true)]
async fn the_work_goes_on_when_its_waiter_leaves() {
    for how in ["timeout", "drop", "task cancelled", "task cut", "unpolled"] {
        let (log, started) = (Log::default(), Instant::now());
        let seen = log.clone();
        TaskGroup::run(|group| async move {
            let commit = group.shield(async move {
                sleep(ms(200)).await;
                seen.add("committed");
            });
            match how {
                "timeout" => assert!(with_timeout(ms(10), commit).await.unwrap_err().is_elapsed()),
                "drop" => drop(tokio::time::timeout(ms(10), commit).await),
                "unpolled" => drop(commit),
                _ => {
                    let waiter = group.spawn(async move {
                        if how == "task cut" {
                            tokio::select! {
                                biased;
                                () = pending::<()>() => {}
                                () = async { drop(commit.await) } => {}
                            }
                        } else {
                            commit.await?;
                        }
                        ok(())
                    });
                    sleep(ms(10)).await;
                    assert!(waiter.shutdown().await.is_err() || how == "task cut");
                    assert_eq!(started.elapsed(), ms(10), "the waiter has left at once");
                }
            }
            assert_eq!(seen_len(&group), 1);
            ok(())
        })
        .await
        .unwrap();
        assert_eq!((log.len(), started.elapsed()), (1, ms(200)), "{how}");
    }

    fn seen_len(group: &TaskGroup) -> usize {
        group.live()
    }
}

// B-55, and "The failure of a shielded task whose waiter has gone is kept in the owner's error, and cancels
// nobody": whether it fails before or after its waiter has gone, by an error or a panic.
#[tokio::test(start_paused = true)]
async fn a_failure_that_nobody_reads_is_the_owners_and_cancels_nobody() {
    for panics in [false, true] {
        for waits in [ms(50), ms(100), ms(150)] {
            let started = Instant::now();
            let result = TaskGroup::run(|group| async move {
                let sibling = group.spawn(async {
                    sleep(secs(1)).or_cancelled().await?;
                    ok(7)
                });
                let work = group.task("work").spawn(async {});
                drop(work);
                let shielded = group.shield(async move {
                    sleep(ms(100)).await;
                    assert!(!panics, "E");
                    Err::<(), TaskError>("E".into())
                });
                // Held, but never awaited; or left by a timeout.
                if waits == ms(50) {
                    let _ = tokio::time::timeout(waits, shielded).await;
                } else {
                    sleep(waits).await;
                    drop(shielded);
                }
                ok(sibling.await?)
            });
            let error = ends(result).await.unwrap_err();
            assert_eq!((error.failures().len(), error.failures()[0].is_panic()), (1, panics));
            assert_eq!(started.elapsed(), secs(1), "nobody was cancelled");
        }
    }
}

// The waiter's to pass on: then it counts once, and cancels as his failure.
#[tokio::test(start_paused = true)]
async fn a_failure_that_is_read_is_the_waiters() {
    let result = TaskGroup::run(|group| async move {
        let inner = group.clone();
        group.spawn(async move {
            inner.shield(async { Err::<(), TaskError>("E".into()) }).await?;
            ok(())
        });
        pending::<()>().await;
        ok(())
    });
    let error = ends(result).await.unwrap_err();
    assert_eq!((error.failures().len(), error.flatten().len()), (1, 1), "{error}");
}

// S-21: all of them survive the cancel of who waits for them together.
#[tokio::test(start_paused = true)]
async fn shields_waited_for_together_survive() {
    let (alive, log) = (Alive::default(), Log::default());
    let seen = log.clone();
    TaskGroup::run(|group| async move {
        let all = join_all((0..5).map(|n| {
            let (guard, log) = (alive.guard(), seen.clone());
            group.shield(async move {
                let _guard = guard;
                sleep(secs(n)).await;
                log.add(n.to_string());
            })
        }));
        let scope = Scope::new();
        let remote = scope.clone();
        drop(tokio::spawn(async move {
            sleep(ms(500)).await;
            remote.cancel(());
        }));
        let results = scope.run(all).await;
        assert!(results.is_err() || results.unwrap().iter().skip(1).all(Result::is_err));
        ok(())
    })
    .await
    .unwrap();
    assert_eq!(log.len(), 5);
}

// "A cancel of the group itself reaches the work like any task"; S-17, S-26: told apart from the waiter.
#[tokio::test(start_paused = true)]
async fn a_cancel_of_the_owner_reaches_the_work() {
    let owner = TaskGroup::run(|group| async move {
        let inner = group.clone();
        let waiter = tokio::spawn(async move { inner.shield(pending::<()>()).await });
        sleep(secs(1)).await;
        group.cancel("R");
        ok(waiter)
    });
    let error = ends(owner).await.unwrap().await.unwrap().unwrap_err();
    assert!(matches!(error, HandleError::Cancelled { .. }), "{error}");
    assert!(error.to_string().contains("cancelled: R"));
}

// "`shield` in a group that is already cancelled answers `Cancelled`", also where the waiter is in a section.
#[tokio::test(start_paused = true)]
async fn a_cancelled_group_starts_nothing() {
    let alive = Alive::default();
    let guard = alive.guard();
    let run = TaskGroup::run(|group| async move {
        group.cancel("R");
        let error = group.shield(async { drop(guard) }).await.unwrap_err();
        assert!(Cancelled::is_in(&error), "{error}");
        let error = cleanup(secs(1), group.shield(async {})).await?.unwrap_err();
        assert!(matches!(&error, HandleError::Cancelled { .. }), "{error}");
        assert!(Cancelled::is_in(&error), "{error}");
        ok(group)
    });
    let group = ends(run).await.unwrap();
    assert_eq!((alive.now(), group.live()), (0, 0));
}

// B-63: a handler that is dropped when its client leaves, with the work in a service group.
#[tokio::test(start_paused = true)]
async fn a_dropped_handler_leaves_no_half_done_state() {
    let (log, started) = (Log::default(), Instant::now());
    let seen = log.clone();
    TaskGroup::builder()
        .name("service")
        .grace(secs(1))
        .run(|service| async move {
            let handler = {
                let (service, log) = (service.clone(), seen.clone());
                async move {
                    let work = service.shield(async move {
                        log.add("stopping");
                        sleep(ms(100)).await;
                        log.add("detached");
                    });
                    work.await
                }
            };
            assert!(tokio::time::timeout(ms(50), handler).await.is_err());
            sleep(ms(10)).await;
            service.cancel("shutdown");
            ok(())
        })
        .await
        .unwrap();
    assert_eq!((log.lines().concat().as_str(), started.elapsed()), ("stoppingdetached", ms(100)));
}

// S-25, S-27: a waiter with a pending cancel does not take the result.
#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_takes_no_result() {
    let result = TaskGroup::run(|group| async move {
        let shield = group.shield(async { Err::<(), TaskError>("E".into()) });
        sleep(secs(1)).await;
        let scope = Scope::new();
        let error = scope
            .run(async {
                scope.cancel(());
                shield.await.unwrap_err()
            })
            .await?;
        assert!(error.is_waiter_cancelled(), "{error}");
        ok(())
    });
    let error = ends(result).await.unwrap_err();
    assert_eq!(error.failures().len(), 1, "what he did not read is the owner's");
}

// A shield may outlive its group.
#[tokio::test(start_paused = true)]
async fn a_shield_may_outlive_its_group() {
    let shield = TaskGroup::run(|group| async move { ok(group.shield(async { ok(3) })) }).await.unwrap();
    assert_eq!(shield.await.unwrap(), 3);
    ends(root().join()).await.unwrap();
}
