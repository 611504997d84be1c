//! R10: no registrations for waits, one for the root; a wait under another waker has its own.
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::future::pending;

use futures::stream::{FuturesUnordered, StreamExt};
use stoppable_scope::{
    InScopeExt, OrCancelledExt, Scope, Tree, checkpoint, cleanup, ok, with_timeout, without_deadline,
};
use support::{Hand, ends, secs};
use tokio::time::sleep;

fn registrations(tree: &Tree) -> usize {
    tree.registrations + tree.children.iter().map(registrations).sum::<usize>()
}

// R10: "the task's root holds the one registration, the wait reads a flag".
#[tokio::test(start_paused = true)]
async fn waits_register_nothing_and_the_root_once() {
    let scope = Scope::new();
    let mut run = Hand::new(scope.run(async {
        let timed = with_timeout(secs(50), async {
            without_deadline(with_timeout(secs(50), async {
                let wait = futures::future::join(
                    pending::<()>().or_cancelled(),
                    futures::future::join(sleep(secs(9)).or_cancelled(), async {
                        Scope::new().run(pending::<()>()).await
                    }),
                );
                let _ = cleanup(secs(5), wait).await?;
                ok(())
            }))
            .await?;
            ok(())
        });
        tokio::join!(timed, pending::<()>().or_cancelled())
    }));
    run.pending();
    let tree = scope.tree();
    assert_eq!(registrations(&tree), 1, "{tree}");
    run.pending();
    assert_eq!(registrations(&scope.tree()), 1, "a second poll changes nothing");
    drop(run);
    assert_eq!(registrations(&scope.tree()), 0, "given back on drop");
    assert_eq!(scope.tree().children.len(), 0);
}

// A task that is polled over and over with waits that come and go stays at one.
#[tokio::test(start_paused = true)]
async fn waits_that_come_and_go_register_nothing() {
    let scope = Scope::new();
    let task = tokio::spawn(
        async {
            for _ in 0..50 {
                sleep(secs(1)).or_cancelled().await.unwrap();
                checkpoint().await.unwrap();
                let tree = Scope::current().unwrap().tree();
                assert_eq!(registrations(&tree), 1);
            }
        }
        .in_scope(&scope),
    );
    ends(task).await.unwrap();
    assert_eq!(registrations(&scope.tree()), 0);
}

// R10: "A wait polled with a different waker (FuturesUnordered, buffer_unordered, streams) registers itself".
#[tokio::test(start_paused = true)]
async fn waits_under_another_waker_register_and_give_it_back() {
    let scope = Scope::new();
    let mut run = Hand::new(scope.run(async {
        let mut waits: FuturesUnordered<_> = (0..20)
            .map(|n| async move { if n < 10 { pending().or_cancelled().await } else { Ok(()) } })
            .collect();
        for _ in 0..10 {
            waits.next().await.unwrap().unwrap();
        }
        waits.next().await.unwrap().unwrap_err();
        drop(waits);
        let left = registrations(&Scope::current().unwrap().tree());
        cleanup(secs(1), async {}).await.unwrap();
        left
    }));
    run.pending();
    assert_eq!(registrations(&scope.tree()), 11, "ten waits and the root");
    scope.cancel(());
    // The root's was taken to wake it and is made again by the poll.
    assert_eq!(run.ready().unwrap(), 1);
    drop(run);
    assert_eq!(registrations(&scope.tree()), 0);
}

// The same for `join_all` beyond its small-list size, timeouts and `Scope::run` in it.
#[tokio::test(start_paused = true)]
async fn join_all_of_timed_calls_registers_one_each() {
    let scope = Scope::new();
    let mut run = Hand::new(scope.run(futures::future::join_all((0..40).map(|_| {
        with_timeout(secs(9), async {
            let _ = tokio::join!(pending::<()>().or_cancelled(), pending::<()>().or_cancelled());
            ok(())
        })
    }))));
    run.pending();
    assert_eq!(registrations(&scope.tree()), 41, "each call's frame has one for all its waits");
    drop(run);
    assert_eq!(registrations(&scope.tree()), 0);
}

// A wait that is dropped gives its registration back at once, also while others stay.
#[test]
fn a_dropped_wait_gives_its_registration_back() {
    let scope = Scope::new();
    let mut waits: Vec<_> = (0..8).map(|_| Hand::new(scope.cancelled())).collect();
    waits.iter_mut().for_each(Hand::pending);
    let mut stopping: Vec<_> = (0..8).map(|_| Hand::new(scope.stopping())).collect();
    stopping.iter_mut().for_each(Hand::pending);
    assert_eq!(registrations(&scope.tree()), 16);
    waits.truncate(3);
    stopping.clear();
    assert_eq!(registrations(&scope.tree()), 3);
    waits.iter_mut().for_each(Hand::pending);
    assert_eq!(registrations(&scope.tree()), 3, "polled again under the same waker");
    waits = waits.into_iter().map(Hand::rewake).collect();
    waits.iter_mut().for_each(Hand::pending);
    assert_eq!(registrations(&scope.tree()), 3, "and under another one");
    scope.cancel(());
    assert!(waits.iter().all(|wait| wait.wakes() == 1));
}

// Wake counts: a cancel wakes a task once, however many waits it stands in.
#[tokio::test(start_paused = true)]
async fn a_cancel_wakes_a_task_once() {
    let scope = Scope::new();
    let mut run = Hand::new(scope.run(async {
        let wait = || async { pending::<()>().or_cancelled().await.is_err() };
        let timed = with_timeout(secs(9), async { ok(pending::<()>().or_cancelled().await?) });
        tokio::join!(wait(), wait(), wait(), timed).0
    }));
    run.pending();
    scope.cancel("one");
    scope.cancel("two");
    assert_eq!(run.wakes(), 1);
    assert!(run.ready().unwrap());
    assert_eq!(run.wakes(), 1);
}

// A cancel of one scope wakes nobody in another.
#[test]
fn a_cancel_wakes_only_those_below() {
    let root = Scope::new();
    let (left, right) = (root.child("left"), root.child("right"));
    let mut waits: Vec<_> =
        [&root, &left, &right].map(|scope| Hand::new(scope.run(pending::<()>()))).into_iter().collect();
    waits.iter_mut().for_each(Hand::pending);
    left.cancel(());
    let wakes: Vec<_> = waits.iter().map(Hand::wakes).collect();
    assert_eq!((wakes[1], wakes[2]), (1, 0));
}

// R10: without a scope a wait costs one thread-local read: nothing is registered anywhere to be woken.
#[test]
fn a_wait_without_a_scope_registers_nothing() {
    let scope = Scope::new();
    let mut wait = Hand::new(pending::<()>().or_cancelled());
    wait.pending();
    scope.cancel(());
    assert_eq!(wait.wakes(), 0);
}

// A timeout handle that outlives its call keeps no waker of the task.
#[tokio::test(start_paused = true)]
async fn a_handle_that_outlives_its_call_holds_no_registration() {
    let mut call =
        Hand::new(stoppable_scope::with_timeout_handle(
            secs(9),
            |timeout| async move { ok(timeout.scope()) },
        ));
    let scope = call.ready().unwrap();
    assert_eq!(registrations(&scope.tree()), 0);
    scope.cancel(());
    assert_eq!(call.wakes(), 0);
}

// The expiry of a deadline costs one wake-up by the timer, and at most one more.
#[tokio::test(start_paused = true)]
async fn an_expiry_wakes_its_task_at_most_twice() {
    let mut call = Hand::new(with_timeout(secs(1), async { ok(pending::<()>().await) }));
    call.pending();
    tokio::time::advance(secs(2)).await;
    assert_eq!(call.wakes(), 1);
    assert!(call.ready().unwrap_err().is_elapsed());
    assert!(call.wakes() <= 2);
}
