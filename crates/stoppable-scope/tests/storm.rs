//! Many threads at once: cancel, uncancel, poll, move and drop. Real threads, real time.
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use stoppable_scope::{InScopeExt, OrCancelledExt, Scope, checkpoint, cleanup, ok, with_timeout};

const ROUNDS: usize = 200;

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("a wake-up was lost")
}

/// A task with waits of every kind, at every depth; it ends when the scope is cancelled.
async fn waits(scope: Scope, n: usize) {
    match n % 5 {
        0 => drop(pending::<()>().or_cancelled().in_scope(&scope).await),
        1 => drop(scope.run(pending::<()>()).await),
        2 => {
            let call =
                with_timeout(Duration::from_secs(600), async { ok(pending::<()>().or_cancelled().await?) });
            drop(call.in_scope(&scope).await);
        }
        3 => {
            let set = async {
                let mut set: FuturesUnordered<_> = (0..4)
                    .map(|_| {
                        with_timeout(Duration::from_secs(600), async {
                            ok(pending::<()>().or_cancelled().await?)
                        })
                    })
                    .collect();
                while set.next().await.is_some() {}
            };
            set.in_scope(&scope).await;
        }
        _ => drop(scope.cancelled().await),
    }
}

// A wait that was pending when the cancel returned has been woken and answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancel_reaches_every_task_that_starts_meanwhile() {
    for round in 0..ROUNDS {
        let root = Scope::new();
        let tasks: Vec<_> = (0..20)
            .map(|n| {
                let scope = if n % 2 == 0 { root.clone() } else { root.child("below") };
                tokio::spawn(waits(scope, n))
            })
            .collect();
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        root.cancel("storm");
        for task in tasks {
            within(task).await.unwrap();
        }
        assert!(root.tree().children.is_empty());
    }
}

// Two threads cancel, a third takes back, tasks come and go; a last cancel ends them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cancel_and_uncancel_lose_nobody() {
    for _round in 0..ROUNDS {
        let root = Scope::new();
        let mut players = Vec::new();
        for _ in 0..2 {
            let scope = root.clone();
            players.push(tokio::task::spawn_blocking(move || {
                for _ in 0..10 {
                    scope.cancel("again");
                }
            }));
        }
        let scope = root.clone();
        players.push(tokio::task::spawn_blocking(move || {
            let mut taken = 0;
            while taken < 20 {
                let before = scope.cancelling();
                if before > 0 {
                    scope.uncancel();
                    taken += 1;
                }
                std::hint::spin_loop();
            }
        }));
        let answers = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..6)
            .map(|n| {
                let (scope, answers) = (root.clone(), Arc::clone(&answers));
                tokio::spawn(async move {
                    waits(scope, n).await;
                    answers.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        for player in players {
            within(player).await.unwrap();
        }
        assert_eq!(root.cancelling(), 0);
        assert!(!root.is_cancelled());
        root.cancel("last");
        for task in tasks {
            within(task).await.unwrap();
        }
        assert_eq!(answers.load(Ordering::SeqCst), 6);
    }
}

// Waits that are dropped while they are woken.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn waits_dropped_while_they_are_woken_leave_nothing() {
    for round in 0..ROUNDS {
        let root = Scope::new();
        let tasks: Vec<_> = (0..10).map(|n| tokio::spawn(waits(root.child("below"), n))).collect();
        let canceller = tokio::spawn({
            let root = root.clone();
            async move { root.cancel(()) }
        });
        for (n, task) in tasks.iter().enumerate() {
            if (n + round) % 3 == 0 {
                task.abort();
            }
        }
        within(canceller).await.unwrap();
        for task in tasks {
            let _ = within(task).await;
        }
        assert!(root.tree().children.is_empty());
        assert_eq!(root.tree().registrations, 0);
    }
}

// Sections that migrate between threads with their task are honoured, each to its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sections_that_migrate_between_threads_are_honoured() {
    let root = Scope::new();
    let done = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let (root, done) = (root.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let body = async {
                    let _ = pending::<()>().or_cancelled().await;
                    for _ in 0..2 {
                        let steps = async {
                            for _ in 0..20 {
                                checkpoint().await.unwrap();
                            }
                        };
                        cleanup(Duration::from_secs(30), steps).await.unwrap();
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                    pending::<()>().await;
                };
                root.run(body).await.unwrap_err()
            })
        })
        .collect();
    tokio::task::yield_now().await;
    while root.tree().children.len() < ROUNDS {
        tokio::task::yield_now().await;
    }
    root.cancel(());
    for task in tasks {
        within(task).await.unwrap();
    }
    // Each had been polled or had not begun: those that had have run both their sections.
    assert_eq!(done.load(Ordering::SeqCst) % 2, 0);
    assert!(done.load(Ordering::SeqCst) > 0);
}

// Futures that move between tasks, while their scope is cancelled.
#[allow(clippy::async_yields_async)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn futures_that_move_between_tasks_are_woken() {
    for _round in 0..ROUNDS {
        let (first, second) = (Scope::new(), Scope::new());
        let mut call = Box::pin(with_timeout(Duration::from_secs(600), async {
            ok(pending::<()>().or_cancelled().await?)
        }));
        let begin = first.run(async move {
            assert!(futures::poll!(call.as_mut()).is_pending());
            call
        });
        let call = within(begin).await.unwrap();
        let task = tokio::spawn(call.in_scope(&second));
        let canceller = {
            let second = second.clone();
            tokio::task::spawn_blocking(move || second.cancel(()))
        };
        assert!(within(task).await.unwrap().unwrap_err().is_cancelled());
        within(canceller).await.unwrap();
    }
}
