//! R3: until taken back.

mod support;

use std::future::pending;

use stoppable_scope::{OrCancelledExt, Scope, checkpoint, ok, with_timeout, with_timeout_handle};
use support::{Hand, ends, ms, secs};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

// S-30, S-34: it tells what is left, and stops at zero.
#[test]
fn uncancel_takes_back_the_latest_and_tells_what_is_left() {
    let scope = Scope::new();
    assert_eq!(scope.uncancel(), 0);
    scope.cancel("one");
    scope.cancel("two");
    assert_eq!(scope.cancelling(), 2);
    assert_eq!(scope.uncancel(), 1);
    assert_eq!(scope.check().unwrap_err().to_string(), "cancelled: one");
    assert_eq!(scope.uncancel(), 0);
    assert!(!scope.is_cancelled());
    assert_eq!(scope.uncancel(), 0);
    scope.cancel("three");
    assert_eq!(scope.check().unwrap_err().to_string(), "cancelled: three");
}

// S-04, S-29: cancel and uncancel before the poll is nothing.
#[test]
fn a_request_taken_back_before_the_poll_is_nothing() {
    let scope = Scope::new();
    let mut run = Hand::new(scope.run(pending::<()>()));
    run.pending();
    scope.cancel(());
    scope.uncancel();
    assert!(run.settle().is_pending());
    scope.cancel("again");
    assert!(run.ready().is_err(), "and the next request is heard");
}

// R3: "Descendants work again at once".
#[tokio::test(start_paused = true)]
async fn what_is_below_works_again_at_once() {
    let scope = Scope::new();
    let child = scope.child("below");
    scope.cancel(());
    assert!(child.is_cancelled());
    scope.uncancel();
    assert!(!child.is_cancelled());
    ends(child.run(async { checkpoint().await.unwrap() })).await.unwrap();
    scope.cancel("later");
    assert!(child.check().is_err(), "the next request reaches them again");
}

// R3: "never an ancestor's, never one of the library's".
#[tokio::test(start_paused = true)]
async fn a_request_of_an_ancestor_stands() {
    let outer = Scope::new();
    let inner = outer.child("inner");
    outer.cancel("outer");
    inner.cancel("inner");
    assert_eq!(inner.uncancel(), 0);
    assert_eq!(inner.check().unwrap_err().to_string(), "cancelled: outer");
    assert_eq!(outer.cancelling(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_can_not_be_taken_back() {
    let call = with_timeout_handle(secs(1), |timeout| async move {
        assert!(pending::<()>().or_cancelled().await.is_err());
        timeout.scope().cancel("by hand");
        assert_eq!(timeout.scope().cancelling(), 1, "only the request of a user counts");
        assert_eq!(timeout.scope().uncancel(), 0);
        assert_eq!(timeout.scope().uncancel(), 0);
        checkpoint().await?;
        ok(())
    });
    assert!(ends(call).await.unwrap_err().is_elapsed());
}

// R3: "a request that came from an outside token cannot be taken back".
#[test]
fn a_request_of_a_token_can_not_be_taken_back() {
    let token = CancellationToken::new();
    let scope = Scope::from_token(token.clone());
    scope.cancel("by hand");
    token.cancel();
    assert_eq!(scope.uncancel(), 0);
    assert!(scope.is_cancelled());
    assert_eq!(scope.check().unwrap_err().to_string(), "cancelled: its cancellation token was cancelled");
}

// The first request is taken back and one of the library's stands behind it: those below hear that one.
#[tokio::test(start_paused = true)]
async fn the_request_behind_the_one_taken_back_is_heard() {
    let call = with_timeout_handle(secs(1), |timeout| async move {
        timeout.scope().cancel("first");
        let answer = pending::<()>().or_cancelled().await.unwrap_err();
        assert_eq!(answer.to_string(), "cancelled: first");
        stoppable_scope::cleanup(secs(5), sleep(secs(2))).await?;
        timeout.scope().uncancel();
        let answer = checkpoint().await.unwrap_err();
        assert_eq!(answer.to_string(), "cancelled: its deadline has elapsed");
        Err::<(), stoppable_scope::TaskError>(answer.into())
    });
    assert!(ends(call).await.unwrap_err().is_elapsed());
}

// R3: "running graces are void": one that was taken back in its grace is not cut at its end.
#[tokio::test(start_paused = true)]
async fn uncancel_voids_a_running_grace() {
    let started = Instant::now();
    let call = with_timeout_handle(secs(100), |timeout| async move {
        let scope = timeout.scope();
        tokio::spawn(async move {
            sleep(secs(1)).await;
            scope.cancel(());
            sleep(secs(1)).await;
            scope.uncancel();
        });
        sleep(secs(10)).await;
        checkpoint().await?;
        ok(())
    });
    ends(call.grace(secs(5))).await.unwrap();
    assert_eq!(started.elapsed(), secs(10));
}

// "a timed call that already winds down keeps its reason": what has been answered was answered.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_given_stands() {
    let scope = Scope::new();
    let run = scope.run(async {
        let call = with_timeout(secs(9), async {
            scope.cancel("given");
            let answer = pending::<()>().or_cancelled().await.unwrap_err();
            scope.uncancel();
            Err::<(), _>(answer)
        });
        call.await.unwrap_err()
    });
    let error = ends(run).await.unwrap();
    assert!(error.is_cancelled());
    assert_eq!(error.to_string(), "cancelled: given");
}

// "A token handed out stays cancelled, the next one is new."
#[test]
fn a_token_handed_out_stays_cancelled_and_the_next_is_new() {
    let scope = Scope::new();
    let first = scope.token();
    scope.cancel(());
    scope.uncancel();
    assert!(first.is_cancelled());
    let second = scope.token();
    assert!(!second.is_cancelled());
    scope.cancel(());
    assert!(second.is_cancelled());
}

// R3 with the count: 128 answers are counted for each request anew.
#[tokio::test(start_paused = true)]
async fn answers_are_counted_for_each_request() {
    let scope = Scope::new();
    let run = scope.run(async {
        for _round in 0..10 {
            scope.cancel(());
            for _ in 0..100 {
                assert!(sleep(ms(1)).or_cancelled().await.is_err());
            }
            scope.uncancel();
        }
    });
    ends(run).await.unwrap();
}
