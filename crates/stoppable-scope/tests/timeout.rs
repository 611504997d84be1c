//! "Leaving a timeout", and `reschedule`, `expired`, limits of zero and the maximum.
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::cell::Cell;
use std::time::Duration;

use stoppable_scope::{
    Deadline, InScopeExt, OrCancelledExt, Reason, RescheduleError, Scope, TimeoutError, TimeoutHandle,
    checkpoint, ok, with_timeout, with_timeout_handle,
};
use support::{Hand, ends, ms, secs};
use tokio::sync::oneshot;
use tokio::time::{Instant, advance, sleep};

// T-01, T-02: a short limit around a long sleep; the error names the limit.
#[tokio::test(start_paused = true)]
async fn at_its_limit_a_call_ends_as_elapsed() {
    let deadline = Deadline::after(secs(1));
    let started = Instant::now();
    let call = with_timeout(deadline, async {
        sleep(secs(60)).await;
        ok(())
    });
    match ends(call).await {
        Err(TimeoutError::Elapsed(elapsed)) => assert_eq!(elapsed.deadline(), deadline),
        other => panic!("{other:?}"),
    }
    assert_eq!(started.elapsed(), secs(1));
}

// T-04: the wait inside sees a cancellation, outside sees a timeout.
#[tokio::test(start_paused = true)]
async fn inside_it_is_a_cancel_with_the_reason_deadline() {
    let call = with_timeout(secs(1), async {
        let answer = sleep(secs(60)).or_cancelled().await.unwrap_err();
        assert!(matches!(answer.reason(), Reason::Deadline(_)));
        assert_eq!(answer.scope(), Scope::current().unwrap().id());
        Err::<(), _>(answer)
    });
    assert!(ends(call).await.unwrap_err().is_elapsed());
}

// T-05, T-40: a body that ends early, or never waits, is not timed out.
#[tokio::test]
async fn a_body_that_ends_without_waiting_is_ok_however_late() {
    let call = with_timeout_handle(ms(5), |timeout| async move {
        std::thread::sleep(ms(20));
        ok(timeout)
    });
    let timeout = call.await.unwrap();
    assert!(!timeout.expired(), "after Ok by delivery, and nothing was delivered");
}

// T-07, T-09, B-22, W-04: a limit of zero, or in the past, never starts the work.
#[tokio::test(start_paused = true)]
async fn zero_and_the_past_never_start_the_work() {
    let past = Deadline::after(Duration::ZERO);
    advance(secs(11)).await;
    let started = Instant::now();
    for limit in [Deadline::after(Duration::ZERO), past] {
        let polled = Cell::new(false);
        let call = with_timeout(limit, async {
            polled.set(true);
            ok(())
        });
        assert!(ends(call).await.unwrap_err().is_elapsed());
        assert!(!polled.get());
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    // W-20: a tiny limit around work that never waits.
    assert!(with_timeout(Duration::from_nanos(1), async { ok(()) }).await.is_ok());
}

// T-06, W-07: no limit.
#[tokio::test(start_paused = true)]
async fn never_is_no_limit() {
    let call = with_timeout_handle(Deadline::never(), |timeout| async move {
        sleep(secs(10_000)).await;
        ok((timeout.deadline().is_never(), timeout.expired()))
    });
    assert_eq!(ends(call).await.unwrap(), (true, false));
}

// Section 6: a `Duration` counts from the first poll, a `Deadline` is absolute (T-49, B-34).
#[tokio::test(start_paused = true)]
async fn a_duration_counts_from_the_first_poll() {
    let started = Instant::now();
    let steps = Cell::new(0);
    let body = || async {
        loop {
            sleep(secs(1)).await;
            steps.set(steps.get() + 1);
        }
        #[allow(unreachable_code)]
        ok(())
    };
    let relative = with_timeout(ms(5500), body());
    let absolute = with_timeout(Deadline::after(ms(5500)), body());
    sleep(secs(5)).await;
    assert!(ends(absolute).await.unwrap_err().is_elapsed());
    assert_eq!((steps.take(), started.elapsed()), (0, ms(5500)));
    assert!(ends(relative).await.unwrap_err().is_elapsed());
    assert_eq!((steps.take(), started.elapsed()), (5, ms(11_000)));
}

// "The body's Ok wins" (W-09, T-39), also when it comes of an answer.
#[tokio::test(start_paused = true)]
async fn the_bodys_ok_wins_over_its_expiry() {
    let call = with_timeout_handle(secs(1), |timeout| async move {
        let answered = sleep(secs(60)).or_cancelled().await.is_err();
        ok((answered, timeout.expired()))
    });
    assert_eq!(ends(call).await.unwrap(), (true, true));
}

// "the body's own error wins" (T-10, T-12, T-41, B-27, B-36, W-11): never replaced by a timeout.
#[tokio::test(start_paused = true)]
async fn the_bodys_own_error_is_never_replaced() {
    let early = with_timeout_handle(secs(10), |timeout| async move {
        sleep(ms(20)).await;
        assert!(!timeout.expired());
        assert_eq!(timeout.deadline().remaining(), Some(ms(9980)));
        Err::<(), _>(std::io::Error::from(std::io::ErrorKind::TimedOut))
    });
    let error = ends(early).await.unwrap_err().into_failed().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);

    let handle = Cell::new(None);
    let late = with_timeout_handle(secs(1), |timeout| {
        handle.set(Some(timeout));
        async {
            let _ = sleep(secs(60)).or_cancelled().await;
            Err::<(), _>(std::fmt::Error)
        }
    });
    assert!(ends(late).await.unwrap_err().into_failed().is_some());
    assert!(handle.take().unwrap().expired());
}

// R4: "A result that arrives wins over an expiry" of the same instant.
#[tokio::test(start_paused = true)]
async fn a_result_of_the_same_instant_wins() {
    for stoppable in [false, true] {
        let call = with_timeout(secs(1), async {
            if stoppable {
                sleep(secs(1)).or_cancelled().await?;
            } else {
                sleep(secs(1)).await;
            }
            ok("value")
        });
        assert_eq!(ends(call).await.unwrap(), "value");
    }
}

// T-30 by hand: the value and the limit are both there before the call is polled next.
#[tokio::test(start_paused = true)]
async fn a_value_that_came_before_the_poll_is_kept() {
    let (send, recv) = oneshot::channel();
    let mut call = Hand::new(with_timeout(secs(1), async { ok(recv.await?) }));
    call.pending();
    advance(secs(2)).await;
    send.send(5).unwrap();
    assert_eq!(call.ready().unwrap(), 5);
}

// B-28: an outer limit is never taken for the inner one's, so a retry loop inside ends.
#[tokio::test(start_paused = true)]
async fn a_retry_loop_on_inner_timeouts_ends_with_the_outer_limit() {
    let count = Cell::new(0);
    let started = Instant::now();
    let outer = with_timeout(ms(5500), async {
        loop {
            match with_timeout(secs(1), async { ok(std::future::pending::<()>().await) }).await {
                Err(TimeoutError::Elapsed(_)) => count.set(count.get() + 1),
                Err(error) => return Err(error),
                Ok(()) => unreachable!(),
            }
        }
        #[allow(unreachable_code)]
        Ok(())
    });
    assert!(ends(outer).await.unwrap_err().is_elapsed());
    assert_eq!((count.get(), started.elapsed()), (5, ms(5500)));
}

// B-30: thousands of limits on one thread.
#[tokio::test(start_paused = true)]
async fn ten_thousand_limits_all_take_effect() {
    let started = Instant::now();
    let tasks: Vec<_> = (0..10_000)
        .map(|_| {
            tokio::spawn(with_timeout(ms(50), async {
                sleep(secs(1)).await;
                ok(())
            }))
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap().unwrap_err().is_elapsed());
    }
    assert_eq!(started.elapsed(), ms(50));
}

// B-29: what is made between creation and hand-over is not leaked when the limit hits at that instant.
#[tokio::test(start_paused = true)]
async fn a_resource_at_the_edge_of_the_limit_is_not_leaked() {
    struct Resource(std::sync::Arc<std::sync::atomic::AtomicIsize>);
    impl Drop for Resource {
        fn drop(&mut self) {
            self.0.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let live = std::sync::Arc::new(std::sync::atomic::AtomicIsize::new(0));
    let tasks: Vec<_> = (0..10_000)
        .map(|_| {
            let live = std::sync::Arc::clone(&live);
            tokio::spawn(with_timeout(ms(60), async move {
                sleep(ms(50)).await;
                live.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let resource = Resource(live);
                sleep(ms(10)).await;
                ok(resource)
            }))
        })
        .collect();
    for task in tasks {
        match task.await.unwrap() {
            Ok(resource) => drop(resource),
            Err(error) => assert!(error.is_elapsed()),
        }
    }
    assert_eq!(live.load(std::sync::atomic::Ordering::SeqCst), 0);
}

// B-26: for work that is not spawned the drop is immediate, so a lock inside is free on return.
#[tokio::test(start_paused = true)]
async fn on_return_the_work_is_dropped() {
    let lock = tokio::sync::Mutex::new(());
    let call = with_timeout(ms(50), async {
        let _held = lock.lock().await;
        sleep(secs(1)).await;
        ok(())
    });
    let mut call = Box::pin(call);
    assert!(ends(&mut call).await.is_err());
    assert!(lock.try_lock().is_ok(), "dropped on return, though the call itself is still here");
}

// R5: `reschedule` from inside, later.
#[tokio::test(start_paused = true)]
async fn reschedule_from_inside_moves_the_limit() {
    let started = Instant::now();
    let call = with_timeout_handle(secs(1), |timeout| async move {
        sleep(ms(900)).await;
        timeout.reschedule(Deadline::after(secs(1)))?;
        assert_eq!(Deadline::current().remaining(), Some(secs(1)));
        sleep(secs(60)).await;
        ok(())
    });
    assert!(ends(call).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), ms(1900));
}

// R5: `reschedule` from inside, earlier.
#[tokio::test(start_paused = true)]
async fn reschedule_from_inside_can_be_earlier() {
    let started = Instant::now();
    let call = with_timeout_handle(secs(10), |timeout| async move {
        sleep(ms(100)).await;
        timeout.reschedule(ms(100))?;
        sleep(secs(60)).await;
        ok(())
    });
    assert!(ends(call).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), ms(200));
}

async fn rescheduled(
    limit: impl Into<Deadline>,
    spawn: impl FnOnce(TimeoutHandle),
) -> (Duration, Result<(), TimeoutError<stoppable_scope::TaskError>>) {
    let limit = limit.into();
    let started = Instant::now();
    let call = with_timeout_handle(limit, |timeout| {
        spawn(timeout);
        async {
            sleep(secs(60)).await;
            ok(())
        }
    });
    let result = ends(call).await;
    (started.elapsed(), result)
}

// R5: from another task, in both directions.
#[tokio::test(start_paused = true)]
async fn reschedule_from_outside_is_heard_at_once() {
    for (limit, to, ended) in [(secs(10), ms(100), ms(200)), (ms(150), secs(5), ms(5100))] {
        let (took, result) = rescheduled(limit, |timeout| {
            tokio::spawn(async move {
                sleep(ms(100)).await;
                timeout.reschedule(to).unwrap();
            });
        })
        .await;
        assert!(result.unwrap_err().is_elapsed());
        assert_eq!(took, ended);
    }
}

// A task that runs in the scope of the call is inside the scope, but not inside its poll.
#[tokio::test(start_paused = true)]
async fn reschedule_from_a_task_in_the_scope_is_heard_at_once() {
    let started = Instant::now();
    let call = with_timeout_handle(secs(10), |timeout| async move {
        tokio::spawn(
            async move {
                sleep(ms(100)).await;
                timeout.reschedule(ms(100)).unwrap();
            }
            .in_current_scope(),
        );
        sleep(secs(60)).await;
        ok(())
    });
    assert!(ends(call).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), ms(200));
}

// A limit that moves later costs the work no wake-up, one that moves earlier wakes it once.
#[tokio::test(start_paused = true)]
async fn reschedule_wakes_only_for_an_earlier_limit() {
    let handle = Cell::new(None);
    let mut call = Hand::new(with_timeout_handle(secs(10), |timeout| {
        handle.set(Some(timeout));
        async { ok(std::future::pending::<()>().await) }
    }));
    let handle = handle.take().unwrap();
    call.pending();
    handle.reschedule(secs(20)).unwrap();
    assert_eq!(call.wakes(), 0);
    handle.reschedule(secs(5)).unwrap();
    assert_eq!(call.wakes(), 1);
}

// T-36: a past limit expires at the next wait, not at the call; T-37: a body that leaves first is Ok.
#[tokio::test(start_paused = true)]
async fn reschedule_to_the_past_expires_at_the_next_wait() {
    let past = Deadline::after(Duration::ZERO);
    advance(secs(1)).await;
    let waits = with_timeout_handle(secs(10), |timeout| async move {
        timeout.reschedule(past)?;
        assert!(!timeout.expired());
        assert!(!Scope::current().unwrap().is_cancelled());
        sleep(secs(60)).await;
        ok(())
    });
    let started = Instant::now();
    assert!(ends(waits).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), Duration::ZERO);
    let leaves = with_timeout_handle(secs(10), |timeout| async move {
        timeout.reschedule(past)?;
        ok(timeout)
    });
    assert!(!ends(leaves).await.unwrap().expired());
}

// R5: `never` by reschedule; B-33: by the maximum.
#[tokio::test(start_paused = true)]
async fn reschedule_to_never_takes_the_limit_away() {
    let call = with_timeout_handle(secs(1), |timeout| async move {
        timeout.reschedule(Duration::MAX)?;
        sleep(secs(1000)).await;
        ok(timeout.deadline().is_never())
    });
    assert!(ends(call).await.unwrap());
}

// Before the call begins it takes the place of the limit given.
#[tokio::test(start_paused = true)]
async fn reschedule_before_the_first_poll_replaces_the_limit() {
    let (took, result) = rescheduled(secs(10), |timeout| timeout.reschedule(secs(1)).unwrap()).await;
    assert!(result.unwrap_err().is_elapsed());
    assert_eq!(took, secs(1));
}

// T-24, T-25, T-26: after the end, and once delivered, it is an error.
#[tokio::test(start_paused = true)]
async fn reschedule_after_the_end_is_an_error() {
    let done = ends(with_timeout_handle(secs(1), |timeout| async move { ok(timeout) })).await.unwrap();
    assert_eq!(done.reschedule(secs(1)), Err(RescheduleError::Finished));

    let expiring = with_timeout_handle(secs(1), |timeout| async move {
        assert!(sleep(secs(60)).or_cancelled().await.is_err());
        assert_eq!(timeout.reschedule(secs(1)), Err(RescheduleError::Expired));
        ok(timeout)
    });
    let expired = ends(expiring).await.unwrap();
    assert_eq!(expired.reschedule(secs(1)), Err(RescheduleError::Expired));
}

// An enclosing limit bounds what an inner one is moved to.
#[tokio::test(start_paused = true)]
async fn an_inner_reschedule_does_not_leave_the_outer_limit() {
    let started = Instant::now();
    let outer = with_timeout(secs(2), async {
        let inner = with_timeout_handle(secs(1), |timeout| async move {
            timeout.reschedule(secs(100))?;
            assert_eq!(timeout.deadline().remaining(), Some(secs(100)));
            assert_eq!(Deadline::current().remaining(), Some(secs(2)));
            sleep(secs(60)).await;
            ok(())
        });
        assert!(inner.await.unwrap_err().is_cancelled());
        ok(())
    });
    ends(outer).await.unwrap_err();
    assert_eq!(started.elapsed(), secs(2));
}

// T-34, T-35: nested, both overdue by the clock after busy code, either order: the inner is cancelled, the
// outer elapsed, and both have expired.
#[tokio::test]
async fn of_two_overdue_limits_the_outer_one_speaks() {
    for (outer_ms, inner_ms) in [(10, 20), (20, 10)] {
        let handles = Cell::new(None);
        let outer = with_timeout_handle(ms(outer_ms), |outer| {
            let handles = &handles;
            async move {
                let inner = with_timeout_handle(ms(inner_ms), |inner| {
                    handles.set(Some((outer, inner)));
                    async {
                        std::thread::sleep(ms(40));
                        checkpoint().await?;
                        ok(())
                    }
                });
                let error = inner.await.unwrap_err();
                assert!(error.is_cancelled(), "{error:?}");
                Err::<(), _>(error)
            }
        });
        let error = outer.await.unwrap_err();
        assert!(error.is_elapsed(), "{error:?}");
        let (outer, inner) = handles.take().unwrap();
        assert_eq!((outer.expired(), inner.expired()), (true, true));
    }
}

// The same, where the inner call itself is cut and nobody answers.
#[tokio::test]
async fn a_cut_inner_call_speaks_of_the_outer_limit_by_the_clock() {
    let outer = with_timeout(ms(20), async {
        let inner = with_timeout(ms(10), async {
            std::thread::sleep(ms(40));
            std::future::pending::<()>().await;
            ok(())
        });
        let error = inner.await.unwrap_err();
        assert!(error.is_cancelled(), "{error:?}");
        Err::<(), _>(error)
    });
    assert!(outer.await.unwrap_err().is_elapsed());
}

// T-34 by timers: two limits of the same instant.
#[tokio::test(start_paused = true)]
async fn of_two_equal_limits_the_outer_one_speaks() {
    let deadline = Deadline::after(secs(1));
    for stoppable in [false, true] {
        let outer = with_timeout(deadline.earliest(Deadline::after(secs(1))), async {
            let inner = with_timeout(deadline.earliest(Deadline::after(secs(1))), async {
                if stoppable {
                    std::future::pending::<()>().or_cancelled().await?;
                }
                std::future::pending::<()>().await;
                ok(())
            });
            let error = inner.await.unwrap_err();
            assert!(error.is_cancelled() || error.is_elapsed());
            if let TimeoutError::Elapsed(_) = error {
                panic!("the inner call took the outer limit for its own");
            }
            Err::<(), _>(error)
        });
        if deadline.is_expired() {
            continue;
        }
        assert!(ends(outer).await.unwrap_err().is_elapsed());
    }
}

// R4: a request from outside passes through as `Cancelled`, also when both come at the same instant.
#[tokio::test(start_paused = true)]
async fn a_request_from_outside_passes_through() {
    let scope = Scope::named("outside");
    let remote = scope.clone();
    tokio::spawn(async move {
        sleep(ms(500)).await;
        remote.cancel("enough");
    });
    let run = scope.run(async {
        let call = with_timeout(secs(1), async {
            std::future::pending::<()>().or_cancelled().await?;
            ok(())
        });
        match call.await {
            Err(TimeoutError::Cancelled(cancelled)) => cancelled.to_string(),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(ends(run).await.unwrap(), "cancelled: enough");
}

// The same by hand: cancel and limit are both there before the call is polled next.
#[tokio::test(start_paused = true)]
async fn at_the_same_instant_the_outer_request_wins() {
    let scope = Scope::new();
    let mut run = Hand::new(scope.run(async {
        let call = with_timeout(secs(1), async {
            std::future::pending::<()>().or_cancelled().await?;
            ok(())
        });
        call.await.unwrap_err()
    }));
    run.pending();
    advance(secs(2)).await;
    scope.cancel("enough");
    assert!(run.ready().unwrap().is_cancelled());
}

// T-54, T-55: cancelled by hand before its limit, the first reason stands, also when busy code overruns it.
#[tokio::test]
async fn a_hand_cancel_before_the_limit_stands() {
    let call = with_timeout_handle(ms(10), |timeout| async move {
        timeout.scope().cancel("by hand");
        std::thread::sleep(ms(30));
        checkpoint().await?;
        ok(())
    });
    match call.await {
        Err(TimeoutError::Cancelled(cancelled)) => assert_eq!(cancelled.to_string(), "cancelled: by hand"),
        other => panic!("{other:?}"),
    }
}

// T-21, T-22: what was asked and swallowed before the call does not make its own expiry another's.
#[tokio::test(start_paused = true)]
async fn a_cancelled_scope_around_speaks_first() {
    let scope = Scope::new();
    let run = scope.run(async {
        scope.cancel("earlier");
        // The call never starts, and the scope around it is cancelled: that is the outer one's to say.
        let call = with_timeout(Duration::ZERO, async { ok(()) });
        call.await.unwrap_err()
    });
    assert!(ends(run).await.unwrap().is_cancelled());
}

// `expired()`: "by the clock on a cancelled exit".
#[tokio::test]
async fn expired_goes_by_the_clock_on_a_cancelled_exit() {
    let scope = Scope::new();
    let handle = Cell::new(None);
    let run = scope.run(async {
        let call = with_timeout_handle(ms(10), |timeout| {
            handle.set(Some(timeout));
            async {
                scope.cancel("enough");
                std::thread::sleep(ms(20));
                Err::<(), _>(scope.check().unwrap_err())
            }
        });
        assert!(call.await.unwrap_err().is_cancelled());
    });
    run.await.unwrap();
    assert!(handle.take().unwrap().expired());
}

// W-19: the outside cancel is swallowed and a value returned: the value is kept, the request stays pending.
#[tokio::test(start_paused = true)]
async fn the_request_stays_pending_after_an_ok() {
    let scope = Scope::new();
    let run = scope.run(async {
        let call = with_timeout(secs(9), async {
            scope.cancel(());
            assert!(std::future::pending::<()>().or_cancelled().await.is_err());
            ok(3)
        });
        assert_eq!(call.await.unwrap(), 3);
        sleep(secs(1)).or_cancelled().await
    });
    assert!(ends(run).await.unwrap().is_err());
}

// T-32: a limit that fired around an Ok leaves nothing behind for the next wait.
#[tokio::test(start_paused = true)]
async fn a_spent_limit_leaves_nothing_behind() {
    let scope = Scope::new();
    let run = scope.run(async {
        let call = with_timeout(secs(1), async {
            let _ = std::future::pending::<()>().or_cancelled().await;
            ok(())
        });
        call.await.unwrap();
        sleep(secs(5)).or_cancelled().await.unwrap();
    });
    ends(run).await.unwrap();
    assert_eq!(scope.tree().children.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_body_passes_through() {
    let call = tokio::spawn(with_timeout(secs(1), async {
        if Deadline::current().is_never() {
            return ok(());
        }
        panic!("boom")
    }));
    assert!(call.await.unwrap_err().is_panic());
    assert!(Scope::current().is_none(), "the ambient scope is put back");
}

#[tokio::test(start_paused = true)]
async fn the_handle_prints() {
    let call = with_timeout_handle(secs(1), |timeout| async move { ok(format!("{timeout:?}")) });
    assert_eq!(call.await.unwrap(), "TimeoutHandle { deadline: Deadline(in 1s), expired: false, .. }");
}

// R5: nested ones take the earlier; one that relied on the frame around it is not forgotten when that is moved.
#[tokio::test(start_paused = true)]
async fn an_inner_limit_holds_when_a_branch_beside_it_moves_the_outer_one_later() {
    let start = Instant::now();
    let outer = with_timeout_handle(Duration::from_secs(1), |timeout| async move {
        let inner = with_timeout(Duration::from_secs(2), async { ok(std::future::pending::<()>().await) });
        let mover = async { timeout.reschedule(Deadline::after(Duration::from_secs(10))) };
        let (inner, moved) = tokio::join!(inner, mover);
        moved?;
        assert!(inner.unwrap_err().is_elapsed());
        ok(Instant::now())
    });
    assert_eq!(outer.await.unwrap() - start, Duration::from_secs(2));
}

// The same from another task, after the timers were armed.
#[tokio::test(start_paused = true)]
async fn an_inner_limit_holds_when_another_task_moves_the_outer_one_later() {
    let start = Instant::now();
    let (send, handle) = tokio::sync::oneshot::channel();
    let mover = tokio::spawn(async move {
        let timeout: stoppable_scope::TimeoutHandle = handle.await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        timeout.reschedule(Deadline::after(Duration::from_secs(10))).unwrap();
    });
    let outer = with_timeout_handle(Duration::from_secs(1), |timeout| async move {
        send.send(timeout).unwrap();
        let inner = with_timeout(Duration::from_secs(2), async { ok(std::future::pending::<()>().await) });
        assert!(inner.await.unwrap_err().is_elapsed());
        ok(Instant::now())
    });
    assert_eq!(outer.await.unwrap() - start, Duration::from_secs(2));
    mover.await.unwrap();
}

// The outer one is asked and goes on in its grace: the inner one still has its own limit.
#[tokio::test(start_paused = true)]
async fn an_inner_limit_holds_in_the_grace_of_the_outer_one() {
    let start = Instant::now();
    let outer = with_timeout(Duration::from_secs(1), async {
        let stubborn = with_timeout(Duration::from_secs(2), async { ok(std::future::pending::<()>().await) });
        assert!(stubborn.await.unwrap_err().is_cancelled());
        ok(Instant::now())
    });
    let ended = outer.grace(Duration::from_secs(5)).await.unwrap();
    assert_eq!(ended - start, Duration::from_secs(2));
}

// Whoever polls the inner call under a waker of its own is not polled with the outer one.
#[tokio::test(start_paused = true)]
async fn an_inner_limit_under_a_waker_of_its_own_holds_when_the_outer_one_is_moved_later() {
    for between in [false, true] {
        let (start, (send, handle)) = (Instant::now(), oneshot::channel::<TimeoutHandle>());
        let mover = tokio::spawn(async move {
            let timeout = handle.await.unwrap();
            sleep(ms(500)).await;
            timeout.reschedule(Deadline::after(secs(10))).unwrap();
        });
        let outer = with_timeout_handle(secs(1), |timeout| async move {
            send.send(timeout).unwrap();
            let inner = async move {
                let inner = with_timeout(secs(2), async { ok(std::future::pending::<()>().await) });
                if !between {
                    return inner.await.unwrap_err().is_elapsed();
                }
                let between = with_timeout(secs(5), async { ok(inner.await.unwrap_err().is_elapsed()) });
                between.await.unwrap()
            };
            let mut all: futures::stream::FuturesUnordered<_> = [inner].into_iter().collect();
            assert_eq!(futures::StreamExt::next(&mut all).await, Some(true));
            ok(Instant::now())
        });
        assert_eq!(outer.await.unwrap() - start, secs(2), "a frame between: {between}");
        mover.await.unwrap();
    }
}

// One timer serves all calls that are polled with the same waker, and each meets its own limit.
#[tokio::test(start_paused = true)]
async fn calls_side_by_side_end_each_at_its_own_limit() {
    let started = Instant::now();
    let call = |limit| async move {
        let call = with_timeout(limit, async { ok(std::future::pending::<()>().await) });
        assert!(call.await.unwrap_err().is_elapsed());
        started.elapsed()
    };
    let all = async { tokio::join!(call(secs(3)), call(secs(1)), with_inner(call(secs(2)))) };
    assert_eq!(ends(all.in_scope(&Scope::new())).await, (secs(3), secs(1), secs(2)));
    // The last of them without a scope around.
    let started = Instant::now();
    let outer = with_timeout(secs(9), async {
        let (first, second) = tokio::join!(
            with_timeout(secs(2), async { ok(std::future::pending::<()>().await) }),
            with_timeout(secs(1), async { ok(std::future::pending::<()>().await) }),
        );
        assert!(first.unwrap_err().is_elapsed() && second.unwrap_err().is_elapsed());
        ok(started.elapsed())
    });
    assert_eq!(ends(outer).await.unwrap(), secs(2));
}

async fn with_inner<T>(inner: impl Future<Output = T>) -> T {
    with_timeout(secs(50), async { ok(inner.await) }).await.unwrap()
}

// Nobody polls the call when its limit comes; whoever polls it next finds it over.
#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_polled_at_its_limit_ends_when_it_is_polled() {
    let task = async {
        let mut call = Box::pin(with_timeout(secs(1), async { ok(std::future::pending::<()>().await) }));
        assert!(futures::poll!(&mut call).is_pending());
        sleep(secs(5)).await;
        let again = Instant::now();
        assert!(call.await.unwrap_err().is_elapsed());
        again.elapsed()
    };
    assert_eq!(ends(with_inner(task)).await, Duration::ZERO);
}

// The timer of a call that has ended serves the next one: it fires once in vain, and is set for that.
#[tokio::test(start_paused = true)]
async fn a_later_limit_takes_over_the_timer_of_a_call_that_has_ended() {
    let mut task = Hand::new(with_inner(async {
        with_timeout(secs(1), async { ok(checkpoint().await?) }).await.unwrap();
        with_timeout(secs(4), async { ok(std::future::pending::<()>().await) }).await
    }));
    task.pending();
    task.pending();
    let woken = task.wakes();
    advance(secs(2)).await;
    assert_eq!(task.wakes(), woken + 1);
    task.pending();
    advance(secs(1)).await;
    assert_eq!(task.wakes(), woken + 1);
    advance(secs(2)).await;
    assert_eq!(task.wakes(), woken + 2);
    assert!(task.ready().unwrap_err().is_elapsed());
}
