//! R2: ask, cut, honour; and R3: a request stands until it is taken back.
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;

use futures::stream::{FuturesUnordered, StreamExt};
use stoppable_scope::{
    InScopeExt, OrCancelledExt, Reason, Scope, checkpoint, cleanup, ok, with_timeout, with_timeout_handle,
};
use support::{Hand, ends, ms, secs};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

// R2 Ask: "stoppable waits answer, and the code after them runs". Cut: "where it then still waits, it is
// dropped".
#[test]
fn a_wait_answers_the_code_after_it_runs_and_a_plain_wait_is_cut() {
    let scope = Scope::new();
    let log = RefCell::new(Vec::new());
    let mut run = Hand::new(scope.run(async {
        let answer = pending::<()>().or_cancelled().await.unwrap_err();
        log.borrow_mut().push(answer.to_string());
        pending::<()>().await;
        log.borrow_mut().push("never".into());
    }));
    run.pending();
    scope.cancel("leave");
    assert_eq!(run.wakes(), 1);
    assert_eq!(run.ready().unwrap_err().to_string(), "cancelled: leave");
    assert_eq!(*log.borrow(), ["cancelled: leave"]);
}

// R2: a plain wait is cut at once, as tokio would drop it, but gets its question first: a result that is
// there is not lost.
#[test]
fn a_result_that_is_there_when_it_is_asked_is_kept() {
    let scope = Scope::new();
    let (send, mut recv) = mpsc::channel(1);
    let mut run = Hand::new(scope.run(recv.recv()));
    run.pending();
    scope.cancel(());
    send.try_send(7).unwrap();
    assert_eq!(run.ready().unwrap(), Some(7));
}

// R2: a scope that is cancelled already does not start the future.
#[test]
fn a_cancelled_scope_does_not_poll_what_is_run_in_it() {
    let scope = Scope::new();
    scope.cancel(());
    let polled = Cell::new(false);
    let mut run = Hand::new(scope.run(async { polled.set(true) }));
    assert!(run.ready().is_err());
    assert!(!polled.get());
}

// S-09, S-10: a scope that cancels itself; a value that comes without waiting is kept.
#[tokio::test(start_paused = true)]
async fn a_scope_may_cancel_itself() {
    let scope = Scope::new();
    let cut = scope.run(async {
        scope.cancel(());
        sleep(secs(9)).await;
    });
    let started = Instant::now();
    assert!(ends(cut).await.is_err());
    assert_eq!(started.elapsed(), secs(0));
    let scope = Scope::new();
    let kept = scope.run(async {
        scope.cancel(());
        "value"
    });
    assert_eq!(ends(kept).await.unwrap(), "value");
}

// R2: the question reaches a wait also when the request comes while the future is being polled and the wait
// has had its turn already.
#[tokio::test(start_paused = true)]
async fn a_wait_that_was_polled_before_the_request_is_asked_too() {
    for wrapper in ["run", "or_cancelled", "timeout"] {
        let scope = Scope::new();
        let after = Cell::new(false);
        let body = async {
            let wait = async {
                let _ = pending::<()>().or_cancelled().await;
                after.set(true);
                pending::<()>().await;
            };
            let cancel = async {
                tokio::task::yield_now().await;
                scope.cancel(());
                pending::<()>().await;
            };
            tokio::join!(biased; wait, cancel);
        };
        match wrapper {
            "run" => drop(ends(scope.run(body)).await),
            "or_cancelled" => drop(ends(scope.run(body.or_cancelled())).await),
            _ => drop(ends(scope.run(with_timeout(secs(50), async { ok(body.await) }))).await),
        }
        assert!(after.get(), "{wrapper}: cut without being asked");
    }
}

// R3: "After a request every stoppable wait in that scope answers `Cancelled`."
#[tokio::test(start_paused = true)]
async fn every_wait_answers_until_the_request_is_taken_back() {
    let scope = Scope::new();
    let run = scope.run(async {
        scope.cancel("stands");
        for _ in 0..3 {
            assert!(sleep(secs(1)).or_cancelled().await.is_err());
            assert!(checkpoint().await.is_err());
            assert!(Scope::new().run(async {}).await.is_err());
            assert!(scope.check().is_err());
        }
        scope.uncancel();
        sleep(secs(1)).or_cancelled().await.unwrap();
        checkpoint().await.unwrap();
        Scope::new().run(async {}).await.unwrap();
    });
    ends(run).await.unwrap();
}

// R3: "After 128 answers to one request in one task a wait stays Pending without waking anybody, so that a
// loop which swallows it comes to rest and is cut." R2: "One that refuses costs no wake-ups".
#[tokio::test(start_paused = true)]
async fn a_loop_that_swallows_the_answer_is_cut() {
    for wait in ["or_cancelled", "checkpoint", "run"] {
        let answers = Cell::new(0);
        let swallow = with_timeout(secs(1), async {
            loop {
                let swallowed = match wait {
                    "or_cancelled" => sleep(ms(10)).or_cancelled().await.is_err(),
                    "checkpoint" => {
                        checkpoint().await.is_err() || sleep(ms(10)).or_cancelled().await.is_err()
                    }
                    _ => Scope::new().run(sleep(ms(10))).await.is_err(),
                };
                answers.set(answers.get() + usize::from(swallowed));
            }
            #[allow(unreachable_code)]
            ok(())
        });
        let started = Instant::now();
        assert!(ends(swallow).await.unwrap_err().is_elapsed());
        assert_eq!(started.elapsed(), secs(1));
        assert!((1..=129).contains(&answers.get()), "{wait}: {}", answers.get());
    }
}

// The same under a grace: it comes to rest and costs no polls until the cut.
#[tokio::test(start_paused = true)]
async fn a_loop_that_swallows_under_a_grace_costs_no_polls() {
    let polls = Rc::new(Cell::new(0));
    let counted = Rc::clone(&polls);
    let handle = Rc::new(RefCell::new(None));
    let keep = Rc::clone(&handle);
    let call = with_timeout_handle(secs(100), move |timeout| {
        *keep.borrow_mut() = Some(timeout);
        let mut body = Box::pin(async {
            loop {
                let _ = pending::<()>().or_cancelled().await;
            }
            #[allow(unreachable_code)]
            ok(())
        });
        std::future::poll_fn(move |cx| {
            counted.set(counted.get() + 1);
            body.as_mut().poll(cx)
        })
    });
    let mut call = Hand::new(call.grace(secs(5)));
    call.pending();
    let scope = handle.borrow().as_ref().unwrap().scope();
    scope.cancel(());
    assert!(call.settle().is_pending());
    let (asked, woken) = (polls.get(), call.wakes());
    tokio::time::advance(secs(4)).await;
    assert_eq!((call.wakes(), polls.get()), (woken, asked), "it rests");
    tokio::time::advance(secs(2)).await;
    assert_eq!(call.wakes(), woken + 1, "the end of the grace wakes it, once");
    assert!(call.ready().unwrap_err().is_cancelled());
}

// R2: "One that refuses costs no wake-ups while it refuses": a plain wait in a section.
#[tokio::test(start_paused = true)]
async fn a_section_that_holds_off_the_cut_costs_no_wake_ups() {
    let scope = Scope::new();
    let mut run = Hand::new(scope.run(cleanup(secs(50), pending::<()>())));
    run.pending();
    scope.cancel(());
    assert!(run.settle().is_pending());
    let wakes = run.wakes();
    tokio::time::advance(secs(49)).await;
    run.pending();
    assert_eq!(run.wakes(), wakes);
    tokio::time::advance(secs(2)).await;
    assert!(run.settle().is_ready());
}

// R3: "`is_cancelled()` includes the enclosing ones"; `cancelling` counts this scope's alone.
#[test]
fn is_cancelled_includes_the_scopes_above() {
    let outer = Scope::new();
    let inner = outer.child("inner");
    outer.cancel("outer");
    assert!(inner.is_cancelled());
    assert_eq!((outer.cancelling(), inner.cancelling()), (1, 0));
    inner.cancel("inner");
    assert_eq!(inner.check().unwrap_err().scope(), outer.id(), "the outermost request speaks");
    let below = inner.child("late");
    assert!(below.is_cancelled(), "one made after the request knows it");
    assert!(!Scope::new().is_cancelled());
}

// R4: "the first reason stands".
#[test]
fn the_first_reason_stands() {
    let scope = Scope::named("import");
    scope.cancel(Reason::error(std::fmt::Error));
    scope.cancel("second");
    let cancelled = scope.check().unwrap_err();
    assert!(matches!(cancelled.reason(), Reason::Error(_)));
    assert_eq!(cancelled.request().to_string(), format!("cancel of `import`: {}", std::fmt::Error));
}

// Scope::run is a stoppable wait: "on a cancel of this scope, or of one around the caller".
#[tokio::test(start_paused = true)]
async fn run_hears_the_scope_entered_and_the_scope_around() {
    for which in ["entered", "around"] {
        let around = Scope::named("around");
        let entered = Scope::named("entered");
        let remote = if which == "entered" { entered.clone() } else { around.clone() };
        tokio::spawn(async move {
            sleep(secs(1)).await;
            remote.cancel("now");
        });
        let started = Instant::now();
        let inner = around.run(async { entered.run(pending::<()>().or_cancelled()).await });
        let answer = ends(inner).await.unwrap().unwrap().unwrap_err();
        assert_eq!(answer.request().scope_name(), which);
        assert_eq!(started.elapsed(), secs(1));
    }
}

// The same from a task that has no scope, and from one that has.
#[tokio::test(start_paused = true)]
async fn run_from_another_task_hears_both_scopes() {
    for which in ["entered", "around"] {
        let around = Scope::named("around");
        let entered = Scope::named("entered");
        let task = tokio::spawn({
            let entered = entered.clone();
            async move { entered.run(pending::<()>()).await }.in_scope(&around)
        });
        tokio::task::yield_now().await;
        let asked = if which == "entered" { &entered } else { &around };
        asked.cancel(());
        assert_eq!(ends(task).await.unwrap().unwrap_err().scope(), asked.id());
    }
    let scope = Scope::new();
    let plain = tokio::spawn({
        let scope = scope.clone();
        async move { scope.run(pending::<()>()).await }
    });
    tokio::task::yield_now().await;
    scope.cancel("from elsewhere");
    assert!(ends(plain).await.unwrap().is_err());
}

// `in_scope`: "is never dropped by this, since it has no error to say so with".
#[tokio::test(start_paused = true)]
async fn in_scope_asks_and_does_not_cut() {
    let scope = Scope::new();
    let task = tokio::spawn(
        async {
            let answered = pending::<()>().or_cancelled().await.is_err();
            sleep(secs(3)).await;
            answered
        }
        .in_scope(&scope),
    );
    tokio::task::yield_now().await;
    scope.cancel(());
    assert!(ends(task).await.unwrap());
}

// `in_current_scope` carries the scope into a plain `tokio::spawn`; without it there is none.
#[tokio::test(start_paused = true)]
async fn a_spawned_future_has_the_scope_it_is_given() {
    let scope = Scope::named("mine");
    let run = scope.run(async {
        let with = tokio::spawn(
            async {
                let name = Scope::current().map(|scope| scope.name().to_string());
                (name, pending::<()>().or_cancelled().await.is_err())
            }
            .in_current_scope(),
        );
        let without = tokio::spawn(async { Scope::current().is_none() });
        assert!(without.await.unwrap());
        scope.cancel(());
        cleanup(secs(9), with).await.unwrap().unwrap()
    });
    assert_eq!(ends(run).await.unwrap(), (Some("mine".to_owned()), true));
    assert!(async { Scope::current().is_none() }.in_current_scope().await);
}

// `in_sync`: what runs in it finds the scope, and it is gone afterwards, also after a panic.
#[test]
fn in_sync_is_for_code_without_futures() {
    let scope = Scope::named("sync");
    let child = scope.in_sync(|| {
        assert_eq!(Scope::current().unwrap().id(), scope.id());
        Scope::new()
    });
    assert!(Scope::current().is_none());
    scope.cancel(());
    assert!(child.is_cancelled());
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scope.in_sync(|| panic!("boom"))));
    assert!(panicked.is_err());
    assert!(Scope::current().is_none());
}

// A runtime that synchronous code blocks on inside a scope: its waits register for themselves.
#[test]
fn a_runtime_inside_in_sync_hears_the_scope() {
    let scope = Scope::new();
    let remote = scope.clone();
    let canceller = std::thread::spawn(move || {
        while remote.tree().registrations == 0 {
            std::thread::yield_now();
        }
        remote.cancel("from a thread");
    });
    let answer = scope.in_sync(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(pending::<()>().or_cancelled())
    });
    assert!(answer.is_err());
    canceller.join().unwrap();
}

// R2: "polled after every wait registered under another waker was woken; wake roots last".
#[test]
fn waits_in_futures_unordered_are_asked_before_the_cut() {
    let scope = Scope::new();
    let asked = Cell::new(0);
    let mut run = Hand::new(scope.run(async {
        let mut waits: FuturesUnordered<_> = (0..10)
            .map(|_| async {
                let _ = pending::<()>().or_cancelled().await;
                asked.set(asked.get() + 1);
                pending::<()>().await;
            })
            .collect();
        waits.next().await;
    }));
    run.pending();
    scope.cancel(());
    assert!(run.settle().is_ready());
    assert_eq!(asked.get(), 10);
}

// R2: the question is passed on by a timeout in between, which neither cuts nor answers by itself.
#[tokio::test(start_paused = true)]
async fn a_timeout_in_between_only_passes_the_question_on() {
    let scope = Scope::new();
    let after = Cell::new(0);
    let run = scope.run(async {
        let call = with_timeout(secs(9), async {
            scope.cancel(());
            pending::<()>().or_cancelled().await?;
            ok(())
        });
        assert!(call.await.unwrap_err().is_cancelled());
        after.set(1);
        // What is ready at once still runs.
        with_timeout(secs(9), async { ok(after.set(2)) }).await.unwrap();
        pending::<()>().await;
    });
    assert!(ends(run).await.is_err());
    assert_eq!(after.get(), 2);
}

// `Scope::cancelled` is for code outside: it tells why, and after an uncancel it goes on waiting.
#[test]
fn cancelled_can_be_awaited_from_outside() {
    let scope = Scope::new();
    let mut wait = Hand::new(scope.cancelled());
    wait.pending();
    scope.cancel("one");
    scope.uncancel();
    assert_eq!(wait.wakes(), 1);
    wait.pending();
    scope.cancel("two");
    assert_eq!(wait.wakes(), 2, "the registration that was woken is made again");
    assert_eq!(wait.ready().to_string(), "cancelled: two");
}

// A panicking waker does not keep the others from being woken.
#[test]
fn a_panicking_waker_does_not_keep_others_asleep() {
    struct Bomb;
    impl std::task::Wake for Bomb {
        fn wake(self: std::sync::Arc<Self>) {
            panic!("waker");
        }
    }
    let scope = Scope::new();
    let mut waits: Vec<_> = (0..4).map(|_| Hand::new(scope.cancelled())).collect();
    waits[0].pending();
    let bomb = std::task::Waker::from(std::sync::Arc::new(Bomb));
    let mut bombed = Box::pin(scope.cancelled());
    assert!(bombed.as_mut().poll(&mut std::task::Context::from_waker(&bomb)).is_pending());
    let mut roots: Vec<_> = (0..4).map(|_| Hand::new(scope.run(pending::<()>()))).collect();
    let mut bombed_root = Box::pin(scope.run(pending::<()>()));
    assert!(bombed_root.as_mut().poll(&mut std::task::Context::from_waker(&bomb)).is_pending());
    waits.iter_mut().for_each(Hand::pending);
    roots.iter_mut().for_each(Hand::pending);
    scope.cancel(());
    assert!(waits.iter().all(|wait| wait.wakes() == 1));
    assert!(roots.iter().all(|root| root.wakes() == 1));
}
