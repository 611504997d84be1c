//! `.or_cancelled()`: a result wins, a wait that starts cancelled is not polled.

mod support;

use std::cell::Cell;
use std::future::pending;
use std::pin::pin;

use stoppable_scope::{InScopeExt, OrCancelledExt, Scope, cleanup};
use support::{Hand, ends, secs};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};

// Choice table: "a wait that starts in a cancelled scope answers without being polled".
#[test]
fn a_wait_that_starts_cancelled_is_not_polled() {
    let scope = Scope::new();
    let mut run = Hand::new(scope.run(async {
        scope.cancel(());
        async { panic!("polled") }.or_cancelled().await.map(|never: ()| never)
    }));
    assert!(run.ready().unwrap().is_err());
}

// R3: "in `.or_cancelled()` a result wins" (B-32, G-52).
#[test]
fn a_result_wins_over_a_request_of_the_same_instant() {
    let scope = Scope::new();
    let (send, recv) = oneshot::channel();
    let mut run = Hand::new(scope.run(recv.or_cancelled()));
    run.pending();
    scope.cancel(());
    send.send(3).unwrap();
    assert_eq!(run.ready().unwrap().unwrap(), Ok(3));
}

// R2 Honour: a section inside is not dropped; the wait answers when it is through.
#[tokio::test(start_paused = true)]
async fn a_section_inside_is_honoured() {
    let scope = Scope::new();
    let done = Cell::new(false);
    let started = Instant::now();
    let run = scope.run(async {
        let wait = async {
            scope.cancel(());
            cleanup(secs(9), sleep(secs(4))).await.unwrap();
            done.set(true);
            pending::<()>().await;
        };
        wait.or_cancelled().await
    });
    assert!(ends(run).await.unwrap().is_err());
    assert!(done.get());
    assert_eq!(started.elapsed(), secs(4));
}

// On an answer the future is dropped before the answer is seen.
#[tokio::test(start_paused = true)]
async fn the_future_is_dropped_with_the_answer() {
    let lock = tokio::sync::Mutex::new(());
    let scope = Scope::new();
    let run = scope.run(async {
        let wait = async {
            let _held = lock.lock().await;
            pending::<()>().await;
        };
        let mut wait = pin!(wait.or_cancelled());
        assert!(futures::poll!(wait.as_mut()).is_pending());
        scope.cancel(());
        assert!(wait.await.is_err());
        assert!(lock.try_lock().is_ok());
    });
    ends(run).await.unwrap();
}

// No wake-up is lost by an answer: tokio's own futures hand theirs on when they are dropped.
#[tokio::test(start_paused = true)]
async fn a_wake_up_of_the_dropped_future_passes_on() {
    let notify = Notify::new();
    let scope = Scope::new();
    let mut first = Hand::new(scope.run(async { notify.notified().or_cancelled().await }));
    let mut second = Hand::new(notify.notified());
    first.pending();
    second.pending();
    scope.cancel(());
    drop(first);
    notify.notify_one();
    second.ready();
}

// Without a scope it waits like the future alone, and is not stopped.
#[tokio::test(start_paused = true)]
async fn without_a_scope_it_just_waits() {
    assert!(ends(sleep(secs(1)).or_cancelled()).await.is_ok());
}

// R2 "polled after every wait registered under another waker was woken": a wait around waits asks them.
#[tokio::test(start_paused = true)]
async fn a_wait_around_waits_asks_them_before_it_drops_them() {
    use futures::stream::{FuturesUnordered, StreamExt};
    let scope = Scope::new();
    let asked = Cell::new(0);
    let mut run = Hand::new(scope.run(async {
        let inner = async {
            let mut waits: FuturesUnordered<_> = (0..5)
                .map(|_| async {
                    let _ = pending::<()>().or_cancelled().await;
                    asked.set(asked.get() + 1);
                    pending::<()>().await;
                })
                .collect();
            waits.next().await;
        };
        inner.or_cancelled().await
    }));
    run.pending();
    scope.cancel(());
    assert!(run.settle().is_ready());
    assert_eq!(asked.get(), 5);
}

// A request that comes from inside the future itself: it is asked before it is dropped.
#[tokio::test(start_paused = true)]
async fn a_request_from_inside_asks_first() {
    let scope = Scope::new();
    let answered = Cell::new(false);
    let task = async {
        let inner = async {
            let wait = async {
                answered.set(pending::<()>().or_cancelled().await.is_err());
                pending::<()>().await;
            };
            tokio::join!(biased; wait, async { scope.cancel(()) });
        };
        inner.or_cancelled().await
    };
    // A scope that never cuts by itself, so that it is this wait which asks.
    assert!(ends(task.in_scope(&scope)).await.is_err());
    assert!(answered.get());
}

// An endless loop of answers is cut, not only on the multi-threaded runtime (see cancel.rs); where nothing
// cuts, the wait rests.
#[tokio::test(start_paused = true)]
async fn where_nothing_cuts_a_swallowing_loop_rests() {
    let scope = Scope::new();
    let answers = Cell::new(0);
    let task = async {
        loop {
            let _ = pending::<()>().or_cancelled().await;
            answers.set(answers.get() + 1);
        }
    };
    let mut task = Hand::new(task.in_scope(&scope));
    task.pending();
    scope.cancel(());
    task.pending();
    assert_eq!(answers.get(), 128);
    let wakes = task.wakes();
    task.pending();
    assert_eq!((answers.get(), task.wakes()), (128, wakes));
}
