//! The two ways between a scope and a `CancellationToken`.
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::future::pending;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use stoppable_scope::{OrCancelledExt, Reason, Scope, cleanup};
use support::{Hand, ends, secs};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

// A scope from a token is cancelled when the token is, and wakes its waits; no task watches.
#[test]
fn a_token_cancels_the_scope_that_was_made_of_it() {
    let token = CancellationToken::new();
    let scope = Scope::from_token(token.clone());
    let mut run = Hand::new(scope.run(pending::<()>().or_cancelled()));
    run.pending();
    token.cancel();
    assert_eq!(run.wakes(), 1);
    let cancelled = run.ready().unwrap().unwrap_err();
    assert!(matches!(cancelled.reason(), Reason::Token));
    assert_eq!(scope.cancelling(), 0, "no user made it");
}

#[test]
fn a_token_that_is_cancelled_already_makes_a_cancelled_scope() {
    let token = CancellationToken::new();
    token.cancel();
    assert!(Scope::from_token(token).is_cancelled());
}

// "and never cancels it".
#[test]
fn the_scope_never_cancels_the_outside_token() {
    let outside = CancellationToken::new();
    let scope = Scope::from_token(outside.clone());
    let inside = scope.token();
    scope.cancel("by hand");
    assert!(inside.is_cancelled(), "a token handed out is cancelled with the scope");
    assert!(!outside.is_cancelled());
    scope.uncancel();

    let next = scope.token();
    assert!(!next.is_cancelled());
    next.cancel();
    assert!(scope.is_cancelled(), "cancelling it is a request on the scope");
    assert!(!outside.is_cancelled());
}

// A scope made of a token gives a child of it, which goes with it also when the scope is gone.
#[test]
fn a_token_handed_out_goes_with_the_outside_one() {
    let outside = CancellationToken::new();
    let scope = Scope::from_token(outside.clone());
    let inside = scope.token();
    let kept = Scope::from_token(outside.clone()).token();
    outside.cancel();
    assert!(inside.is_cancelled() && kept.is_cancelled() && scope.is_cancelled());
}

// A token handed out follows the scopes above too.
#[test]
fn a_token_follows_the_scopes_above() {
    let outer = Scope::new();
    let token = outer.child("inner").child("innermost");
    let token = (token.token(), token);
    outer.cancel(());
    assert!(token.0.is_cancelled());
}

// "A token that was cancelled stays so: after an `uncancel` the next call gives a new one", also where it
// was handed out by a scope that was cancelled already.
#[test]
fn a_token_of_a_cancelled_scope_is_cancelled_and_makes_no_request() {
    let outer = Scope::new();
    let scope = outer.child("inner");
    for asked in [&scope, &outer] {
        asked.cancel(());
        let token = scope.token();
        assert!(token.is_cancelled());
        assert_eq!(asked.uncancel(), 0);
        assert!(scope.check().is_ok(), "the token was cancelled by the scope, not the scope by the token");
        assert!(!scope.token().is_cancelled());
    }
}

// "the request of a token cannot be taken back".
#[test]
fn a_request_by_a_token_handed_out_stands() {
    let scope = Scope::new();
    scope.token().cancel();
    assert!(scope.is_cancelled());
    assert_eq!((scope.cancelling(), scope.uncancel()), (0, 0));
    assert!(scope.is_cancelled());
}

// A token is made on demand and once.
#[test]
fn tokens_handed_out_are_one() {
    let scope = Scope::new();
    let (one, two) = (scope.token(), scope.token());
    one.cancel();
    assert!(two.is_cancelled());
}

// A section masks what is above it for a token made inside.
#[tokio::test(start_paused = true)]
async fn a_token_of_a_section_is_not_cancelled_from_outside() {
    let scope = Scope::new();
    let run = scope.run(async {
        cleanup(secs(9), async {
            let token = Scope::current().unwrap().token();
            scope.cancel(());
            assert!(!token.is_cancelled());
        })
        .await
        .unwrap();
        scope.token().is_cancelled()
    });
    assert!(ends(run).await.unwrap());
}

// A scope that is dropped leaves its tokens alone.
#[test]
fn dropping_a_scope_cancels_no_token() {
    let outside = CancellationToken::new();
    let scope = Scope::from_token(outside.clone());
    let inside = Scope::new().token();
    drop(scope);
    assert!(!outside.is_cancelled() && !inside.is_cancelled());
    outside.cancel();
    inside.cancel();
}

// A foreign waker of a token that panics keeps nobody else asleep.
#[test]
fn a_panicking_waker_of_a_token_keeps_nobody_asleep() {
    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic!("waker");
        }
    }
    let scope = Scope::new();
    let token = scope.token();
    let mut watch = Box::pin(token.cancelled());
    let bomb = Waker::from(Arc::new(Bomb));
    assert!(watch.as_mut().poll(&mut Context::from_waker(&bomb)).is_pending());
    let mut run = Hand::new(scope.run(pending::<()>()));
    run.pending();
    scope.cancel(());
    assert_eq!(run.wakes(), 1);
    assert!(run.ready().is_err(), "and the request counts as announced");
}

// A legacy task that knows only the token is stopped by the deadline of a timed call.
#[tokio::test(start_paused = true)]
async fn a_deadline_reaches_code_that_knows_only_tokens() {
    let started = Instant::now();
    let call = stoppable_scope::with_timeout(secs(1), async {
        let token = Scope::current().unwrap().token();
        let legacy = tokio::spawn(async move {
            token.cancelled().await;
            sleep(secs(1)).await;
            "stopped"
        });
        let _ = pending::<()>().or_cancelled().await;
        stoppable_scope::ok(cleanup(secs(5), legacy).await??)
    });
    assert_eq!(ends(call).await.unwrap(), "stopped");
    assert_eq!(started.elapsed(), secs(2));
}

// A call that moves into the scope that polls it takes its token along.
#[tokio::test(start_paused = true)]
async fn a_token_moves_with_its_scope() {
    for cancelled in [false, true] {
        let around = Scope::new();
        let (send, recv) = std::sync::mpsc::channel();
        let call = stoppable_scope::with_timeout_handle(secs(9), |timeout| {
            send.send(timeout.scope().token()).unwrap();
            async { stoppable_scope::ok(pending::<()>().or_cancelled().await?) }
        });
        let token = recv.recv().unwrap();
        let run = around.run(async {
            around.cancel(());
            if !cancelled {
                around.uncancel();
            }
            let mut call = Box::pin(call);
            let first = futures::poll!(call.as_mut());
            assert_eq!((first.is_ready(), token.is_cancelled()), (cancelled, cancelled));
            if !cancelled {
                around.cancel(());
                assert!(token.is_cancelled());
            }
        });
        ends(run).await.unwrap();
    }
}
