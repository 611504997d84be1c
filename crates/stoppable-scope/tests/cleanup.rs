//! R2 Honour: cleanup sections.
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use stoppable_scope::{
    Deadline, InScopeExt, OrCancelledExt, Scope, cleanup, ok, with_timeout, without_deadline,
};
use support::{Hand, ends, ms, secs};
use tokio::time::{Instant, advance, sleep};

// R2: "no wait inside is cancelled": stoppable waits in a section do not answer.
#[tokio::test(start_paused = true)]
async fn no_wait_inside_is_cancelled() {
    let scope = Scope::new();
    let run = scope.run(async {
        scope.cancel(());
        cleanup(secs(9), async {
            assert!(!Scope::current().unwrap().is_cancelled());
            sleep(secs(1)).or_cancelled().await.unwrap();
            Scope::new().run(sleep(secs(1))).await.unwrap();
            stoppable_scope::checkpoint().await.unwrap();
            with_timeout(secs(5), async { ok(sleep(secs(1)).await) }).await.unwrap();
        })
        .await
        .unwrap();
        assert!(Scope::current().unwrap().is_cancelled(), "after it the request is there again");
    });
    ends(run).await.unwrap();
}

// R2: honoured "in every wrapper": each of them lets the section end, and then cuts the plain wait.
#[tokio::test(start_paused = true)]
async fn every_wrapper_lets_a_section_end() {
    for wrapper in ["run", "or_cancelled", "timeout", "nested"] {
        let started = Instant::now();
        let done = Cell::new(false);
        let scope = Scope::new();
        let remote = scope.clone();
        tokio::spawn(async move {
            sleep(secs(1)).await;
            remote.cancel(());
        });
        let body = async {
            cleanup(secs(9), sleep(secs(5))).await.unwrap();
            done.set(true);
            sleep(secs(100)).await;
        };
        let cut = match wrapper {
            "run" => ends(scope.run(body)).await.is_err(),
            "or_cancelled" => ends(body.or_cancelled().in_scope(&scope)).await.is_err(),
            "timeout" => {
                let call = with_timeout(secs(1), async { ok(body.await) });
                ends(call).await.unwrap_err().is_elapsed()
            }
            _ => {
                let nested = async {
                    let inner = with_timeout(secs(2), async { ok(body.or_cancelled().await?) });
                    ok(with_timeout(secs(3), inner).await?)
                };
                ends(scope.run(nested)).await.unwrap().is_err()
            }
        };
        assert!(cut && done.get(), "{wrapper}");
        assert_eq!(started.elapsed(), secs(5), "{wrapper}");
    }
}

// T-20: a clean-up that runs its own short limit after the limit of the call has struck.
#[tokio::test(start_paused = true)]
async fn a_timeout_inside_a_section_is_its_own() {
    let started = Instant::now();
    let call = with_timeout(secs(1), async {
        let _ = pending::<()>().or_cancelled().await;
        let inner = cleanup(secs(60), with_timeout(secs(2), async { ok(sleep(secs(30)).await) }));
        assert!(inner.await?.unwrap_err().is_elapsed());
        Err::<(), _>(Scope::current().unwrap().check().unwrap_err().into())
            as Result<(), stoppable_scope::TaskError>
    });
    assert!(ends(call).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(3));
}

// B-59: at its limit the section ends as elapsed, and the next wait answers.
#[tokio::test(start_paused = true)]
async fn at_its_limit_a_section_ends() {
    let scope = Scope::new();
    let started = Instant::now();
    let run = scope.run(async {
        scope.cancel(());
        let section = cleanup(ms(300), pending::<()>()).await;
        assert_eq!(section.unwrap_err().deadline().remaining(), Some(Duration::ZERO));
        sleep(secs(1)).or_cancelled().await.unwrap_err();
        started.elapsed()
    });
    assert_eq!(ends(run).await.unwrap(), ms(300));
}

// "At the limit the section itself is cancelled, asked like everything else, and dropped."
#[tokio::test(start_paused = true)]
async fn at_its_limit_a_section_is_asked_first() {
    let answered = Cell::new(false);
    let section = cleanup(secs(1), async {
        answered.set(pending::<()>().or_cancelled().await.is_err());
        pending::<()>().await;
    });
    assert!(ends(section).await.is_err());
    assert!(answered.get());
}

// B-62: sections that follow one another have each their limit, and nothing cuts between them.
#[tokio::test(start_paused = true)]
async fn several_sections_in_a_row_all_run() {
    let scope = Scope::new();
    let remote = scope.clone();
    tokio::spawn(async move {
        sleep(ms(50)).await;
        remote.cancel(());
    });
    let steps = RefCell::new(Vec::new());
    let started = Instant::now();
    let run = scope.run(async {
        for step in 1..=3 {
            cleanup(ms(150), sleep(ms(100))).await.unwrap();
            steps.borrow_mut().push(step);
        }
        sleep(secs(1)).await;
    });
    assert!(ends(run).await.is_err());
    assert_eq!(*steps.borrow(), [1, 2, 3]);
    assert_eq!(started.elapsed(), ms(300));
}

// R2: "together end at the latest 60 s after the request".
#[tokio::test(start_paused = true)]
async fn sections_together_end_sixty_seconds_after_the_request() {
    let scope = Scope::new();
    let remote = scope.clone();
    tokio::spawn(async move {
        sleep(secs(10)).await;
        remote.cancel(());
    });
    let ended = RefCell::new(Vec::new());
    let started = Instant::now();
    let run = scope.run(async {
        for _ in 0..5 {
            let section = cleanup(secs(25), sleep(secs(20))).await;
            ended.borrow_mut().push((section.is_ok(), started.elapsed()));
        }
        pending::<()>().await;
    });
    assert!(ends(run).await.is_err());
    let expected =
        [(true, 20), (true, 40), (true, 60), (false, 70), (false, 70)].map(|(ok, at)| (ok, secs(at)));
    assert_eq!(*ended.borrow(), expected);
}

// "(configurable)": for a scope and what is below it.
#[tokio::test(start_paused = true)]
async fn the_common_limit_can_be_set() {
    let outer = Scope::new();
    outer.set_cleanup_limit(secs(5));
    let scope = outer.child("below");
    let started = Instant::now();
    let run = scope.run(async {
        scope.cancel(());
        cleanup(secs(100), pending::<()>()).await.unwrap_err();
        started.elapsed()
    });
    assert_eq!(ends(run).await.unwrap(), secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_never_starts_the_section() {
    let polled = Cell::new(false);
    assert!(cleanup(Duration::ZERO, async { polled.set(true) }).await.is_err());
    assert!(!polled.get());
}

// The maximum: bounded by nothing but the 60 s after a request.
#[tokio::test(start_paused = true)]
async fn a_limit_of_max_is_none_until_a_request() {
    ends(cleanup(Duration::MAX, sleep(secs(1000)))).await.unwrap();
    let scope = Scope::new();
    let started = Instant::now();
    let run = scope.run(async {
        scope.cancel(());
        let section = cleanup(Duration::MAX, pending::<()>()).await;
        (section.is_err(), started.elapsed())
    });
    assert_eq!(ends(run).await.unwrap(), (true, secs(60)));
}

// Section 6: "ends earlier only with an enclosing section".
#[tokio::test(start_paused = true)]
async fn a_section_ends_with_the_one_around_it() {
    let started = Instant::now();
    let outer = cleanup(secs(2), async {
        let inner = cleanup(secs(10), pending::<()>()).await;
        (inner.is_err(), started.elapsed())
    });
    // Both limits are the same instant now; the outer one is asked, and what is ready at once still runs.
    assert_eq!(ends(outer).await.unwrap(), (true, secs(2)));
    let shorter = cleanup(secs(10), async {
        assert!(cleanup(secs(1), pending::<()>()).await.is_err());
        sleep(secs(1)).await;
    });
    ends(shorter).await.unwrap();
}

// A section that is polled under a waker of its own is honoured by the frames around.
#[tokio::test(start_paused = true)]
async fn a_section_in_futures_unordered_is_honoured() {
    let scope = Scope::new();
    let started = Instant::now();
    let done = Cell::new(0);
    let run = scope.run(async {
        let mut sections: FuturesUnordered<_> = (1..=3)
            .map(|n| {
                let done = &done;
                async move {
                    cleanup(secs(9), sleep(secs(n))).await.unwrap();
                    done.set(done.get() + 1);
                    pending::<()>().await;
                }
            })
            .collect();
        let cancel = async {
            sleep(ms(100)).await;
            scope.cancel(());
        };
        tokio::join!(sections.next(), cancel);
    });
    assert!(ends(run).await.is_err());
    assert_eq!((done.get(), started.elapsed()), (3, secs(3)));
}

// A section that is dropped half-way holds nobody up any more.
#[tokio::test(start_paused = true)]
async fn a_section_dropped_half_way_holds_nothing() {
    let scope = Scope::new();
    let started = Instant::now();
    let run = scope.run(async {
        tokio::select! {
            _ = cleanup(secs(9), pending::<()>()) => unreachable!(),
            () = sleep(secs(1)) => {}
        }
        scope.cancel(());
        pending::<()>().await;
    });
    assert!(ends(run).await.is_err());
    assert_eq!(started.elapsed(), secs(1));
}

// The same after the request came: the cut waits for the section, and comes with its drop.
#[tokio::test(start_paused = true)]
async fn the_cut_comes_when_the_section_is_dropped() {
    let scope = Scope::new();
    let started = Instant::now();
    let run = scope.run(async {
        scope.cancel(());
        tokio::select! {
            _ = cleanup(secs(9), pending::<()>()) => unreachable!(),
            () = sleep(secs(1)) => {}
        }
        sleep(secs(100)).await;
    });
    assert!(ends(run).await.is_err());
    assert_eq!(started.elapsed(), secs(1));
}

// A section beside a plain wait: the frame waits for the section, then cuts both.
#[tokio::test(start_paused = true)]
async fn what_stands_beside_a_section_is_cut_with_its_end() {
    let scope = Scope::new();
    let started = Instant::now();
    let run = scope.run(async {
        scope.cancel(());
        let _ = tokio::join!(cleanup(secs(9), sleep(secs(2))), sleep(secs(100)));
    });
    assert!(ends(run).await.is_err());
    assert_eq!(started.elapsed(), secs(2));
}

// R2: a `with_timeout` inside a section is not the section: it is cut inside it.
#[tokio::test(start_paused = true)]
async fn a_timeout_is_not_held_up_by_a_section_around_it() {
    let started = Instant::now();
    let section = cleanup(secs(9), async {
        with_timeout(secs(1), async { ok(sleep(secs(5)).await) }).await.unwrap_err();
        started.elapsed()
    });
    assert_eq!(ends(section).await.unwrap(), secs(1));
}

// T-47, T-61: the limit of a section counts from its first poll, not from its making.
#[tokio::test(start_paused = true)]
async fn the_limit_counts_from_the_first_poll() {
    let section = cleanup(secs(2), sleep(secs(1)));
    advance(secs(5)).await;
    ends(section).await.unwrap();
}

// S-51: scopes cancelled from inside a section: the next wait outside answers.
#[tokio::test(start_paused = true)]
async fn a_cancel_from_inside_a_section_is_answered_after_it() {
    let scope = Scope::new();
    let run = scope.run(async {
        cleanup(secs(9), async {
            scope.cancel(());
            sleep(secs(1)).or_cancelled().await.unwrap();
        })
        .await
        .unwrap();
        sleep(secs(1)).or_cancelled().await.is_err()
    });
    assert!(ends(run).await.unwrap());
}

// A section wrapped by `without_deadline` or made below it is one all the same.
#[tokio::test(start_paused = true)]
async fn sections_and_without_deadline_combine() {
    let call = with_timeout(secs(1), async {
        let _ = pending::<()>().or_cancelled().await;
        without_deadline(cleanup(secs(9), sleep(secs(2)))).await?;
        cleanup(secs(9), without_deadline(sleep(secs(2)))).await?;
        ok(())
    });
    let started = Instant::now();
    ends(call).await.unwrap();
    assert_eq!(started.elapsed(), secs(5));
}

// A future that begins a section by hand polls: what is polled in no frame costs and breaks nothing.
#[tokio::test(start_paused = true)]
async fn a_section_without_a_scope_has_its_limit() {
    let mut section = Hand::new(cleanup(secs(1), pending::<()>()));
    section.pending();
    advance(secs(2)).await;
    assert!(section.ready().is_err());
    assert!(Deadline::current().is_never());
}

// A section that outlives its frames through a panic leaves the count of the thread in order.
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_section_holds_nobody_up() {
    use futures::FutureExt;
    use std::panic::AssertUnwindSafe;
    let scope = Scope::new();
    let started = Instant::now();
    let run = scope.run(async {
        let section = cleanup(secs(50), async {
            sleep(secs(1)).await;
            panic!("boom")
        });
        assert!(AssertUnwindSafe(section).catch_unwind().await.is_err());
        scope.cancel(());
        pending::<()>().await;
    });
    assert!(ends(run).await.is_err());
    assert_eq!(started.elapsed(), secs(1));
}
