//! The first that succeeds is enough: `Policy::FirstSuccess`, and `race` and `hedge` built on it.

mod support;

use std::future::pending;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stoppable_group::{
    GroupError, HandleError, Policy, TaskError, TaskGroup, hedge, ok, race, root, with_timeout,
};
use stoppable_scope::{Cancelled, OrCancelledExt, Reason, Scope, cleanup};
use stoppable_test::{End, Intervention, Sweep};
use support::{Alive, AliveGuard, Log, ends, ms, runtimes, secs};
use tokio::time::{Instant, sleep};

/// Waits, stoppably, and then does as its name says.
async fn runner(name: &'static str, after: u64, log: Log) -> Result<&'static str, TaskError> {
    if let Err(cancelled) = sleep(ms(after)).or_cancelled().await {
        log.add(format!("{name}: {cancelled}"));
        return Err(cancelled.into());
    }
    match name {
        "fails" => Err("no route".into()),
        "panics" => panic!("boom"),
        _ => Ok(name),
    }
}

fn texts(error: &GroupError) -> Vec<String> {
    error.failures().iter().map(ToString::to_string).collect()
}

fn first_success() -> stoppable_group::GroupBuilder {
    TaskGroup::builder().policy(Policy::FirstSuccess)
}

// The value is that of the first to succeed, not of the first to end; the others are asked, and hear why.
#[tokio::test(start_paused = true)]
async fn the_first_success_wins_and_the_rest_is_cancelled() {
    let (log, started) = (Log::default(), Instant::now());
    let runners = [("fails", 5), ("panics", 10), ("second", 40), ("first", 20)];
    let race = race(runners.map(|(name, after)| runner(name, after, log.clone())));
    assert_eq!(ends(race).await.unwrap(), "first");
    assert_eq!(log.lines(), ["second: cancelled: its sibling `runner` was first"]);
    assert_eq!(started.elapsed(), ms(20));
}

// R1: nobody is left when the race is over: a loser's cleanup is waited for.
#[tokio::test(start_paused = true)]
async fn a_race_waits_for_the_cleanup_of_its_losers() {
    let (alive, started) = (Alive::default(), Instant::now());
    let loser = |guard: AliveGuard, wins: bool| async move {
        let _guard = guard;
        if wins {
            return ok("winner");
        }
        let _ = pending::<()>().or_cancelled().await;
        cleanup(secs(2), sleep(secs(1))).await?;
        ok("also")
    };
    let race = race([false, true].map(|wins| loser(alive.guard(), wins)));
    // A success that comes after the first one changes nothing.
    assert_eq!(ends(race).await.unwrap(), "winner");
    assert_eq!((started.elapsed(), alive.now()), (secs(1), 0));
}

// With no success all failures are in the error, in the order in which the tasks ended, each once.
#[tokio::test(start_paused = true)]
async fn a_race_without_a_winner_has_all_failures() {
    let log = Log::default();
    let error =
        ends(race([("panics", 20), ("fails", 10)].map(|(name, after)| runner(name, after, log.clone()))))
            .await
            .unwrap_err();
    assert_eq!(texts(&error), ["task `runner` failed: no route", "task `runner` panicked: boom"]);
    assert!(!error.is_cancelled());
    assert_eq!(log.len(), 0);
}

// Nothing in it: an error, not a wait for ever.
#[tokio::test(start_paused = true)]
async fn a_race_of_nobody_has_no_winner() {
    let error = ends(race(Vec::<std::future::Ready<Result<(), TaskError>>>::new())).await.unwrap_err();
    assert_eq!(texts(&error), ["task `body` failed: a race of nobody has no winner"]);
    let attempt = |_| async { ok(()) };
    let error = ends(hedge(0, secs(1), attempt)).await.unwrap_err();
    assert_eq!(texts(&error), ["task `body` failed: a hedge without attempts has no answer"]);
}

// Names and spawn sites are those of the code that calls, not lines of the library (B-120).
#[tokio::test(start_paused = true)]
async fn the_spawn_site_is_where_the_race_was_called() {
    let here = Location::caller();
    let error = race([runner("fails", 1, Log::default())]).await.unwrap_err();
    let site = error.failures()[0].site();
    assert_eq!((site.file(), site.line()), (file!(), here.line() + 1));
    let error = hedge(1, secs(1), |_| runner("fails", 1, Log::default())).await.unwrap_err();
    assert_eq!(
        (error.failures()[0].site().file(), error.failures()[0].site().line()),
        (file!(), here.line() + 4)
    );
}

// A tie: both have succeeded at the same instant; one value, nobody failed or cut.
#[tokio::test(start_paused = true)]
async fn of_two_successes_at_one_instant_one_counts() {
    let log = Log::default();
    let both = ["a", "b"].map(|name| runner(name, 10, log.clone()));
    assert!(["a", "b"].contains(&ends(race(both)).await.unwrap()));

    let (value, report) = ends(first_success().keep_report().run_reported(|group| async move {
        let a = group.spawn(runner("a", 10, Log::default()));
        let b = group.spawn(runner("b", 10, Log::default()));
        let _ = (a.await, b.await);
        ok("body")
    }))
    .await;
    assert_eq!(value.unwrap(), "body");
    assert_eq!((report.ok + report.cancelled, report.failed), (2, 0));
}

// A failure at the same instant as the success does not count, whichever came first.
#[tokio::test(start_paused = true)]
async fn a_failure_at_the_instant_of_the_success_is_not_in_the_error() {
    for order in [["fails", "wins"], ["wins", "fails"]] {
        let race = race(order.map(|name| runner(name, 10, Log::default())));
        assert_eq!(ends(race).await.unwrap(), "wins");
    }
}

// The body goes on after the decision, and what it spawns then is refused.
#[tokio::test(start_paused = true)]
async fn the_body_goes_on_and_no_more_tasks_are_taken() {
    let value = ends(first_success().run(|group| async move {
        group.spawn(async { ok(1) }).await?;
        sleep(secs(1)).or_cancelled().await?;
        let refused = group.spawn(async { ok(2) }).await.unwrap_err();
        assert!(matches!(refused, HandleError::Refused { cancelled: None, .. }), "{refused:?}");
        ok("body")
    }));
    assert_eq!(value.await.unwrap(), "body");
}

// A body that fails makes the group fail, also by the failure of a task that alone would not count.
#[tokio::test(start_paused = true)]
async fn a_failure_that_the_body_passes_on_is_an_error_after_a_success() {
    let error = ends(first_success().run(|group| async move {
        let fails = group.task("loser").spawn(runner("fails", 10, Log::default()));
        group.spawn(async { sleep(ms(20)).await }).await?;
        fails.await?;
        ok(())
    }))
    .await
    .unwrap_err();
    assert_eq!(texts(&error), ["task `loser` failed: no route"]);
}

// A body with a value does not hide that nobody succeeded.
#[tokio::test(start_paused = true)]
async fn the_value_of_the_body_is_no_success() {
    let error = ends(first_success().run(|group| async move {
        group.spawn(runner("fails", 10, Log::default()));
        ok("body")
    }))
    .await
    .unwrap_err();
    assert_eq!(texts(&error), ["task `runner` failed: no route"]);
}

// Services and shielded work end well for reasons of their own.
#[tokio::test(start_paused = true)]
async fn neither_a_service_nor_shielded_work_decides() {
    let value = ends(first_success().run(|group| async move {
        group.task("cache").service().spawn(async {});
        group.task("blocking cache").service().spawn_blocking(|_| ());
        let waiter = group.shield(async { ok(()) });
        waiter.await?;
        drop(group.shield(async {}));
        sleep(ms(1)).await;
        ok(group.spawn(runner("wins", 10, Log::default())).await?)
    }));
    assert_eq!(value.await.unwrap(), "wins");
}

// A task that waits for its place when the race is decided never runs, and is reported so.
#[tokio::test(start_paused = true)]
async fn a_queued_task_never_runs_after_the_decision() {
    let (value, report) = ends(first_success().limit(1).run_reported(|group| async move {
        let first = group.spawn(runner("wins", 10, Log::default()));
        let late = group.spawn(async { ok(panic_if_run()) });
        assert_eq!(first.await?, "wins");
        assert!(matches!(late.await, Err(HandleError::NotStarted { .. })));
        ok(())
    }))
    .await;
    assert!(value.is_ok());
    assert_eq!((report.ok, report.not_started), (1, 1));
}

fn panic_if_run() -> u8 {
    panic!("it ran")
}

// R4: a request from outside is the outside's, with its reason; the runners are never polled where it was there first.
#[tokio::test(start_paused = true)]
async fn a_race_in_a_cancelled_scope_runs_nobody() {
    let (scope, polls) = (Scope::named("outer"), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&polls);
    let error = ends(scope.run(async {
        scope.cancel("too late");
        race([async move {
            counted.fetch_add(1, Ordering::Relaxed);
            ok(())
        }])
        .await
    }))
    .await;
    let error = error.unwrap().unwrap_err();
    assert_eq!(error.cancelled().map(Cancelled::to_string).unwrap(), "cancelled: too late");
    assert_eq!(error.cancelled().unwrap().scope(), scope.id());
    assert_eq!(polls.load(Ordering::Relaxed), 0);
}

// A value that is there is not lost to a request that comes while the losers clean up.
#[tokio::test(start_paused = true)]
async fn a_cancel_while_the_losers_clean_up_leaves_the_value() {
    let scope = Scope::named("outer");
    let cancel = async {
        sleep(ms(500)).await;
        scope.cancel("meanwhile");
    };
    let one = |wins: bool| async move {
        if !wins {
            let _ = pending::<()>().or_cancelled().await;
            cleanup(secs(2), sleep(secs(1))).await?;
        }
        ok(wins)
    };
    let (value, ()) = tokio::join!(ends(scope.run(race([false, true].map(one)))), cancel);
    assert!(value.unwrap().unwrap());
}

// A value that arrives wins over the expiry of a timeout at the same instant; a race without one expires.
#[tokio::test(start_paused = true)]
async fn a_timeout_around_a_race() {
    let late = with_timeout(ms(10), race([runner("late", 50, Log::default())]));
    assert!(ends(late).await.unwrap_err().is_elapsed());
    let error = with_timeout(Duration::ZERO, race([runner("late", 50, Log::default())])).await.unwrap_err();
    assert!(error.is_elapsed());
}

// A panic in the iterator is a failure of the body; those that it gave before are cancelled.
#[tokio::test(start_paused = true)]
async fn an_iterator_that_panics_ends_the_race() {
    let alive = Alive::default();
    let seen = alive.clone();
    let futures = (0..3).map(move |n| {
        assert!(n < 2, "the list is broken");
        let guard = seen.guard();
        async move {
            let _guard = guard;
            pending::<()>().await;
            ok(())
        }
    });
    let error = ends(race(futures)).await.unwrap_err();
    assert_eq!(texts(&error), ["task `body` panicked: the list is broken"]);
    assert_eq!(alive.now(), 0);
}

// Drops, cancels and expiries at every await point: no task is left, and no value is made up.
#[tokio::test(start_paused = true)]
async fn a_race_can_be_left_at_every_point() {
    let alive = Alive::default();
    let swept = Sweep::new(|| {
        let runners = [("fails", 5), ("slow", 30), ("wins", 20)].map(|(name, after)| {
            let guard = alive.guard();
            async move {
                let _guard = guard;
                runner(name, after, Log::default()).await
            }
        });
        race(runners)
    })
    .run(|round| match round.end {
        End::Finished(Ok(value)) => assert_eq!(value, "wins"),
        // A failure until then is an error; alone the cancel is one.
        End::Finished(Err(error)) if error.is_cancelled() => {}
        End::Finished(Err(error)) => assert_eq!(error.failures().len(), 1, "{error}"),
        End::Cut => panic!("a group answers by itself"),
        End::Dropped => assert_eq!(round.intervention, Intervention::Drop),
    })
    .await;
    assert!(swept.points() > 5);
    ends(root().join()).await.unwrap();
    assert_eq!(alive.now(), 0);
}

// On both runtimes: however many succeed at once, there is one value, and nobody is alive.
#[test]
fn many_successes_at_once_give_one_value() {
    for runtime in runtimes() {
        runtime.block_on(async {
            for round in 0..200 {
                let alive = Alive::default();
                let runners = (0..8).map(|n| {
                    let guard = alive.guard();
                    async move {
                        let _guard = guard;
                        if n % 2 == 1 {
                            tokio::task::yield_now().await;
                        }
                        if n == round % 8 { Err(TaskError::from("one fails")) } else { Ok(n) }
                    }
                });
                let value = race(runners.collect::<Vec<_>>()).await.unwrap();
                assert!(value < 8 && value != round % 8);
                assert_eq!(alive.now(), 0);
            }
        });
    }
}

/// The attempts of a hedge: when each began.
fn attempts(log: &Log, took: impl Fn(usize) -> u64) -> impl FnMut(usize) -> AttemptFuture {
    let (log, started) = (log.clone(), Instant::now());
    move |number| {
        log.add(format!("{number} at {}", started.elapsed().as_millis()));
        let after = took(number);
        Box::pin(async move {
            sleep(ms(after)).await;
            if after == 1 { Err("refused".into()) } else { Ok(number) }
        })
    }
}

type AttemptFuture = std::pin::Pin<Box<dyn Future<Output = Result<usize, TaskError>> + Send>>;

// One more whenever those that run have not succeeded for the delay.
#[tokio::test(start_paused = true)]
async fn a_hedge_starts_the_next_attempt_after_each_delay() {
    let log = Log::default();
    let answer = hedge(5, ms(50), attempts(&log, |number| if number == 2 { 20 } else { 10_000 }));
    assert_eq!(ends(answer).await.unwrap(), 2);
    assert_eq!(log.lines(), ["0 at 0", "1 at 50", "2 at 100"]);
}

// At once when all have failed, for then there is nothing to wait for; not for one of several.
#[tokio::test(start_paused = true)]
async fn a_hedge_does_not_wait_when_all_have_failed() {
    let log = Log::default();
    let answer = hedge(4, ms(50), attempts(&log, |number| [1, 500, 1, 20][number]));
    assert_eq!(ends(answer).await.unwrap(), 3);
    assert_eq!(log.lines(), ["0 at 0", "1 at 1", "2 at 51", "3 at 101"]);
}

// The last attempt is waited for as long as it takes; with all failed, all are in the error.
#[tokio::test(start_paused = true)]
async fn a_hedge_waits_for_its_last_attempt() {
    let log = Log::default();
    let started = Instant::now();
    assert_eq!(ends(hedge(2, ms(50), attempts(&log, |_| 9_000))).await.unwrap(), 0);
    assert_eq!(started.elapsed(), ms(9_000));
    let error = ends(hedge(3, ms(50), attempts(&log, |_| 1))).await.unwrap_err();
    assert_eq!(error.failures().len(), 3);
}

// Zero and the maximum.
#[tokio::test(start_paused = true)]
async fn a_hedge_takes_any_delay() {
    let log = Log::default();
    assert_eq!(ends(hedge(3, Duration::ZERO, attempts(&log, |n| 100 - n as u64))).await.unwrap(), 2);
    assert_eq!(log.lines(), ["0 at 0", "1 at 0", "2 at 0"]);
    assert_eq!(ends(hedge(usize::MAX, Duration::MAX, attempts(&log, |_| 100))).await.unwrap(), 0);
    // Without end, but not without a wait that answers.
    let scope = Scope::named("outer");
    let endless = scope.run(hedge(usize::MAX, Duration::ZERO, |number| {
        if number == 1000 {
            scope.cancel("enough");
        }
        assert!(number < 5000, "it does not answer");
        pending::<()>()
    }));
    assert!(ends(endless).await.unwrap().unwrap_err().is_cancelled());
}

// A tie of the delay and the answer: the answer counts, and at most one attempt was made in vain.
#[tokio::test(start_paused = true)]
async fn an_answer_at_the_end_of_the_delay_counts() {
    let log = Log::default();
    assert_eq!(ends(hedge(9, ms(50), attempts(&log, |_| 50))).await.unwrap(), 0);
    assert!(log.len() <= 2);
}

// A panic of the closure is a failure of the hedge; the attempts that run are cancelled.
#[tokio::test(start_paused = true)]
async fn a_closure_that_panics_ends_the_hedge() {
    let alive = Alive::default();
    let seen = alive.clone();
    let error = ends(hedge(3, ms(10), move |number| {
        assert!(number < 1, "no more servers");
        let guard = seen.guard();
        async move {
            let _guard = guard;
            pending::<()>().await;
        }
    }))
    .await
    .unwrap_err();
    assert_eq!(texts(&error), ["task `body` panicked: no more servers"]);
    assert_eq!(alive.now(), 0);
}

// Left at every point, a hedge leaves no attempt behind.
#[tokio::test(start_paused = true)]
async fn a_hedge_can_be_left_at_every_point() {
    let alive = Alive::default();
    let swept = Sweep::new(|| {
        let alive = alive.clone();
        hedge(3, ms(10), move |number| {
            let guard = alive.guard();
            async move {
                let _guard = guard;
                sleep(ms([100, 2, 5][number])).or_cancelled().await?;
                if number == 1 { Err(TaskError::from("refused")) } else { Ok(number) }
            }
        })
    })
    .run(|round| match round.end {
        End::Finished(Ok(value)) => assert_eq!(value, 2),
        // A failure until then is an error; alone the cancel is one.
        End::Finished(Err(error)) if error.is_cancelled() => {}
        End::Finished(Err(error)) => assert_eq!(error.failures().len(), 1, "{error}"),
        End::Cut => panic!("a group answers by itself"),
        End::Dropped => assert_eq!(round.intervention, Intervention::Drop),
    })
    .await;
    assert!(swept.points() > 8);
    ends(root().join()).await.unwrap();
    assert_eq!(alive.now(), 0);
}

// The reason names the winner, for who wants to tell a lost race from a cancel.
#[tokio::test(start_paused = true)]
async fn a_loser_knows_who_won() {
    ends(first_success().run(|group| async move {
        let loser = group.spawn(pending::<()>());
        group.task("winner").spawn(async {});
        match loser.await {
            Err(HandleError::Cancelled { cancelled, .. }) => {
                assert!(matches!(cancelled.reason(), Reason::SiblingSucceeded(name) if name == "winner"));
            }
            other => panic!("{other:?}"),
        }
        ok(())
    }))
    .await
    .unwrap();
}

// Who comes at the very moment of the success is cancelled like those who were there.
#[test]
fn a_task_spawned_while_another_succeeds_does_not_hold_the_group_open() {
    let [_, four] = runtimes();
    for _ in 0..500 {
        let run = TaskGroup::builder().policy(Policy::FirstSuccess).run(|group| async move {
            let spawner = group.clone();
            group.spawn(async { ok(()) });
            for _ in 0..40 {
                spawner.spawn(pending::<()>());
            }
            ok(())
        });
        let spawned = four.spawn(run);
        four.block_on(async {
            tokio::time::timeout(secs(20), spawned).await.expect("a task was missed").unwrap().unwrap();
        });
    }
}
