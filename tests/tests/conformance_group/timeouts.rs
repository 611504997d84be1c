//! Section T: timeouts and deadlines.

use std::future::{pending, ready};

use stoppable::{
    Cancelled, Deadline, Elapsed, OrCancelledExt, Reason, RescheduleError, Scope, TaskError, TaskGroup,
    TimeoutError, TimeoutHandle, checkpoint, cleanup, ok, with_timeout, with_timeout_handle,
};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep};
use tokio_test::{assert_pending, assert_ready};

use crate::kit::{Boom, Clock, Counter, LONG, both, busy, cancelled_at, fail, ms, secs, sleeper, texts};

/// A timed call whose handle can be asked afterwards.
async fn timed<T, F>(
    limit: impl Into<stoppable::Limit>,
    work: impl FnOnce(TimeoutHandle) -> F,
) -> (Result<T, TimeoutError<TaskError>>, TimeoutHandle)
where
    F: Future<Output = Result<T, TaskError>>,
{
    let mut handle = None;
    let call = with_timeout_handle(limit, |timeout| {
        handle = Some(timeout.clone());
        work(timeout)
    });
    let result = call.await;
    (result, handle.unwrap())
}

/// The text of the failure of a timed call.
#[track_caller]
fn failed<T: std::fmt::Debug>(result: Result<T, TimeoutError<TaskError>>) -> String {
    match result {
        Err(TimeoutError::Failed(error)) => error.to_string(),
        other => panic!("it has not failed: {other:?}"),
    }
}

#[track_caller]
fn cancelled<T: std::fmt::Debug, E: std::fmt::Debug>(result: Result<T, TimeoutError<E>>) -> Cancelled {
    match result {
        Err(TimeoutError::Cancelled(cancelled)) => cancelled,
        other => panic!("it was not cancelled: {other:?}"),
    }
}

#[track_caller]
fn elapsed<T: std::fmt::Debug, E: std::fmt::Debug>(result: Result<T, TimeoutError<E>>) -> Elapsed {
    match result {
        Err(TimeoutError::Elapsed(elapsed)) => elapsed,
        other => panic!("it has not elapsed: {other:?}"),
    }
}

#[test]
fn t_01_a_short_limit_around_a_long_sleep_elapses() {
    both(async || {
        let clock = Clock::start();
        let (result, timeout) = timed(ms(10), |_| async { ok(sleep(LONG).await) }).await;
        clock.at(10);
        elapsed(result);
        assert!(timeout.expired());
    });
}

#[test]
fn t_02_an_absolute_limit_says_when() {
    both(async || {
        let clock = Clock::start();
        let at = Deadline::at(Instant::now() + ms(10));
        let (result, timeout) = timed(at, |_| async { ok(sleep(LONG).await) }).await;
        clock.at(10);
        assert_eq!(elapsed(result).deadline(), at);
        assert_eq!((timeout.deadline(), timeout.expired()), (at, true));
    });
}

#[test]
fn t_04_the_wait_inside_sees_a_cancellation_and_the_outside_a_timeout() {
    both(async || {
        let (result, timeout) = timed(ms(10), |timeout| async move {
            let answer = sleep(LONG).or_cancelled().await.unwrap_err();
            assert!(matches!(answer.reason(), Reason::Deadline(at) if *at == timeout.deadline()));
            assert_eq!(answer.scope(), timeout.scope().id());
            Err::<(), TaskError>(answer.into())
        })
        .await;
        assert_eq!(elapsed(result).deadline(), timeout.deadline());
    });
}

#[test]
fn t_05_a_body_that_finishes_early_meets_no_limit() {
    both(async || {
        let (result, timeout) = timed(secs(60), |_| async { ok(7) }).await;
        assert_eq!(result.unwrap(), 7);
        assert!(!timeout.expired());
        assert!(timeout.deadline().remaining().unwrap() > secs(30));
    });
}

#[test]
fn t_06_no_limit_never_expires() {
    both(async || {
        let (result, timeout) = timed(Deadline::never(), |_| async { ok(sleep(ms(50)).await) }).await;
        result.unwrap();
        assert!(!timeout.expired());
        assert_eq!(timeout.deadline().instant(), None);
    });
}

#[test]
fn t_07_a_limit_of_zero_is_now() {
    both(async || {
        let (clock, before) = (Clock::start(), Deadline::at(Instant::now()));
        let (result, timeout) = timed(ms(0), |_| async { ok(sleep(LONG).await) }).await;
        elapsed(result);
        clock.at(0);
        assert!(before <= timeout.deadline() && timeout.deadline() <= Deadline::at(Instant::now()));
        assert!(timeout.expired());
    });
}

/// Adapted: a `Duration` is not negative, so the limit is an instant that has passed.
#[test]
fn t_09_a_limit_in_the_past_elapses_at_once() {
    both(async || {
        let start = Deadline::at(Instant::now());
        // More than the clock can tell is no panic either.
        assert!(start.reserve(std::time::Duration::MAX).is_expired());
        let past = start.reserve(ms(10));
        let (result, timeout) = timed(past, |_| async { ok(yield_now().await) }).await;
        elapsed(result);
        assert!(timeout.deadline() < start && timeout.expired());
    });
}

#[test]
fn t_10_a_failure_before_the_limit_is_passed_on() {
    both(async || {
        let (result, timeout) = timed(secs(60), |_| async { fail::<()>("own") }).await;
        match result {
            Err(TimeoutError::Failed(error)) => assert_eq!(error.downcast_ref(), Some(&Boom("own"))),
            other => panic!("{other:?}"),
        }
        assert!(!timeout.expired());
    });
}

/// Adapted: errors have no context that is attached behind one's back. What the body returns counts: the
/// first error, or the cancellation.
#[test]
fn t_11_a_limit_that_strikes_while_an_error_is_handled() {
    async fn handling(keep: bool) -> Result<(), TaskError> {
        let first = fail::<()>("first");
        let answer = sleep(LONG).or_cancelled().await;
        if keep { first } else { Ok(answer?) }
    }
    both(async || {
        let (result, timeout) = timed(ms(10), |_| handling(false)).await;
        elapsed(result);
        assert!(timeout.expired());
        let (result, timeout) = timed(ms(10), |_| handling(true)).await;
        assert_eq!(failed(result), "first");
        assert!(timeout.expired());
    });
}

#[test]
fn t_12_the_own_error_of_the_body_wins_over_the_timeout() {
    both(async || {
        let (result, timeout) = timed(ms(10), |_| async {
            let answer = sleep(LONG).or_cancelled().await;
            if answer.is_err() { fail("own") } else { ok(()) }
        })
        .await;
        assert_eq!(failed(result), "own");
        assert!(timeout.expired());
    });
}

#[test]
fn t_14_an_outside_cancel_before_the_limit_is_no_timeout() {
    both(async || {
        let end = cancelled_at(ms(10), async {
            ok(timed(secs(60), |_| async { Ok(sleep(LONG).or_cancelled().await?) }).await)
        });
        let (result, timeout) = end.await.unwrap();
        assert_eq!(cancelled(result).to_string(), "cancelled: outside");
        assert!(!timeout.expired());
    });
}

#[test]
fn t_15_a_timeout_that_was_caught_does_not_cancel_the_task() {
    both(async || {
        let (result, report) = TaskGroup::builder()
            .run_reported(|group| async move {
                let task = group.spawn(async {
                    let call = with_timeout(ms(10), async { ok(sleep(LONG).or_cancelled().await?) });
                    elapsed(call.await);
                    ok(7)
                });
                ok(task.await?)
            })
            .await;
        assert_eq!(result.unwrap(), 7);
        assert_eq!((report.ok, report.cancelled), (1, 0));
    });
}

#[tokio::test(start_paused = true)]
async fn t_16_a_shorter_outer_limit_is_the_outers_also_after_busy_work() {
    let mut inner_end = None;
    let place = &mut inner_end;
    let (outer, outer_timeout) = timed(ms(10), |_| async move {
        let (inner, _) = timed(ms(20), |_| async {
            busy(ms(30));
            ok(sleep(LONG).or_cancelled().await?)
        })
        .await;
        *place = Some(inner.as_ref().err().map(TimeoutError::is_cancelled));
        Ok(inner?)
    })
    .await;
    assert_eq!(elapsed(outer).deadline(), outer_timeout.deadline());
    assert_eq!(inner_end, Some(Some(true)));
}

#[tokio::test(start_paused = true)]
async fn t_17_busy_work_over_both_limits_ends_by_the_outer_one() {
    let clock = Clock::start();
    let (outer, timeout) = timed(ms(20), |_| async {
        let (inner, _) = timed(ms(10), |_| async {
            busy(ms(25));
            ok(sleep(ms(10)).or_cancelled().await?)
        })
        .await;
        // More work, whatever became of the inner block.
        let _ = inner;
        ok(sleep(ms(10)).or_cancelled().await?)
    })
    .await;
    elapsed(outer);
    assert!(timeout.expired());
    clock.at(25);
}

/// Adapted: the facts are on the handle, and in its `Debug`.
#[tokio::test(start_paused = true)]
async fn t_19_a_handle_prints_what_is_left_and_whether_it_expired() {
    let (_, timeout) = timed(ms(10), |timeout| async move {
        assert_eq!(
            format!("{timeout:?}"),
            "TimeoutHandle { deadline: Deadline(in 10ms), expired: false, .. }"
        );
        ok(sleep(LONG).await)
    })
    .await;
    assert_eq!(format!("{timeout:?}"), "TimeoutHandle { deadline: Deadline(expired), expired: true, .. }");
    let (_, timeout) = timed(secs(1), |_| async { ok(()) }).await;
    assert_eq!(format!("{timeout:?}"), "TimeoutHandle { deadline: Deadline(in 1s), expired: false, .. }");
    assert_eq!(timeout.reschedule(secs(2)), Err(RescheduleError::Finished));
    let (_, timeout) = timed(Deadline::never(), |_| async { ok(()) }).await;
    assert_eq!(format!("{timeout:?}"), "TimeoutHandle { deadline: Deadline(never), expired: false, .. }");
}

/// Adapted: the clean-up is in a section.
#[test]
fn t_20_a_limit_inside_the_cleanup_is_its_own() {
    both(async || {
        let clock = Clock::start();
        let (result, timeout) = timed(ms(10), |_| async {
            let answer = sleep(LONG).or_cancelled().await;
            let short = with_timeout(ms(10), async { ok(sleep(LONG).or_cancelled().await?) });
            elapsed(cleanup(secs(1), short).await?);
            Ok(answer?)
        })
        .await;
        clock.at(20);
        elapsed(result);
        assert!(timeout.expired());
    });
}

/// Adapted: a request stands until it is taken back, so a section is what keeps the old one out.
#[test]
fn t_21_a_limit_after_a_swallowed_cancel_is_a_timeout_inside_a_section() {
    both(async || {
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            inside.cancel("swallowed");
            assert!(sleep(LONG).or_cancelled().await.is_err());
            assert_eq!(inside.cancelling(), 1);
            let zero = || with_timeout(ms(0), async { ok(sleep(LONG).or_cancelled().await?) });
            elapsed(cleanup(secs(1), zero()).await.unwrap());
            assert_eq!(cancelled(zero().await).to_string(), "cancelled: swallowed");
        });
        run.await.unwrap();
        assert_eq!(scope.cancelling(), 1);
    });
}

/// Adapted, as T-21.
#[test]
fn t_22_a_new_cancel_inside_the_limit_is_a_cancel() {
    both(async || {
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            inside.cancel("swallowed");
            assert!(sleep(LONG).or_cancelled().await.is_err());
            cleanup(secs(1), async {
                let fresh = Scope::new();
                let again = fresh.clone();
                fresh
                    .run(with_timeout(ms(100), async move {
                        again.cancel("new");
                        ok(sleep(LONG).or_cancelled().await?)
                    }))
                    .await
            })
            .await
        });
        let result = run.await.unwrap().unwrap().unwrap();
        assert_eq!(cancelled(result).to_string(), "cancelled: new");
    });
}

#[test]
fn t_24_a_finished_call_cannot_be_rescheduled() {
    both(async || {
        let (_, timeout) = timed(secs(60), |_| async { ok(()) }).await;
        assert_eq!(timeout.reschedule(secs(120)), Err(RescheduleError::Finished));
    });
}

#[test]
fn t_25_an_expired_call_cannot_be_rescheduled() {
    both(async || {
        let (result, timeout) = timed(ms(10), |_| async { ok(sleep(LONG).await) }).await;
        elapsed(result);
        assert_eq!(timeout.reschedule(secs(120)), Err(RescheduleError::Expired));
    });
}

#[test]
fn t_26_a_call_that_has_fired_cannot_be_revived() {
    both(async || {
        let (result, timeout) = timed(ms(10), |timeout| async move {
            assert!(sleep(LONG).or_cancelled().await.is_err());
            assert_eq!(timeout.reschedule(secs(120)), Err(RescheduleError::Expired));
            ok(7)
        })
        .await;
        assert_eq!(result.unwrap(), 7);
        assert!(timeout.expired());
    });
}

/// Adapted: a call that has not begun takes the new limit; outside of a runtime there is no clock to arm.
#[test]
fn t_27_a_call_that_has_not_begun_can_be_rescheduled() {
    both(async || {
        let clock = Clock::start();
        let mut handle = None;
        let call = with_timeout_handle(secs(60), |timeout| {
            handle = Some(timeout);
            async { ok(sleep(LONG).await) }
        });
        let timeout = handle.unwrap();
        timeout.reschedule(ms(10)).unwrap();
        elapsed(call.await);
        clock.at(10);
    });
    let outside = std::panic::catch_unwind(|| {
        let mut call = tokio_test::task::spawn(with_timeout(secs(1), async { ok(pending::<()>().await) }));
        let _ = call.poll();
    });
    assert!(outside.is_err());
}

/// The five rules of a timeout, made by hand from `cancel` and `uncancel`.
async fn by_hand<T>(
    group: &TaskGroup,
    limit: std::time::Duration,
    work: impl Future<Output = Result<T, Cancelled>>,
) -> Option<Result<T, Cancelled>> {
    let scope = Scope::current().unwrap();
    let (at, before) = (scope.clone(), scope.cancelling());
    let timer = group.spawn(async move {
        sleep(limit).await;
        at.cancel("the limit");
    });
    let result = work.await;
    let fired = !timer.cancel();
    if fired && scope.uncancel() == before && result.is_err() {
        return None;
    }
    Some(result)
}

#[test]
fn t_29_a_timeout_by_hand_undoes_its_own_cancel() {
    both(async || {
        TaskGroup::run(|group| async move {
            let timers = group.clone();
            let task = group.spawn(async move {
                let scope = Scope::current().unwrap();
                let expired = by_hand(&timers, ms(10), sleep(LONG).or_cancelled()).await;
                assert!(expired.is_none());
                assert_eq!(scope.cancelling(), 0);
                sleep(ms(10)).or_cancelled().await?;
                let early = by_hand(&timers, secs(60), sleep(ms(10)).or_cancelled()).await;
                assert!(matches!(early, Some(Ok(()))));
                assert_eq!(scope.cancelling(), 0);
                ok(sleep(ms(10)).or_cancelled().await?)
            });
            ok(task.await?)
        })
        .await
        .unwrap();
    });
}

/// The choice: who was waiting already is polled first, and the value wins.
#[tokio::test(start_paused = true)]
async fn t_30_a_value_that_is_ready_with_the_limit_wins() {
    for value_first in [true, false] {
        let (tx, rx) = oneshot::channel();
        let mut call = tokio_test::task::spawn(with_timeout(ms(10), async { ok(rx.or_cancelled().await??) }));
        assert_pending!(call.poll());
        if value_first {
            tx.send(7).unwrap();
            advance(ms(20)).await;
        } else {
            advance(ms(20)).await;
            tx.send(7).unwrap();
        }
        assert!(call.is_woken());
        assert_eq!(assert_ready!(call.poll()).unwrap(), 7);
    }
}

#[tokio::test(start_paused = true)]
async fn t_31_a_body_that_ends_without_a_wait_meets_no_limit() {
    let (result, timeout) = timed(ms(10), |_| async {
        busy(ms(20));
        ok(7)
    })
    .await;
    assert_eq!(result.unwrap(), 7);
    assert!(!timeout.expired());
}

#[tokio::test(start_paused = true)]
async fn t_32_a_limit_that_fired_leaves_nothing_behind() {
    let scope = Scope::new();
    let (tx, rx) = oneshot::channel::<()>();
    let mut run = tokio_test::task::spawn(scope.run(async {
        let (result, timeout) = timed(ms(10), |_| async { ok(rx.await?) }).await;
        result.unwrap();
        assert!(timeout.expired());
        sleep(ms(10)).or_cancelled().await
    }));
    assert_pending!(run.poll());
    advance(ms(20)).await;
    assert!(run.is_woken());
    tx.send(()).unwrap();
    assert_pending!(run.poll());
    advance(ms(20)).await;
    assert_ready!(run.poll()).unwrap().unwrap();
    assert_eq!((scope.cancelling(), scope.is_cancelled()), (0, false));
}

#[tokio::test(start_paused = true)]
async fn t_34_two_limits_that_fire_together_are_cancelled_inside_and_elapsed_outside() {
    for (outer_limit, inner_limit) in [(10, 20), (20, 10), (10, 10)] {
        let scope = Scope::new();
        let mut run = tokio_test::task::spawn(scope.run(async {
            let mut inside = None;
            let place = &mut inside;
            let (outer, outer_timeout) = timed(ms(outer_limit), |_| async move {
                let end = timed(ms(inner_limit), |_| async { ok(sleep(LONG).or_cancelled().await?) }).await;
                let (inner, timeout) = place.insert(end);
                assert!(timeout.expired());
                match inner {
                    Err(TimeoutError::Cancelled(cancelled)) => Err::<(), _>(cancelled.clone().into()),
                    other => panic!("{other:?}"),
                }
            })
            .await;
            elapsed(outer);
            assert!(inside.unwrap().1.expired() && outer_timeout.expired());
        }));
        assert_pending!(run.poll());
        advance(ms(30)).await;
        assert_ready!(run.poll()).unwrap();
        assert_eq!((scope.cancelling(), scope.is_cancelled()), (0, false));
    }
}

#[tokio::test(start_paused = true)]
async fn t_35_an_overdue_outer_limit_decides_though_the_inner_one_was_earlier() {
    let reached = Counter::default();
    let after = reached.clone();
    let (outer, timeout) = timed(ms(20), |_| async move {
        let inner = with_timeout(ms(10), async {
            busy(ms(30));
            ok(sleep(LONG).or_cancelled().await?)
        });
        let inner = inner.await;
        assert!(inner.as_ref().is_err_and(TimeoutError::is_cancelled), "{inner:?}");
        inner?;
        after.bump();
        ok(())
    })
    .await;
    elapsed(outer);
    assert!(timeout.expired());
    assert_eq!(reached.get(), 0);
}

/// Adapted: the yield is the library's `checkpoint`; a plain yield is ready when it is asked, and a result wins.
#[test]
fn t_36_a_limit_that_was_moved_into_the_past_expires_at_the_next_wait() {
    async fn work(timeout: TimeoutHandle, plain: bool, after: Counter) -> Result<(), TaskError> {
        timeout.reschedule(Deadline::at(Instant::now()).reserve(ms(10)))?;
        assert!(!timeout.expired());
        if plain {
            sleep(LONG).await
        } else {
            checkpoint().await?
        }
        after.bump();
        ok(())
    }
    both(async || {
        for plain in [false, true] {
            let (clock, after) = (Clock::start(), Counter::default());
            let counter = after.clone();
            let (result, timeout) = timed(secs(60), |timeout| work(timeout, plain, counter)).await;
            elapsed(result);
            clock.at(0);
            assert!(timeout.expired());
            assert_eq!(after.get(), 0);
        }
    });
}

#[test]
fn t_37_a_limit_in_the_past_is_not_met_without_a_wait() {
    both(async || {
        let (result, timeout) = timed(secs(60), |timeout| async move {
            timeout.reschedule(Deadline::at(Instant::now()).reserve(ms(10))).unwrap();
            ok(7)
        })
        .await;
        assert_eq!(result.unwrap(), 7);
        assert!(!timeout.expired());
    });
}

/// The choice: the limit stands, so later waits answer again; who returns a value has it kept.
#[test]
fn t_39_a_body_that_swallows_the_limit_keeps_its_value() {
    both(async || {
        let clock = Clock::start();
        let scope = Scope::new();
        let run = scope.run(async {
            let (ends, timeout) = timed(ms(10), |_| async {
                assert!(sleep(LONG).or_cancelled().await.is_err());
                ok(1)
            })
            .await;
            assert_eq!((ends.unwrap(), timeout.expired()), (1, true));
            let (again, timeout) = timed(ms(10), |_| async {
                assert!(sleep(LONG).or_cancelled().await.is_err());
                assert!(sleep(LONG).or_cancelled().await.is_err());
                ok(2)
            })
            .await;
            assert_eq!((again.unwrap(), timeout.expired()), (2, true));
            let (plain, _) = timed(ms(10), |_| async {
                assert!(sleep(LONG).or_cancelled().await.is_err());
                ok(sleep(LONG).await)
            })
            .await;
            elapsed(plain);
        });
        run.await.unwrap();
        clock.at(30);
        assert_eq!((scope.cancelling(), scope.is_cancelled()), (0, false));
    });
}

#[tokio::test(start_paused = true)]
async fn t_40_a_busy_body_that_awaits_only_what_is_ready_meets_no_limit() {
    let (result, timeout) = timed(ms(10), |_| async {
        busy(ms(20));
        ready(()).await;
        ok(ready(7).or_cancelled().await?)
    })
    .await;
    assert_eq!(result.unwrap(), 7);
    assert!(!timeout.expired());
}

#[test]
fn t_41_a_body_that_converts_the_cancellation_has_its_own_error() {
    both(async || {
        let (result, _) = timed(ms(10), |_| async {
            sleep(LONG).or_cancelled().await.map_err(|_| Boom("converted"))?;
            ok(())
        })
        .await;
        assert_eq!(failed(result), "converted");
    });
}

#[test]
fn t_42_a_limit_that_strikes_a_failing_group_gives_the_aggregate() {
    both(async || {
        let clock = Clock::start();
        let mut handle = None;
        let call = with_timeout_handle(ms(20), |timeout| {
            handle = Some(timeout);
            TaskGroup::run(|group| async move {
                group.spawn(async {
                    let answer = sleep(LONG).or_cancelled().await;
                    cleanup(secs(1), sleep(ms(30))).await?;
                    ok(answer?)
                });
                sleep(ms(10)).await;
                fail::<()>("body")
            })
        });
        match call.await {
            Err(TimeoutError::Failed(error)) => assert_eq!(texts(error.failures()), ["body"]),
            other => panic!("{other:?}"),
        }
        clock.at(40);
        assert!(handle.unwrap().expired());
    });
}

#[test]
fn t_44_the_inner_limit_of_a_child_is_an_ordinary_failure() {
    both(async || {
        let call = with_timeout(
            secs(60),
            TaskGroup::run(|group| async move {
                group.spawn(async {
                    with_timeout(ms(10), async { ok(sleep(LONG).or_cancelled().await?) }).await?;
                    ok(())
                });
                sleeper(Counter::default()).await
            }),
        );
        let error = match call.await {
            Err(TimeoutError::Failed(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(error.failures().len(), 1);
        let inner = error.failures()[0].downcast_ref::<TimeoutError<TaskError>>().unwrap();
        assert!(inner.is_elapsed());
    });
}

/// Adapted: a soft limit is a match on the error.
#[test]
fn t_45_a_soft_limit_is_left_silently() {
    both(async || {
        let move_on_after = async |limit| match with_timeout(limit, async { ok(sleep(ms(50)).await) }).await {
            Ok(()) => ok(false),
            Err(TimeoutError::Elapsed(_)) => ok(true),
            Err(other) => Err(other.into()),
        };
        assert!(move_on_after(ms(10)).await.unwrap());
        assert!(!move_on_after(secs(10)).await.unwrap());
    });
}

#[test]
fn t_46_a_hard_limit_is_an_error_only_when_it_has_expired() {
    both(async || {
        let after = with_timeout(ms(10), async { ok(sleep(LONG).await) });
        elapsed(after.await);
        let at = with_timeout(Deadline::after(ms(10)), async { ok(sleep(LONG).await) });
        elapsed(at.await);
        with_timeout(secs(60), async { ok(sleep(ms(10)).await) }).await.unwrap();
        with_timeout(Deadline::after(secs(60)), async { ok(sleep(ms(10)).await) }).await.unwrap();
    });
}

#[test]
fn t_47_a_section_holds_off_the_outer_cancel_and_keeps_its_own_limit() {
    both(async || {
        let clock = Clock::start();
        let scope = Scope::new();
        let inside = scope.clone();
        let run = scope.run(async move {
            inside.cancel("outer");
            cleanup(secs(1), sleep(ms(10)).or_cancelled()).await.unwrap().unwrap();
            clock.at(10);
            let limited = with_timeout(ms(10), async { ok(sleep(LONG).or_cancelled().await?) });
            elapsed(cleanup(secs(1), limited).await.unwrap());
            clock.at(20);
            cleanup(ms(10), pending::<()>()).await.unwrap_err();
            clock.at(30);
            // The section has ended: the cancel is let in.
            sleep(LONG).or_cancelled().await
        });
        assert_eq!(run.await.unwrap().unwrap_err().to_string(), "cancelled: outer");
        clock.at(30);
    });
}

/// The choice: from the first poll.
#[test]
fn t_49_a_relative_limit_counts_from_the_first_poll() {
    both(async || {
        let clock = Clock::start();
        let call = with_timeout(ms(30), async { ok(sleep(LONG).await) });
        sleep(ms(20)).await;
        elapsed(call.await);
        clock.at(50);
    });
}

#[tokio::test(start_paused = true)]
async fn t_50_limits_that_are_set_moved_and_left() {
    let clock = Clock::start();
    let scope = Scope::new();
    let run = scope.run(async {
        // Left before it is due: disarmed.
        with_timeout(ms(10), async { ok(sleep(ms(5)).or_cancelled().await?) }).await.unwrap();
        sleep(ms(20)).or_cancelled().await.unwrap();
        // Moved away.
        let (moved, _) = timed(ms(10), |timeout| async move {
            timeout.reschedule(ms(100)).unwrap();
            ok(sleep(ms(50)).or_cancelled().await?)
        })
        .await;
        moved.unwrap();
        // Moved into the past: cancelled at the next checkpoints, again and again.
        let (past, timeout) = timed(secs(60), |timeout| async move {
            timeout.reschedule(Deadline::at(Instant::now()).reserve(ms(10))).unwrap();
            for _ in 0..3 {
                assert!(checkpoint().await.is_err());
            }
            ok(())
        })
        .await;
        past.unwrap();
        assert!(timeout.expired());
    });
    run.await.unwrap();
    clock.at(75);
    assert!(!scope.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn t_51_the_first_checkpoint_after_the_limit_is_cancelled() {
    let (result, _) = timed(ms(10), |_| async {
        checkpoint().await?;
        busy(ms(10));
        let answer = checkpoint().await;
        assert!(matches!(answer.as_ref().unwrap_err().reason(), Reason::Deadline(_)));
        ok(answer?)
    })
    .await;
    elapsed(result);
}

/// The choice, as anyio: the first reason stands, and it is no timeout.
#[test]
fn t_54_a_limit_that_is_cancelled_by_hand_has_not_elapsed() {
    both(async || {
        let clock = Clock::start();
        let (result, timeout) = timed(secs(60), |timeout| async move {
            timeout.scope().cancel("by hand");
            ok(sleep(LONG).or_cancelled().await?)
        })
        .await;
        clock.at(0);
        assert_eq!(cancelled(result).to_string(), "cancelled: by hand");
        assert!(!timeout.expired());
    });
}

/// Better than anyio can: the reason tells them apart.
#[tokio::test(start_paused = true)]
async fn t_55_cancelled_by_hand_and_overdue_later_is_no_timeout() {
    let (result, _) = timed(ms(10), |timeout| async move {
        timeout.scope().cancel("by hand");
        busy(ms(20));
        ok(checkpoint().await?)
    })
    .await;
    assert_eq!(cancelled(result).to_string(), "cancelled: by hand");
}

#[test]
fn t_56_a_limit_after_a_cancelled_group_works() {
    both(async || {
        TaskGroup::run(|group| async move {
            group.spawn(sleeper(Counter::default()));
            group.cancel("earlier");
            ok(())
        })
        .await
        .unwrap();
        let clock = Clock::start();
        with_timeout(secs(60), async { ok(sleep(ms(10)).or_cancelled().await?) }).await.unwrap();
        elapsed(with_timeout(ms(10), async { ok(sleep(LONG).or_cancelled().await?) }).await);
        clock.at(20);
    });
}

/// Adapted: a limit of 0 does not even start.
#[test]
fn t_57_a_soft_limit_of_zero_is_left_before_its_first_checkpoint() {
    both(async || {
        let (clock, passed) = (Clock::start(), Counter::default());
        let after = passed.clone();
        let call = with_timeout(ms(0), async move {
            checkpoint().await?;
            after.bump();
            ok(())
        });
        elapsed(call.await);
        clock.at(0);
        assert_eq!(passed.get(), 0);
    });
}

#[test]
fn t_59_a_limit_over_body_and_child_is_one_bare_timeout() {
    both(async || {
        let (clock, seen) = (Clock::start(), Counter::default());
        let (body, child) = (seen.clone(), seen.clone());
        let call = with_timeout(
            ms(10),
            TaskGroup::run(|group| async move {
                group.spawn(sleeper(child));
                sleeper(body).await
            }),
        );
        elapsed(call.await);
        clock.at(10);
        assert_eq!(seen.get(), 2);
    });
}

#[test]
fn t_60_an_outer_cancel_during_an_inner_limit_is_no_timeout() {
    both(async || {
        let scope = Scope::new();
        let outer = scope.clone();
        let run = scope.run(async {
            let (result, timeout) = timed(secs(60), |_| async move {
                sleep(ms(10)).await;
                outer.cancel("outer");
                ok(sleep(LONG).or_cancelled().await?)
            })
            .await;
            assert!(!timeout.expired());
            cancelled(result)
        });
        assert_eq!(run.await.unwrap().scope(), scope.id());
    });
}

#[test]
fn t_61_a_limit_that_expires_inside_a_section_of_a_cancelled_group_is_a_failure() {
    both(async || {
        let clock = Clock::start();
        let end = cancelled_at(ms(10), async {
            let group = TaskGroup::run(|group| async move {
                group.spawn(async {
                    let call = with_timeout(ms(30), async { ok(sleep(LONG).or_cancelled().await?) });
                    cleanup(secs(1), call).await??;
                    ok(())
                });
                ok(())
            });
            ok(group.await)
        });
        let error = end.await.unwrap().unwrap_err();
        clock.at(30);
        assert_eq!(error.failures().len(), 1);
        assert!(error.failures()[0].downcast_ref::<TimeoutError<TaskError>>().unwrap().is_elapsed());
    });
}

/// Adapted: a limit has no text of its own. What it was is its `Deadline`, and the name of the group that has it.
#[test]
fn t_62_an_expired_limit_says_which_one_it_was() {
    both(async || {
        let (first, second) = (Deadline::after(ms(10)), Deadline::after(ms(20)));
        for limit in [first, second] {
            assert_eq!(elapsed(with_timeout(limit, async { ok(sleep(LONG).await) }).await).deadline(), limit);
        }
        let error = TaskGroup::builder()
            .name("fetch the index")
            .deadline(ms(10))
            .run(|_group| async { ok(sleep(LONG).await) })
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "group `fetch the index` was cancelled: its deadline has elapsed");
    });
}
