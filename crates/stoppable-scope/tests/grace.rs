//! R2: "except for the grace that the call site gave (`.grace(d)`)".
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::cell::Cell;
use std::future::pending;
use std::time::Duration;

use stoppable_scope::{OrCancelledExt, cleanup, ok, with_timeout, with_timeout_handle};
use support::{ends, ms, secs};
use tokio::time::{Instant, sleep};

// Without a grace "the cut is immediate"; with one the plain wait goes on.
#[tokio::test(start_paused = true)]
async fn a_grace_lets_plain_waits_go_on() {
    for (grace, done, took) in [(None, false, 1000), (Some(500), true, 1300), (Some(200), false, 1200)] {
        let finished = Cell::new(false);
        let call = with_timeout(secs(1), async {
            let answer = pending::<()>().or_cancelled().await;
            sleep(ms(300)).await;
            finished.set(true);
            answer?;
            ok(())
        });
        let started = Instant::now();
        let call = match grace {
            Some(grace) => call.grace(ms(grace)),
            None => call,
        };
        assert!(ends(call).await.unwrap_err().is_elapsed());
        assert_eq!((finished.get(), started.elapsed()), (done, ms(took)), "{grace:?}");
    }
}

// "or zero": the cut is immediate, as without.
#[tokio::test(start_paused = true)]
async fn a_grace_of_zero_is_none() {
    let started = Instant::now();
    let call = with_timeout(secs(1), async { ok(sleep(secs(9)).await) });
    assert!(ends(call.grace(Duration::ZERO)).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(1));
}

// The maximum works; the work ends by itself.
#[tokio::test(start_paused = true)]
async fn a_grace_of_max_does_not_end() {
    let started = Instant::now();
    let call = with_timeout(secs(1), async { ok(sleep(secs(5000)).await) });
    ends(call.grace(Duration::MAX)).await.unwrap();
    assert_eq!(started.elapsed(), secs(5000));
}

// Stoppable waits answer at once all the same: a grace is for what comes after.
#[tokio::test(start_paused = true)]
async fn in_a_grace_stoppable_waits_answer() {
    let started = Instant::now();
    let call = with_timeout(secs(1), async {
        pending::<()>().or_cancelled().await.unwrap_err();
        let again = pending::<()>().or_cancelled().await;
        ok(again?)
    });
    assert!(ends(call.grace(secs(50))).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(1));
}

// A grace and a section: whichever is longer, the section is honoured and the plain wait is not.
#[tokio::test(start_paused = true)]
async fn a_section_outlasts_a_grace() {
    let started = Instant::now();
    let call = with_timeout(secs(1), async {
        let _ = pending::<()>().or_cancelled().await;
        cleanup(secs(9), sleep(secs(3))).await.unwrap();
        ok(sleep(secs(100)).await)
    });
    assert!(ends(call.grace(secs(2))).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(4));
}

// Each timeout has its own: the inner one is cut at the end of its own grace, by its own request.
#[tokio::test(start_paused = true)]
async fn nested_graces_count_for_their_own_limits() {
    let started = Instant::now();
    let outer = with_timeout(secs(10), async {
        let inner = with_timeout(secs(1), async { ok(sleep(secs(100)).await) }).grace(secs(2));
        assert!(inner.await.unwrap_err().is_elapsed());
        assert_eq!(started.elapsed(), secs(3));
        ok(sleep(secs(100)).await)
    });
    assert!(ends(outer.grace(secs(5))).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(15));
}

// A hand cancel of the call's scope has the call's grace too.
#[tokio::test(start_paused = true)]
async fn a_hand_cancel_has_the_grace_of_the_call() {
    let started = Instant::now();
    let call = with_timeout_handle(secs(100), |timeout| async move {
        timeout.scope().cancel("by hand");
        ok(sleep(secs(100)).await)
    });
    assert!(ends(call.grace(secs(2))).await.unwrap_err().is_cancelled());
    assert_eq!(started.elapsed(), secs(2));
}

// Taken back and made again: the grace counts from the request that stands.
#[tokio::test(start_paused = true)]
async fn a_grace_counts_from_the_request_that_stands() {
    let started = Instant::now();
    let call = with_timeout_handle(secs(100), |timeout| async move {
        let scope = timeout.scope();
        scope.cancel("one");
        sleep(secs(1)).await;
        scope.uncancel();
        sleep(secs(5)).await;
        scope.cancel("two");
        ok(sleep(secs(100)).await)
    });
    assert!(ends(call.grace(secs(2))).await.unwrap_err().is_cancelled());
    assert_eq!(started.elapsed(), secs(8));
}
