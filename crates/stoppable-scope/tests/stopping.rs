//! `stop`, `is_stopping` and `stopping()`: asked to finish and to take nothing new.

mod support;

use std::future::pending;

use stoppable_scope::{OrCancelledExt, Scope, Stopping, checkpoint, cleanup};
use support::{Hand, ends, secs};
use tokio::time::sleep;

// "both inherited"; a stop cancels no wait.
#[tokio::test(start_paused = true)]
async fn a_stop_is_inherited_and_cancels_nothing() {
    let scope = Scope::new();
    let before = scope.child("before");
    scope.stop();
    let after = before.child("after");
    assert!(before.is_stopping() && after.is_stopping());
    assert!(!scope.is_cancelled());
    let run = after.run(async {
        checkpoint().await.unwrap();
        sleep(secs(1)).or_cancelled().await.unwrap();
    });
    ends(run).await.unwrap();
    assert!(!Scope::new().is_stopping());
}

// Section 6: "a `'static` future of `()` that ends on stop or cancel, also where a foreign task polls it".
#[tokio::test(start_paused = true)]
async fn stopping_ends_on_stop_or_cancel_in_a_foreign_task() {
    for how in ["stop", "cancel", "stop above", "cancel above", "stopped before"] {
        let outer = Scope::new();
        let scope = outer.child("inner");
        if how == "stopped before" {
            scope.stop();
        }
        let wait: Stopping = scope.stopping();
        let also = wait.clone();
        let server = tokio::spawn(async move { tokio::join!(wait, also) });
        tokio::task::yield_now().await;
        match how {
            "stop" => scope.stop(),
            "cancel" => scope.cancel(()),
            "stop above" => outer.stop(),
            "cancel above" => outer.cancel(()),
            _ => {}
        }
        ends(server).await.unwrap();
    }
}

// A stop wakes those who wait for it and nobody else, and once.
#[test]
fn a_stop_wakes_only_those_who_wait_for_it() {
    let scope = Scope::new();
    let mut stopping = Hand::new(scope.stopping());
    let mut cancelled = Hand::new(scope.cancelled());
    let mut run = Hand::new(scope.run(pending::<()>().or_cancelled()));
    stopping.pending();
    cancelled.pending();
    run.pending();
    scope.stop();
    scope.stop();
    assert_eq!((stopping.wakes(), cancelled.wakes(), run.wakes()), (1, 0, 0));
    stopping.ready();
    scope.cancel(());
    assert_eq!((cancelled.wakes(), run.wakes()), (1, 1));
}

// A stop reaches a cleanup section too: it is not a cancel. A request above is masked there.
#[tokio::test(start_paused = true)]
async fn a_stop_reaches_into_sections() {
    let scope = Scope::new();
    let run = scope.run(async {
        cleanup(secs(9), async {
            let inner = Scope::current().unwrap();
            assert!(!inner.is_stopping());
            scope.stop();
            assert!(inner.is_stopping());
            inner.stopping().await;
        })
        .await
        .unwrap();
    });
    ends(run).await.unwrap();
}

// A cancel that is taken back is not a stop.
#[test]
fn a_cancel_taken_back_is_no_stop() {
    let scope = Scope::new();
    scope.cancel(());
    scope.uncancel();
    assert!(!scope.is_stopping());
    let mut wait = Hand::new(scope.stopping());
    wait.pending();
    scope.stop();
    wait.ready();
}
