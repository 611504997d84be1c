//! "Leaving a group", sentence by sentence, and the end of each way out: R1, "after Ok, Err, panic, timeout
//! or cancel the number of live tasks is 0".

mod support;

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use stoppable_group::{GroupError, HandleError, Policy, TaskError, TaskGroup, ok, with_timeout};
use stoppable_scope::{
    Cancelled, Deadline, OrCancelledExt, Reason, Scope, TimeoutError, checkpoint, cleanup,
};
use support::{Alive, PanicOnDrop, ends, ms, secs};
use tokio::time::{Instant, sleep};

/// Spawns `count` tasks that wait for ever, stoppable and plain in turn.
fn waiters(group: &TaskGroup, alive: &Alive, count: usize) {
    for n in 0..count {
        let guard = alive.guard();
        group.spawn(async move {
            let _guard = guard;
            if n % 2 == 0 {
                pending::<()>().or_cancelled().await?;
            }
            pending::<()>().await;
            ok(())
        });
    }
}

fn error(text: &'static str) -> TaskError {
    text.into()
}

fn text<T>(result: &Result<T, GroupError>) -> String {
    match result {
        Ok(_) => "ok".into(),
        Err(error) if error.is_cancelled() => error.cancelled().unwrap().to_string(),
        Err(error) => error.failures().iter().map(ToString::to_string).collect::<Vec<_>>().join(" + "),
    }
}

// R1: `TaskGroup::run` returns after all its tasks have ended. G-01, G-02.
#[tokio::test(start_paused = true)]
async fn a_group_waits_for_all_its_tasks() {
    let started = Instant::now();
    let alive = Alive::default();
    let seen = alive.clone();
    let value = TaskGroup::run(|group| async move {
        for n in 1..=3 {
            let guard = seen.guard();
            group.spawn(async move {
                let _guard = guard;
                sleep(secs(n)).await;
            });
        }
        sleep(ms(1500)).await;
        assert_eq!((group.live(), seen.now()), (2, 2));
        ok("value")
    });
    assert_eq!(ends(value).await.unwrap(), "value");
    assert_eq!((started.elapsed(), alive.now()), (secs(3), 0));
}

// R1: after every way out the number of live tasks is 0.
#[tokio::test(start_paused = true)]
async fn nothing_lives_after_any_way_out() {
    for way in [
        "error of the body",
        "error of a child",
        "panic of the body",
        "panic of a child",
        "panic of a destructor of a child",
        "panic of a destructor of the body",
        "own cancel",
        "own cancel from a child",
        "own deadline",
        "panic before the body is a future",
    ] {
        let (alive, started) = (Alive::default(), Instant::now());
        let seen = alive.clone();
        let handle: Arc<parking_lot::Mutex<Option<TaskGroup>>> = Arc::default();
        let kept = handle.clone();
        let mut builder = TaskGroup::builder();
        if way == "own deadline" {
            builder = builder.deadline(secs(1));
        }
        let result = ends(builder.run(|group| {
            *kept.lock() = Some(group.clone());
            waiters(&group, &seen, 4);
            assert!(way != "panic before the body is a future", "early");
            async move {
                let inner = group.clone();
                sleep(secs(1)).await;
                match way {
                    "error of the body" => return Err(error("body")),
                    "error of a child" => {
                        group.spawn(async { Err::<(), _>(error("child")) });
                    }
                    "panic of the body" => panic!("boom"),
                    "panic of a child" => {
                        group.spawn(async {
                            if true {
                                panic!("boom");
                            }
                        });
                    }
                    "panic of a destructor of a child" => {
                        group.spawn(async {
                            let _bomb = PanicOnDrop("drop");
                            sleep(ms(1)).await;
                        });
                    }
                    "panic of a destructor of the body" => {
                        let _bomb = PanicOnDrop("drop");
                        return Ok(());
                    }
                    "own cancel" => group.cancel("enough"),
                    "own cancel from a child" => {
                        group.spawn(async move { inner.cancel(()) });
                    }
                    _ => {}
                }
                pending::<()>().await;
                Ok(())
            }
        }))
        .await;
        let group = handle.lock().take().unwrap();
        assert!(result.is_err(), "{way}");
        assert_eq!((alive.now(), group.live()), (0, 0), "{way}");
        assert!(started.elapsed() <= ms(1001), "{way}");
        let cancelled = result.unwrap_err().is_cancelled();
        assert_eq!(cancelled, way.starts_with("own"), "{way}");
    }
}

// R1: the same from outside: a timeout, a limit of zero, a cancel while the body runs and while it joins.
#[tokio::test(start_paused = true)]
async fn nothing_lives_after_a_timeout_or_a_cancel_from_outside() {
    let alive = Alive::default();
    for (limit, body_waits) in [(secs(0), true), (secs(1), true), (secs(1), false)] {
        let started = Instant::now();
        let seen = alive.clone();
        let run = TaskGroup::run(|group| async move {
            waiters(&group, &seen, 4);
            if body_waits {
                pending::<()>().await;
            }
            ok(())
        });
        assert!(ends(with_timeout(limit, run)).await.unwrap_err().is_elapsed());
        assert_eq!((alive.now(), started.elapsed()), (0, limit));
    }
    for body_waits in [true, false] {
        let scope = Scope::new();
        let remote = scope.clone();
        let started = Instant::now();
        tokio::spawn(async move {
            sleep(secs(1)).await;
            remote.cancel("leave");
        });
        let seen = alive.clone();
        let run = scope.run(TaskGroup::run(|group| async move {
            waiters(&group, &seen, 4);
            if body_waits {
                pending::<()>().await;
            }
            ok(())
        }));
        assert_eq!(text(&ends(run).await.unwrap()), "cancelled: leave");
        assert_eq!((alive.now(), started.elapsed()), (0, secs(1)));
    }
}

// "Wait for every task, whatever happens": also for one in a cleanup section. G-50: later requests change nothing.
#[tokio::test(start_paused = true)]
async fn a_failed_group_waits_for_slow_cleanup_whatever_is_asked_meanwhile() {
    let scope = Scope::new();
    let remote = scope.clone();
    let started = Instant::now();
    let result = scope
        .run(async {
            let result = TaskGroup::run(|group| async move {
                group.spawn(async {
                    let answer = pending::<()>().or_cancelled().await;
                    cleanup(secs(5), sleep(secs(2))).await?;
                    answer?;
                    ok(())
                });
                group.task("bad").spawn(async {
                    sleep(secs(1)).await;
                    Err::<(), _>(error("E"))
                });
                group.spawn(async move {
                    cleanup(secs(9), sleep(ms(1500))).await?;
                    remote.cancel("first");
                    remote.cancel("second");
                    ok(())
                });
                ok(())
            })
            .await;
            // "a request from outside stays pending for the next wait".
            (text(&result), checkpoint().await.unwrap_err().to_string())
        })
        .await;
    let (result, next) = result.unwrap();
    assert_eq!((result.as_str(), next.as_str()), ("task `bad` failed: E", "cancelled: first"));
    assert_eq!((started.elapsed(), scope.cancelling()), (secs(3), 2));
}

// "any failure gives `GroupError` (tasks in the order in which they ended, the body last)".
#[tokio::test(start_paused = true)]
async fn failures_stand_in_the_order_of_their_ends_and_the_body_last() {
    let result: Result<(), _> = TaskGroup::run(|group| async move {
        for (name, section) in [("slow", 2), ("quick", 1)] {
            group.task(name).spawn(async move {
                let _ = pending::<()>().or_cancelled().await;
                cleanup(secs(9), sleep(secs(section))).await?;
                Err::<(), _>(error("unclean"))
            });
        }
        sleep(secs(1)).await;
        Err(error("body"))
    })
    .await;
    assert_eq!(
        text(&result),
        "task `quick` failed: unclean + task `slow` failed: unclean + task `body` failed: body"
    );
}

// G-09, G-62: "one failure stays an aggregate of one", also the body's.
#[tokio::test(start_paused = true)]
async fn the_error_of_the_body_is_wrapped_too() {
    let result = TaskGroup::run(|_| async { Err::<(), _>(error("E")) }).await;
    let error = result.unwrap_err();
    assert_eq!((error.failures().len(), error.failures()[0].name().as_str()), (1, "body"));
    assert_eq!(error.failures()[0].site().file(), file!());
}

// "if the body and every task ended Ok, and none of them answered, was cut or never ran, the body's value,
// whatever was requested": the request stays pending for the next wait.
#[tokio::test(start_paused = true)]
async fn an_undisturbed_group_keeps_its_value_whatever_was_requested() {
    let scope = Scope::new();
    let inner = scope.clone();
    let run = scope.run(async {
        let value = TaskGroup::run(|group| async move {
            let cancel = inner.clone();
            group.spawn(async move { cancel.cancel("late") });
            ok(7)
        })
        .await
        .unwrap();
        (value, checkpoint().await.is_err())
    });
    assert_eq!(run.await.unwrap(), (7, true));
}

// The same with a request that was there before: enter and idle exit are not cancellation points. G-81, and
// "a group's body gets its first poll whatever was requested".
#[tokio::test(start_paused = true)]
async fn a_group_in_a_cancelled_scope_polls_its_body_once() {
    let scope = Scope::new();
    let run = scope.run(async {
        scope.cancel("before");
        let first = TaskGroup::run(|_| async { ok(1) }).await;
        let polled = AtomicBool::new(false);
        let second = TaskGroup::run(|_| async {
            polled.store(true, Ordering::Relaxed);
            pending::<()>().await;
            ok(2)
        })
        .await;
        (first.unwrap(), polled.load(Ordering::Relaxed), text(&second))
    });
    assert_eq!(run.await.unwrap(), (1, true, "cancelled: before".into()));
}

// "else a request from outside gives an error that `is_cancelled`, with the outer reason": the body has a
// value, but a task answered, was cut, or never ran. G-06, G-49.
#[tokio::test(start_paused = true)]
async fn a_disturbed_group_gives_the_outer_reason_although_the_body_has_a_value() {
    for how in ["answers", "is cut", "never runs", "answers and ends well", "body answers and ends well"] {
        let scope = Scope::new();
        let remote = scope.clone();
        let result = scope.run(TaskGroup::run(|group| async move {
            let cancel = remote.clone();
            group.spawn(async move {
                sleep(secs(1)).await;
                cancel.cancel("outer");
                ok(())
            });
            match how {
                "answers" => drop(group.spawn(pending::<()>().or_cancelled())),
                "is cut" => drop(group.spawn(pending::<()>())),
                "answers and ends well" => drop(group.spawn(async {
                    let _ = pending::<()>().or_cancelled().await;
                })),
                "body answers and ends well" => drop(pending::<()>().or_cancelled().await),
                _ => {
                    remote.cancel("outer");
                    // Spawned before the request, not polled before it.
                }
            }
            ok(1)
        }));
        let result = ends(result).await.unwrap();
        if how == "never runs" {
            // The cancelling task itself never ran.
            assert_eq!(text(&result), "cancelled: outer", "{how}");
            continue;
        }
        assert_eq!(text(&result), "cancelled: outer", "{how}");
        let cancelled = result.unwrap_err().cancelled().unwrap().clone();
        assert_eq!(cancelled.scope(), scope.id());
    }
}

// "only the group's own cancel gives the body's value if there is one, else cancelled by itself".
// G-42, G-44, B-05.
#[tokio::test(start_paused = true)]
async fn after_its_own_cancel_a_group_gives_the_value_or_says_so() {
    let started = Instant::now();
    let value = TaskGroup::run(|group| async move {
        waiters(&group, &Alive::default(), 4);
        sleep(ms(1)).await;
        group.cancel("done");
        group.cancel("again");
        ok(5)
    });
    assert_eq!(ends(value).await.unwrap(), 5);
    let none = TaskGroup::run(|group| async move {
        group.cancel("done");
        pending::<()>().await;
        ok(5)
    });
    assert_eq!(text(&ends(none).await), "cancelled: done");
    let answered = TaskGroup::run(|group| async move {
        group.cancel("done");
        checkpoint().await?;
        ok(5)
    });
    assert_eq!(text(&ends(answered).await), "cancelled: done");
    let child = TaskGroup::run(|group| async move {
        let own = group.clone();
        group.spawn(async move {
            own.cancel("child");
            let late = own.spawn(pending::<()>());
            assert!(matches!(late.await, Err(HandleError::WaiterCancelled(_))));
            pending::<()>().await;
        });
        ok(6)
    });
    assert_eq!(ends(child).await.unwrap(), 6);
    assert_eq!(started.elapsed(), ms(1));
}

// B-04: both the group and the scope around it are cancelled: the outer one is told, and reached.
#[tokio::test(start_paused = true)]
async fn the_outer_cancel_is_not_hidden_by_the_groups_own() {
    for outer_first in [false, true] {
        let scope = Scope::new();
        let run = scope.run(async {
            let result = TaskGroup::run(|group| {
                let scope = &scope;
                async move {
                    if outer_first {
                        scope.cancel("outer");
                    }
                    group.cancel("own");
                    scope.cancel("outer");
                    pending::<()>().await;
                    ok(())
                }
            })
            .await;
            assert_eq!(text(&result), "cancelled: outer");
            sleep(secs(1)).or_cancelled().await
        });
        assert!(run.await.unwrap().is_err());
    }
}

// "with neither, the body's value (a task cancelled by its handle, or refused, is no failure)". B-10.
#[tokio::test(start_paused = true)]
async fn tasks_that_were_cancelled_by_their_handle_are_no_failure() {
    let started = Instant::now();
    let result = TaskGroup::builder()
        .run_reported(|group| async move {
            let one = group.spawn(async {
                sleep(ms(50)).await;
                ok(1)
            });
            let two = group.spawn(pending::<()>());
            let three = group.spawn(async {
                sleep(ms(50)).await;
                ok(3)
            });
            sleep(ms(10)).await;
            assert!(two.shutdown().await.unwrap_err().is_cancelled());
            ok(one.await? + three.await?)
        })
        .await;
    let (value, report) = result;
    assert_eq!((value.unwrap(), report.ok, report.cancelled, report.failed), (4, 2, 1, 0));
    assert_eq!(started.elapsed(), ms(50));
}

// "No request of its own is left behind": B-02, G-35, G-40.
#[tokio::test(start_paused = true)]
async fn no_request_of_the_group_is_left_behind() {
    let started = Instant::now();
    let scope = Scope::new();
    let inner = scope.clone();
    scope
        .run(async move {
            for round in 1..=3 {
                let result = TaskGroup::run(|group| async move {
                    group.spawn(async {
                        sleep(ms(10)).await;
                        Err::<(), _>(error("E"))
                    });
                    let _ = pending::<()>().or_cancelled().await;
                    ok(7)
                })
                .await;
                assert_eq!(result.unwrap_err().failures().len(), 1);
                assert_eq!(inner.cancelling(), 0);
                assert!(!Scope::current().unwrap().is_cancelled());
                sleep(ms(50)).or_cancelled().await.unwrap();
                assert_eq!(started.elapsed(), ms(60) * round);
            }
        })
        .await
        .unwrap();
}

// B-13: the scope around is cancelled and in the same poll the body fails: exactly that failure, and the
// outer request stands. G-37, G-51.
#[tokio::test(start_paused = true)]
async fn a_failure_wins_over_a_cancel_and_the_cancel_stays_pending() {
    let scope = Scope::new();
    let run = scope.run(async {
        let result = TaskGroup::run(|_| async {
            scope.cancel("outer");
            Err::<(), _>(error("E"))
        })
        .await;
        assert_eq!(text(&result), "task `body` failed: E");
        assert!(scope.is_cancelled());
        checkpoint().await
    });
    assert!(run.await.unwrap().is_err());
}

// G-17: no children. G-57: the last child ends and the outer is cancelled in the same step: the value is kept.
#[tokio::test(start_paused = true)]
async fn an_empty_group_answers_with_its_body() {
    let scope = Scope::new();
    let remote = scope.clone();
    let run = scope.run(TaskGroup::run(|_| async move {
        remote.cancel("R");
        checkpoint().await?;
        ok(())
    }));
    assert_eq!(text(&run.await.unwrap()), "cancelled: R");
}

// G-61: in a timeout that fires while the group unwinds, the failure comes through.
#[tokio::test(start_paused = true)]
async fn a_failure_is_not_turned_into_a_timeout() {
    let run = with_timeout(
        secs(2),
        TaskGroup::run(|group| async move {
            group.spawn(async {
                let _ = pending::<()>().or_cancelled().await;
                let _ = cleanup(secs(9), sleep(secs(3))).await;
            });
            sleep(secs(1)).await;
            Err::<(), _>(error("E"))
        }),
    );
    let started = Instant::now();
    match ends(run).await {
        Err(TimeoutError::Failed(error)) => assert_eq!(error.failures().len(), 1),
        other => panic!("{other:?}"),
    }
    assert_eq!(started.elapsed(), secs(4));
}

// B-27: "An error that is not a cancellation is never replaced by one".
#[tokio::test(start_paused = true)]
async fn an_unclean_end_during_a_timeout_is_the_error() {
    let run = with_timeout(
        ms(50),
        TaskGroup::run(|group| async move {
            group.spawn(async {
                let _ = pending::<()>().or_cancelled().await;
                cleanup(secs(1), sleep(ms(10))).await?;
                Err::<(), _>(error("unclean"))
            });
            ok(())
        }),
    );
    let started = Instant::now();
    let error = ends(run).await.unwrap_err().into_failed().unwrap();
    assert!(error.to_string().contains("unclean"), "{error}");
    assert_eq!(started.elapsed(), ms(60));
}

// R4: "an enclosing deadline overdue by the clock counts as expired": reason and scope are the outer ones.
#[tokio::test(start_paused = true)]
async fn an_outer_deadline_is_the_reason() {
    let run = with_timeout(secs(1), async {
        let result = TaskGroup::run(|group| async move {
            group.spawn(pending::<()>().or_cancelled()).await?;
            ok(())
        })
        .await;
        match result {
            Err(error) => {
                assert!(matches!(error.cancelled().unwrap().reason(), Reason::Deadline(_)), "{error}");
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    });
    assert!(ends(run).await.unwrap_err().is_elapsed());
}

// The group's own deadline is its own cancel: a value counts, else cancelled by it. The group's scope is the judge.
#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_group_is_its_own_cancel() {
    let started = Instant::now();
    let value = TaskGroup::builder().deadline(secs(1)).run(|group| async move {
        assert_eq!(group.scope().deadline().remaining(), Some(secs(1)));
        group.spawn(async {
            assert_eq!(Deadline::current().remaining(), Some(secs(1)));
            pending::<()>().await;
        });
        ok(3)
    });
    assert_eq!((ends(value).await.unwrap(), started.elapsed()), (3, secs(1)));
    let none = TaskGroup::builder().deadline(secs(0)).run(|_| async {
        pending::<()>().await;
        ok(3)
    });
    let error = ends(none).await.unwrap_err();
    assert!(matches!(error.cancelled().unwrap().reason(), Reason::Deadline(_)));
    for never in [Deadline::never(), Deadline::after(std::time::Duration::MAX)] {
        let run = TaskGroup::builder().deadline(never).run(|_| async {
            sleep(secs(1)).await;
            ok(4)
        });
        assert_eq!(ends(run).await.unwrap(), 4);
    }
}

// W-36: children that swallow the cancel and return: "the parent request wins".
#[tokio::test(start_paused = true)]
async fn swallowing_the_request_does_not_hide_it() {
    let scope = Scope::new();
    let remote = scope.clone();
    let run = scope.run(TaskGroup::run(|group| async move {
        let children: Vec<_> = (0..3)
            .map(|n| {
                group.spawn(async move {
                    let _ = pending::<()>().or_cancelled().await;
                    ok(n)
                })
            })
            .collect();
        group.spawn(async move { remote.cancel("outer") });
        let mut values = Vec::new();
        for child in children {
            values.push(child.await);
        }
        // B-16: no list of cancelled children: the wait that was under way may have its result, the next
        // ones say that the waiter was cancelled.
        assert!(values[1..].iter().all(|value| value.as_ref().is_err_and(HandleError::is_waiter_cancelled)));
        ok(values.len())
    }));
    assert_eq!(text(&run.await.unwrap()), "cancelled: outer");
}

// B-17: an early return between two spawns.
#[tokio::test(start_paused = true)]
async fn an_early_return_takes_the_tasks_along() {
    let (alive, started) = (Alive::default(), Instant::now());
    let seen = alive.clone();
    let result = TaskGroup::run(|group| async move {
        waiters(&group, &seen, 2);
        sleep(ms(5)).await;
        "x".parse::<u8>()?;
        waiters(&group, &seen, 1);
        ok(())
    });
    let error = ends(result).await.unwrap_err();
    assert!(error.find::<std::num::ParseIntError>().is_some());
    assert_eq!((alive.now(), started.elapsed()), (0, ms(5)));
}

// R4: "a group's own cancel cannot silently end the task around it": outside of the group it is a failure.
#[tokio::test(start_paused = true)]
async fn the_cancel_of_an_inner_group_is_a_failure_of_the_outer_one() {
    let result = TaskGroup::run(|_| async {
        TaskGroup::run(|inner| async move {
            inner.cancel("inner");
            pending::<()>().await;
            ok(())
        })
        .await?;
        ok(())
    });
    let error = ends(result).await.unwrap_err();
    assert!(!error.is_cancelled(), "{error}");
    assert!(Cancelled::is_in(&error), "its cause is there to see");
}

// Supervise: the siblings live on; all is collected at the end; a cancel from outside is not turned into a list.
#[tokio::test(start_paused = true)]
async fn a_supervised_group_collects_and_still_hears_the_outside() {
    let started = Instant::now();
    let run = TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
        for n in 1..=3 {
            group.spawn(async move {
                sleep(secs(n)).await;
                if n < 3 { Err(error("E")) } else { ok(()) }
            });
        }
        ok(())
    });
    assert_eq!(ends(run).await.unwrap_err().failures().len(), 2);
    assert_eq!(started.elapsed(), secs(3));
    let run = TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
        group.spawn(sleep(secs(9)));
        ok(())
    });
    assert!(ends(with_timeout(secs(1), run)).await.unwrap_err().is_elapsed());
}

// "A group without a runtime says so."
#[test]
fn outside_of_a_runtime_it_says_what_is_missing() {
    let run = TaskGroup::run(|_| async { ok(()) });
    let payload = catch_unwind(AssertUnwindSafe(|| run.now_or_never())).unwrap_err();
    assert!(payload.downcast_ref::<&str>().unwrap().contains("tokio runtime"));
}
