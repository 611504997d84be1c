//! R6: failure is prompt and whole.

mod support;

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use stoppable_group::{GroupError, HandleError, Outcome, Policy, TaskError, TaskGroup, ok, with_timeout};
use stoppable_scope::{OrCancelledExt, Reason, checkpoint, cleanup, failure};
use support::{Alive, Log, PanicOnDrop, ends, ms, secs};
use tokio::time::{Instant, sleep};

#[derive(Debug, thiserror::Error)]
#[error("disk {0}")]
struct Disk(u8);

#[derive(Debug, thiserror::Error)]
#[error("net {0}")]
struct Net(u8);

fn texts(error: &GroupError) -> Vec<String> {
    error.failures().iter().map(ToString::to_string).collect()
}

// "The first error or panic cancels the siblings at once", also while the body is busy elsewhere. B-09, B-15.
#[tokio::test(start_paused = true)]
async fn the_first_failure_cancels_at_once_while_the_body_is_busy() {
    for panics in [false, true] {
        let (started, log) = (Instant::now(), Log::default());
        let seen = log.clone();
        let error = TaskGroup::builder()
            .keep_report()
            .run_reported(|group| async move {
                group.task("A").spawn(sleep(ms(10)));
                group.task("B").spawn(async move {
                    sleep(ms(20)).await;
                    assert!(!panics, "boom");
                    Err::<(), TaskError>("boom".into())
                });
                group.task("C").spawn(async move {
                    let reason = sleep(secs(10)).or_cancelled().await.unwrap_err();
                    seen.add(format!("{:?} {}", started.elapsed(), reason.reason()));
                    Err::<(), _>(reason)
                });
                // Elsewhere: no cancel reaches the body here, and it does not look.
                cleanup(secs(1), sleep(ms(500))).await?;
                ok(())
            })
            .await;
        let (result, report) = error;
        assert_eq!(log.lines(), ["20ms its sibling `B` failed"]);
        assert_eq!(started.elapsed(), ms(500));
        let error = result.unwrap_err();
        assert_eq!(error.failures().len(), 1);
        assert_eq!((report.ok, report.failed, report.cancelled), (1, 1, 1));
        let how: Vec<_> =
            report.tasks.iter().map(|task| (task.name.to_string(), task.outcome.is_ok())).collect();
        assert_eq!(how, [("A".into(), true), ("B".into(), false), ("C".into(), false)]);
    }
}

// A body that only waits is interrupted. G-05.
#[tokio::test(start_paused = true)]
async fn a_failure_interrupts_the_body() {
    let started = Instant::now();
    let result = TaskGroup::run(|group| async move {
        for n in 0..3 {
            group.spawn(async move {
                sleep(secs(1)).await;
                Err::<(), _>(Disk(n))
            });
        }
        group.spawn(sleep(secs(9)));
        sleep(secs(9)).await;
        ok(())
    });
    let error = ends(result).await.unwrap_err();
    assert!((1..=3).contains(&error.failures().len()));
    assert!(error.find::<Disk>().is_some());
    assert_eq!(started.elapsed(), secs(1));
}

// "All failures are kept, with task name, spawn site and payload". B-120: the caller's lines, two of them.
#[tokio::test(start_paused = true)]
async fn failures_have_name_site_and_payload() {
    let error = TaskGroup::builder()
        .name("work")
        .policy(Policy::Supervise)
        .run(|group| async move {
            group.task("named").spawn(async { Err::<(), _>(Disk(1)) });
            group.spawn(async { std::panic::panic_any(17_u32) as () });
            group.spawn_value(named_function());
            drop(group.shield(async { Err::<(), _>(Disk(2)) }));
            group.spawn_when_free(async { Err::<(), _>(Disk(3)) }).await?;
            ok(())
        })
        .await
        .unwrap_err();
    let failures = error.failures();
    assert_eq!((error.name().as_str(), failures.len()), ("work", 5));
    assert!(failures.iter().all(|failure| failure.site().file() == file!()), "{error:?}");
    let mut lines: Vec<_> = failures.iter().map(|failure| failure.site().line()).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 5);
    let by = |name: &str| failures.iter().find(|failure| failure.name() == name).unwrap();
    assert_eq!(by("named").downcast_ref::<Disk>().unwrap().0, 1);
    assert!(by("named_function").is_panic(), "an unnamed task is called as its function");
    let odd = failures.iter().find(|f| f.panic_message() == Some("a panic without a text")).unwrap();
    assert_eq!(*odd.take_panic().unwrap().downcast::<u32>().unwrap(), 17);
    assert!(odd.take_panic().is_none(), "a payload is for the first who asks");
    assert!(odd.error().is_none() && by("named").panic_message().is_none());
}

async fn named_function() {
    panic!("in a function")
}

// "it can be taken apart by type (as `except*` does)": also through nested groups, whatever the order.
#[tokio::test(start_paused = true)]
async fn an_error_is_taken_apart_by_type_at_any_depth() {
    for disk_first in [true, false] {
        let make = || async move {
            TaskGroup::builder()
                .name("outer")
                .policy(Policy::Supervise)
                .run(|group| async move {
                    group.task("nested").spawn(
                        TaskGroup::builder().name("inner").policy(Policy::Supervise).run(
                            move |group| async move {
                                let disk = async { Err::<(), TaskError>(Disk(1).into()) };
                                let net = async { Err::<(), TaskError>(Net(2).into()) };
                                if disk_first {
                                    let _ = (group.spawn(disk), group.spawn(net));
                                } else {
                                    let _ = (group.spawn(net), group.spawn(disk));
                                }
                                ok(())
                            },
                        ),
                    );
                    group.spawn(async { Err::<(), _>(Net(3)) });
                    ok(())
                })
                .await
                .unwrap_err()
        };
        let error = make().await;
        assert_eq!((error.find::<Disk>().unwrap().0, error.flatten().len()), (1, 3));
        assert!(error.find::<Net>().is_some() && error.find::<std::io::Error>().is_none());
        let (disk, rest) = error.split::<Disk>();
        assert_eq!(disk.iter().map(|f| f.downcast_ref::<Disk>().unwrap().0).collect::<Vec<_>>(), [1]);
        let rest = rest.unwrap();
        let mut left: Vec<_> = rest.flatten().iter().map(|f| f.downcast_ref::<Net>().unwrap().0).collect();
        left.sort_unstable();
        assert_eq!(left, [2, 3]);
        assert!(rest.failures().iter().any(|failure| failure.name() == "nested"), "the tree keeps its shape");
        let (net, rest) = rest.split::<Net>();
        assert_eq!((net.len(), rest.is_none()), (2, true));
        // A nested error is a type too.
        let (nested, rest) = make().await.split::<GroupError>();
        assert_eq!((nested.len(), rest.unwrap().failures().len()), (1, 1));
        let (none, all) = make().await.split::<std::io::Error>();
        assert_eq!((none.len(), all.unwrap().flatten().len()), (0, 3));
    }
}

// The same with a timeout around the nested group, which is how groups are written.
#[tokio::test(start_paused = true)]
async fn a_nested_error_is_seen_through_a_timeout() {
    let error = TaskGroup::builder()
        .policy(Policy::Supervise)
        .run(|group| async move {
            let fan_out = |disk, net| {
                TaskGroup::builder().policy(Policy::Supervise).run(move |group| async move {
                    group.task("disk").spawn(async move { Err::<(), _>(Disk(disk)) });
                    group.task("net").spawn(async move { Err::<(), _>(Net(net)) });
                    ok(())
                })
            };
            group.task("direct").spawn(with_timeout(secs(1), fan_out(1, 2)));
            group.task("boxed").spawn(with_timeout(secs(1), async move {
                fan_out(3, 4).await?;
                ok(())
            }));
            ok(())
        })
        .await
        .unwrap_err();
    assert_eq!((error.failures().len(), error.flatten().len()), (2, 4), "{error}");
    assert!(error.find::<Net>().is_some());
    let (net, rest) = error.split::<Net>();
    assert_eq!((net.len(), rest.unwrap().flatten().len()), (2, 2));
}

// "prints as a tree".
#[tokio::test(start_paused = true)]
async fn an_error_prints_as_a_tree() {
    let error = TaskGroup::builder()
        .name("outer")
        .policy(Policy::Supervise)
        .run(|group| async move {
            let inner = TaskGroup::builder().name("inner").run(|group| async move {
                group.task("leaf").spawn(async { Err::<(), _>(Disk(1)) });
                ok(())
            });
            group.task("nested").spawn(with_timeout(secs(1), inner));
            sleep(ms(1)).await;
            Err::<(), TaskError>(Net(2).into())
        })
        .await
        .unwrap_err();
    let text = error.to_string();
    let file = file!();
    let text: Vec<_> =
        text.lines().map(|line| line.split(&format!(" ({file}")).next().unwrap().to_owned()).collect();
    assert_eq!(
        text,
        [
            "group `outer`: 2 tasks failed",
            "- task `nested`",
            "  - task `leaf` failed: disk 1",
            "- task `body` failed: net 2",
        ]
    );
    let line = error.to_string().lines().nth(1).unwrap().to_owned();
    assert!(line.ends_with("group `inner`: 1 task failed"), "{line}");
}

// "What a `TaskHandle` gives is a reference to its task's failure: passing it on with `?` does not count it
// twice", from the body, from a sibling, through a nested group, and behind a user's own error.
#[tokio::test(start_paused = true)]
async fn a_failure_that_is_passed_on_counts_once() {
    #[derive(Debug, thiserror::Error)]
    enum Own {
        #[error("load")]
        Load(#[from] HandleError),
        #[error(transparent)]
        Through(HandleError),
    }
    for how in ["body", "sibling", "nested", "context", "own", "transparent"] {
        let error = TaskGroup::run(|group| async move {
            let bad = group.task("bad").spawn(async {
                sleep(secs(1)).await;
                Err::<(), _>(Disk(1))
            });
            match how {
                "body" => bad.await?,
                "sibling" => {
                    group.spawn(bad);
                }
                "nested" => TaskGroup::run(|_| async move { ok(bad.await?) }).await?,
                "context" => anyhow::Context::context(bad.await, "loading")?,
                "own" => bad.await.map_err(Own::Load)?,
                _ => bad.await.map_err(Own::Through)?,
            }
            ok(())
        });
        let error = ends(error).await.unwrap_err();
        assert_eq!(texts(&error), ["task `bad` failed: disk 1"], "{how}");
    }
}

// "All failures are kept": what a nested group adds to a failure that was passed on is not lost.
#[tokio::test(start_paused = true)]
async fn a_failure_that_is_passed_on_hides_no_other() {
    let error = TaskGroup::builder()
        .policy(Policy::Supervise)
        .run(|group| async move {
            let bad = group.task("bad").spawn(async { Err::<(), _>(Disk(1)) });
            TaskGroup::builder()
                .policy(Policy::Supervise)
                .run(|group| async move {
                    group.spawn(bad);
                    group.spawn(async {
                        sleep(ms(1)).await;
                        Err::<(), _>(Net(2))
                    });
                    ok(())
                })
                .await?;
            ok(())
        })
        .await
        .unwrap_err();
    assert!(error.flatten().iter().any(|failure| failure.downcast_ref::<Net>().is_some()), "{error}");
}

// "A task that fails because it was cancelled is not a failure; one whose cleanup fails is." G-69, G-79, G-30.
#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_no_failure_and_an_unclean_one_is() {
    let error = TaskGroup::run(|group| async move {
        group.spawn(async {
            sleep(secs(9)).or_cancelled().await?;
            ok(())
        });
        group.task("unclean").spawn(async {
            match sleep(secs(9)).or_cancelled().await {
                Ok(()) => Ok(()),
                Err(_) => Err(Disk(9)),
            }
        });
        group.task("marked").spawn(async {
            sleep(secs(9)).or_cancelled().await.map_err(failure)?;
            ok(())
        });
        group.task("first").spawn(async {
            sleep(secs(1)).await;
            Err::<(), _>(Net(1))
        });
        ok(())
    });
    let mut found = texts(&ends(error).await.unwrap_err());
    found[1..].sort();
    assert_eq!(found[0], "task `first` failed: net 1");
    assert_eq!(
        found[1..],
        ["task `marked` failed: cancelled: its sibling `first` failed", "task `unclean` failed: disk 9"]
    );
}

// R4: a `Cancelled` that names neither the judge's own scope nor one above it is a failure.
#[tokio::test(start_paused = true)]
async fn a_foreign_cancel_is_a_failure() {
    let error = TaskGroup::run(|_| async {
        let foreign = stoppable_scope::Scope::new();
        foreign.cancel("foreign");
        foreign.check()?;
        ok(())
    })
    .await
    .unwrap_err();
    assert_eq!(texts(&error), ["task `body` failed: cancelled: foreign"]);
}

// G-19, G-79: the body answers the cancel with an error of its own: both are kept.
#[tokio::test(start_paused = true)]
async fn the_body_and_a_child_may_both_fail() {
    for panics in [false, true] {
        let error = TaskGroup::run(|group| async move {
            group.task("child").spawn(async { Err::<(), _>(Disk(1)) });
            let _ = sleep(secs(9)).or_cancelled().await;
            assert!(!panics, "body");
            Err::<(), TaskError>(Net(2).into())
        })
        .await
        .unwrap_err();
        let names: Vec<_> = error.failures().iter().map(|failure| failure.name().to_string()).collect();
        assert_eq!(names, ["child", "body"]);
        assert_eq!(error.failures()[1].is_panic(), panics);
    }
}

// "A panic is a failure with its payload; `resume_panic()` is there for who wants it."
#[tokio::test(start_paused = true)]
async fn a_panic_can_be_resumed() {
    let nested = TaskGroup::run(|group| async move {
        group.spawn(TaskGroup::run(|_| async {
            if true {
                std::panic::panic_any(5_i64);
            }
            ok(())
        }));
        ok(())
    })
    .await
    .unwrap_err();
    let payload = catch_unwind(AssertUnwindSafe(|| nested.resume_panic())).unwrap_err();
    assert_eq!(*payload.downcast::<i64>().unwrap(), 5);
    let plain = TaskGroup::run(|_| async { Err::<(), _>(Disk(1).into()) }).await.unwrap_err();
    assert_eq!(texts(&plain.resume_panic()), ["task `body` failed: disk 1"]);
}

// R1, R6: a panic in a destructor of a task, of its value and of a body that is cut is a failure like any other.
#[tokio::test(start_paused = true)]
async fn panics_of_destructors_are_failures() {
    let cut_child = TaskGroup::run(|group| async move {
        group.spawn(async {
            let _bomb = PanicOnDrop("child");
            pending::<()>().await;
        });
        sleep(ms(1)).await;
        group.cancel(());
        ok(())
    });
    let value = TaskGroup::run(|group| async move {
        group.spawn_value(async { PanicOnDrop("value") });
        ok(())
    });
    let cut_body = TaskGroup::run(|group| async move {
        let _bomb = PanicOnDrop("body");
        group.cancel(());
        pending::<()>().await;
        ok(())
    });
    let unpolled = TaskGroup::run(|group| async move {
        let bomb = PanicOnDrop("unpolled");
        group.spawn(async move {
            let _bomb = bomb;
        });
        group.cancel(());
        ok(())
    });
    for (what, result) in [
        ("child", ends(cut_child).await),
        ("value", ends(value).await),
        ("body", ends(cut_body).await),
        ("unpolled", ends(unpolled).await),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.failures().len(), 1, "{what}");
        assert_eq!(error.failures()[0].panic_message(), Some(what));
    }
}

// G-36: the inner group's failure is caught; the outer one's own still cancels what comes after.
#[tokio::test(start_paused = true)]
async fn swallowing_an_inner_error_does_not_swallow_the_outer_cancel() {
    let error = TaskGroup::run(|group| async move {
        group.task("outer").spawn(async { Err::<(), _>(Disk(1)) });
        let inner = TaskGroup::run(|group| async move {
            group.task("inner").spawn(async { Err::<(), _>(Net(1)) });
            pending::<()>().await;
            ok(())
        })
        .await;
        assert!(inner.is_err());
        checkpoint().await?;
        unreachable!("the outer group has failed");
        #[allow(unreachable_code)]
        ok(())
    });
    assert_eq!(texts(&ends(error).await.unwrap_err()), ["task `outer` failed: disk 1"]);
}

// G-11, G-12, G-14, G-70, G-85: nesting is kept, and a cancelled one adds nothing.
#[tokio::test(start_paused = true)]
async fn nested_groups_nest_their_errors() {
    let error = TaskGroup::builder().name("outer").run(|group| async move {
        group.spawn(sleep(secs(9)));
        group.task("t").spawn(TaskGroup::builder().name("inner").run(|group| async move {
            group.task("leaf").spawn(async { Err::<(), _>(Disk(1)) });
            sleep(secs(9)).await;
            ok(())
        }));
        ok(())
    });
    let error = ends(error).await.unwrap_err();
    assert_eq!(error.failures().len(), 1);
    let inner = error.failures()[0].downcast_ref::<GroupError>().unwrap();
    assert_eq!((inner.name().as_str(), inner.failures().len()), ("inner", 1));
}

// G-26: children that double until one fails: nothing spawned late keeps the group alive.
#[tokio::test(start_paused = true)]
async fn children_that_double_are_stopped_by_a_failure() {
    fn double(group: TaskGroup, alive: Alive) {
        let guard = alive.guard();
        let inner = group.clone();
        group.spawn(async move {
            let _guard = guard;
            sleep(ms(10)).await;
            double(inner.clone(), alive.clone());
            double(inner, alive);
        });
    }
    let alive = Alive::default();
    let seen = alive.clone();
    let error = TaskGroup::run(|group| async move {
        double(group.clone(), seen);
        group.task("killer").spawn(async {
            sleep(ms(85)).await;
            Err::<(), _>(Disk(1))
        });
        ok(())
    });
    assert_eq!(texts(&ends(error).await.unwrap_err()), ["task `killer` failed: disk 1"]);
    assert_eq!(alive.now(), 0);
}

// G-39: a child spawns a sibling that fails at once, and then waits.
#[tokio::test(start_paused = true)]
async fn a_failure_reaches_the_task_that_spawned_it() {
    let error = TaskGroup::run(|group| async move {
        let inner = group.clone();
        group.spawn(async move {
            inner.task("bad").spawn(async { Err::<(), _>(Disk(1)) });
            pending::<()>().await;
        });
        ok(())
    });
    assert_eq!(texts(&ends(error).await.unwrap_err()), ["task `bad` failed: disk 1"]);
}

// B-118: a deliberate cancel is logged below a warning and not as a panic.
#[tokio::test(start_paused = true)]
async fn a_deliberate_cancel_is_no_warning() {
    let (log, _guard) = support::events();
    let (_, report) = TaskGroup::builder()
        .policy(Policy::Supervise)
        .run_reported(|group| async move {
            group.spawn(async { assert!(Instant::now().elapsed() > secs(1), "no") });
            ok(())
        })
        .await;
    assert_eq!(report.failed, 1);
    let (_, report) = TaskGroup::builder()
        .run_reported(|group| async move {
            let aborted = group.spawn(pending::<()>());
            tokio::task::yield_now().await;
            assert!(aborted.cancel());
            let _ = aborted.await;
            ok(())
        })
        .await;
    assert_eq!(report.cancelled, 1);
    assert!(matches!(report.tasks[0].outcome, Outcome::Cancelled(_)));
    assert!(log.lines().iter().all(|line| !line.starts_with("WARN")), "{:?}", log.lines());
}

// R4: "or an error of the user's": the reason can be an error, found as the source of what was cancelled.
#[tokio::test(start_paused = true)]
async fn a_group_can_be_cancelled_with_an_error_as_reason() {
    let error = TaskGroup::run(|group| async move {
        group.cancel(Reason::error(Disk(4)));
        checkpoint().await?;
        ok(())
    })
    .await
    .unwrap_err();
    let Reason::Error(reason) = error.cancelled().unwrap().reason().clone() else { panic!("{error}") };
    let reason: Arc<dyn std::error::Error + Send + Sync> = reason;
    assert_eq!(reason.downcast_ref::<Disk>().unwrap().0, 4);
}
