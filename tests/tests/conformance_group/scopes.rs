//! Section S: cancel, uncancel, shield, scopes.

use std::future::pending;
use std::sync::Arc;

use stoppable::{
    Cancelled, HandleError, InScopeExt, OrCancelledExt, Reason, Scope, ShutdownQueue, TaskError, TaskGroup,
    checkpoint, cleanup, ok, root, with_timeout,
};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::sleep;
use tokio_test::{assert_pending, assert_ready};

use crate::kit::{
    Boom, Clock, Counter, Dropped, LONG, as_task, both, cancelled_at, fail, fail_after, is_paused, ms, secs,
    settle, sleeper, texts,
};

#[test]
fn s_01_a_sleeping_task_is_cancelled_and_a_further_cancel_says_no() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        TaskGroup::run(|group| async move {
            let mut task = group.spawn(sleeper(counter));
            sleep(ms(10)).await;
            assert!(task.cancel());
            assert!(matches!((&mut task).await, Err(HandleError::Cancelled { .. })));
            assert!(!task.cancel());
            ok(())
        })
        .await
        .unwrap();
        assert_eq!(seen.get(), 1);
    });
}

#[tokio::test(start_paused = true)]
async fn s_02_two_cancels_before_the_first_run_are_counted_and_end_it_once() {
    let ((), report) = {
        let (result, report) = TaskGroup::builder()
            .run_reported(|group| async move {
                let task = group.spawn(sleeper(Counter::default()));
                assert!(task.cancel());
                assert!(task.cancel());
                assert_eq!(task.scope().cancelling(), 2);
                assert!(matches!(task.await, Err(HandleError::NotStarted { .. })));
                ok(())
            })
            .await;
        (result.unwrap(), report)
    };
    assert_eq!((report.not_started, report.ended()), (1, 1));
    // The same for one that has run: one answer.
    let seen = Counter::default();
    let counter = seen.clone();
    TaskGroup::run(|group| async move {
        let task = group.spawn(sleeper(counter));
        settle().await;
        assert!(task.cancel() && task.cancel());
        assert_eq!(task.scope().cancelling(), 2);
        assert!(matches!(task.await, Err(HandleError::Cancelled { .. })));
        ok(())
    })
    .await
    .unwrap();
    assert_eq!(seen.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn s_04_a_request_that_was_taken_back_before_it_was_seen_vanishes() {
    TaskGroup::run(|group| async move {
        // Not started, and runnable in a later step.
        let fresh = group.spawn(async { ok(sleep(ms(10)).or_cancelled().await?) });
        fresh.cancel();
        assert_eq!(fresh.scope().uncancel(), 0);
        fresh.await?;
        let running = group.spawn(async { ok(sleep(ms(10)).or_cancelled().await?) });
        settle().await;
        running.cancel();
        assert_eq!(running.scope().uncancel(), 0);
        running.await?;
        ok(())
    })
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn s_05_the_reason_arrives_at_the_awaiter_also_when_the_task_had_not_started() {
    fn reason<T>(ended: Result<T, HandleError>) -> (bool, String) {
        match ended {
            Err(HandleError::Cancelled { cancelled, .. }) => (true, cancelled.reason().to_string()),
            Err(HandleError::NotStarted { cancelled, .. }) => (false, cancelled.reason().to_string()),
            _ => panic!("it was not cancelled"),
        }
    }
    TaskGroup::run(|group| async move {
        let started = group.spawn(sleeper(Counter::default()));
        settle().await;
        started.cancel_because("started");
        assert_eq!(reason(started.await), (true, "started".to_owned()));
        let fresh = group.spawn(sleeper(Counter::default()));
        fresh.cancel_because(Reason::error(Boom("fresh")));
        assert_eq!(reason(fresh.await), (false, "fresh".to_owned()));
        ok(())
    })
    .await
    .unwrap();
}

/// Adapted: the yield is `checkpoint`.
#[test]
fn s_06_a_task_between_checkpoints_is_cancelled_at_the_next() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        TaskGroup::run(|group| async move {
            let task = group.spawn(async move {
                loop {
                    checkpoint().await?;
                    counter.bump();
                }
                #[allow(unreachable_code)]
                ok(())
            });
            while seen.get() < 10 {
                yield_now().await;
            }
            task.cancel();
            let before = seen.get();
            assert!(matches!(task.await, Err(HandleError::Cancelled { .. })));
            assert!(!is_paused() || seen.get() == before);
            ok(())
        })
        .await
        .unwrap();
    });
}

/// Adapted: who waits for a sender that went away gets its error, a result, and not `Cancelled`; so it is
/// with a cancel in the same step, since a result wins.
#[tokio::test(start_paused = true)]
async fn s_07_an_awaited_future_that_is_gone_is_no_cancellation() {
    for both_at_once in [false, true] {
        let (tx, rx) = oneshot::channel::<()>();
        let error = TaskGroup::run(|group| async move {
            let task = group.spawn(async { ok(rx.or_cancelled().await??) });
            settle().await;
            if both_at_once {
                task.cancel();
            }
            drop(tx);
            assert!(matches!(task.await, Err(HandleError::Failed(_))));
            ok(())
        })
        .await
        .unwrap_err();
        assert!(error.find::<oneshot::error::RecvError>().is_some());
        assert_eq!(error.failures().len(), 1);
    }
}

#[test]
fn s_09_a_task_that_cancels_itself_does_not_sleep() {
    both(async || {
        let clock = Clock::start();
        TaskGroup::run(|group| async move {
            let task = group.spawn(async {
                Scope::current().unwrap().cancel("myself");
                ok(sleep(LONG).or_cancelled().await?)
            });
            assert!(matches!(task.await, Err(HandleError::Cancelled { .. })));
            let plain = group.spawn(async {
                Scope::current().unwrap().cancel("myself");
                sleep(LONG).await;
            });
            assert!(matches!(plain.await, Err(HandleError::Cancelled { .. })));
            ok(())
        })
        .await
        .unwrap();
        clock.at(0);
    });
}

/// The choice: the value is kept.
#[test]
fn s_10_a_task_that_cancels_itself_and_returns_keeps_its_value() {
    both(async || {
        let value = TaskGroup::run(|group| async move {
            let task = group.spawn(async {
                Scope::current().unwrap().cancel("myself");
                ok(7)
            });
            ok(task.await?)
        });
        assert_eq!(value.await.unwrap(), 7);
    });
}

#[test]
fn s_12_a_cancelled_sleeper_drops_its_timer_and_the_awaiter_sees_it() {
    both(async || {
        let dropped = Counter::default();
        let guards = [Dropped(dropped.clone()), Dropped(dropped.clone())];
        let clock = Clock::start();
        TaskGroup::run(|group| async move {
            let [one, two] = guards;
            let direct = group.spawn(async move {
                let timer = async {
                    sleep(LONG).await;
                    drop(one);
                };
                Ok::<(), TaskError>(timer.or_cancelled().await?)
            });
            let nested = group.spawn(async move {
                let inner = async {
                    sleep(LONG).await;
                    drop(two);
                };
                inner.await;
            });
            sleep(ms(10)).await;
            direct.cancel();
            nested.cancel();
            assert!(matches!(direct.await, Err(HandleError::Cancelled { .. })));
            assert!(matches!(nested.await, Err(HandleError::Cancelled { .. })));
            ok(())
        })
        .await
        .unwrap();
        clock.at(10);
        assert_eq!(dropped.get(), 2);
    });
}

#[test]
fn s_14_the_inner_code_sees_a_cancel_before_the_outer() {
    both(async || {
        let log = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (inner_log, outer_log) = (Arc::clone(&log), Arc::clone(&log));
        let (mut tx, rx) = oneshot::channel::<()>();
        let end = cancelled_at(ms(10), async move {
            let inner = async move {
                let answer = rx.or_cancelled().await;
                inner_log.lock().unwrap().push("inner");
                answer
            };
            let answer = inner.await;
            outer_log.lock().unwrap().push("outer");
            ok(answer??)
        });
        assert!(matches!(end.await, Err(HandleError::Cancelled { .. })));
        assert_eq!(*log.lock().unwrap(), ["inner", "outer"]);
        // What was awaited is gone too.
        tx.closed().await;
    });
}

#[test]
fn s_15_a_wait_over_a_child_task_does_not_own_it() {
    both(async || {
        let clock = Clock::start();
        TaskGroup::run(|group| async move {
            let child = group.spawn(sleep(ms(30)));
            let scope = child.scope();
            let waiter = group.spawn_value(async move {
                let mut children = [child];
                let (ended, _, _) = futures::future::select_all(&mut children).await;
                ended
            });
            sleep(ms(10)).await;
            waiter.cancel();
            assert!(waiter.await?.unwrap_err().is_waiter_cancelled());
            clock.at(10);
            assert!(!scope.is_cancelled());
            ok(())
        })
        .await
        .unwrap();
        clock.at(30);
    });
}

#[test]
fn s_16_a_shield_passes_result_and_failure_through() {
    both(async || {
        TaskGroup::run(|group| async move {
            let value = group.shield(async {
                sleep(ms(10)).await;
                ok(7)
            });
            assert_eq!(value.await?, 7);
            let failing = group.shield(fail_after(ms(10), "boom"));
            match failing.await {
                Err(HandleError::Failed(failure)) => assert_eq!(failure.downcast_ref(), Some(&Boom("boom"))),
                other => panic!("{other:?}"),
            }
            ok(())
        })
        .await
        // Whoever waits gets the failure, and it is then his to pass on.
        .unwrap();
    });
}

/// Shielded work that tells its scope.
async fn telling(tell: oneshot::Sender<Scope>, time: std::time::Duration) -> Result<u32, TaskError> {
    let _ = tell.send(Scope::current().unwrap());
    sleep(time).or_cancelled().await?;
    ok(7)
}

#[test]
fn s_17_a_shield_whose_inner_work_is_cancelled_says_so() {
    both(async || {
        TaskGroup::run(|group| async move {
            let (tx, rx) = oneshot::channel();
            let shield = group.shield(telling(tx, LONG));
            rx.await?.cancel("inner");
            match shield.await {
                Err(HandleError::Cancelled { cancelled, .. }) => {
                    assert_eq!(cancelled.to_string(), "cancelled: inner");
                }
                other => panic!("{other:?}"),
            }
            ok(())
        })
        .await
        .unwrap();
    });
}

#[test]
fn s_19_a_shield_of_what_is_done_gives_its_result() {
    both(async || {
        TaskGroup::run(|group| async move {
            let shield = group.shield(async { ok(7) });
            while group.live() > 0 {
                yield_now().await;
            }
            let mut shield = tokio_test::task::spawn(shield);
            assert_eq!(assert_ready!(shield.poll())?, 7);
            assert_eq!(group.shield(std::future::ready(ok(8))).await?, 8);
            ok(())
        })
        .await
        .unwrap();
    });
}

#[test]
fn s_20_shielded_work_goes_on_when_its_waiter_is_cancelled() {
    both(async || {
        let (clock, done) = (Clock::start(), Counter::default());
        let counter = done.clone();
        TaskGroup::run(|group| async move {
            let work = group.clone();
            let waiter = group.spawn_value(async move {
                let shield = work.shield(async move {
                    sleep(ms(30)).or_cancelled().await?;
                    counter.bump();
                    ok(())
                });
                shield.await
            });
            sleep(ms(10)).await;
            waiter.cancel();
            assert!(waiter.await?.unwrap_err().is_waiter_cancelled());
            clock.at(10);
            ok(())
        })
        .await
        .unwrap();
        clock.at(30);
        assert_eq!(done.get(), 1);
    });
}

/// A gather is a group here.
#[test]
fn s_21_shields_around_and_inside_a_gather_keep_the_work_alive() {
    both(async || {
        let done = Counter::default();
        let counter = done.clone();
        TaskGroup::run(|group| async move {
            let work = move || {
                let counter = counter.clone();
                async move {
                    sleep(ms(30)).or_cancelled().await?;
                    counter.bump();
                    ok(())
                }
            };
            let (around, inside) = (group.clone(), group.clone());
            let works = work.clone();
            let shield_of_gather = group.spawn_value(async move {
                let gather = TaskGroup::run(|inner| async move {
                    let both = [inner.spawn(works()), inner.spawn(works())];
                    for one in both {
                        one.await?;
                    }
                    ok(())
                });
                around.shield(gather).await
            });
            let gather_of_shields = group.spawn_value(async move {
                let shields = [inside.shield(work()), inside.shield(work())];
                futures::future::join_all(shields).await
            });
            sleep(ms(10)).await;
            shield_of_gather.cancel();
            gather_of_shields.cancel();
            assert!(shield_of_gather.await?.unwrap_err().is_waiter_cancelled());
            for waiter in gather_of_shields.await? {
                assert!(waiter.unwrap_err().is_waiter_cancelled());
            }
            ok(())
        })
        .await
        .unwrap();
        assert_eq!(done.get(), 4);
    });
}

#[test]
fn s_22_a_shielded_future_is_a_task_that_runs_by_itself() {
    both(async || {
        let done = Counter::default();
        let counter = done.clone();
        TaskGroup::run(|group| async move {
            let shield = group.shield(async move {
                assert!(tokio::task::try_id().is_some());
                yield_now().await;
                counter.bump();
            });
            // Never polled.
            drop(shield);
            ok(())
        })
        .await
        .unwrap();
        assert_eq!(done.get(), 1);
    });
}

#[test]
fn s_24_the_inner_work_of_a_shield_is_not_asked() {
    both(async || {
        let clock = Clock::start();
        TaskGroup::run(|group| async move {
            let (tx, rx) = oneshot::channel();
            let work = group.clone();
            let waiter = group.spawn_value(async move { work.shield(telling(tx, ms(30))).await });
            let inner = rx.await?;
            sleep(ms(10)).await;
            waiter.cancel();
            assert!(waiter.await?.unwrap_err().is_waiter_cancelled());
            clock.at(10);
            assert_eq!((inner.cancelling(), inner.is_cancelled()), (0, false));
            ok(())
        })
        .await
        .unwrap();
        clock.at(30);
    });
}

/// Adapted: told apart by type, `Cancelled` or `WaiterCancelled`, not by count.
#[test]
fn s_26_a_cancelled_inner_work_is_no_cancel_of_the_awaiter() {
    both(async || {
        TaskGroup::run(|group| async move {
            let (tx, rx) = oneshot::channel();
            let work = group.clone();
            let waiter = group.spawn(async move {
                let ended = work.shield(telling(tx, LONG)).await;
                let own = Scope::current().unwrap();
                ok((
                    matches!(ended, Err(HandleError::Cancelled { .. })),
                    own.cancelling(),
                    own.is_cancelled(),
                ))
            });
            rx.await?.cancel("somebody else");
            assert_eq!(waiter.await?, (true, 0, false));
            ok(())
        })
        .await
        .unwrap();
    });
}

/// The choice: a wait that starts in a cancelled scope answers, though a result is there.
#[test]
fn s_27_a_shield_in_a_task_that_is_cancelled_answers() {
    both(async || {
        TaskGroup::run(|group| async move {
            let shield = group.shield(async { ok(7) });
            while group.live() > 0 {
                yield_now().await;
            }
            let task = group.spawn_value(async move {
                Scope::current().unwrap().cancel("pending");
                shield.await
            });
            assert!(task.await?.unwrap_err().is_waiter_cancelled());
            ok(())
        })
        .await
        .unwrap();
    });
}

/// Adapted: what was taken back before the wait was polled again has not happened.
#[tokio::test(start_paused = true)]
async fn s_29_cancel_and_uncancel_while_it_waits_is_nothing() {
    let scope = Scope::new();
    let (tx, rx) = oneshot::channel::<u32>();
    let mut run = tokio_test::task::spawn(scope.run(async { rx.or_cancelled().await }));
    assert_pending!(run.poll());
    scope.cancel("never mind");
    assert_eq!(scope.uncancel(), 0);
    assert_pending!(run.poll());
    tx.send(7).unwrap();
    assert_eq!(assert_ready!(run.poll()).unwrap().unwrap().unwrap(), 7);
    assert_eq!(scope.cancelling(), 0);
}

#[test]
fn s_30_uncancel_at_zero_stays_zero() {
    let scope = Scope::new();
    assert_eq!((scope.uncancel(), scope.cancelling()), (0, 0));
    scope.cancel(());
    assert_eq!((scope.uncancel(), scope.uncancel(), scope.cancelling()), (0, 0, 0));
    scope.cancel(());
    assert_eq!((scope.cancelling(), scope.is_cancelled()), (1, true));
}

#[test]
fn s_32_a_task_that_cancels_itself_and_fails_has_failed() {
    both(async || {
        let error = TaskGroup::run(|group| async move {
            group.spawn(async {
                Scope::current().unwrap().cancel("myself");
                fail::<()>("boom")
            });
            ok(())
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["boom"]);
    });
}

#[test]
fn s_34_two_cancels_and_one_uncancel_leave_one() {
    both(async || {
        let end = as_task(async {
            let scope = Scope::current().unwrap();
            scope.cancel("one");
            scope.cancel("two");
            assert_eq!(scope.uncancel(), 1);
            let answer = sleep(LONG).or_cancelled().await.unwrap_err();
            assert_eq!(scope.cancelling(), 1);
            ok(answer.to_string())
        });
        assert_eq!(end.await.unwrap(), "cancelled: one");
    });
}

/// Adapted: the clean-up is in a section, and a second request does not reach it either.
#[test]
fn s_35_a_second_cancel_does_not_interrupt_the_cleanup() {
    both(async || {
        let (clock, cleaned) = (Clock::start(), Counter::default());
        let counter = cleaned.clone();
        let scope = Scope::new();
        let run = scope.run(async move {
            assert!(sleep(LONG).or_cancelled().await.is_err());
            cleanup(secs(1), sleep(ms(50)).or_cancelled()).await.unwrap().unwrap();
            counter.bump();
        });
        let outside = async {
            sleep(ms(10)).await;
            scope.cancel("one");
            sleep(ms(10)).await;
            scope.cancel("two");
        };
        let (run, ()) = tokio::join!(run, outside);
        run.unwrap();
        clock.at(60);
        assert_eq!((cleaned.get(), scope.cancelling()), (1, 2));
    });
}

#[test]
fn s_36_every_stoppable_wait_answers_and_none_does_inside_a_section() {
    /// Each wait once. Inside a section all of them have something to give.
    async fn waits(group: &TaskGroup, queue: &ShutdownQueue<u32>) -> Vec<bool> {
        let mut answered = vec![
            checkpoint().await.is_err(),
            sleep(ms(1)).or_cancelled().await.is_err(),
            Scope::new().run(sleep(ms(1))).await.is_err(),
            queue.send(1).await.is_err(),
            queue.reserve().await.is_err(),
        ];
        let received = queue.recv().await;
        answered.push(received.is_err());
        drop(received);
        answered.push(queue.join().await.is_err());
        answered.push(group.spawn_when_free(async {}).await.is_err());
        answered.push(root().join().await.is_err());
        answered
    }
    both(async || {
        // The spawner has a group that is not cancelled, and waits in a scope that is.
        TaskGroup::run(|group| async move {
            let queue = ShutdownQueue::bounded(10);
            let scope = Scope::new();
            let mut done = group.spawn(async {});
            while !done.is_finished() {
                yield_now().await;
            }
            scope
                .run(async {
                    scope.cancel("enough");
                    let inside = cleanup(secs(5), waits(&group, &queue)).await.unwrap();
                    assert_eq!(inside, [false; 9]);
                    assert_eq!(waits(&group, &queue).await, [true; 9]);
                    assert!((&mut done).await.unwrap_err().is_waiter_cancelled());
                    // Plain waits do not answer: what is ready goes on.
                    std::future::ready(()).await;
                    cleanup(secs(5), done).await.unwrap().unwrap();
                })
                .await?;
            ok(())
        })
        .await
        .unwrap();
    });
}

/// The choice: until taken back, so both answer.
#[test]
fn s_37_a_cancel_is_idempotent_and_both_waits_answer() {
    both(async || {
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            inside.cancel("first");
            inside.cancel("second");
            let one = sleep(LONG).or_cancelled().await.unwrap_err();
            let two = sleep(LONG).or_cancelled().await.unwrap_err();
            (one.to_string(), two.to_string())
        });
        assert_eq!(run.await.unwrap(), ("cancelled: first".to_owned(), "cancelled: first".to_owned()));
    });
}

/// Adapted: a section is not switched off; it ends. Then whatever sleeps in it is asked at once.
#[test]
fn s_39_the_end_of_a_section_wakes_what_sleeps_inside() {
    both(async || {
        let (clock, seen) = (Clock::start(), Counter::default());
        let counter = seen.clone();
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            inside.cancel("outer");
            cleanup(
                ms(50),
                TaskGroup::run(|group| async move {
                    group.spawn(sleeper(counter.clone()));
                    sleeper(counter).await
                }),
            )
            .await
        });
        let group = run.await.unwrap();
        clock.at(50);
        // The section's own end is what they answered.
        assert!(matches!(group, Ok(Err(error)) if error.is_cancelled()));
        assert_eq!(seen.get(), 2);
    });
}

#[test]
fn s_40_the_outermost_cancelled_scope_is_named_and_an_unseen_request_goes_with_its_scope() {
    both(async || {
        let outer = Scope::named("outer");
        let inner = outer.child("inner");
        let (first, second) = (inner.clone(), outer.clone());
        let run = outer.run(async {
            let nested = inner.run(async move {
                first.cancel("inner");
                second.cancel("outer");
                sleep(LONG).or_cancelled().await
            });
            nested.await
        });
        let answer = run.await.unwrap().unwrap().unwrap_err();
        assert_eq!((answer.scope(), answer.to_string().as_str()), (outer.id(), "cancelled: outer"));

        let outer = Scope::new();
        let run = outer.run(async {
            let inner = Scope::new();
            let unseen = inner.clone();
            inner.run(async move { unseen.cancel("nobody waits") }).await.unwrap();
            sleep(ms(1)).or_cancelled().await
        });
        run.await.unwrap().unwrap();
    });
}

#[test]
fn s_41_a_section_that_opens_during_an_outer_cancel_absorbs_nothing() {
    both(async || {
        let clock = Clock::start();
        let (outer, inner) = (Scope::new(), Scope::new());
        let cancel = outer.clone();
        let run = outer.run(async {
            let nested = inner.run(async {
                cancel.cancel("outer");
                let answer = sleep(LONG).or_cancelled().await;
                cleanup(secs(1), sleep(ms(10))).await.unwrap();
                answer
            });
            nested.await
        });
        let answer = run.await.unwrap().unwrap().unwrap_err();
        clock.at(10);
        assert_eq!(answer.scope(), outer.id());
        assert!(outer.is_cancelled());
        assert_eq!(inner.cancelling(), 0);
    });
}

/// A scope can be entered again here, and is cancelled until that is taken back.
#[test]
fn s_42_a_cancel_before_the_entry_counts_and_one_after_the_exit_harms_nobody() {
    both(async || {
        let polled = Counter::default();
        let before = Scope::new();
        before.cancel("before");
        let polls = polled.clone();
        assert!(before.run(async move { polls.bump() }).await.is_err());
        assert_eq!(polled.get(), 0);
        // Once cancelled it stays so.
        assert!(before.run(async {}).await.is_err());
        before.uncancel();
        before.run(async {}).await.unwrap();

        let after = Scope::new();
        let inside = after.clone();
        let run = after.run(async move {
            inside.cancel("after");
            sleep(LONG).or_cancelled().await
        });
        assert!(run.await.unwrap().is_err());

        let outer = Scope::new();
        let run = outer.run(async {
            let left = Scope::new();
            left.run(async {}).await.unwrap();
            left.cancel("after the exit");
            sleep(ms(1)).or_cancelled().await
        });
        run.await.unwrap().unwrap();

        let overdue = stoppable::Deadline::after(ms(1));
        sleep(ms(5)).await;
        let polls = polled.clone();
        let call = with_timeout(overdue, async move {
            polls.bump();
            ok(())
        });
        assert!(call.await.unwrap_err().is_elapsed());
        assert_eq!(polled.get(), 0);
    });
}

#[test]
fn s_44_a_cancelled_scope_that_is_left_with_a_real_error_passes_it() {
    both(async || {
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            inside.cancel("enough");
            fail::<()>("real")
        });
        assert_eq!(run.await.unwrap().unwrap_err().to_string(), "real");
    });
}

#[test]
fn s_45_five_thousand_nested_scopes_are_cancelled_without_a_recursion() {
    both(async || {
        let outermost = Scope::new();
        let mut all = vec![outermost.clone()];
        for _ in 0..5_000 {
            all.push(all[all.len() - 1].child("deep"));
        }
        let innermost = all[5_000].clone();
        let wait = tokio::spawn(sleep(LONG).or_cancelled().in_scope(&innermost));
        yield_now().await;
        outermost.cancel("all");
        assert_eq!(wait.await.unwrap().unwrap_err().scope(), outermost.id());
        // Each looks all the way up.
        assert!(all.iter().step_by(100).all(Scope::is_cancelled));
        drop((all, innermost, outermost));
    });
}

#[test]
fn s_47_a_section_inside_a_cancelled_group_completes_and_then_the_cancel_is_let_in() {
    both(async || {
        let (clock, seen) = (Clock::start(), Counter::default());
        let counter = seen.clone();
        TaskGroup::run(|group| async move {
            let own = group.clone();
            group.spawn(async move {
                own.cancel("all");
                cleanup(secs(1), sleep(ms(10)).or_cancelled()).await??;
                counter.bump();
                // A scope of its own inside a section is cancelled as ever.
                let inside = cleanup(secs(1), async {
                    let scope = Scope::new();
                    let cancel = scope.clone();
                    scope
                        .run(async move {
                            cancel.cancel("own");
                            sleep(LONG).or_cancelled().await
                        })
                        .await
                });
                assert_eq!(inside.await??.unwrap_err().to_string(), "cancelled: own");
                counter.bump();
                let next = sleep(LONG).or_cancelled().await;
                assert_eq!(next.as_ref().unwrap_err().to_string(), "cancelled: all");
                counter.bump();
                ok(next?)
            });
            ok(())
        })
        .await
        .unwrap();
        clock.at(10);
        assert_eq!(seen.get(), 3);
    });
}

/// Adapted: a group absorbs its own cancel. In a section the inner one does; without, the outer cancel is
/// what the group ends with, and the code between is skipped.
#[test]
fn s_49_an_outer_cancel_while_an_inner_one_unwinds() {
    async fn inner(outer: Scope) -> Result<(), TaskError> {
        let group = TaskGroup::run(|group| async move {
            group.spawn(async {
                let answer = sleep(LONG).or_cancelled().await;
                cleanup(secs(1), sleep(ms(10))).await?;
                ok(answer?)
            });
            sleep(ms(10)).await;
            group.cancel("inner");
            outer.cancel("outer");
            ok(())
        });
        Ok(group.await?)
    }
    both(async || {
        for in_section in [false, true] {
            let (outer, between) = (Scope::new(), Counter::default());
            let (counter, cancel) = (between.clone(), outer.clone());
            let run = outer.run(async move {
                if in_section {
                    let absorbed = cleanup(secs(1), async {
                        inner(cancel).await?;
                        counter.bump();
                        ok(())
                    });
                    absorbed.await??;
                } else {
                    inner(cancel).await?;
                    counter.bump();
                }
                ok(sleep(LONG).or_cancelled().await?)
            });
            let error = run.await.unwrap().unwrap_err();
            assert!(Cancelled::is_in(&*error));
            assert!(error.to_string().ends_with("cancelled: outer"), "{error}");
            assert_eq!(between.get(), usize::from(in_section));
        }
    });
}

#[test]
fn s_50_an_inner_scope_that_cancels_itself_does_not_absorb_the_outer_cancel() {
    both(async || {
        let outer = Scope::new();
        let cancel = outer.clone();
        let run = outer.run(async {
            cancel.cancel("outer");
            // The entry alone answers.
            let inner = Scope::new();
            inner.cancel("inner");
            inner.run(async {}).await
        });
        assert_eq!(run.await.unwrap().unwrap_err().scope(), outer.id());
    });
}

#[test]
fn s_51_scopes_that_are_cancelled_inside_a_section_are_heard_outside_it() {
    both(async || {
        for cancel_outer in [true, false] {
            let outer = Scope::named("outer");
            let middle = outer.child("middle");
            let cancelled = if cancel_outer { outer.clone() } else { middle.clone() };
            let id = cancelled.id();
            let run = outer.run(middle.run(async move {
                cleanup(secs(1), async {
                    cancelled.cancel("inside");
                    checkpoint().await.unwrap();
                })
                .await
                .unwrap();
                checkpoint().await
            }));
            assert_eq!(run.await.unwrap().unwrap().unwrap_err().scope(), id);
        }
    });
}

#[test]
fn s_52_a_soft_limit_leaves_nothing_behind() {
    both(async || {
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            let soft = with_timeout(ms(10), async { ok(sleep(LONG).or_cancelled().await?) });
            assert!(soft.await.unwrap_err().is_elapsed());
            checkpoint().await.unwrap();
            let soft = with_timeout(secs(60), async { ok(sleep(ms(1)).or_cancelled().await?) });
            soft.await.unwrap();
            inside.cancel("then");
            checkpoint().await
        });
        let answer = run.await.unwrap().unwrap_err();
        assert_eq!(answer.scope(), scope.id());
        // Nothing of it escapes.
        checkpoint().await.unwrap();
    });
}

/// Adapted: the first reason stands, where in anyio the last message does.
#[test]
fn s_54_counts_are_those_of_the_outside_requests() {
    both(async || {
        let end = as_task(async {
            let scope = Scope::current().unwrap();
            // A group that cancels itself, and one whose child fails, leave nothing.
            TaskGroup::run(|group| async move {
                group.cancel("itself");
                ok(())
            })
            .await?;
            assert_eq!(scope.cancelling(), 0);
            let failed = TaskGroup::run(|group| async move {
                group.spawn(fail_after(ms(1), "boom"));
                ok(())
            });
            assert!(failed.await.is_err());
            assert_eq!((scope.cancelling(), scope.is_cancelled()), (0, false));
            // Two from outside while a group is left.
            let asked = scope.clone();
            let group = TaskGroup::run(|group| async move {
                group.spawn(sleeper(Counter::default()));
                group.spawn(async move {
                    sleep(ms(10)).await;
                    asked.cancel("first");
                    asked.cancel("second");
                });
                ok(())
            });
            let error = group.await.unwrap_err();
            assert_eq!(error.cancelled().unwrap().to_string(), "cancelled: first");
            assert_eq!(scope.cancelling(), 2);
            assert_eq!((scope.uncancel(), scope.uncancel()), (1, 0));
            checkpoint().await?;
            ok(())
        });
        end.await.unwrap();
    });
}

#[test]
fn s_55_an_outside_cancel_in_the_same_step_as_the_scopes_own_is_not_swallowed() {
    both(async || {
        for own_first in [true, false] {
            let end = as_task(async move {
                let task = Scope::current().unwrap();
                let group = TaskGroup::run(|group| async move {
                    if own_first {
                        group.cancel("own");
                        task.cancel("outside");
                    } else {
                        task.cancel("outside");
                        group.cancel("own");
                    }
                    ok(sleep(LONG).or_cancelled().await?)
                });
                let error = group.await.unwrap_err();
                assert_eq!(error.cancelled().unwrap().to_string(), "cancelled: outside");
                assert_eq!(Scope::current().unwrap().cancelling(), 1);
                Err::<(), TaskError>(error.into())
            });
            assert!(matches!(end.await, Err(HandleError::Cancelled { .. })));
        }
    });
}

#[test]
fn s_56_assorted_cancels_of_scopes() {
    both(async || {
        // Before the entry.
        let scope = Scope::new();
        scope.cancel("before");
        assert!(scope.run(pending::<()>()).await.is_err());
        // Nothing was raised, so nothing was caught: the value passes.
        let scope = Scope::new();
        let inside = scope.clone();
        assert_eq!(
            scope
                .run(async move {
                    inside.cancel("late");
                    7
                })
                .await
                .unwrap(),
            7
        );
        // Two groups in turn.
        let seen = Counter::default();
        for _ in 0..2 {
            let counter = seen.clone();
            TaskGroup::run(|group| async move {
                group.spawn(sleeper(counter));
                sleep(ms(5)).await;
                group.cancel("in turn");
                ok(())
            })
            .await
            .unwrap();
        }
        assert_eq!(seen.get(), 2);
        // Nested groups all end; a cancelled parent reaches what is spawned below.
        let counter = seen.clone();
        let clock = Clock::start();
        TaskGroup::run(|outer| async move {
            outer.spawn(TaskGroup::run(|middle| async move {
                middle.spawn(TaskGroup::run(|inner| async move {
                    inner.spawn(sleeper(counter));
                    ok(())
                }));
                ok(())
            }));
            sleep(ms(10)).await;
            outer.cancel("cascade");
            ok(())
        })
        .await
        .unwrap();
        clock.at(10);
        assert_eq!(seen.get(), 3);
    });
}
