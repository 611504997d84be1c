//! "A future belongs to the scope that polls it": futures that move after their first poll.
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures::stream::{FuturesUnordered, StreamExt};
use stoppable_scope::{
    Deadline, InScopeExt, OrCancelledExt, Scope, cleanup, ok, with_timeout, with_timeout_handle,
};
use support::{Hand, ends, secs};
use tokio::time::{Instant, sleep};

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

fn poll_with_noop<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Each kind of wait, as a future that ends with whether it answered.
fn waits() -> Vec<(&'static str, Boxed<bool>)> {
    // A scope made by hand stays where it was made.
    let scope = Scope::new();
    vec![
        ("or_cancelled", Box::pin(async { pending::<()>().or_cancelled().await.is_err() })),
        ("run", Box::pin(async move { scope.run(pending::<()>()).await.is_err() })),
        (
            "timeout",
            Box::pin(async {
                let call = with_timeout(secs(500), async { ok(pending::<()>().or_cancelled().await?) });
                call.await.unwrap_err().is_cancelled()
            }),
        ),
        (
            "handle",
            Box::pin(async {
                let call =
                    with_timeout_handle(secs(500), |_| async { ok(pending::<()>().or_cancelled().await?) });
                call.await.unwrap_err().is_cancelled()
            }),
        ),
    ]
}

// A future that was polled in one scope is polled in another: it answers that one, and not the first.
#[allow(clippy::async_yields_async)]
#[tokio::test(start_paused = true)]
async fn a_future_that_moves_to_another_scope_answers_there() {
    for (name, wait) in waits() {
        let (first, second) = (Scope::named("first"), Scope::named("second"));
        let mut holder = Hand::new(first.run(async move {
            let mut wait = wait;
            assert!(futures::poll!(wait.as_mut()).is_pending());
            wait
        }));
        let wait = holder.ready().unwrap();
        drop(holder);
        let mut run = Hand::new(second.run(wait));
        run.pending();
        first.cancel(());
        assert!(run.settle().is_pending(), "{name} still hears the scope it has left");
        second.cancel(());
        assert!(run.wakes() > 0, "{name} was not woken");
        assert!(matches!(run.settle(), Poll::Ready(Ok(true))), "{name} did not answer");
    }
}

// A future that was polled by a foreign poller first (here: with a waker that wakes nobody) and then by the
// code around it: the stale registration must not hide that of the task.
#[tokio::test(start_paused = true)]
async fn a_future_that_was_polled_by_another_poller_first_is_woken() {
    let scope = Scope::new();
    let handle = std::cell::Cell::new(None);
    let mut run = Hand::new(scope.run(async {
        let mut call = Box::pin(with_timeout_handle(secs(500), |timeout| {
            handle.set(Some(timeout));
            async { ok(pending::<()>().or_cancelled().await?) }
        }));
        assert!(poll_with_noop(&mut call).is_pending());
        call.await.unwrap_err().is_cancelled()
    }));
    run.pending();
    handle.take().unwrap().scope().cancel("the call alone");
    assert_eq!(run.wakes(), 1);
    assert!(run.ready().unwrap());
}

// The same with a wait, in both directions.
#[tokio::test(start_paused = true)]
async fn waits_that_change_their_waker_are_woken() {
    for (name, mut wait) in waits() {
        let scope = Scope::new();
        let mut run = Hand::new(scope.run(async move {
            assert!(poll_with_noop(&mut wait).is_pending());
            assert!(futures::poll!(wait.as_mut()).is_pending());
            let mut set: FuturesUnordered<_> = [wait].into_iter().collect();
            set.next().await.unwrap()
        }));
        run.pending();
        let mut run = run.rewake();
        run.pending();
        scope.cancel(());
        assert!(run.wakes() > 0, "{name}");
        assert!(matches!(run.settle(), Poll::Ready(Ok(true))), "{name}");
    }
}

// A whole task's future that changes its waker (another executor) is woken through the new one.
#[tokio::test(start_paused = true)]
async fn a_root_that_changes_its_waker_is_woken_through_the_new_one() {
    for (name, wait) in waits() {
        let scope = Scope::new();
        let mut run = Hand::new(wait.in_scope(&scope));
        run.pending();
        let mut run = run.rewake();
        run.pending();
        assert_eq!(scope.tree().children[0].registrations, 1, "{name}");
        scope.cancel(());
        assert!(run.wakes() > 0, "{name}");
        assert!(matches!(run.settle(), Poll::Ready(true)), "{name}");
    }
}

// A timed call that moves below another deadline takes that one into account.
#[tokio::test(start_paused = true)]
async fn a_call_that_moves_is_bounded_by_the_deadlines_around_it_now() {
    let mut call = Box::pin(with_timeout(secs(100), async {
        sleep(secs(1)).await;
        ok(Deadline::current())
    }));
    assert!(futures::poll!(call.as_mut()).is_pending());
    let outer = with_timeout(secs(5), async { ok(call.await?) });
    assert_eq!(ends(outer).await.unwrap().remaining(), Some(secs(4)));
}

// A call that moves from a cancelled scope to one that is not works again.
#[tokio::test(start_paused = true)]
async fn a_call_that_leaves_a_cancelled_scope_works_again() {
    let first = Scope::new();
    let (send, recv) = tokio::sync::oneshot::channel();
    let run = first.run(async {
        let mut call = Box::pin(with_timeout(secs(100), async {
            sleep(secs(1)).or_cancelled().await?;
            ok(())
        }));
        assert!(futures::poll!(call.as_mut()).is_pending());
        let _ = send.send(call);
    });
    ends(run).await.unwrap();
    let second = Scope::new();
    first.cancel(());
    let call = recv.await.unwrap();
    let second = second.run(call);
    ends(second).await.unwrap().unwrap();
}

// A `Scope::run` that moves hears the scope it is in and the one around it now.
#[tokio::test(start_paused = true)]
async fn a_run_that_moves_hears_the_scope_around_it_now() {
    let entered = Scope::named("entered");
    let (first, second) = (Scope::named("first"), Scope::named("second"));
    let mut run = Box::pin(entered.run(pending::<()>().or_cancelled()));
    let poll = first.run(async {
        assert!(futures::poll!(run.as_mut()).is_pending());
    });
    ends(poll).await.unwrap();
    let mut run = Hand::new(second.run(async move { run.await.unwrap().unwrap_err() }));
    run.pending();
    first.cancel(());
    assert!(run.settle().is_pending(), "it has left that one");
    second.cancel(());
    assert_eq!(run.ready().unwrap().request().scope_name(), "second");
}

// It leaves the scope around for a task that has none.
#[tokio::test(start_paused = true)]
async fn a_run_that_moves_to_a_task_without_a_scope_hears_only_its_own() {
    let entered = Scope::named("entered");
    let first = Scope::named("first");
    let mut run = Box::pin(entered.run(pending::<()>().or_cancelled()));
    let poll = first.run(async {
        assert!(futures::poll!(run.as_mut()).is_pending());
    });
    ends(poll).await.unwrap();
    let mut run = Hand::new(run);
    run.pending();
    first.cancel(());
    assert!(run.settle().is_pending());
    entered.cancel(());
    assert!(matches!(run.settle(), Poll::Ready(Ok(Err(_)))));
}

// `select(a, b)` hands the other future back: it goes on in the same scope.
#[tokio::test(start_paused = true)]
async fn a_future_handed_back_by_select_goes_on() {
    use futures::future::{Either, select};
    let scope = Scope::new();
    let started = Instant::now();
    let run = scope.run(async {
        let slow = Box::pin(with_timeout(secs(5), async { ok(pending::<()>().await) }));
        let Either::Right(((), slow)) = select(slow, Box::pin(sleep(secs(1)))).await else { unreachable!() };
        slow.await.unwrap_err().is_elapsed()
    });
    assert!(ends(run).await.unwrap());
    assert_eq!(started.elapsed(), secs(5));
}

// A scope that is entered within itself, from inside out, makes no ring.
#[tokio::test(start_paused = true)]
async fn entering_a_call_into_its_own_scope_makes_no_ring() {
    let handle = std::cell::Cell::new(None);
    let call = with_timeout_handle(secs(5), |timeout| {
        handle.set(Some(timeout));
        async { ok(sleep(secs(1)).or_cancelled().await?) }
    });
    let scope = handle.take().unwrap().scope();
    let mut call = Box::pin(call);
    assert!(futures::poll!(call.as_mut()).is_pending());
    ends(scope.run(call)).await.unwrap().unwrap();

    let (send, recv) = tokio::sync::oneshot::channel();
    let entered = Scope::new();
    let mut run = Box::pin(entered.run(async {
        let _ = send.send(Scope::current().unwrap());
        sleep(secs(1)).or_cancelled().await
    }));
    assert!(futures::poll!(run.as_mut()).is_pending());
    let inner = recv.await.unwrap();
    ends(inner.run(run)).await.unwrap().unwrap().unwrap();
}

// A section that was begun in one frame and ends in another.
#[tokio::test(start_paused = true)]
async fn a_section_that_moves_is_honoured_where_it_ends() {
    let mut section = Box::pin(cleanup(secs(9), sleep(secs(2))));
    let first = Scope::new();
    let poll = first.run(async {
        assert!(futures::poll!(section.as_mut()).is_pending());
    });
    ends(poll).await.unwrap();
    let second = Scope::new();
    let run = second.run(async {
        section.await.unwrap();
        second.cancel(());
        pending::<()>().await;
    });
    assert!(ends(run).await.is_err());
}
