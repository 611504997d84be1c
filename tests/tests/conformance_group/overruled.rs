//! Rows that the design overrules: what holds instead.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use stoppable::{
    Cancelled, Deadline, HandleError, OrCancelledExt, Scope, TaskError, TaskGroup, TimeoutError, cleanup, ok,
    with_timeout,
};
use tokio::sync::{Mutex, oneshot};
use tokio::time::sleep;
use tokio_test::{assert_pending, assert_ready};

use crate::kit::{
    Clock, Counter, LONG, both, cancelled_at, fail, fail_after, ms, panic_after, real, secs, settle, sleeper,
    texts,
};

/// The crash of a child does not cut the section in which the body cleans up; the rest of the row holds.
#[test]
fn g_15_a_crash_during_the_cleanup_of_the_body_waits_for_its_section() {
    both(async || {
        let clock = Clock::start();
        let end = cancelled_at(ms(10), async move {
            let group = TaskGroup::run(|group| async move {
                group.spawn(async {
                    let section = cleanup(secs(1), fail_after(ms(20), "crash"));
                    section.await?
                });
                let answer = sleep(LONG).or_cancelled().await;
                cleanup(secs(1), sleep(ms(50))).await?;
                clock.at(60);
                ok(answer?)
            });
            ok(group.await)
        });
        let error = end.await.unwrap().unwrap_err();
        clock.at(60);
        assert_eq!(texts(error.failures()), ["crash"]);
    });
}

/// Waiting borrows: a cancel of the waiter does not reach the task, `shutdown` does.
#[test]
fn g_16_a_cancel_does_not_pass_through_the_wait_for_a_task() {
    both(async || {
        let clock = Clock::start();
        let result = TaskGroup::run(|owner| async move {
            let seen = Counter::default();
            let counter = seen.clone();
            let mut task = owner.spawn_value(TaskGroup::run(|inner| async move {
                inner.spawn(sleeper(counter.clone()));
                inner.spawn(async {
                    let answer = sleep(LONG).or_cancelled().await;
                    if answer.is_err() { fail("crash") } else { ok(()) }
                });
                ok(())
            }));
            let back = Arc::new(Mutex::new(None));
            let place = Arc::clone(&back);
            let waiter = owner.spawn_value(async move {
                let ended = (&mut task).await;
                *place.try_lock().unwrap() = Some(task);
                ended.map(|_| ())
            });
            sleep(ms(10)).await;
            waiter.cancel();
            assert!(waiter.await?.unwrap_err().is_waiter_cancelled());
            let task = back.lock().await.take().unwrap();
            assert_eq!((task.is_finished(), seen.get()), (false, 0));
            // Here it passes, and the aggregate comes back.
            let error = task.shutdown().await?.unwrap_err();
            clock.at(10);
            assert_eq!((texts(error.failures()), seen.get()), (vec!["crash".to_owned()], 1));
            ok(())
        });
        result.await.unwrap();
    });
}

/// A panic is kept beside the other failures, and goes on where `resume_panic` is called.
#[test]
fn g_20_a_panic_of_the_body_is_kept_with_the_failure_of_the_child() {
    both(async || {
        let error = TaskGroup::run(|group| async move {
            group.spawn(fail_after(ms(10), "child"));
            if sleep(LONG).or_cancelled().await.is_err() {
                panic!("interrupt");
            }
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["child", "panic interrupt"]);
        let payload = catch_unwind(AssertUnwindSafe(|| drop(error.resume_panic()))).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"interrupt"));
    });
}

/// As G-20: the panic of a child does not outrank the error of the body.
#[test]
fn g_22_a_panic_of_a_child_is_kept_with_the_failure_of_the_body() {
    both(async || {
        let error = TaskGroup::run(|group| async move {
            group.task("child").spawn(panic_after(ms(10), "interrupt"));
            if sleep(LONG).or_cancelled().await.is_err() {
                return fail("body");
            }
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["panic interrupt", "body"]);
        assert_eq!(error.failures()[0].name(), "child");
        let payload = catch_unwind(AssertUnwindSafe(|| drop(error.resume_panic()))).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"interrupt".to_owned()));
    });
}

/// Requests of the library are not counted, so the count is 0 where asyncio has 1; the rest of the row holds.
#[test]
fn g_36_a_caught_inner_failure_hides_nothing_of_the_outer_one() {
    both(async || {
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            let outer = TaskGroup::run(|outer| async move {
                outer.spawn(fail_after(ms(10), "outer"));
                let inner = TaskGroup::run(|inner| async move {
                    inner.spawn(async {
                        let answer = sleep(LONG).or_cancelled().await;
                        if answer.is_err() { fail("inner") } else { ok(()) }
                    });
                    ok(())
                });
                assert_eq!(texts(inner.await.unwrap_err().failures()), ["inner"]);
                assert_eq!((outer.scope().cancelling(), inside.cancelling()), (0, 0));
                assert!(sleep(LONG).or_cancelled().await.is_err());
                ok(())
            });
            texts(outer.await.unwrap_err().failures())
        });
        assert_eq!(run.await.unwrap(), ["outer"]);
        assert_eq!((scope.cancelling(), scope.is_cancelled()), (0, false));
    });
}

/// A body that has a value, or a child that asks: as the row says. A body that was cut has no value, and the
/// group is cancelled, by itself.
#[test]
fn g_42_a_group_that_cancels_itself_gives_the_value_of_its_body() {
    both(async || {
        let (seen, reached) = (Counter::default(), Counter::default());
        let counter = seen.clone();
        TaskGroup::run(|outer| async move {
            let by_body = TaskGroup::run(|group| async move {
                group.spawn(sleeper(counter.clone()));
                sleep(ms(10)).await;
                group.cancel("by the body");
                ok(1)
            });
            assert_eq!(by_body.await?, 1);
            assert!(!outer.scope().is_cancelled());
            ok(())
        })
        .await
        .unwrap();
        assert_eq!(seen.get(), 1);

        let counter = seen.clone();
        let by_child = TaskGroup::run(|group| async move {
            let own = group.clone();
            group.spawn(sleeper(counter.clone()));
            group.spawn(async move {
                sleep(ms(10)).await;
                own.cancel("by a child");
                ok(())
            });
            if sleep(LONG).or_cancelled().await.is_err() {
                counter.bump();
            }
            ok(2)
        });
        assert_eq!(by_child.await.unwrap(), 2);
        reached.bump();
        assert_eq!((seen.get(), reached.get()), (3, 1));

        let cut = TaskGroup::run(|group| async move {
            let own = group.clone();
            group.spawn(async move { own.cancel("by a child") });
            sleep(LONG).await;
            ok(3)
        });
        let error = cut.await.unwrap_err();
        assert_eq!(error.cancelled().unwrap().to_string(), "cancelled: by a child");
    });
}

/// The cancellation of a scope that nobody here is in.
fn foreign() -> Cancelled {
    let scope = Scope::new();
    scope.cancel("elsewhere");
    scope.check().unwrap_err()
}

/// It names no scope of this group or above, so it is a failure: a cancel of something else does not end a
/// task silently.
#[test]
fn g_55_a_child_that_ends_with_a_foreign_cancelled_has_failed() {
    both(async || {
        let (seen, foreign) = (Counter::default(), foreign());
        let counter = seen.clone();
        let error = TaskGroup::run(|group| async move {
            group.spawn(sleeper(counter));
            group.task("lost").spawn(async move {
                sleep(ms(10)).await;
                Err::<(), _>(foreign)
            });
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(seen.get(), 1);
        assert_eq!(error.failures()[0].name(), "lost");
        assert_eq!(texts(error.failures()), ["cancelled: elsewhere"]);
    });
}

/// As G-55.
#[test]
fn g_56_a_body_that_ends_with_a_foreign_cancelled_has_failed() {
    both(async || {
        let (seen, foreign, scope) = (Counter::default(), foreign(), Scope::new());
        let counter = seen.clone();
        let run = scope.run(TaskGroup::run(|group| async move {
            group.spawn(sleeper(counter));
            sleep(ms(10)).await;
            Err::<(), TaskError>(foreign.into())
        }));
        let error = run.await.unwrap().unwrap_err();
        assert_eq!(seen.get(), 1);
        assert!(!error.is_cancelled());
        assert_eq!(texts(error.failures()), ["cancelled: elsewhere"]);
        assert_eq!(scope.cancelling(), 0);
    });
}

/// All the work is done, so the value is kept; the request is not lost, the next wait answers it.
#[tokio::test(start_paused = true)]
async fn g_57_a_cancel_after_the_last_child_leaves_the_value_and_stays_pending() {
    let (tx, rx) = oneshot::channel::<()>();
    let scope = Scope::new();
    let mut parent = tokio_test::task::spawn(scope.run(async {
        let value = TaskGroup::run(|group| async move {
            group.spawn(async move { ok(rx.await?) });
            ok(7)
        })
        .await;
        (value, sleep(LONG).or_cancelled().await)
    }));
    assert_pending!(parent.poll());
    tx.send(()).unwrap();
    settle().await;
    assert!(parent.is_woken());
    scope.cancel("outside");
    let (value, next) = assert_ready!(parent.poll()).unwrap();
    assert_eq!(value.unwrap(), 7);
    assert_eq!(next.unwrap_err().to_string(), "cancelled: outside");
}

/// A deadline is an instant, and says nothing of a cancel: in a cancelled scope it stays what it is, and
/// `is_cancelled` tells the rest. Nested and in a section it is as the row says.
#[test]
fn t_52_the_effective_deadline_is_the_earliest_up_to_a_section() {
    both(async || {
        let (outer, inner) = (Deadline::after(secs(10)), Deadline::after(secs(20)));
        with_timeout(outer, async {
            assert_eq!(Deadline::current(), outer);
            with_timeout(inner, async {
                assert_eq!(Deadline::current(), outer);
                with_timeout(secs(5), async {
                    assert!(Deadline::current() < outer);
                    ok(())
                })
                .await?;
                cleanup(secs(30), async {
                    let section = Deadline::current();
                    assert!(section > inner);
                    with_timeout(secs(40), async {
                        assert_eq!(Deadline::current(), section);
                        ok(())
                    })
                    .await
                })
                .await??;
                let scope = Scope::current().unwrap();
                scope.cancel("enough");
                assert_eq!((Deadline::current(), scope.is_cancelled()), (outer, true));
                ok(())
            })
            .await?;
            ok(())
        })
        .await
        .unwrap();
    });
}

/// Waiting borrows: the wait answers, the child and what it waits for go on.
#[test]
fn s_11_a_task_that_cancels_itself_leaves_the_child_it_awaits_alone() {
    both(async || {
        let clock = Clock::start();
        TaskGroup::run(|group| async move {
            let child = group.spawn(async {
                sleep(ms(30)).or_cancelled().await?;
                ok(7)
            });
            let scope = child.scope();
            let task = group.spawn_value(async move {
                Scope::current().unwrap().cancel("myself");
                child.await
            });
            assert!(task.await?.unwrap_err().is_waiter_cancelled());
            assert!(!scope.is_cancelled());
            ok(())
        })
        .await
        .unwrap();
        clock.at(30);
    });
}

/// Who was waiting gets the result that is there.
#[tokio::test(start_paused = true)]
async fn s_25_a_shield_whose_work_is_done_gives_it_though_the_waiter_is_cancelled() {
    TaskGroup::run(|group| async move {
        let (tx, rx) = oneshot::channel::<u32>();
        let scope = Scope::new();
        let shield = group.shield(async move { ok(rx.await?) });
        let mut waiter = tokio_test::task::spawn(scope.run(shield));
        assert_pending!(waiter.poll());
        tx.send(7).unwrap();
        settle().await;
        assert!(waiter.is_woken());
        scope.cancel("outside");
        assert_eq!(assert_ready!(waiter.poll())??, 7);
        ok(())
    })
    .await
    .unwrap();
}

/// Until taken back: every wait answers.
#[test]
fn s_31_two_cancels_are_answered_by_every_wait() {
    both(async || {
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            inside.cancel("one");
            inside.cancel("two");
            let mut answers = 0;
            for _ in 0..3 {
                answers += usize::from(sleep(LONG).or_cancelled().await.is_err());
            }
            (answers, inside.cancelling())
        });
        assert_eq!(run.await.unwrap(), (3, 2));
    });
}

/// Work that ignores a cancel for `time`.
async fn stubborn(time: std::time::Duration, done: Counter) -> Result<u32, TaskError> {
    sleep(time).await;
    done.bump();
    ok(7)
}

/// Without a grace, what still waits after it was asked is cut; with one the row holds.
#[test]
fn w_01_work_that_ignores_a_cancel_is_cut_unless_it_has_a_grace() {
    both(async || {
        for grace in [None, Some(secs(1))] {
            let (clock, done) = (Clock::start(), Counter::default());
            let counter = done.clone();
            let end = cancelled_at(ms(10), async move {
                // The grace of the task is what holds it too; the call only passes the question on.
                let work = TaskGroup::builder();
                let work = if let Some(grace) = grace { work.grace(grace) } else { work };
                ok(work
                    .run(|_group| async move { Ok(with_timeout(secs(60), stubborn(ms(50), counter)).await?) })
                    .await)
            });
            let ended = end.await.unwrap();
            if grace.is_some() {
                assert_eq!(ended.unwrap(), 7);
                clock.at(50);
            } else {
                assert!(ended.unwrap_err().is_cancelled());
                clock.at(10);
            }
            assert_eq!(done.get(), usize::from(grace.is_some()));
        }
    });
}

/// As W-01: cut at the limit unless it has a grace.
#[test]
fn w_02_work_that_ignores_the_limit_is_cut_unless_it_has_a_grace() {
    both(async || {
        let (clock, done) = (Clock::start(), Counter::default());
        let call = with_timeout(ms(10), stubborn(ms(50), done.clone()));
        assert!(call.await.unwrap_err().is_elapsed());
        clock.at(10);
        let call = with_timeout(ms(10), stubborn(ms(50), done.clone())).grace(secs(1));
        assert_eq!(call.await.unwrap(), 7);
        clock.at(60);
        assert_eq!(done.get(), 1);
    });
}

/// Waiting borrows: the task is not touched by the limit of a wait for it.
#[test]
fn w_05_a_limit_of_zero_on_a_running_task_leaves_it_running() {
    both(async || {
        TaskGroup::run(|group| async move {
            let mut task = group.spawn(async {
                sleep(ms(30)).or_cancelled().await?;
                ok(7)
            });
            sleep(ms(10)).await;
            assert!(with_timeout(ms(0), &mut task).await.unwrap_err().is_elapsed());
            assert!(!task.scope().is_cancelled());
            assert_eq!(task.await?, 7);
            ok(())
        })
        .await
        .unwrap();
    });
}

/// As W-05. `shutdown` cancels and waits.
#[test]
fn w_06_a_limit_on_a_task_leaves_it_running() {
    both(async || {
        let clock = Clock::start();
        TaskGroup::run(|group| async move {
            let seen = Counter::default();
            let mut task = group.spawn(sleeper(seen.clone()));
            assert!(with_timeout(ms(10), &mut task).await.unwrap_err().is_elapsed());
            clock.at(10);
            assert_eq!((task.is_finished(), seen.get()), (false, 0));
            assert!(task.shutdown().await.unwrap_err().is_cancelled());
            assert_eq!(seen.get(), 1);
            ok(())
        })
        .await
        .unwrap();
        clock.at(10);
    });
}

/// As W-05: the waiter is cancelled and the task is not.
#[test]
fn w_12_cancelling_the_waiter_leaves_the_task_running() {
    both(async || {
        for limit in [None, Some(secs(60))] {
            TaskGroup::run(|group| async move {
                let task = group.spawn(async {
                    sleep(ms(30)).or_cancelled().await?;
                    ok(7)
                });
                let scope = task.scope();
                let waiter = group.spawn(async move {
                    match limit {
                        None => ok(task.await?),
                        Some(limit) => ok(with_timeout(limit, task).await?),
                    }
                });
                sleep(ms(10)).await;
                waiter.cancel();
                assert!(matches!(waiter.await, Err(HandleError::Cancelled { .. })));
                assert!(!scope.is_cancelled());
                ok(())
            })
            .await
            .unwrap();
        }
    });
}

/// As W-01: the waiter returns cancelled at once, as it did before Python 3.12, for the work is cut.
#[test]
fn w_16_a_cancelled_waiter_whose_work_holds_up_the_cancel() {
    both(async || {
        let (clock, done) = (Clock::start(), Counter::default());
        let counter = done.clone();
        let end = cancelled_at(ms(10), async move {
            let call = with_timeout(secs(60), async move {
                let _held_up = sleep(LONG).or_cancelled().await;
                stubborn(ms(50), counter).await
            });
            ok(call.await?)
        });
        assert!(matches!(end.await, Err(HandleError::Cancelled { .. })));
        clock.at(10);
        assert_eq!(done.get(), 0);
    });
}

/// As W-05: there is no value yet, and the task goes on.
#[test]
fn w_21_a_limit_of_zero_on_a_task_that_swallows_a_cancel_is_a_timeout() {
    both(async || {
        TaskGroup::run(|group| async move {
            let mut task = group.spawn(async {
                let swallowed = sleep(ms(30)).or_cancelled().await.is_err();
                ok(if swallowed { 1 } else { 2 })
            });
            sleep(ms(10)).await;
            assert!(matches!(with_timeout(ms(0), &mut task).await, Err(TimeoutError::Elapsed(_))));
            assert_eq!(task.await?, 2);
            ok(())
        })
        .await
        .unwrap();
    });
}

/// Waiting borrows, for a thread as well: the waiter that leaves tells the thread nothing. `shutdown` does,
/// and the thread hears of it.
#[test]
fn b_115_a_blocking_loop_whose_waiter_has_gone_is_told_by_shutdown() {
    real(async || {
        TaskGroup::run(|group| async move {
            let mut task = group.task("loop").spawn_blocking(|stop| {
                while !stop.is_cancelled() {
                    std::thread::sleep(ms(5));
                }
            });
            // The waiter goes away.
            assert!(with_timeout(ms(50), &mut task).await.unwrap_err().is_elapsed());
            sleep(ms(50)).await;
            assert_eq!((task.is_finished(), task.scope().is_cancelled(), group.live()), (false, false, 1));
            task.shutdown().await?;
            while group.live() > 0 {
                tokio::task::yield_now().await;
            }
            ok(())
        })
        .await
        .unwrap();
    });
}
