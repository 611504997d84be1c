//! Work that is started again: bounded, with a delay, and stoppable.

mod support;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use stoppable_group::{Restart, RestartError, TaskError, TaskGroup, ok, with_timeout};
use stoppable_scope::{OrCancelledExt, Scope, cleanup};
use stoppable_test::{End, Intervention, Sweep};
use support::{Alive, Log, PanicOnDrop, ends, ms, runtimes, secs};
use tokio::time::{Instant, sleep};

/// Work that fails `failures` times and then gives how often it ran.
fn flaky(failures: usize) -> (impl FnMut() -> Flaky, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&runs);
    let make = move || {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { if run < failures { Err(TaskError::from("reset")) } else { Ok(run) } }) as Flaky
    };
    (make, seen)
}

type Flaky = std::pin::Pin<Box<dyn Future<Output = Result<usize, TaskError>> + Send>>;

fn given_up<T: std::fmt::Debug>(result: Result<T, RestartError>) -> (usize, String) {
    match result {
        Err(RestartError::GivenUp { restarts, last, .. }) => (restarts, last.to_string()),
        other => panic!("{other:?}"),
    }
}

// It gives the value of the run that succeeds.
#[tokio::test(start_paused = true)]
async fn work_is_started_again_until_it_succeeds() {
    let (make, runs) = flaky(3);
    assert_eq!(ends(Restart::at_most(3, secs(60)).run(make)).await.unwrap(), 3);
    assert_eq!(runs.load(Ordering::Relaxed), 4);
}

// More failures than that within the period go up, with the last of them.
#[tokio::test(start_paused = true)]
async fn it_gives_up_after_too_many_restarts() {
    let (make, runs) = flaky(usize::MAX);
    let result = ends(Restart::at_most(3, secs(60)).run(make)).await;
    assert_eq!(given_up(result), (3, "reset".into()));
    assert_eq!(runs.load(Ordering::Relaxed), 4);
}

// Zero restarts: one run. A period of zero: none is ever too many, but each lets the others run and a cancel in.
#[tokio::test(start_paused = true)]
async fn zero_and_the_maximum_work() {
    let (make, runs) = flaky(usize::MAX);
    assert_eq!(given_up(ends(Restart::at_most(0, Duration::MAX).run(make)).await), (0, "reset".into()));
    assert_eq!(runs.load(Ordering::Relaxed), 1);

    let scope = Scope::named("outer");
    let (mut make, runs) = flaky(usize::MAX);
    let seen = Arc::clone(&runs);
    let asked = scope.clone();
    let endless = scope.run(Restart::at_most(1, Duration::ZERO).run(move || {
        if seen.load(Ordering::Relaxed) == 1000 {
            asked.cancel("enough");
        }
        make()
    }));
    // It failed while it was being cancelled, so the failure is the answer.
    assert_eq!(given_up(ends(endless).await.unwrap()), (0, "reset".into()));
    assert_eq!(runs.load(Ordering::Relaxed), 1001);

    let (make, _) = flaky(5);
    let never = Restart::at_most(usize::MAX, Duration::MAX).delay(Duration::MAX);
    assert!(ends(with_timeout(secs(1), never.run(make))).await.unwrap_err().is_elapsed());
}

// Failures long past do not count: the bound is on restarts within any period.
#[tokio::test(start_paused = true)]
async fn old_restarts_are_forgotten() {
    // Each run lasts 4 s, so at most two restarts lie within 10 s.
    let make = |runs: Arc<AtomicUsize>| {
        move || {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            async move {
                sleep(secs(4)).await;
                if run < 20 { Err(TaskError::from("reset")) } else { Ok(run) }
            }
        }
    };
    let runs = Arc::default();
    assert_eq!(ends(Restart::at_most(3, secs(10)).run(make(runs))).await.unwrap(), 20);
    let runs = Arc::default();
    assert_eq!(given_up(ends(Restart::at_most(2, secs(10)).run(make(runs))).await).0, 2);
}

// A restart exactly one period old is outside of it.
#[tokio::test(start_paused = true)]
async fn a_restart_that_is_as_old_as_the_period_does_not_count() {
    let failing = || async {
        sleep(secs(10)).await;
        Err::<(), _>(TaskError::from("reset"))
    };
    let started = Instant::now();
    let bounded = Restart::at_most(1, secs(10)).run(failing);
    assert!(with_timeout(secs(95), bounded).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(95));
}

// The delay gets the number of restarts within the period.
#[tokio::test(start_paused = true)]
async fn the_backoff_knows_how_often() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&seen);
    let started = Instant::now();
    let restart = Restart::at_most(4, secs(60)).backoff(move |restarts| {
        asked.lock().push(restarts);
        ms(100 << restarts)
    });
    let (make, _) = flaky(4);
    ends(restart.run(make)).await.unwrap();
    assert_eq!(*seen.lock(), [0, 1, 2, 3]);
    assert_eq!(started.elapsed(), ms(1500));
}

// A panic counts as an error: of the work, of the closure that makes it, and of its destructors.
#[tokio::test(start_paused = true)]
async fn every_kind_of_panic_counts() {
    let run = AtomicUsize::new(0);
    let result = ends(Restart::at_most(9, secs(60)).run(|| {
        let run = run.fetch_add(1, Ordering::Relaxed);
        assert!(run != 0, "make");
        async move {
            let _bomb = (run == 1).then(|| PanicOnDrop("destructor"));
            sleep(ms(1)).await;
            assert!(run != 2, "work");
            ok(run)
        }
    }))
    .await;
    assert_eq!(result.unwrap(), 3);

    let result = ends(Restart::at_most(0, secs(1)).run(|| async { ok(panic_now()) })).await;
    assert_eq!(given_up(result), (0, "panicked: boom".into()));
}

fn panic_now() -> u8 {
    panic!("boom")
}

// A panic of the backoff is not of the work: it is the task's.
#[tokio::test(start_paused = true)]
async fn a_panic_of_the_backoff_is_a_failure_of_the_task() {
    let error = ends(TaskGroup::run(|group| async move {
        let (make, _) = flaky(5);
        let restart = Restart::at_most(3, secs(1)).backoff(|_| panic!("no delay"));
        group.task("work").spawn(restart.run(make));
        ok(())
    }))
    .await
    .unwrap_err();
    assert_eq!(error.failures()[0].panic_message(), Some("no delay"));
}

// The old run is gone before the next begins.
#[tokio::test(start_paused = true)]
async fn two_runs_are_never_alive_at_once() {
    let alive = Alive::default();
    let run = AtomicUsize::new(0);
    ends(Restart::at_most(3, secs(60)).run(|| {
        assert_eq!(alive.now(), 0);
        let (guard, run) = (alive.guard(), run.fetch_add(1, Ordering::Relaxed));
        async move {
            let _guard = guard;
            sleep(ms(1)).await;
            if run < 3 { Err(TaskError::from("reset")) } else { Ok(()) }
        }
    }))
    .await
    .unwrap();
}

// A cancel is answered during the delay, not after it (B-105), and is not a failure.
#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_delay_at_once() {
    let (scope, started) = (Scope::named("outer"), Instant::now());
    let cancel = async {
        sleep(ms(100)).await;
        scope.cancel("enough");
    };
    let (make, runs) = flaky(5);
    let restart = scope.run(Restart::at_most(3, secs(60)).delay(secs(30)).run(make));
    let (result, ()) = tokio::join!(ends(restart), cancel);
    assert!(matches!(result.unwrap(), Err(RestartError::Cancelled(by)) if by.scope() == scope.id()));
    assert_eq!((started.elapsed(), runs.load(Ordering::Relaxed)), (ms(100), 1));
}

// Work that answers a cancel is not started again; its group counts it as cancelled.
#[tokio::test(start_paused = true)]
async fn cancelled_work_is_not_started_again() {
    let (result, report) = ends(TaskGroup::builder().run_reported(|group| async move {
        let log = Log::default();
        let seen = log.clone();
        let task = group.spawn(Restart::at_most(5, secs(60)).run(move || {
            seen.add("run");
            async { ok(pending::<()>().or_cancelled().await?) }
        }));
        sleep(ms(1)).await;
        assert!(task.shutdown().await.unwrap_err().is_cancelled());
        assert_eq!(log.len(), 1);
        ok(())
    }))
    .await;
    assert!(result.is_ok());
    assert_eq!((report.cancelled, report.failed), (1, 0));
}

// R4: an error is never replaced by a cancellation. What fails in its cleanup is a failure.
#[tokio::test(start_paused = true)]
async fn a_failure_during_a_cancel_is_kept() {
    let error = ends(TaskGroup::run(|group| async move {
        let restart = Restart::at_most(5, secs(60)).delay(secs(1));
        let task = group.task("worker").spawn(restart.run(|| async {
            let _ = pending::<()>().or_cancelled().await;
            Err::<(), _>(TaskError::from("flush failed"))
        }));
        sleep(ms(1)).await;
        task.cancel();
        ok(())
    }))
    .await
    .unwrap_err();
    assert!(error.to_string().contains("flush failed"), "{error}");
}

// A cancellation that names a scope inside the work is a failure of it like any other.
#[tokio::test(start_paused = true)]
async fn a_cancel_of_a_scope_inside_is_a_failure() {
    let run = AtomicUsize::new(0);
    let result = ends(Restart::at_most(3, secs(60)).run(|| {
        let run = run.fetch_add(1, Ordering::Relaxed);
        async move {
            let inner = Scope::named("inner");
            if run == 0 {
                inner.cancel("only this one");
            }
            inner.check()?;
            ok(run)
        }
    }))
    .await;
    assert_eq!(result.unwrap(), 1);
}

// A cleanup of the work is run to its end when it is cancelled, and then there is no restart.
#[tokio::test(start_paused = true)]
async fn a_restart_can_be_left_at_every_point() {
    let alive = Alive::default();
    let swept = Sweep::with_state(|| {
        let (alive, log) = (alive.clone(), Log::default());
        let (seen, run) = (log.clone(), AtomicUsize::new(0));
        let work = Restart::at_most(5, secs(60)).delay(ms(50)).run(move || {
            let (guard, run, log) = (alive.guard(), run.fetch_add(1, Ordering::Relaxed), seen.clone());
            async move {
                let _guard = guard;
                log.add("open");
                let waited = sleep(ms(10)).or_cancelled().await;
                cleanup(secs(1), sleep(ms(5))).await?;
                log.add("closed");
                waited?;
                if run < 2 { Err(TaskError::from("reset")) } else { Ok(run) }
            }
        });
        (log, work)
    })
    .run(|round| {
        assert_eq!(alive.now(), 0);
        if round.intervention != Intervention::Drop {
            assert_eq!(round.state.len() % 2, 0, "what was opened was closed: {:?}", round.state);
        }
        match round.end {
            End::Finished(Ok(run)) => assert_eq!(run, 2),
            End::Finished(Err(RestartError::Cancelled(_))) => {}
            // It failed while it was being cancelled.
            End::Finished(Err(RestartError::GivenUp { last, .. })) => assert_eq!(last.to_string(), "reset"),
            End::Finished(Err(other)) => panic!("{other}"),
            End::Cut => panic!("it answers by itself"),
            End::Dropped => assert_eq!(round.intervention, Intervention::Drop),
        }
    })
    .await;
    assert!(swept.points() > 20, "{swept:?}");
}

// A deadline around it bounds all runs and delays together (B-109).
#[tokio::test(start_paused = true)]
async fn a_deadline_bounds_runs_and_delays() {
    let started = Instant::now();
    let restart = Restart::at_most(usize::MAX, secs(60)).delay(ms(300));
    let (make, runs) = flaky(usize::MAX);
    assert!(ends(with_timeout(secs(1), restart.run(make))).await.unwrap_err().is_elapsed());
    assert_eq!((started.elapsed(), runs.load(Ordering::Relaxed)), (secs(1), 4));
}

// As a service it needs nobody to end it, also while it waits for its next start. On both runtimes.
#[test]
fn a_restarted_service_ends_with_its_group() {
    for runtime in runtimes() {
        runtime.block_on(async {
            for _ in 0..200 {
                let value = TaskGroup::run(|group| async move {
                    let restart = Restart::at_most(usize::MAX, secs(60));
                    group.task("feed").service().spawn(restart.run(|| async {
                        tokio::task::yield_now().await;
                        Err::<(), _>(TaskError::from("reset"))
                    }));
                    tokio::task::yield_now().await;
                    ok(7)
                });
                // It either answers, or has failed at that very moment.
                match value.await {
                    Ok(value) => assert_eq!(value, 7),
                    Err(error) => assert!(error.to_string().contains("reset"), "{error}"),
                }
            }
        });
    }
}
