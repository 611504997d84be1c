//! Section G: task groups.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use stoppable::{
    Cancelled, GroupError, HandleError, OrCancelledExt, Reason, Scope, TaskError, TaskGroup, TimeoutError,
    cleanup, failure, ok, with_timeout_handle,
};
use tokio::sync::{Mutex, oneshot};
use tokio::task::yield_now;
use tokio::time::sleep;
use tokio_test::{assert_pending, assert_ready};

use crate::kit::{
    Boom, Clock, Counter, Dropped, LONG, Polled, both, cancelled_at, fail, fail_after, is_paused, ms, secs,
    settle, sleeper, texts,
};

#[test]
fn g_01_leaving_a_group_waits_for_both_children() {
    both(async || {
        let clock = Clock::start();
        let (long, short) = TaskGroup::run(|group| async move {
            let long = group.spawn(async {
                sleep(ms(20)).await;
                ok(1)
            });
            let short = group.spawn(async {
                sleep(ms(10)).await;
                ok(2)
            });
            ok((long, short))
        })
        .await
        .unwrap();
        clock.at(20);
        assert!(long.is_finished() && short.is_finished());
        assert_eq!((long.await.unwrap(), short.await.unwrap()), (1, 2));
    });
}

#[test]
fn g_02_a_child_that_is_added_later_is_waited_for_too() {
    both(async || {
        let clock = Clock::start();
        let (first, second) = TaskGroup::run(|group| async move {
            let first = group.spawn(async {
                sleep(ms(20)).await;
                ok(1)
            });
            sleep(ms(10)).await;
            let second = group.spawn(async {
                sleep(ms(20)).await;
                ok(2)
            });
            ok((first, second))
        })
        .await
        .unwrap();
        clock.at(30);
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (1, 2));
    });
}

#[test]
fn g_04_a_failing_child_cancels_its_sibling() {
    async fn service(seen: Counter, reached: Counter) -> Result<(), GroupError> {
        TaskGroup::run(|group| async move {
            group.spawn(sleeper(seen));
            group.spawn(fail_after(ms(10), "boom"));
            ok(())
        })
        .await?;
        reached.bump();
        Ok(())
    }
    both(async || {
        let (clock, seen, reached) = (Clock::start(), Counter::default(), Counter::default());
        let error = service(seen.clone(), reached.clone()).await.unwrap_err();
        clock.at(10);
        assert_eq!(seen.get(), 1);
        assert_eq!(texts(error.failures()), ["boom"]);
        assert_eq!(reached.get(), 0);
    });
}

#[test]
fn g_05_children_that_fail_together_are_one_to_three_failures() {
    both(async || {
        let (seen, body_seen) = (Counter::default(), Counter::default());
        let (child, body) = (seen.clone(), body_seen.clone());
        let error = TaskGroup::run(|group| async move {
            group.spawn(sleeper(child));
            for _ in 0..3 {
                group.spawn(fail_after(ms(10), "boom"));
            }
            sleeper(body).await
        })
        .await
        .unwrap_err();
        assert_eq!((seen.get(), body_seen.get()), (1, 1));
        assert!((1..=3).contains(&error.failures().len()));
        assert!(error.failures().iter().all(|failure| failure.downcast_ref() == Some(&Boom("boom"))));
    });
}

#[test]
fn g_06_a_cancel_while_the_group_waits_reaches_all_children() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        let end = cancelled_at(ms(10), async move {
            let group = TaskGroup::run(|group| async move {
                for _ in 0..5 {
                    group.spawn(sleeper(counter.clone()));
                }
                ok(())
            });
            ok(group.await)
        });
        let error = end.await.unwrap().unwrap_err();
        assert_eq!(seen.get(), 5);
        assert!(error.is_cancelled() && error.failures().is_empty());
    });
}

#[test]
fn g_07_a_cancel_reaches_the_body_and_all_children_once() {
    both(async || {
        let (seen, body_seen) = (Counter::default(), Counter::default());
        let (children, body) = (seen.clone(), body_seen.clone());
        let end = cancelled_at(ms(10), async move {
            let group = TaskGroup::run(|group| async move {
                for _ in 0..5 {
                    group.spawn(sleeper(children.clone()));
                }
                sleeper(body).await
            });
            ok(group.await)
        });
        let error = end.await.unwrap().unwrap_err();
        assert_eq!((seen.get(), body_seen.get()), (5, 1));
        assert!(error.is_cancelled());
    });
}

#[test]
fn g_09_a_failing_body_cancels_the_children_and_is_an_aggregate() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        let error = TaskGroup::run(|group| async move {
            group.spawn(sleeper(counter.clone()));
            group.spawn(sleeper(counter));
            sleep(ms(10)).await;
            fail::<()>("body")
        })
        .await
        .unwrap_err();
        assert_eq!(seen.get(), 2);
        assert_eq!(texts(error.failures()), ["body"]);
        assert_eq!(error.failures()[0].name(), "body");
    });
}

#[test]
fn g_10_a_body_that_fails_at_once_leaves_its_children_cancelled() {
    both(async || {
        let (result, report) = TaskGroup::builder()
            .run_reported(|group| async move {
                group.spawn(sleeper(Counter::default()));
                group.spawn(sleeper(Counter::default()));
                fail::<()>("body")
            })
            .await;
        assert_eq!(texts(result.unwrap_err().failures()), ["body"]);
        assert_eq!((report.cancelled + report.not_started, report.live), (2, 0));
        assert!(!is_paused() || report.not_started == 2);
    });
}

/// Fails when it is cancelled.
async fn fails_in_cleanup(text: &'static str) -> Result<(), TaskError> {
    if sleep(LONG).or_cancelled().await.is_err() {
        return fail(text);
    }
    ok(())
}

#[test]
fn g_11_a_group_in_a_group_is_an_aggregate_in_an_aggregate() {
    both(async || {
        let end = cancelled_at(ms(10), async {
            let outer = TaskGroup::run(|_outer| async move {
                TaskGroup::run(|inner| async move {
                    for _ in 0..5 {
                        inner.spawn(fails_in_cleanup("inner"));
                    }
                    sleeper(Counter::default()).await
                })
                .await?;
                ok(())
            });
            ok(outer.await)
        });
        let error = end.await.unwrap().unwrap_err();
        assert_eq!(texts(error.failures()), ["nested"]);
        let inner = error.failures()[0].downcast_ref::<GroupError>().unwrap();
        assert_eq!(texts(inner.failures()), ["inner"; 5]);
        assert_eq!(texts(&error.flatten()), ["inner"; 5]);
    });
}

#[test]
fn g_12_a_cancelled_child_of_the_outer_group_adds_nothing() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        let end = cancelled_at(ms(10), async move {
            let outer = TaskGroup::run(|outer| async move {
                outer.spawn(sleeper(counter));
                TaskGroup::run(|inner| async move {
                    for _ in 0..5 {
                        inner.spawn(fails_in_cleanup("inner"));
                    }
                    sleeper(Counter::default()).await
                })
                .await?;
                ok(())
            });
            ok(outer.await)
        });
        let error = end.await.unwrap().unwrap_err();
        assert_eq!(seen.get(), 1);
        assert_eq!(texts(error.failures()), ["nested"]);
        assert_eq!(texts(&error.flatten()), ["inner"; 5]);
    });
}

#[test]
fn g_14_a_failing_inner_child_takes_the_outer_child_along() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        let error = TaskGroup::run(|outer| async move {
            outer.spawn(sleeper(counter));
            TaskGroup::run(|inner| async move {
                inner.spawn(fail_after(ms(10), "inner"));
                sleeper(Counter::default()).await
            })
            .await?;
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(seen.get(), 1);
        assert_eq!(texts(error.failures()), ["nested"]);
        let inner = error.failures()[0].downcast_ref::<GroupError>().unwrap();
        assert_eq!(texts(inner.failures()), ["inner"]);
    });
}

#[test]
fn g_17_a_group_without_children_is_plainly_cancelled() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        let end = cancelled_at(ms(10), async move {
            ok(TaskGroup::run(|_group| async move { sleeper(counter).await }).await)
        });
        let error = end.await.unwrap().unwrap_err();
        assert_eq!(seen.get(), 1);
        assert!(error.is_cancelled() && error.failures().is_empty());
    });
}

#[test]
fn g_19_a_body_that_answers_with_its_own_error_is_in_the_aggregate() {
    both(async || {
        let error = TaskGroup::run(|group| async move {
            group.spawn(fail_after(ms(10), "child"));
            if sleep(LONG).or_cancelled().await.is_err() {
                return fail("body");
            }
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["child", "body"]);
    });
}

#[test]
fn g_21_errors_of_other_kinds_are_ordinary_errors() {
    both(async || {
        let error = TaskGroup::run(|group| async move {
            group.spawn(fail_after(ms(10), "child"));
            if sleep(LONG).or_cancelled().await.is_err() {
                // No type of its own: std's boxed text.
                return Err("a bare text".into());
            }
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["child", "a bare text"]);
    });
}

#[test]
fn g_24_finished_children_are_forgotten() {
    both(async || {
        TaskGroup::run(|group| async move {
            for _ in 0..100 {
                group.spawn(yield_now()).await?;
            }
            while group.live() > 0 {
                yield_now().await;
            }
            assert!(group.report().tasks.is_empty());
            assert_eq!(group.report().ok, 100);
            assert!(group.scope().tree().children.is_empty());
            ok(())
        })
        .await
        .unwrap();
    });
}

#[test]
fn g_25_siblings_that_a_child_adds_are_waited_for() {
    both(async || {
        let (clock, done) = (Clock::start(), Counter::default());
        let counter = done.clone();
        TaskGroup::run(|group| async move {
            let siblings = group.clone();
            group.spawn(async move {
                sleep(ms(10)).await;
                for _ in 0..3 {
                    let counter = counter.clone();
                    siblings.spawn(async move {
                        sleep(ms(20)).await;
                        counter.bump();
                    });
                }
            });
            ok(())
        })
        .await
        .unwrap();
        clock.at(30);
        assert_eq!(done.get(), 3);
    });
}

#[test]
fn g_26_children_that_keep_doubling_end_with_the_killer() {
    fn double(group: TaskGroup, spawned: Counter) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            spawned.bump();
            sleep(ms(1)).await;
            for _ in 0..2 {
                group.spawn(double(group.clone(), spawned.clone()));
            }
        })
    }
    both(async || {
        let spawned = Counter::default();
        let counter = spawned.clone();
        let (result, report) = TaskGroup::builder()
            .run_reported(|group| async move {
                group.spawn(double(group.clone(), counter));
                group.spawn(fail_after(ms(8), "killer"));
                ok(())
            })
            .await;
        assert_eq!(texts(result.unwrap_err().failures()), ["killer"]);
        assert_eq!(report.live, 0);
        let before = spawned.get();
        assert!(before >= 3, "{before} were spawned");
        sleep(ms(20)).await;
        assert_eq!(spawned.get(), before);
    });
}

#[test]
fn g_27_the_name_of_a_task_is_on_its_handle_and_inside_it() {
    both(async || {
        TaskGroup::run(|group| async move {
            let task = group.task("fetch").spawn(async {
                let scope = Scope::current().unwrap();
                ok(scope.name().to_string())
            });
            assert_eq!(task.name(), "fetch");
            assert_eq!(task.await?, "fetch");
            ok(())
        })
        .await
        .unwrap();
    });
}

#[test]
fn g_29_a_failing_group_refuses_what_a_cancel_handler_spawns() {
    both(async || {
        let (polled, dropped) = (Counter::default(), Counter::default());
        let (polls, drops) = (polled.clone(), dropped.clone());
        let refused = Arc::new(Mutex::new(None));
        let place = Arc::clone(&refused);
        let error = TaskGroup::run(|group| async move {
            let spawner = group.clone();
            group.spawn(async move {
                let answer = sleep(LONG).or_cancelled().await;
                let guard = Dropped(drops);
                let late = spawner.spawn(async move {
                    polls.bump();
                    drop(guard);
                });
                *place.try_lock().unwrap() = Some(late);
                Ok::<(), TaskError>(answer?)
            });
            group.spawn(fail_after(ms(10), "boom"));
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["boom"]);
        assert_eq!((polled.get(), dropped.get()), (0, 1));
        let late = refused.lock().await.take().unwrap();
        assert!(matches!(late.await, Err(HandleError::Refused { .. })));
    });
}

#[test]
fn g_30_a_failing_cleanup_of_the_body_is_a_second_member() {
    both(async || {
        TaskGroup::run(|outer| async move {
            outer
                .spawn(async {
                    let error = TaskGroup::run(|group| async move {
                        group.spawn(fail_after(ms(10), "child"));
                        if sleep(LONG).or_cancelled().await.is_err() {
                            cleanup(secs(1), sleep(ms(10))).await?;
                            return fail("cleanup");
                        }
                        ok(())
                    })
                    .await
                    .unwrap_err();
                    assert_eq!(texts(error.failures()), ["child", "cleanup"]);
                    let task = Scope::current().unwrap();
                    assert_eq!((task.cancelling(), task.is_cancelled()), (0, false));
                    ok(())
                })
                .await?;
            ok(())
        })
        .await
        .unwrap();
    });
}

#[test]
fn g_32_a_group_that_has_ended_refuses_and_drops_the_future_unpolled() {
    both(async || {
        let group = TaskGroup::run(|group| async move { ok(group) }).await.unwrap();
        let (polled, dropped) = (Counter::default(), Counter::default());
        let (polls, guard) = (polled.clone(), Dropped(dropped.clone()));
        let late = group.spawn(async move {
            polls.bump();
            drop(guard);
        });
        assert_eq!((polled.get(), dropped.get()), (0, 1));
        assert!(matches!(late.await, Err(HandleError::Refused { cancelled: None, .. })));
    });
}

#[test]
#[should_panic(expected = "a `TaskGroup` needs a tokio runtime")]
fn g_34_a_group_outside_of_a_runtime_says_what_it_needs() {
    let mut group = tokio_test::task::spawn(TaskGroup::run(|_group| async { ok(()) }));
    let _ = group.poll();
}

#[test]
fn g_35_no_request_is_left_after_the_failure_of_a_child() {
    both(async || {
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            let group = TaskGroup::run(|group| async move {
                group.spawn(fail_after(ms(10), "boom"));
                ok(())
            });
            assert_eq!(texts(group.await.unwrap_err().failures()), ["boom"]);
            assert_eq!((inside.cancelling(), inside.is_cancelled()), (0, false));
        });
        run.await.unwrap();
        assert_eq!(scope.cancelling(), 0);
    });
}

#[test]
fn g_37_an_outside_cancel_stays_pending_after_the_aggregate() {
    both(async || {
        let clock = Clock::start();
        let end = cancelled_at::<(), _>(ms(20), async {
            let group = TaskGroup::run(|group| async move {
                group.spawn(fail_after(ms(10), "boom"));
                group.spawn(async {
                    let answer = sleep(LONG).or_cancelled().await;
                    cleanup(secs(1), sleep(ms(30))).await?;
                    Ok::<(), TaskError>(answer?)
                });
                ok(())
            });
            assert_eq!(texts(group.await.unwrap_err().failures()), ["boom"]);
            let task = Scope::current().unwrap();
            assert_eq!(task.cancelling(), 1);
            let next = sleep(LONG).or_cancelled().await;
            assert_eq!(task.cancelling(), 1);
            Ok(next?)
        });
        let error = end.await.unwrap_err();
        clock.at(40);
        assert!(matches!(error, HandleError::Cancelled { .. }), "{error:?}");
        assert!(error.to_string().ends_with("cancelled: outside"), "{error}");
    });
}

#[test]
fn g_39_a_child_whose_sibling_fails_while_it_spawns_it_is_cancelled() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        let error = TaskGroup::run(|group| async move {
            let siblings = group.clone();
            group.spawn(async move {
                siblings.spawn(async { fail::<()>("at once") });
                sleeper(counter).await
            });
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["at once"]);
        assert_eq!(seen.get(), 1);
    });
}

#[test]
fn g_40_a_cancel_does_not_leak_out_of_the_group() {
    both(async || {
        TaskGroup::run(|outer| async move {
            let error = TaskGroup::run(|group| async move {
                group.spawn(async { fail::<()>("at once") });
                ok(())
            })
            .await
            .unwrap_err();
            assert_eq!(texts(error.failures()), ["at once"]);
            sleep(ms(10)).or_cancelled().await.unwrap();
            assert!(!outer.scope().is_cancelled());
            ok(())
        })
        .await
        .unwrap();
    });
}

/// Adapted: there is no eager start here; a child may run before `spawn` returns on many threads. So the suite
/// runs on both, and this row asserts that it does.
#[test]
fn g_41_the_suite_runs_on_one_thread_and_on_four() {
    let (one, four) = (Counter::default(), Counter::default());
    let (on_one, on_four) = (one.clone(), four.clone());
    both(async || {
        match tokio::runtime::Handle::current().metrics().num_workers() {
            1 => on_one.bump(),
            4 => on_four.bump(),
            other => panic!("{other} workers"),
        }
        let sum = TaskGroup::run(|group| async move {
            let tasks: Vec<_> = (0..100_u32).map(|n| group.spawn(async move { ok(n) })).collect();
            let mut sum = 0;
            for task in tasks {
                sum += task.await?;
            }
            ok(sum)
        });
        assert_eq!(sum.await.unwrap(), 4950);
    });
    assert!(one.get() == 1 && four.get() >= 1);
}

#[test]
fn g_44_cancel_twice_or_after_the_end_has_no_effect() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        let group = TaskGroup::run(|group| async move {
            group.spawn(sleeper(counter));
            sleep(ms(10)).await;
            group.cancel("first");
            group.cancel("second");
            ok(group)
        })
        .await
        .unwrap();
        assert_eq!(seen.get(), 1);
        group.cancel("third");
        sleep(ms(10)).or_cancelled().await.unwrap();
        assert_eq!((group.report().cancelled, group.live()), (1, 0));
    });
}

#[test]
fn g_45_a_cancel_hides_no_error_of_the_body() {
    both(async || {
        TaskGroup::run(|outer| async move {
            let error = TaskGroup::run(|group| async move {
                group.cancel("enough");
                assert_eq!(group.scope().cancelling(), 1);
                fail::<()>("body")
            })
            .await
            .unwrap_err();
            assert_eq!(texts(error.failures()), ["body"]);
            assert_eq!(outer.scope().cancelling(), 0);
            assert!(!outer.scope().is_cancelled());
            ok(())
        })
        .await
        .unwrap();
    });
}

/// The choice: refused, the future is dropped unpolled, the handle says so, and it is no failure.
#[test]
fn g_46_a_cancelled_group_refuses_to_spawn() {
    both(async || {
        let (polled, dropped) = (Counter::default(), Counter::default());
        let (polls, guard) = (polled.clone(), Dropped(dropped.clone()));
        let end = TaskGroup::run(|group| async move {
            group.cancel("enough");
            let late = group.task("late").spawn(async move {
                polls.bump();
                drop(guard);
            });
            ok(late)
        });
        let late = end.await.unwrap();
        assert_eq!((polled.get(), dropped.get()), (0, 1));
        match late.await {
            Err(HandleError::Refused { task, cancelled: Some(cancelled) }) => {
                assert_eq!(task, "late");
                assert_eq!(cancelled.to_string(), "cancelled: enough");
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn g_47_a_child_that_cancels_its_group_at_once_is_cancelled_itself() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        let (result, report) = TaskGroup::builder()
            .run_reported(|group| async move {
                let own = group.clone();
                group.spawn(async move {
                    own.cancel("from the child");
                    sleeper(counter).await
                });
                ok(())
            })
            .await;
        result.unwrap();
        assert_eq!((seen.get(), report.cancelled, report.live), (1, 1, 0));
    });
}

#[test]
fn g_49_the_reason_of_a_cancel_comes_with_the_error() {
    both(async || {
        let scope = Arc::new(Mutex::new(None));
        let place = Arc::clone(&scope);
        let end = cancelled_at(ms(10), async move {
            *place.try_lock().unwrap() = Scope::current();
            let group = TaskGroup::run(|group| async move {
                group.spawn(sleeper(Counter::default()));
                ok(())
            });
            let result = group.await;
            assert_eq!(Scope::current().unwrap().cancelling(), 1);
            ok(result)
        });
        let error = end.await.unwrap().unwrap_err();
        let cancelled = error.cancelled().unwrap();
        assert!(matches!(cancelled.reason(), Reason::Because(text) if text == "outside"));
        assert_eq!(cancelled.scope(), scope.lock().await.take().unwrap().id());
    });
}

#[test]
fn g_50_outside_cancels_do_not_interrupt_a_group_that_winds_down() {
    both(async || {
        let (clock, seen) = (Clock::start(), Counter::default());
        let counter = seen.clone();
        let scope = Scope::new();
        let inside = scope.clone();
        let parent = scope.run(async move {
            let group = TaskGroup::run(|group| async move {
                group.spawn(fail_after(ms(10), "boom"));
                group.spawn(async move {
                    let answer = sleep(LONG).or_cancelled().await;
                    counter.bump();
                    cleanup(secs(1), sleep(ms(50))).await?;
                    Ok::<(), TaskError>(answer?)
                });
                ok(())
            });
            let error = group.await.unwrap_err();
            clock.at(60);
            assert_eq!(texts(error.failures()), ["boom"]);
            assert_eq!(inside.cancelling(), 2);
            assert!(sleep(LONG).or_cancelled().await.is_err());
        });
        let outside = async {
            sleep(ms(20)).await;
            scope.cancel("one");
            sleep(ms(10)).await;
            scope.cancel("two");
        };
        let (parent, ()) = tokio::join!(parent, outside);
        parent.unwrap();
        clock.at(60);
        assert_eq!(seen.get(), 1);
    });
}

#[tokio::test(start_paused = true)]
async fn g_51_failure_first_then_an_outside_cancel_in_the_same_step() {
    let (tx, rx) = oneshot::channel::<()>();
    let scope = Scope::new();
    let inside = scope.clone();
    let mut parent = tokio_test::task::spawn(scope.run(async move {
        let group = TaskGroup::run(|group| async move {
            group.spawn(async move {
                rx.await?;
                fail::<()>("boom")
            });
            sleeper(Counter::default()).await
        });
        assert_eq!(texts(group.await.unwrap_err().failures()), ["boom"]);
        assert_eq!(inside.cancelling(), 1);
        sleep(LONG).or_cancelled().await
    }));
    assert_pending!(parent.poll());
    settle().await;
    tx.send(()).unwrap();
    settle().await;
    assert!(parent.is_woken());
    scope.cancel("outside");
    // The task of the child is joined in the first of these polls or the next.
    let mut end = parent.poll();
    while end.is_pending() && parent.is_woken() {
        end = parent.poll();
    }
    assert!(assert_ready!(end).unwrap().is_err());
}

/// The choice: who was waiting already is polled first, and its result wins.
#[tokio::test(start_paused = true)]
async fn g_52_cancel_first_and_the_ready_error_of_the_child_still_counts() {
    let (tx, rx) = oneshot::channel::<Boom>();
    let scope = Scope::new();
    let inside = scope.clone();
    let (done, end) = oneshot::channel();
    TaskGroup::run(|outer| async move {
        let run = inside.clone();
        outer.spawn_value(async move {
            let group = TaskGroup::run(|group| async move {
                group.spawn(async move {
                    let boom = rx.or_cancelled().await??;
                    Err::<(), TaskError>(boom.into())
                });
                ok(())
            });
            let _ = done.send(run.run(group).await);
        });
        settle().await;
        inside.cancel("outside");
        tx.send(Boom("ready")).unwrap();
        ok(())
    })
    .await
    .unwrap();
    let error = end.await.unwrap().unwrap().unwrap_err();
    assert_eq!(texts(error.failures()), ["ready"]);
    assert_eq!(scope.cancelling(), 1);
}

/// The choice: until it is taken back, as in trio. So the second wait answers too.
#[test]
fn g_54_a_body_that_swallows_the_cancel_is_answered_again() {
    both(async || {
        let clock = Clock::start();
        let answers = Counter::default();
        let counter = answers.clone();
        let error = TaskGroup::run(|group| async move {
            group.spawn(fail_after(ms(10), "boom"));
            for _ in 0..2 {
                if sleep(LONG).or_cancelled().await.is_err() {
                    counter.bump();
                }
            }
            ok(())
        })
        .await
        .unwrap_err();
        clock.at(10);
        assert_eq!(answers.get(), 2);
        assert_eq!(texts(error.failures()), ["boom"]);
    });
}

/// The start order differs: here the child has had its first step when the cancel comes. One that comes
/// earlier finds the child not started (G-60) or refused (G-67).
#[tokio::test(start_paused = true)]
async fn g_59_a_child_that_has_had_its_first_step_is_cancelled() {
    let (first, seen) = (Counter::default(), Counter::default());
    let (step, counter) = (first.clone(), seen.clone());
    let scope = Scope::new();
    let mut parent = tokio_test::task::spawn(scope.run(TaskGroup::run(|group| async move {
        group.spawn(async move {
            step.bump();
            sleeper(counter).await
        });
        ok(())
    })));
    assert_pending!(parent.poll());
    settle().await;
    assert_eq!(first.get(), 1);
    scope.cancel("outside");
    let _ = parent.poll();
    settle().await;
    let error = assert_ready!(parent.poll()).unwrap().unwrap_err();
    assert_eq!((first.get(), seen.get()), (1, 1));
    assert!(error.is_cancelled());
}

/// The choice: it never runs, and is reported as not started.
#[tokio::test(start_paused = true)]
async fn g_60_a_child_whose_body_fails_first_never_runs() {
    let (polled, dropped) = (Counter::default(), Counter::default());
    let (polls, guard) = (polled.clone(), Dropped(dropped.clone()));
    let mut child = None;
    let place = &mut child;
    let (result, report) = TaskGroup::builder()
        .run_reported(|group| async move {
            *place = Some(group.spawn(async move {
                polls.bump();
                drop(guard);
            }));
            fail::<()>("body")
        })
        .await;
    assert_eq!(texts(result.unwrap_err().failures()), ["body"]);
    assert_eq!((polled.get(), dropped.get(), report.not_started), (0, 1, 1));
    assert!(matches!(child.unwrap().await, Err(HandleError::NotStarted { .. })));
}

#[test]
fn g_61_a_timeout_does_not_replace_the_failure_of_a_group_inside() {
    both(async || {
        let clock = Clock::start();
        let scope = Scope::new();
        let run = scope.run(async {
            let mut handle = None;
            let timeout = with_timeout_handle(ms(30), |timeout| {
                handle = Some(timeout);
                TaskGroup::run(|group| async move {
                    group.spawn(fail_after(ms(10), "boom"));
                    group.spawn(async {
                        let answer = sleep(LONG).or_cancelled().await;
                        cleanup(secs(1), sleep(ms(50))).await?;
                        Ok::<(), TaskError>(answer?)
                    });
                    ok(())
                })
            });
            let result = timeout.await;
            clock.at(60);
            assert!(handle.unwrap().expired());
            result
        });
        match run.await.unwrap() {
            Err(TimeoutError::Failed(error)) => assert_eq!(texts(error.failures()), ["boom"]),
            other => panic!("{other:?}"),
        }
        assert_eq!((scope.cancelling(), scope.is_cancelled()), (0, false));
    });
}

#[test]
fn g_62_a_failing_body_without_children_is_wrapped_too() {
    both(async || {
        let error = TaskGroup::run(|_group| async { fail::<()>("body") }).await.unwrap_err();
        assert_eq!(texts(error.failures()), ["body"]);
        assert_eq!(error.failures()[0].downcast_ref(), Some(&Boom("body")));
    });
}

#[test]
fn g_64_two_failures_at_once_are_both_in_the_aggregate() {
    both(async || {
        // Each has its failure at hand when it hears of the other.
        let error = TaskGroup::run(|group| async move {
            group.spawn(fails_in_cleanup("child"));
            sleep(ms(10)).await;
            fail::<()>("body")
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["child", "body"]);
    });
    let paused = async || {
        if !is_paused() {
            return;
        }
        let error = TaskGroup::run(|group| async move {
            group.spawn(fail_after(ms(10), "one"));
            group.spawn(fail_after(ms(10), "two"));
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["one", "two"]);
    };
    both(paused);
}

#[tokio::test(start_paused = true)]
async fn g_65_two_children_take_turns() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&log);
    TaskGroup::run(|group| async move {
        for name in ["a", "b"] {
            let log = Arc::clone(&log);
            group.spawn(async move {
                for round in 0..3 {
                    log.try_lock().unwrap().push((name, round));
                    yield_now().await;
                }
            });
        }
        ok(())
    })
    .await
    .unwrap();
    let log = seen.lock().await;
    for (round, turns) in log.chunks(2).enumerate() {
        // Who is first in a round is tokio's to decide.
        let mut turns = turns.to_vec();
        turns.sort_unstable();
        assert_eq!(turns, [("a", round), ("b", round)]);
    }
    assert_eq!(log.len(), 6);
}

#[test]
fn g_66_cancelling_the_outer_group_cancels_every_leaf() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        let clock = Clock::start();
        TaskGroup::run(|outer| async move {
            for _ in 0..2 {
                let counter = counter.clone();
                outer.spawn(TaskGroup::run(|inner| async move {
                    for _ in 0..2 {
                        inner.spawn(sleeper(counter.clone()));
                    }
                    ok(())
                }));
            }
            sleep(ms(10)).await;
            outer.cancel("all");
            ok(())
        })
        .await
        .unwrap();
        clock.at(10);
        assert_eq!(seen.get(), 4);
    });
}

/// The choice, as in G-46: it does not start.
#[test]
fn g_67_a_group_below_a_cancelled_scope_refuses_to_spawn() {
    both(async || {
        let polled = Counter::default();
        let polls = polled.clone();
        let scope = Scope::new();
        let inside = scope.clone();
        let late = scope
            .run(async move {
                inside.cancel("enough");
                TaskGroup::run(|group| async move { ok(group.spawn(async move { polls.bump() })) }).await
            })
            .await
            .unwrap()
            .unwrap();
        assert_eq!(polled.get(), 0);
        match late.await {
            Err(HandleError::Refused { cancelled: Some(cancelled), .. }) => {
                assert_eq!(cancelled.scope(), scope.id());
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn g_69_only_the_real_error_is_left_after_both_scopes_were_cancelled() {
    both(async || {
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(TaskGroup::run(|group| async move {
            group.spawn(sleeper(Counter::default()));
            group.spawn(fails_in_cleanup("real"));
            sleep(ms(10)).await;
            group.cancel("inner");
            inside.cancel("outer");
            sleeper(Counter::default()).await
        }));
        let error = run.await.unwrap().unwrap_err();
        assert_eq!(texts(error.failures()), ["real"]);
        assert!(error.failures()[0].downcast_ref::<Cancelled>().is_none());
        assert!(scope.is_cancelled());
    });
}

#[test]
fn g_70_nesting_is_kept() {
    both(async || {
        let error = TaskGroup::run(|outer| async move {
            outer.spawn(sleeper(Counter::default()));
            outer.task("outer").spawn(fails_in_cleanup("outer"));
            TaskGroup::run(|inner| async move {
                inner.spawn(sleeper(Counter::default()));
                inner.spawn(fail_after(ms(10), "inner"));
                ok(())
            })
            .await?;
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["outer", "nested"]);
        let inner = error.failures()[1].downcast_ref::<GroupError>().unwrap();
        assert_eq!(texts(inner.failures()), ["inner"]);
    });
}

#[test]
fn g_75_a_group_that_has_failed_refuses_as_well() {
    both(async || {
        let mut kept = None;
        let place = &mut kept;
        let failed = TaskGroup::run(|group| async move {
            *place = Some(group);
            fail::<()>("boom")
        });
        assert!(failed.await.is_err());
        let ended = TaskGroup::run(|group| async move { ok(group) }).await.unwrap();
        for group in [kept.unwrap(), ended] {
            let late = group.spawn(async {}).await;
            assert!(matches!(late, Err(HandleError::Refused { .. })), "{late:?}");
        }
    });
}

/// The choice, as in G-60: it does not start.
#[tokio::test(start_paused = true)]
async fn g_76_a_child_that_is_cancelled_right_after_its_spawn_never_runs() {
    let polled = Counter::default();
    let polls = polled.clone();
    let child = TaskGroup::run(|group| async move {
        let child = group.spawn(async move { polls.bump() });
        group.cancel("enough");
        ok(child)
    });
    let child = child.await.unwrap();
    assert_eq!(polled.get(), 0);
    assert!(matches!(child.await, Err(HandleError::NotStarted { .. })));
}

/// Adapted: the origin is the scope that was asked, by id and name; a failed sibling is named.
#[test]
fn g_77_the_cancelled_error_carries_reason_and_origin() {
    both(async || {
        TaskGroup::builder()
            .name("import")
            .run(|group| async move {
                let child = group.spawn(sleeper(Counter::default()));
                sleep(ms(10)).await;
                group.cancel("the user pressed escape");
                let answer = sleep(LONG).or_cancelled().await.unwrap_err();
                assert_eq!(answer.to_string(), "cancelled: the user pressed escape");
                assert_eq!(answer.scope(), group.scope().id());
                assert_eq!(answer.request().scope_name(), "import");
                let ended = cleanup(secs(1), child).await?;
                match ended {
                    Err(HandleError::Cancelled { cancelled, .. }) => {
                        assert_eq!(cancelled.to_string(), "cancelled: the user pressed escape");
                    }
                    other => panic!("{other:?}"),
                }
                ok(())
            })
            .await
            .unwrap();
        TaskGroup::run(|group| async move {
            group.task("breaker").spawn(fail_after(ms(10), "boom"));
            let answer = sleep(LONG).or_cancelled().await.unwrap_err();
            assert!(matches!(answer.reason(), Reason::SiblingFailed(name) if name == "breaker"));
            ok(())
        })
        .await
        .unwrap_err();
    });
}

#[test]
fn g_79_a_crash_during_the_own_cancellation_is_in_the_aggregate() {
    both(async || {
        let error = TaskGroup::run(|group| async move {
            group.spawn(fails_in_cleanup("second"));
            group.spawn(fail_after(ms(10), "first"));
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["first", "second"]);
        let error = TaskGroup::run(|group| async move {
            group.spawn(fails_in_cleanup("child"));
            sleep(ms(10)).await;
            fail::<()>("host")
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["child", "host"]);
    });
}

#[test]
fn g_80_a_group_that_is_cancelled_while_it_waits_goes_on_waiting() {
    both(async || {
        let (clock, cleaned) = (Clock::start(), Counter::default());
        let counter = cleaned.clone();
        let end = cancelled_at(ms(10), async move {
            let group = TaskGroup::run(|group| async move {
                group.spawn(async move {
                    let answer = sleep(LONG).or_cancelled().await;
                    cleanup(secs(1), sleep(ms(30))).await?;
                    counter.bump();
                    Ok::<(), TaskError>(answer?)
                });
                ok(())
            });
            ok(group.await)
        });
        assert!(end.await.unwrap().unwrap_err().is_cancelled());
        clock.at(40);
        assert_eq!(cleaned.get(), 1);
    });
}

#[test]
fn g_81_an_empty_group_in_a_cancelled_scope_is_no_cancellation_point() {
    both(async || {
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            inside.cancel("before");
            TaskGroup::run(|_group| async { ok(7) }).await
        });
        assert_eq!(run.await.unwrap().unwrap(), 7);
    });
}

/// An error of a user with a cancellation inside.
#[derive(Debug)]
struct Wrapped(Cancelled);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("wrapped")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// Adapted: a cancellation is found in the sources of any error, so nothing has to be filtered afterwards;
/// `failure` says that it is a failure all the same.
#[test]
fn g_84_a_wrapped_cancellation_is_no_member_and_the_real_error_stays() {
    both(async || {
        let error = TaskGroup::run(|outer| async move {
            outer.spawn(async {
                let answer = sleep(LONG).or_cancelled().await;
                answer.map_err(Wrapped)
            });
            outer.spawn(TaskGroup::run(|inner| async move {
                inner.spawn(async {
                    let answer = sleep(LONG).or_cancelled().await;
                    answer.map_err(Wrapped)
                });
                ok(())
            }));
            outer.spawn(async {
                let answer = sleep(LONG).or_cancelled().await;
                answer.map_err(|cancelled| failure(Wrapped(cancelled)))
            });
            outer.spawn(fail_after(ms(10), "real"));
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["real", "wrapped"]);
    });
}

#[test]
fn g_85_children_of_both_groups_that_fail_in_cleanup_keep_their_place() {
    both(async || {
        let end = cancelled_at(ms(10), async {
            let outer = TaskGroup::run(|outer| async move {
                outer.spawn(fails_in_cleanup("outer"));
                TaskGroup::run(|inner| async move {
                    inner.spawn(fails_in_cleanup("inner"));
                    ok(())
                })
                .await?;
                ok(())
            });
            ok(outer.await)
        });
        let error = end.await.unwrap().unwrap_err();
        assert_eq!(texts(error.failures()), ["outer", "nested"]);
        assert_eq!(texts(&error.flatten()), ["outer", "inner"]);
    });
}

#[test]
fn g_86_the_children_are_cancelled_although_the_host_is_in_a_section() {
    both(async || {
        let clock = Clock::start();
        let end = cancelled_at(ms(10), async move {
            let group = TaskGroup::run(|group| async move {
                let child = group.spawn(sleeper(Counter::default()));
                let host = cleanup(secs(1), async {
                    let ended = child.await;
                    clock.at(10);
                    assert!(matches!(ended, Err(HandleError::Cancelled { .. })), "{ended:?}");
                    sleep(ms(40)).await;
                });
                host.await?;
                clock.at(50);
                ok(())
            });
            ok(group.await)
        });
        assert!(end.await.unwrap().unwrap_err().is_cancelled());
        clock.at(50);
    });
}

#[test]
fn g_87_a_refused_cancel_is_not_delivered_again_and_again() {
    both(async || {
        let (leaf, host) = (Counter::default(), Counter::default());
        let (leaf_polls, host_polls) = (leaf.clone(), host.clone());
        let clock = Clock::start();
        let end = cancelled_at(ms(10), async move {
            let outer = TaskGroup::run(|outer| async move {
                outer.spawn(async {});
                outer.spawn(TaskGroup::run(|inner| async move {
                    inner.spawn(Polled::new(&leaf_polls, cleanup(secs(1), sleep(ms(100)))));
                    ok(())
                }));
                ok(())
            });
            ok(Polled::new(&host_polls, outer).await)
        });
        let _ = end.await.unwrap();
        clock.at(100);
        // The first, one to ask, one for the timer, and one to spare each.
        assert!(leaf.get() <= 4, "the leaf was polled {} times", leaf.get());
        assert!(host.get() <= 8, "the host was polled {} times", host.get());
    });
}

/// Adapted: a handle is a future, so "not finished" is `is_finished`, and no wait ever raises.
#[test]
fn g_89_a_handle_tells_value_and_failure_and_the_group_keeps_its_copy() {
    both(async || {
        let error = TaskGroup::run(|group| async move {
            let value = group.spawn(async {
                sleep(ms(10)).await;
                ok(7)
            });
            assert!(!value.is_finished());
            assert_eq!(value.await?, 7);
            let failing = group.task("failing").spawn(fail_after(ms(10), "boom"));
            match failing.await {
                Err(HandleError::Failed(failure)) => {
                    assert_eq!(failure.name(), "failing");
                    assert_eq!(failure.downcast_ref(), Some(&Boom("boom")));
                }
                other => panic!("{other:?}"),
            }
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["boom"]);
    });
}

/// Adapted where the child has not started: it never runs, and the handle says so.
#[test]
fn g_90_a_cancelled_child_is_told_apart_from_a_cancelled_waiter() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        TaskGroup::run(|group| async move {
            let task = group.spawn(sleeper(counter));
            sleep(ms(10)).await;
            assert!(task.cancel_because("by hand"));
            assert!(!task.is_finished() || !is_paused());
            assert_eq!(task.scope().cancelling(), 1);
            let ended = task.await;
            assert!(matches!(ended, Err(HandleError::Cancelled { .. })), "{ended:?}");
            assert!(!ended.unwrap_err().is_waiter_cancelled());

            let borrowed = group.spawn(sleep(ms(50)));
            let waiter = group.spawn_value(borrowed);
            sleep(ms(10)).await;
            waiter.cancel();
            assert!(waiter.await?.unwrap_err().is_waiter_cancelled());
            ok(())
        })
        .await
        .unwrap();
        assert_eq!(seen.get(), 1);
        if is_paused() {
            TaskGroup::run(|group| async move {
                let new = group.spawn(async {});
                assert!(new.cancel());
                assert!(matches!(new.await, Err(HandleError::NotStarted { .. })));
                ok(())
            })
            .await
            .unwrap();
        }
    });
}

#[test]
fn g_91_cancelling_a_group_whose_child_has_just_finished_changes_nothing() {
    both(async || {
        let (value, child) = TaskGroup::run(|group| async move {
            let child = group.spawn(async { ok(1) });
            while !child.is_finished() {
                yield_now().await;
            }
            group.cancel("too late");
            ok((7, child))
        })
        .await
        .unwrap();
        assert_eq!((value, child.await.unwrap()), (7, 1));
        // The scope around it has nothing to answer either.
        sleep(ms(1)).or_cancelled().await.unwrap();
    });
}
