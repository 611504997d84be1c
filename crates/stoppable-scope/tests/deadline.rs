//! R5: deadlines only shrink.
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::time::Duration;

use stoppable_scope::{
    Deadline, Scope, TaskError, TimeoutError, checkpoint, cleanup, ok, with_timeout, without_deadline,
};
use support::{ends, ms, secs};
use tokio::time::{Instant, advance, sleep};

// R5: `never`, 0 and the maximum work.
#[tokio::test(start_paused = true)]
async fn never_is_later_than_every_instant() {
    assert!(Deadline::after(secs(1)) < Deadline::never());
    assert_eq!(Deadline::never(), Deadline::after(Duration::MAX));
    assert_eq!(Deadline::never().remaining(), None);
    assert!(!Deadline::never().is_expired());
    assert!(Deadline::never().instant().is_none());
    assert_eq!(Deadline::never() + secs(1), Deadline::never());
}

// R5: 0 is now, and now has expired.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_this_instant_has_expired() {
    let now = Deadline::after(Duration::ZERO);
    assert!(now.is_expired());
    assert_eq!(now.remaining(), Some(Duration::ZERO));
    advance(secs(3)).await;
    assert_eq!(now.remaining(), Some(Duration::ZERO), "what is left does not become negative");
}

// B-33: very large durations mean `never` and do not panic.
#[tokio::test(start_paused = true)]
async fn very_large_durations_do_not_overflow() {
    for huge in [Duration::MAX, secs(u64::MAX / 10), Duration::from_nanos(u64::MAX)] {
        let deadline = Deadline::after(huge);
        assert!(!deadline.is_expired());
        let job = with_timeout(huge, async {
            sleep(ms(10)).await;
            ok(Instant::now())
        });
        let started = Instant::now();
        assert_eq!(ends(job).await.unwrap() - started, ms(10));
        assert!(deadline.within(secs(1)).remaining() <= Some(secs(1)));
        assert!(!deadline.reserve(secs(1)).is_expired());
    }
}

#[tokio::test(start_paused = true)]
async fn reserve_leaves_room_and_never_underflows() {
    let deadline = Deadline::after(secs(5));
    assert_eq!(deadline.reserve(secs(2)).remaining(), Some(secs(3)));
    assert!(deadline.reserve(secs(5)).is_expired());
    assert!(deadline.reserve(Duration::MAX).is_expired());
    assert!(Deadline::never().reserve(Duration::MAX).is_never());
}

#[tokio::test(start_paused = true)]
async fn within_and_earliest_take_the_earlier() {
    let whole = Deadline::after(secs(5));
    assert_eq!(whole.within(secs(1)).remaining(), Some(secs(1)));
    assert_eq!(whole.within(secs(9)), whole);
    assert_eq!(whole.earliest(Deadline::never()), whole);
    assert_eq!(Deadline::never().within(Duration::MAX), Deadline::never());
}

// R5: "`Deadline::current()` reads the ambient one"; nested ones take the earlier (B-37, T-52).
#[tokio::test(start_paused = true)]
async fn current_is_the_earliest_around() {
    assert!(Deadline::current().is_never());
    let outer = with_timeout(ms(500), async {
        sleep(ms(200)).await;
        assert_eq!(Deadline::current().remaining(), Some(ms(300)));
        with_timeout(secs(1), async {
            assert_eq!(Deadline::current().remaining(), Some(ms(300)), "an inner limit does not extend");
            ok(())
        })
        .await?;
        with_timeout(ms(100), async {
            assert_eq!(Deadline::current().remaining(), Some(ms(100)));
            ok(())
        })
        .await?;
        assert_eq!(Deadline::current().remaining(), Some(ms(300)));
        ok(())
    });
    ends(outer).await.unwrap();
    assert!(Deadline::current().is_never());
}

// R5: "Leaving it is explicit." Section 6: `without_deadline(fut)` leaves a deadline.
#[tokio::test(start_paused = true)]
async fn without_deadline_hides_the_deadlines_around() {
    let work = with_timeout(secs(1), async {
        without_deadline(async {
            assert!(Deadline::current().is_never());
            with_timeout(secs(9), async {
                assert_eq!(Deadline::current().remaining(), Some(secs(9)));
                ok(())
            })
            .await
            .unwrap();
        })
        .await;
        assert_eq!(Deadline::current().remaining(), Some(secs(1)));
        ok(())
    });
    ends(work).await.unwrap();
}

// A checkpoint in there is not measured against what lies outside.
#[tokio::test]
async fn a_checkpoint_without_deadline_does_not_look_outside() {
    let limit = Deadline::after(ms(20));
    let work = with_timeout(limit, async {
        let inside = without_deadline(async {
            while !limit.is_expired() {
                std::hint::spin_loop();
            }
            // Not polled again in between, so the timer of the outer call has not been seen.
            futures::poll!(Box::pin(checkpoint()))
        })
        .await;
        assert!(inside.is_pending(), "it only yields");
        ok(())
    });
    assert!(work.await.is_ok());
}

// It does not outlive them: the deadline that is delivered cancels like every other cancel.
#[tokio::test(start_paused = true)]
async fn an_outer_deadline_cuts_what_has_left_it() {
    let work = with_timeout(secs(1), async {
        without_deadline(sleep(secs(60))).await;
        ok(())
    });
    let started = Instant::now();
    assert!(ends(work).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(1));
}

// Section 6: "Inside it the ambient deadline is its own."
#[tokio::test(start_paused = true)]
async fn in_a_cleanup_section_the_deadline_is_the_sections_own() {
    let work = with_timeout(secs(1), async {
        cleanup(secs(5), async { assert_eq!(Deadline::current().remaining(), Some(secs(5))) }).await?;
        ok(())
    });
    ends(work).await.unwrap();
}

// R5: "`checkpoint()` also compares the clock with the nearest deadline, so that a computing loop can stop."
#[tokio::test]
async fn a_computing_loop_is_stopped_by_checkpoint() {
    let started = std::time::Instant::now();
    let compute = with_timeout(ms(20), async {
        loop {
            std::hint::spin_loop();
            checkpoint().await?;
        }
        #[allow(unreachable_code)]
        Ok::<(), TaskError>(())
    });
    assert!(compute.await.unwrap_err().is_elapsed());
    assert!(started.elapsed() < secs(5));
}

// T-51: the clock passes the limit while the code runs: the very next checkpoint answers, at its first poll.
#[tokio::test]
async fn the_next_checkpoint_after_the_limit_answers_at_once() {
    let work = with_timeout(ms(10), async {
        std::thread::sleep(ms(20));
        assert!(Scope::current().unwrap().check().is_ok(), "nobody has looked at the clock yet");
        let answer = futures::poll!(Box::pin(checkpoint()));
        assert!(matches!(answer, std::task::Poll::Ready(Err(_))));
        assert!(Scope::current().unwrap().is_cancelled());
        ok("kept")
    });
    assert_eq!(work.await.unwrap(), "kept");
}

// A checkpoint answers with the outermost deadline that is overdue.
#[tokio::test]
async fn a_checkpoint_names_the_outermost_overdue_deadline() {
    let work = with_timeout(ms(20), async {
        let inner = with_timeout(ms(10), async {
            std::thread::sleep(ms(40));
            checkpoint().await?;
            ok(())
        });
        assert!(matches!(inner.await, Err(TimeoutError::Cancelled(_))));
        checkpoint().await?;
        ok(())
    });
    assert!(work.await.unwrap_err().is_elapsed());
}

// R2: "`Deadline::cut` never does [return late], and honours nothing."
#[tokio::test(start_paused = true)]
async fn cut_honours_no_section() {
    let started = Instant::now();
    let cut = Deadline::after(secs(1)).cut(cleanup(secs(30), sleep(secs(20))));
    assert!(ends(cut).await.is_err());
    assert_eq!(started.elapsed(), secs(1));
}

#[tokio::test(start_paused = true)]
async fn cut_at_an_expired_deadline_does_not_poll() {
    let deadline = Deadline::after(ms(1));
    advance(ms(5)).await;
    let error = deadline.cut(async { unreachable!() }).await.unwrap_err();
    assert_eq!(error.deadline(), deadline);
    assert_eq!(Deadline::never().cut(async { 7 }).await.unwrap(), 7);
}

// A result wins over an expiry (as tokio's own timeout).
#[tokio::test(start_paused = true)]
async fn cut_prefers_a_result_of_the_same_instant() {
    let deadline = Deadline::after(secs(1));
    assert!(ends(deadline.cut(sleep(secs(1)))).await.is_ok());
}

// B-37: what was left over is handed on, and does not grow.
#[tokio::test(start_paused = true)]
async fn a_budget_from_outside_shrinks_on_its_way_down() {
    let inbound = Deadline::after(ms(500));
    let server = with_timeout(inbound.within(secs(2)), async {
        sleep(ms(200)).await;
        let out = Deadline::current().within(secs(1));
        assert_eq!(out.remaining(), Some(ms(300)));
        out.cut(std::future::pending::<()>()).await?;
        ok(())
    });
    let started = Instant::now();
    let error = ends(server).await.unwrap_err();
    assert_eq!(started.elapsed(), ms(500));
    // The hard cut and the limit are the same instant: the error of the work is what it returned.
    assert!(!error.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_scope_tells_its_nearest_deadline() {
    let scope = Scope::new();
    assert!(scope.deadline().is_never());
    ends(with_timeout(secs(2), async {
        assert_eq!(Scope::current().unwrap().deadline(), Deadline::current());
        assert_eq!(Scope::new().deadline().remaining(), Some(secs(2)));
        ok(())
    }))
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn debug_tells_what_is_left() {
    assert_eq!(format!("{:?}", Deadline::never()), "Deadline(never)");
    assert_eq!(format!("{:?}", Deadline::after(Duration::ZERO)), "Deadline(expired)");
    assert_eq!(format!("{:?}", Deadline::after(secs(2))), "Deadline(in 2s)");
}
