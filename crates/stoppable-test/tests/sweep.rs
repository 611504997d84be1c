//! What a sweep does to a future, and when it gives up.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use stoppable_scope::{InScopeExt, OrCancelledExt, Scope, TaskError, checkpoint, cleanup};
use stoppable_test::{End, Intervention, Sweep, live_scopes};
use tokio::time::sleep;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test(start_paused = true)]
async fn every_wait_is_hit_by_every_intervention() {
    let points = RefCell::new(Vec::new());
    let swept = Sweep::with_state(|| {
        let step = Rc::new(Cell::new(0));
        let mine = Rc::clone(&step);
        let work = async move {
            for _ in 0..3 {
                sleep(ms(10)).or_cancelled().await?;
                mine.set(mine.get() + 1);
            }
            Ok::<_, TaskError>(())
        };
        (step, work)
    })
    .run(|round| {
        assert_eq!(round.state.get(), round.poll - 1);
        assert_eq!(round.live_scopes, 0);
        match round.intervention {
            Intervention::Drop => assert!(matches!(round.end, End::Dropped)),
            _ => assert!(round.end.finished().unwrap().is_err(), "it answered"),
        }
        points.borrow_mut().push((round.intervention, round.poll));
    })
    .await;
    assert_eq!(swept.points(), 9);
    for intervention in Intervention::ALL {
        assert_eq!(swept.points_of(intervention), 3);
        let of: Vec<_> =
            points.borrow().iter().filter(|point| point.0 == intervention).map(|point| point.1).collect();
        assert_eq!(of, [1, 2, 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_wait_is_cut_and_a_section_is_not() {
    let swept = Sweep::with_state(|| {
        let done = Rc::new(Cell::new(false));
        let mine = Rc::clone(&done);
        let work = async move {
            cleanup(ms(100), sleep(ms(10))).await.unwrap();
            mine.set(true);
            sleep(ms(10)).await;
        };
        (done, work)
    })
    .run(|round| {
        let dropped = round.intervention == Intervention::Drop;
        assert_eq!(round.end, if dropped { End::Dropped } else { End::Cut });
        assert_eq!(round.state.get(), !dropped || round.poll == 2);
    })
    .await;
    assert_eq!(swept.points(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_never_waits_has_no_points() {
    let swept = Sweep::new(|| async {}).run(|_| unreachable!()).await;
    assert_eq!(swept.points(), 0);
}

#[tokio::test(start_paused = true)]
async fn only_what_is_asked_for_is_done() {
    let swept = Sweep::new(|| sleep(ms(1))).only([Intervention::Expire]).run(|_| {}).await;
    assert_eq!((swept.points(), swept.points_of(Intervention::Expire)), (1, 1));
}

#[tokio::test(start_paused = true)]
#[should_panic(
    expected = "sweep: drop at pending poll 2: within 600s the future neither ended nor waited so often"
)]
async fn a_future_that_never_ends_is_named() {
    let _ = Sweep::new(pending::<()>).run(|_| {}).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "sweep: cancel at pending poll 1: within 50 polls the future did not end after it")]
async fn a_future_that_spins_after_the_cancel_is_named() {
    let spin = || async {
        cleanup(Duration::MAX, async {
            loop {
                checkpoint().await.unwrap();
            }
        })
        .await
    };
    let _ = Sweep::new(spin).only([Intervention::Cancel]).max_polls(50).run(|_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_left_behind_is_seen() {
    let swept = Sweep::new(|| async {
        tokio::spawn(sleep(ms(50)).in_current_scope());
        tokio::task::yield_now().await;
        sleep(ms(10)).await;
    })
    .only([Intervention::Drop])
    // Before its first poll it is in no scope yet.
    .run(|round| assert_eq!(round.live_scopes, usize::from(round.poll > 1)))
    .await;
    assert_eq!(swept.points(), 2);
}

// What was entered from within another scope hangs below both.
#[tokio::test(start_paused = true)]
async fn a_scope_below_two_is_counted_once() {
    let (around, entered) = (Scope::new(), Scope::new());
    let mut run = Box::pin(entered.run(pending::<()>()));
    let poll = around.run(async { assert!(futures::poll!(run.as_mut()).is_pending()) });
    poll.await.unwrap();
    assert_eq!(live_scopes(&entered), 1);
    // The stay in the scope around is held by what began in it.
    assert_eq!(live_scopes(&around), 2);
    drop(run);
    assert_eq!((live_scopes(&entered), live_scopes(&around)), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_of_what_is_send_is_send() {
    let sweep = async { Sweep::new(|| async { tokio::task::yield_now().await }).run(|_| {}).await.points() };
    assert_eq!(tokio::spawn(sweep).await.unwrap(), 3);
}
