//! Deferred closers: "cleanup that happens however we leave, also when the future is dropped half-way".

mod support;

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use stoppable_group::{Deferred, Policy, TaskError, TaskGroup, defer, ok, root, with_timeout};
use stoppable_scope::{Elapsed, OrCancelledExt, Scope, cleanup};
use support::{Log, PanicOnDrop, ends, events, ms, secs};
use tokio::time::{Instant, sleep};

/// A guard whose closer takes `time` and writes its name, and when it was done.
fn guard(log: &Log, name: &'static str, time: u64) -> Deferred<Log> {
    let started = Instant::now();
    defer(log.clone(), secs(9), move |log| async move {
        sleep(ms(time)).await;
        log.add(format!("{name} {}", (started.elapsed()).as_millis()));
    })
}

// "runs however we leave": normal end, error, panic, cut, drop of the future, a lost `select!`, before the
// first await.
#[tokio::test(start_paused = true)]
async fn it_runs_however_a_task_is_left() {
    for way in ["end", "error", "panic", "cut", "answer", "drop", "select", "value"] {
        let log = Log::default();
        let seen = log.clone();
        let (result, report) = TaskGroup::builder()
            .policy(Policy::Supervise)
            .run_reported(|group| async move {
                let task = group.spawn(async move {
                    let guard = guard(&seen, "closed", 10);
                    sleep(ms(1)).await;
                    match way {
                        "error" => return Err::<_, TaskError>("E".into()),
                        "panic" => panic!("boom"),
                        "cut" => pending::<()>().await,
                        "answer" => pending::<()>().or_cancelled().await?,
                        "drop" => {
                            let inner = async move {
                                let _guard = guard;
                                pending::<()>().await;
                            };
                            let _ = tokio::time::timeout(ms(5), inner).await;
                            return Ok(None);
                        }
                        "select" => {
                            let inner = async move {
                                let _guard = guard;
                                pending::<()>().await;
                            };
                            tokio::select! {
                                () = inner => {}
                                () = sleep(ms(5)) => {}
                            }
                            return Ok(None);
                        }
                        "value" => return Ok(Some(guard)),
                        _ => {}
                    }
                    Ok(None)
                });
                sleep(ms(100)).await;
                if way == "value" {
                    drop(task.await?);
                } else {
                    task.cancel();
                }
                ok(())
            })
            .await;
        assert_eq!(log.len(), 1, "{way}: the group has waited for it");
        assert_eq!(result.is_err(), ["error", "panic"].contains(&way), "{way}");
        assert_eq!(report.live, 0, "{way}");
    }
}

// The body of a group, whatever way it goes.
#[tokio::test(start_paused = true)]
async fn it_runs_however_a_body_is_left() {
    for way in ["end", "error", "panic", "timeout", "dropped", "returned"] {
        let log = Log::default();
        let seen = log.clone();
        let group = TaskGroup::run(|_| async move {
            let guard = guard(&seen, "closed", 10);
            match way {
                "error" => return Err::<_, TaskError>("E".into()),
                "panic" => panic!("boom"),
                "timeout" | "dropped" => pending::<()>().await,
                "returned" => return Ok(Some(guard)),
                _ => {}
            }
            Ok(None)
        });
        match way {
            "timeout" => drop(ends(with_timeout(secs(1), group)).await),
            "dropped" => drop(tokio::time::timeout(secs(1), group).await),
            _ => drop(ends(group).await),
        }
        let after_end = ["dropped", "returned"].contains(&way);
        assert_eq!(log.len(), usize::from(!after_end), "{way}");
        ends(root().join()).await.unwrap();
        assert_eq!(log.len(), 1, "{way}: the root waits for what no group is left to own");
    }
}

// "Closers of one task run one after another in the order of the drops", those of different tasks at once.
#[tokio::test(start_paused = true)]
async fn closers_of_one_task_run_in_the_order_of_the_drops() {
    let log = Log::default();
    let seen = log.clone();
    TaskGroup::run(|group| async move {
        let (one, two) = (seen.clone(), seen.clone());
        group.spawn(async move {
            // Locals are dropped in the reverse order.
            let _third = guard(&one, "third", 1);
            let _second = guard(&one, "second", 50);
            let _first = guard(&one, "first", 100);
        });
        group.spawn(async move {
            let _other = guard(&two, "other", 120);
        });
        ok(())
    })
    .await
    .unwrap();
    assert_eq!(log.lines(), ["first 100", "other 120", "second 150", "third 151"]);
}

// "runs as a cleanup section of `limit`": a missed limit, an error and a panic "is in the owner's error and
// cancels nobody"; and those behind still run.
#[tokio::test(start_paused = true)]
async fn what_goes_wrong_in_a_closer_is_in_the_owners_error_and_cancels_nobody() {
    let log = Log::default();
    let seen = log.clone();
    let started = Instant::now();
    let (result, report) = TaskGroup::builder()
        .run_reported(|group| async move {
            let sibling = group.spawn(async {
                sleep(secs(30)).or_cancelled().await?;
                ok(7)
            });
            group.task("owner").spawn(async move {
                let _last = guard(&seen, "last", 1);
                let _error = defer((), secs(1), |()| async { Err::<(), TaskError>("E".into()) });
                let _late = defer((), secs(2), |()| pending::<()>());
                let _bomb = defer((), secs(1), |()| async {
                    sleep(ms(1)).await;
                    assert_eq!(1, 2, "boom");
                });
                let _early = defer((), secs(1), |()| -> std::future::Ready<()> { panic!("early") });
                let _cut_bomb = defer((), secs(1), |()| async {
                    let _bomb = PanicOnDrop("while it is cut");
                    pending::<()>().await;
                });
            });
            ok(sibling.await?)
        })
        .await;
    assert_eq!(log.len(), 1, "the one behind all that");
    assert_eq!(started.elapsed(), secs(30), "nobody was cancelled");
    let error = result.unwrap_err();
    let texts: Vec<_> = error.failures().iter().map(ToString::to_string).collect();
    assert_eq!(error.failures().len(), 5, "{texts:?}");
    assert!(error.failures().iter().all(|failure| failure.name() == "closer of owner"));
    assert!(error.failures().iter().all(|failure| failure.site().file() == file!()));
    assert!(error.failures()[0].downcast_ref::<Elapsed>().is_some(), "{texts:?}");
    assert_eq!(error.failures()[1].panic_message(), Some("early"));
    assert!(error.failures()[2].panic_message().unwrap().contains("boom"));
    assert!(error.failures()[3].downcast_ref::<Elapsed>().is_some());
    assert!(texts[4].contains("failed: E"));
    assert_eq!((report.ok, report.failed), (2, 5));
}

// No request stops a closer, however often it is asked; it starts in a group that is cancelled.
#[tokio::test(start_paused = true)]
async fn a_closer_is_not_cancelled() {
    let log = Log::default();
    let seen = log.clone();
    let started = Instant::now();
    let run = with_timeout(
        secs(1),
        TaskGroup::run(|group| async move {
            group.spawn(async move {
                let _guard = defer(seen, secs(9), |log| async move {
                    for n in 0..3 {
                        sleep(secs(1)).or_cancelled().await.unwrap();
                        log.add(n.to_string());
                    }
                });
                pending::<()>().await;
            });
            sleep(secs(9)).await;
            ok(())
        }),
    );
    assert!(ends(run).await.unwrap_err().is_elapsed());
    assert_eq!(log.len(), 3);
    assert_eq!(started.elapsed(), secs(4), "and the timeout waits for it");
}

// "owner gone -> the nearest living one above it"; "no group -> root".
#[tokio::test(start_paused = true)]
async fn a_closer_goes_to_the_nearest_living_owner() {
    let log = Log::default();
    let seen = log.clone();
    let started = Instant::now();
    let (result, report) = TaskGroup::builder()
        .run_reported(|_| async move {
            // The guard outlives the group in which `defer` was called.
            let bad = TaskGroup::run(|_| async {
                ok(defer((), secs(1), |()| async {
                    sleep(ms(500)).await;
                    Err::<(), TaskError>("E".into())
                }))
            })
            .await?;
            drop(bad);
            let fine = TaskGroup::run(|group| async move {
                ok(group.spawn(async move { ok(guard(&seen, "closed", 500)) }).await?)
            })
            .await?;
            drop(fine);
            ok(())
        })
        .await;
    assert_eq!((log.len(), started.elapsed()), (1, ms(500)));
    assert_eq!((result.unwrap_err().failures().len(), report.failed), (1, 1));
    // None.
    drop(guard(&log, "root", 100));
    assert_eq!(root().live(), 1);
    drop(defer((), secs(1), |()| async { Err::<(), TaskError>("R".into()) }));
    let report = ends(root().join()).await.unwrap();
    assert_eq!((log.len(), report.failed, report.live), (2, 1, 0));
}

// `close` runs it now and gives its result; `disarm` gives the value back.
#[tokio::test(start_paused = true)]
async fn close_gives_the_result_and_disarm_the_value() {
    let log = Log::default();
    let seen = log.clone();
    TaskGroup::run(|_| async move {
        Deferred::close(guard(&seen, "closed", 10)).await?;
        assert_eq!(seen.len(), 1);
        let bad = defer(5, secs(1), |n| async move { Err::<(), TaskError>(format!("E{n}").into()) });
        assert_eq!(*bad, 5);
        assert_eq!(Deferred::close(bad).await.unwrap_err().to_string(), "E5");
        let late = defer((), secs(1), |()| pending::<()>());
        assert!(Deferred::close(late).await.unwrap_err().is::<Elapsed>());
        let zero = defer((), Duration::ZERO, |()| async {});
        assert!(Deferred::close(zero).await.unwrap_err().is::<Elapsed>());
        let mut kept = guard(&seen, "never", 1);
        *kept = Log::default();
        assert_eq!(Deferred::disarm(kept).len(), 0);
        ok(())
    })
    .await
    .unwrap();
    ends(root().join()).await.unwrap();
    assert_eq!(log.len(), 1);
}

// `close` dropped half-way, or before it began, hands the rest over: it is not done twice.
#[tokio::test(start_paused = true)]
async fn a_close_that_is_dropped_hands_the_rest_over() {
    let log = Log::default();
    let seen = log.clone();
    let started = Instant::now();
    TaskGroup::run(|_| async move {
        drop(Deferred::close(guard(&seen, "unpolled", 1)));
        let step = defer(seen, secs(9), |log| async move {
            log.add("begin");
            sleep(secs(2)).await;
            log.add("end");
        });
        assert!(tokio::time::timeout(secs(1), Deferred::close(step)).await.is_err());
        ok(())
    })
    .await
    .unwrap();
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["begin", "end", "unpolled 1"]);
    assert_eq!(started.elapsed(), secs(2));
}

// A cancel does not reach a `close` that runs: it is a section.
#[tokio::test(start_paused = true)]
async fn a_close_that_runs_is_a_section() {
    let log = Log::default();
    let seen = log.clone();
    let run = with_timeout(secs(1), async move {
        Deferred::close(guard(&seen, "closed", 2000)).await?;
        ok(())
    });
    run.await.unwrap();
    assert_eq!(log.lines(), ["closed 2000"]);
}

// A closer may defer in turn, and panic-free drops of the value come with it.
#[tokio::test(start_paused = true)]
async fn a_closer_may_defer() {
    let log = Log::default();
    let seen = log.clone();
    TaskGroup::run(|_| async move {
        let _outer = defer(seen, secs(9), |log| async move {
            let _inner = guard(&log, "inner", 10);
            sleep(ms(10)).await;
            log.add("outer");
        });
        ok(())
    })
    .await
    .unwrap();
    assert_eq!(log.lines(), ["outer", "inner 20"]);
}

// Inside a nested group in a section, in a scope by hand, behind plain tokio::spawn.
#[tokio::test(start_paused = true)]
async fn the_owner_is_the_group_in_which_defer_was_called() {
    let log = Log::default();
    let seen = log.clone();
    TaskGroup::run(|_| async move {
        cleanup(secs(9), async {
            TaskGroup::run(|_| {
                let log = seen.clone();
                async move {
                    Scope::new().run(async move { drop(guard(&log, "inner", 100)) }).await?;
                    ok(())
                }
            })
            .await
        })
        .await??;
        assert_eq!(seen.len(), 1, "the inner group has waited");
        // Moved to a task without scope: the owner stays.
        let moved = guard(&seen, "moved", 100);
        tokio::spawn(async move { drop(moved) }).await?;
        assert_eq!(seen.len(), 1);
        ok(())
    })
    .await
    .unwrap();
    assert_eq!(log.len(), 2);
}

// Where nobody can run it, that is said.
#[test]
fn a_guard_that_is_dropped_without_a_runtime_says_so() {
    let (events, _guard) = events();
    let log = Log::default();
    drop(defer(log.clone(), secs(1), |log| async move { log.add("never") }));
    assert_eq!(log.len(), 0);
    let lines = events.lines();
    assert!(lines.iter().any(|line| line.starts_with("ERROR") && line.contains(file!())), "{lines:?}");
}

// A panic of the code around is no obstacle, and no double panic.
#[tokio::test(start_paused = true)]
async fn it_runs_after_a_panic_outside_of_any_group() {
    let log = Log::default();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _guard = guard(&log, "closed", 1);
        panic!("boom");
    }));
    assert!(panicked.is_err());
    ends(root().join()).await.unwrap();
    assert_eq!(log.len(), 1);
}

// A closer with the maximum as its limit, and one with none: zero never starts it, and says so.
#[tokio::test(start_paused = true)]
async fn limits_of_zero_and_the_maximum_work() {
    let log = Log::default();
    let (zero, max) = (log.clone(), log.clone());
    let error = TaskGroup::run(|_| async move {
        let _max = defer(max, Duration::MAX, |log| async move {
            sleep(secs(1000)).await;
            log.add("max");
        });
        let _zero = defer(zero, Duration::ZERO, |log| async move { log.add("zero") });
        ok(())
    })
    .await
    .unwrap_err();
    assert_eq!((log.lines(), error.failures().len()), (vec!["max".to_owned()], 1));
    assert!(error.find::<Elapsed>().is_some());
}
