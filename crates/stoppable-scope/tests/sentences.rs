//! Sentences of the rules that a campaign of mutations found untested.
#![allow(clippy::unit_arg)]

mod support;

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

use parking_lot::Mutex;
use stoppable_scope::{
    Cancelled, Deadline, InScopeExt, OrCancelledExt, Scope, TaskError, TimeoutError, TimeoutHandle,
    WaitPoint, checkpoint, cleanup, ok, with_timeout, with_timeout_handle, without_deadline,
};
use support::{ms, secs};
use tokio::sync::mpsc;
use tokio::task::coop;
use tokio::time::{Instant, advance, sleep};

/// Moves the clock without letting any timer fire.
fn skip(by: std::time::Duration) {
    let _ = pin!(advance(by)).poll(&mut Context::from_waker(Waker::noop()));
}

// R4: "an enclosing deadline overdue by the clock counts as expired", at that very instant too, and also where
// its timer has not fired yet.
#[tokio::test(start_paused = true)]
async fn an_enclosing_deadline_that_no_timer_has_delivered_counts() {
    for late in [ms(0), ms(5)] {
        let outer = with_timeout(ms(10), async {
            skip(ms(10) + late);
            let inner = with_timeout(ms(0), pending::<Result<(), TaskError>>()).await;
            assert!(matches!(inner, Err(TimeoutError::Cancelled(_))), "{late:?}: {inner:?}");
            ok(())
        });
        assert!(outer.await.is_ok());
    }
}

// R5: "Leaving it is explicit": a deadline that was left does not count by the clock either.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_was_left_does_not_count_by_the_clock() {
    let outer = with_timeout(
        ms(10),
        without_deadline(async {
            skip(ms(20));
            let inner = with_timeout(ms(0), pending::<Result<(), TaskError>>()).await;
            assert!(matches!(inner, Err(TimeoutError::Elapsed(_))), "{inner:?}");
            ok(())
        }),
    );
    assert!(outer.await.is_ok());
}

// R4: "`Cancelled` says which scope asked": of two overdue deadlines a checkpoint names the outer one.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_names_the_outermost_overdue_deadline() {
    let outer = with_timeout_handle(ms(10), |handle| async move {
        let outer = handle.scope().id();
        let inner = with_timeout(ms(5), async move {
            skip(ms(20));
            assert_eq!(checkpoint().await.unwrap_err().scope(), outer);
            ok(())
        });
        assert!(inner.await.is_ok());
        ok(())
    });
    assert!(outer.await.is_ok());
}

// R4: of two requests above it a timeout passes the outermost through, as its waits do.
#[tokio::test(start_paused = true)]
async fn a_timeout_passes_on_the_outermost_of_two_requests() {
    let outer = with_timeout_handle(secs(60), |outer: TimeoutHandle| async move {
        let middle = with_timeout_handle(secs(60), |middle: TimeoutHandle| async move {
            let inner = with_timeout(secs(60), async {
                middle.scope().cancel("middle");
                outer.scope().cancel("outer");
                Err::<(), TaskError>(checkpoint().await.unwrap_err().into())
            });
            match inner.await {
                Err(TimeoutError::Cancelled(cancelled)) => {
                    assert_eq!(cancelled.reason().to_string(), "outer")
                }
                other => panic!("{other:?}"),
            }
            ok(())
        });
        assert!(middle.await.is_ok());
        ok(())
    });
    assert!(outer.await.is_ok());
}

// R2: "`Scope::run` is such a wrapper for one wait": it answers at once, whatever grace the call around has.
#[tokio::test(start_paused = true)]
async fn a_run_answers_at_once_although_the_call_around_has_a_grace() {
    let started = Instant::now();
    let call = with_timeout(secs(1), async {
        let cancelled = Scope::new().run(pending::<()>()).await.unwrap_err();
        Err::<(), TaskError>(cancelled.into())
    });
    assert!(call.grace(secs(10)).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(1));
}

// R2: cut "by the wrapper of the scope on which the request was made": a timeout in its own grace is not cut by a
// later request from outside.
#[tokio::test(start_paused = true)]
async fn a_request_from_outside_does_not_end_the_grace_of_a_timeout() {
    let (started, scope) = (Instant::now(), Scope::new());
    let inner = with_timeout(secs(1), pending::<Result<(), TaskError>>()).grace(secs(10));
    let call = with_timeout(secs(60), inner).grace(secs(1)).in_scope(&scope);
    let cancel = async {
        sleep(secs(2)).await;
        scope.cancel("outside");
    };
    let (result, ()) = futures::join!(call, cancel);
    assert!(result.unwrap_err().is_cancelled());
    assert_eq!(started.elapsed(), secs(11));
}

// Details: inside a section the ambient deadline is its own; nested, it is the end of the one around.
#[tokio::test(start_paused = true)]
async fn a_nested_section_sees_the_end_of_the_one_around() {
    let seen = cleanup(secs(1), cleanup(secs(10), async { Deadline::current().remaining() })).await;
    assert_eq!(seen.unwrap().unwrap(), Some(secs(1)));
}

// R3: "`uncancel` takes the request back": a deadline delivered behind it stands and is told then.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_came_behind_a_request_taken_back_cuts() {
    let polls = Cell::new(0);
    let call = with_timeout_handle(secs(1), |handle| async move {
        handle.scope().cancel("by hand");
        cleanup(secs(5), sleep(secs(2))).await.unwrap();
        handle.scope().uncancel();
        pending::<Result<(), TaskError>>().await
    });
    let mut call = pin!(call);
    let result = poll_fn(|cx| {
        polls.set(polls.get() + 1);
        assert!(polls.get() < 1000, "it is asked again and again");
        call.as_mut().poll(cx)
    });
    assert!(result.await.unwrap_err().is_elapsed());
}

// R5: "the maximum works".
#[tokio::test(start_paused = true)]
async fn a_deadline_later_by_the_maximum_is_never() {
    assert!((Deadline::after(secs(1)) + std::time::Duration::MAX).is_never());
}

// R5: the timer of a call wakes whoever polled it last.
#[tokio::test(start_paused = true)]
async fn the_timer_wakes_whoever_polled_last() {
    let started = Instant::now();
    let mut call = pin!(with_timeout(ms(10), pending::<Result<(), TaskError>>()));
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(tokio::time::timeout(secs(5), call).await.unwrap().unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), ms(10));
}

// R2: asked means polled "on a coop budget that is not spent": one that could not even take what was there for it
// is not cut.
#[tokio::test(start_paused = true)]
async fn who_is_polled_on_a_spent_budget_is_asked_again() {
    let (send, mut receive) = mpsc::unbounded_channel();
    let (answered, handle) = (Cell::new(false), RefCell::new(None));
    let call = with_timeout_handle(secs(60), |timeout| {
        *handle.borrow_mut() = Some(timeout);
        async {
            // A plain wait, whose result is there.
            receive.recv().await;
            let cancelled = pending::<()>().or_cancelled().await.unwrap_err();
            answered.set(true);
            Err::<(), TaskError>(cancelled.into())
        }
    });
    let mut call = pin!(call);
    let mut polls = 0;
    let result = poll_fn(|cx| {
        polls += 1;
        if polls == 2 {
            send.send(()).unwrap();
            handle.borrow().as_ref().unwrap().scope().cancel(());
            while coop::has_budget_remaining() {
                let _ = pin!(coop::consume_budget()).poll(cx);
            }
        }
        let result = call.as_mut().poll(cx);
        if polls == 1 {
            cx.waker().wake_by_ref();
        }
        result
    });
    assert!(result.await.unwrap_err().is_cancelled());
    assert!(answered.get());
}

type Shared = Arc<Mutex<Option<Pin<Box<dyn Future<Output = bool> + Send>>>>>;

/// Polls the whole from within the wake of one wait in it, as another thread may do at that moment.
struct PollsAtOnce {
    whole: Shared,
    flag: AtomicBool,
    first: AtomicBool,
}

impl Wake for PollsAtOnce {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::SeqCst);
        if self.first.swap(false, Ordering::SeqCst) {
            let mut whole = self.whole.lock();
            if let Some(future) = whole.as_mut() {
                if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    *whole = None;
                }
            }
        }
    }
}

/// A wait written by hand.
async fn asked() -> Cancelled {
    let mut point = WaitPoint::new();
    poll_fn(|cx| {
        loop {
            if let Err(cancelled) = ready!(point.check()) {
                return Poll::Ready(cancelled);
            }
            ready!(point.park(cx));
        }
    })
    .await
}

// R2: asked means polled "after every wait registered under another waker was woken": whoever polls the call while
// the waits in it are still being woken does not cut it.
#[tokio::test(start_paused = true)]
async fn nobody_is_cut_while_the_waits_in_it_are_still_being_woken() {
    let whole = Shared::default();
    let waker = |first| {
        let (whole, flag) = (Arc::clone(&whole), AtomicBool::new(true));
        Arc::new(PollsAtOnce { whole, flag, first: AtomicBool::new(first) })
    };
    let answers = Arc::new(Mutex::new(0));
    // As `FuturesUnordered` does: each wait has its own waker, and is polled only after that was woken.
    let mut waits: Vec<_> = [true, false]
        .map(|first| {
            let answers = Arc::clone(&answers);
            let wait = async move {
                asked().await;
                *answers.lock() += 1;
            };
            (waker(first), Some(Box::pin(wait)))
        })
        .into();
    let mut scope = None;
    let call = with_timeout_handle(secs(60), |handle| {
        scope = Some(handle.scope());
        poll_fn(move |_| {
            for (waker, wait) in &mut waits {
                let woken = waker.flag.swap(false, Ordering::SeqCst);
                let waker = Waker::from(Arc::clone(waker));
                let mut cx = Context::from_waker(&waker);
                if woken && wait.as_mut().is_some_and(|wait| wait.as_mut().poll(&mut cx).is_ready()) {
                    *wait = None;
                }
            }
            if waits.iter().all(|(_, wait)| wait.is_none()) { Poll::Ready(ok(())) } else { Poll::Pending }
        })
    });
    let call: Pin<Box<dyn Future<Output = bool> + Send>> = Box::pin(async { call.await.is_ok() });
    *whole.lock() = Some(call);
    let poll = || {
        let mut whole = whole.lock();
        whole.as_mut().map_or(Poll::Ready(true), |f| f.as_mut().poll(&mut Context::from_waker(Waker::noop())))
    };
    assert!(poll().is_pending());
    scope.unwrap().cancel(());
    assert_eq!(poll(), Poll::Ready(true));
    assert_eq!(*answers.lock(), 2);
}

// R3: "after 128 answers to one request in one task", also where each was given in a scope of its own.
#[tokio::test(start_paused = true)]
async fn answers_in_scopes_below_count_for_the_task() {
    let (scope, answers) = (Scope::new(), Cell::new(0));
    let swallows = async {
        for _ in 0..1000 {
            let call = with_timeout(secs(60), async {
                checkpoint().await?;
                ok(())
            });
            assert!(call.await.unwrap_err().is_cancelled());
            answers.set(answers.get() + 1);
        }
    };
    scope.cancel(());
    let mut swallows = pin!(swallows.in_scope(&scope));
    assert!(futures::poll!(swallows.as_mut()).is_pending());
    assert_eq!(answers.get(), 128);
}

// R3: "every stoppable wait in that scope answers": `Scope::run` of another scope too, without a poll.
#[tokio::test(start_paused = true)]
async fn a_run_in_another_scope_is_not_begun_where_the_code_around_is_cancelled() {
    let (around, polled) = (Scope::new(), Cell::new(false));
    around.cancel("around");
    let other = Scope::new();
    let run = other.run(async { polled.set(true) }).in_scope(&around);
    assert_eq!(run.await.unwrap_err().reason().to_string(), "around");
    assert!(!polled.get());
}

// R2: sections "together end at the latest 60 s after the request": also one that was open when the request came.
#[tokio::test(start_paused = true)]
async fn a_section_that_is_open_when_the_request_comes_ends_60_s_after_it() {
    let started = Instant::now();
    let call = with_timeout(secs(1), async {
        cleanup(secs(300), pending::<()>()).await.unwrap_err();
        checkpoint().await?;
        ok(())
    });
    assert!(call.await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(61));
}

/// Notes that it was woken.
struct Notes(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl Wake for Notes {
    fn wake(self: Arc<Self>) {
        self.1.lock().push(self.0);
    }
}

// R2: "wake roots last".
#[tokio::test(start_paused = true)]
async fn roots_are_woken_after_the_waits_in_them() {
    let woken = Arc::default();
    let waker = |name| Waker::from(Arc::new(Notes(name, Arc::clone(&woken))));
    let (scope, of_wait, of_root) = (Scope::new(), waker("wait"), waker("root"));
    let mut wait = Box::pin(asked());
    let whole = poll_fn(|_| wait.as_mut().poll(&mut Context::from_waker(&of_wait)));
    let mut whole = pin!(whole.in_scope(&scope));
    assert!(whole.as_mut().poll(&mut Context::from_waker(&of_root)).is_pending());
    scope.cancel(());
    assert_eq!(*woken.lock(), ["wait", "root"]);
}
