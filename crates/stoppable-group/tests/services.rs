//! Service tasks: they do not hold the group open, and end when nobody else is left.

mod support;

use std::future::pending;
use std::time::Duration;

use stoppable_group::{HandleError, Policy, TaskError, TaskGroup, ok, root, with_timeout};
use stoppable_scope::{OrCancelledExt, Reason, Scope, cleanup};
use stoppable_test::{End, Intervention, Sweep};
use support::{Alive, Log, ends, ms, runtimes, secs};
use tokio::time::{Instant, sleep};

// It lives as long as the body and every other task, and no longer.
#[tokio::test(start_paused = true)]
async fn a_service_outlives_the_body_and_all_tasks() {
    let (log, started) = (Log::default(), Instant::now());
    let seen = log.clone();
    let (value, report) = ends(TaskGroup::builder().run_reported(|group| async move {
        group.task("heartbeat").service().spawn(async move {
            let ended = pending::<()>().or_cancelled().await;
            seen.add(format!("{:?} after {:?}", ended.unwrap_err().reason(), started.elapsed()));
        });
        group.spawn(async { sleep(secs(2)).await });
        sleep(secs(1)).await;
        ok("value")
    }))
    .await;
    assert_eq!(value.unwrap(), "value");
    assert_eq!(log.lines(), ["GroupEnded after 2s"]);
    assert_eq!((started.elapsed(), report.live), (secs(2), 0));
}

// It is asked to stop, then cancelled, and its cleanup is waited for.
#[tokio::test(start_paused = true)]
async fn the_cleanup_of_a_service_is_waited_for() {
    let (alive, started) = (Alive::default(), Instant::now());
    let guard = alive.guard();
    ends(TaskGroup::run(|group| async move {
        group.task("listener").service().spawn(async move {
            let _guard = guard;
            Scope::current().unwrap().stopping().await;
            assert!(Scope::current().unwrap().is_stopping());
            cleanup(secs(5), sleep(secs(3))).await?;
            ok(())
        });
        sleep(secs(1)).await;
        ok(())
    }))
    .await
    .unwrap();
    assert_eq!((started.elapsed(), alive.now()), (secs(4), 0));
}

// A group of services only is one whose body has ended.
#[tokio::test(start_paused = true)]
async fn a_group_of_services_alone_ends() {
    let (result, report) = ends(TaskGroup::builder().run_reported(|group| async move {
        for _ in 0..3 {
            group.task("idle").service().spawn(pending::<()>());
        }
        ok(())
    }))
    .await;
    assert!(result.is_ok());
    assert_eq!((report.not_started + report.cancelled, report.live), (3, 0));
}

// One that ends well leaves the others alone; one that fails is a failure like any other.
#[tokio::test(start_paused = true)]
async fn a_service_that_fails_cancels_its_siblings() {
    let ended_well = ends(TaskGroup::run(|group| async move {
        group.task("warm-up").service().spawn(async {});
        ok(group.spawn(async { sleep(secs(1)).await }).await?)
    }));
    assert!(ended_well.await.is_ok());

    let started = Instant::now();
    let error = ends(TaskGroup::run(|group| async move {
        group.task("cache").service().spawn(async {
            sleep(secs(1)).await;
            Err::<(), _>(TaskError::from("gone"))
        });
        pending::<()>().await;
        ok(())
    }))
    .await
    .unwrap_err();
    assert_eq!(error.failures()[0].name(), "cache");
    assert_eq!(started.elapsed(), secs(1));
}

// What fails while it is wound down counts too, also a panic.
#[tokio::test(start_paused = true)]
async fn a_failure_of_a_service_at_the_end_is_in_the_error() {
    for panics in [false, true] {
        let error = ends(TaskGroup::run(move |group| async move {
            group.task("flusher").service().spawn(async move {
                let _ = pending::<()>().or_cancelled().await;
                assert!(!panics, "flush");
                Err::<(), _>(TaskError::from("flush"))
            });
            sleep(ms(1)).await;
            ok(())
        }))
        .await
        .unwrap_err();
        assert_eq!((error.failures()[0].name().as_str(), error.failures().len()), ("flusher", 1));
    }
}

// Its handle tells why it ended; that is a cancellation.
#[tokio::test(start_paused = true)]
async fn the_handle_of_a_service_tells_that_the_group_has_ended() {
    let (send, receive) = tokio::sync::oneshot::channel();
    ends(TaskGroup::run(|group| async move {
        let _ = send.send(group.task("idle").service().spawn(pending::<()>()));
        sleep(ms(1)).await;
        ok(())
    }))
    .await
    .unwrap();
    match receive.await.unwrap().await {
        Err(HandleError::Cancelled { cancelled, .. }) => {
            assert!(matches!(cancelled.reason(), Reason::GroupEnded));
        }
        other => panic!("{other:?}"),
    }
}

// A service may spawn tasks, also in its last moments: they are waited for.
#[tokio::test(start_paused = true)]
async fn a_task_that_a_service_spawns_holds_the_group_open() {
    let (log, started) = (Log::default(), Instant::now());
    let seen = log.clone();
    ends(TaskGroup::run(|group| async move {
        let inner = group.clone();
        group.task("acceptor").service().spawn(async move {
            let _ = pending::<()>().or_cancelled().await;
            inner.spawn(async move {
                sleep(secs(5)).await;
                seen.add("last request");
            });
        });
        sleep(ms(1)).await;
        ok(())
    }))
    .await
    .unwrap();
    assert_eq!((log.len(), started.elapsed()), (1, ms(5001)));
}

// It takes no place of a limit: it would never give it back, and the group could never end.
#[tokio::test(start_paused = true)]
async fn a_service_takes_no_place() {
    let value = ends(TaskGroup::builder().limit(1).run(|group| async move {
        group.task("one").service().spawn(pending::<()>());
        group.task("two").service().spawn_when_free(pending::<()>()).await?;
        ok(group.spawn(async { ok(7) }).await?)
    }));
    assert_eq!(value.await.unwrap(), 7);
}

// However it is spawned.
#[tokio::test]
async fn a_blocking_service_ends_by_its_flag() {
    let value = ends(TaskGroup::run(|group| async move {
        group.task("thread").service().spawn_blocking(|stop| {
            while !stop.is_cancelled() {
                std::thread::sleep(ms(1));
            }
        });
        group.task("value").service().spawn_value(pending::<u8>());
        tokio::task::yield_now().await;
        ok(7)
    }));
    assert_eq!(value.await.unwrap(), 7);
}

// That a service was wound down is no disturbance: the value counts, although a request comes meanwhile.
#[tokio::test(start_paused = true)]
async fn a_cancel_while_the_services_wind_down_leaves_the_value() {
    for answers_well in [true, false] {
        let scope = Scope::named("outer");
        let cancel = async {
            sleep(ms(500)).await;
            scope.cancel("meanwhile");
        };
        let run = scope.run(TaskGroup::run(move |group| async move {
            group.task("listener").service().spawn(async move {
                let asked = pending::<()>().or_cancelled().await;
                cleanup(secs(2), sleep(secs(1))).await?;
                if answers_well { Ok(()) } else { asked.map_err(TaskError::from) }
            });
            sleep(ms(1)).await;
            ok(7)
        }));
        let (value, ()) = tokio::join!(ends(run), cancel);
        assert_eq!(value.unwrap().unwrap(), 7, "{answers_well}");
    }
}

// A request that was there first is answered by the services as by everybody.
#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_services() {
    let result = with_timeout(
        secs(1),
        TaskGroup::run(|group| async move {
            group.task("idle").service().spawn(pending::<()>());
            pending::<()>().await;
            ok(())
        }),
    );
    assert!(ends(result).await.unwrap_err().is_elapsed());
}

// Under supervision a failed service is listed, and the others go on.
#[tokio::test(start_paused = true)]
async fn a_supervised_group_lives_on_without_its_service() {
    let started = Instant::now();
    let error = ends(TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
        group.task("cache").service().spawn(async { Err::<(), _>(TaskError::from("gone")) });
        sleep(secs(2)).await;
        ok(())
    }))
    .await
    .unwrap_err();
    assert_eq!((error.failures().len(), started.elapsed()), (1, secs(2)));
}

// Left at every point, no service stays behind.
#[tokio::test(start_paused = true)]
async fn a_group_with_services_can_be_left_at_every_point() {
    let alive = Alive::default();
    let swept = Sweep::new(|| {
        let guards = [alive.guard(), alive.guard()];
        TaskGroup::run(|group| async move {
            let [service, task] = guards;
            group.task("service").service().spawn(async move {
                let _guard = service;
                let _ = pending::<()>().or_cancelled().await;
                cleanup(secs(1), sleep(ms(5))).await?;
                ok(())
            });
            group.spawn(async move {
                let _guard = task;
                sleep(ms(10)).await;
            });
            sleep(ms(5)).or_cancelled().await?;
            ok(7)
        })
    })
    .run(|round| match round.end {
        End::Finished(Ok(value)) => assert_eq!(value, 7),
        End::Finished(Err(error)) => assert!(error.is_cancelled(), "{error}"),
        End::Cut => panic!("a group answers by itself"),
        End::Dropped => assert_eq!(round.intervention, Intervention::Drop),
    })
    .await;
    assert!(swept.points() > 6, "{swept:?}");
    ends(root().join()).await.unwrap();
    assert_eq!(alive.now(), 0);
}

// Services that come from outside while the group ends: refused or ended, and the group always ends.
#[test]
fn services_that_come_at_the_end_do_not_hold_the_group() {
    for runtime in runtimes() {
        runtime.block_on(async {
            for _ in 0..200 {
                let (send, receive) = tokio::sync::oneshot::channel::<TaskGroup>();
                let outside = tokio::spawn(async move {
                    let group = receive.await.unwrap();
                    for _ in 0..8 {
                        drop(group.task("late").service().spawn(pending::<()>()));
                        tokio::task::yield_now().await;
                    }
                });
                let group = TaskGroup::run(|group| async move {
                    group.task("early").service().spawn(pending::<()>());
                    let _ = send.send(group);
                    tokio::task::yield_now().await;
                    ok(())
                });
                tokio::time::timeout(Duration::from_secs(10), group).await.expect("it hangs").unwrap();
                outside.await.unwrap();
            }
        });
    }
}
