//! Every async function of `stoppable-scope`, dropped, cancelled and expired at each of its waits.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use stoppable_scope::{
    Deadline, InScopeExt, OrCancelledExt, Scope, TimeoutError, checkpoint, cleanup, with_timeout,
    with_timeout_handle, without_deadline,
};
use stoppable_test::{End, Intervention, Round, Sweep, live_scopes};
use tokio::sync::Semaphore;
use tokio::time::sleep;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What the swept work holds while it waits: all of it is back after each round.
#[derive(Clone)]
struct Pool(Arc<Semaphore>);

impl Pool {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(3)))
    }

    /// Three waits: two stoppable ones around a plain one, all with something held.
    async fn work(&self) -> u32 {
        let _one = self.0.acquire().await.unwrap();
        if sleep(ms(10)).or_cancelled().await.is_err() {
            return 1;
        }
        let _two = self.0.acquire().await.unwrap();
        sleep(ms(10)).await;
        let _three = self.0.acquire().await.unwrap();
        u32::from(checkpoint().await.is_err()) + 2
    }
}

/// Sweeps the future that `make` builds around the work, and checks what must hold for all of them: nothing is
/// held, no scope is left, and only a drop or a cut takes the result away.
async fn sweep<T, F>(make: impl Fn(Pool) -> F, check: impl Fn(&Round<T, Pool>)) -> usize
where
    F: Future<Output = T>,
{
    let swept = Sweep::with_state(|| {
        let pool = Pool::new();
        (pool.clone(), make(pool))
    })
    .run(|round| {
        let at = (round.intervention, round.poll);
        assert_eq!(round.state.0.available_permits(), 3, "{at:?}");
        assert_eq!(round.live_scopes, 0, "{at:?}");
        assert_eq!(round.intervention == Intervention::Drop, matches!(round.end, End::Dropped), "{at:?}");
        check(&round);
    })
    .await;
    for intervention in Intervention::ALL {
        assert!(swept.points_of(intervention) >= 2);
    }
    swept.points()
}

/// The stoppable waits answer, the plain one in the middle is cut.
fn answered_or_cut<T>(round: &Round<T, Pool>, answered: impl Fn(&T) -> bool) {
    match &round.end {
        End::Finished(output) => assert!(answered(output), "poll {}", round.poll),
        End::Cut => assert_eq!(round.poll, 2),
        End::Dropped => {}
    }
}

#[tokio::test(start_paused = true)]
async fn or_cancelled() {
    sweep(
        |pool| async move { pool.work().or_cancelled().await },
        // As a wait of its own it answers where the plain wait would be cut; inside it the others answer first.
        |round| answered_or_cut(round, |end| matches!(end, Ok(1 | 3) | Err(_))),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn run() {
    sweep(
        |pool| async move { Scope::new().run(pool.work()).await },
        |round| answered_or_cut(round, |end| matches!(end, Ok(1 | 3) | Err(_))),
    )
    .await;
    let elsewhere = Scope::new();
    sweep(
        |pool| {
            let elsewhere = elsewhere.clone();
            async move { elsewhere.run(pool.work()).await }
        },
        |round| answered_or_cut(round, |end| matches!(end, Ok(1 | 3) | Err(_))),
    )
    .await;
    assert_eq!(live_scopes(&elsewhere), 0);
}

#[tokio::test(start_paused = true)]
async fn timeout() {
    sweep(
        |pool| async move { with_timeout(ms(1000), async { Ok::<_, Infallible>(pool.work().await) }).await },
        |round| answered_or_cut(round, |end| matches!(end, Ok(1 | 3))),
    )
    .await;
    // With a limit of its own that comes in the middle: the plain wait is cut by it, whatever else happens.
    sweep(
        |pool| async move { with_timeout(ms(15), async { Ok::<_, Infallible>(pool.work().await) }).await },
        |round| answered_or_cut(round, |end| matches!(end, Ok(1) | Err(TimeoutError::Elapsed(_)))),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn timeout_handle() {
    sweep(
        |pool| async move {
            let call = with_timeout_handle(ms(5), |timeout| async move {
                timeout.reschedule(ms(1000)).unwrap();
                Ok::<_, Infallible>(pool.work().await)
            });
            call.grace(ms(100)).await
        },
        |round| answered_or_cut(round, |end| matches!(end, Ok(1 | 3))),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn section() {
    sweep(
        |pool| async move { cleanup(ms(1000), pool.work()).await },
        // No request reaches the inside, and it is not cut.
        |round| match &round.end {
            End::Finished(end) => assert_eq!(*end, Ok(2)),
            end => assert!(matches!(end, End::Dropped)),
        },
    )
    .await;
    // One whose own limit comes in the middle.
    sweep(
        |pool| async move { cleanup(ms(15), pool.work()).await },
        |round| match &round.end {
            End::Finished(end) => assert!(end.is_err()),
            end => assert!(matches!(end, End::Dropped)),
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn nested_sections() {
    let work = |pool: Pool| async move {
        let first = cleanup(ms(100), cleanup(ms(50), pool.work())).await;
        let second = cleanup(ms(100), pool.work()).await;
        (first, second)
    };
    sweep(work, |round| match &round.end {
        End::Finished(ends) => assert_eq!(*ends, (Ok(Ok(2)), Ok(2))),
        end => assert!(matches!(end, End::Dropped)),
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn without_a_deadline() {
    sweep(
        |pool| async move { without_deadline(pool.work()).await },
        // The checkpoint at the end does not look at the deadline around: its result may come first.
        |round| answered_or_cut(round, |end| matches!(end, 1..=3)),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn in_scope() {
    let elsewhere = Scope::new();
    sweep(
        |pool| {
            let elsewhere = elsewhere.clone();
            async move { pool.work().in_scope(&elsewhere).await }
        },
        |round| answered_or_cut(round, |end| matches!(end, 1 | 3)),
    )
    .await;
    assert_eq!(live_scopes(&elsewhere), 0);
    assert_eq!(elsewhere.tree().registrations, 0);
    sweep(
        |pool| async move { pool.work().in_current_scope().await },
        |round| answered_or_cut(round, |end| matches!(end, 1 | 3)),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn cut() {
    sweep(
        |pool| async move { Deadline::after(ms(1000)).cut(pool.work()).await },
        |round| answered_or_cut(round, |end| matches!(end, Ok(1 | 3))),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_and_stopping() {
    let elsewhere = Scope::new();
    let waits = |pool: Pool| {
        let elsewhere = elsewhere.clone();
        async move {
            tokio::select! {
                _ = elsewhere.cancelled() => 7,
                () = elsewhere.stopping() => 8,
                done = pool.work() => done,
            }
        }
    };
    sweep(waits, |round| answered_or_cut(round, |end| matches!(end, 1 | 3))).await;
    assert_eq!(elsewhere.tree().registrations, 0, "given back at every point");
    // A wait for the end of the very scope that is swept.
    let own = Sweep::new(|| async {
        let scope = Scope::current().unwrap();
        tokio::select! {
            cancelled = scope.cancelled() => cancelled.to_string(),
            () = sleep(ms(10)) => String::new(),
        }
    })
    .run(|round| {
        if let End::Finished(said) = round.end {
            assert!(said.starts_with("cancelled: "));
        }
    })
    .await;
    assert_eq!(own.points(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint() {
    let swept = Sweep::new(|| async {
        for done in 0..5 {
            if checkpoint().await.is_err() {
                return done;
            }
        }
        5
    })
    .run(|round| {
        if let Some(done) = round.end.finished() {
            assert_eq!(done, round.poll - 1, "the checkpoint that waits answers");
        }
    })
    .await;
    assert_eq!(swept.points(), 15);
}

#[tokio::test(start_paused = true)]
async fn all_of_them_together_and_under_other_wakers() {
    let work = |pool: Pool| async move {
        let mut calls: FuturesUnordered<_> = (0..3)
            .map(|n| {
                let pool = pool.clone();
                async move {
                    let inner = async { Ok::<_, Infallible>(sleep(ms(10 * n)).or_cancelled().await.is_ok()) };
                    let done = with_timeout(ms(500), inner).await;
                    let after = cleanup(ms(500), pool.0.acquire()).await.is_ok();
                    (done, Scope::new().run(sleep(ms(5))).await.is_ok(), after)
                }
            })
            .collect();
        let mut sections = 0;
        while let Some((_, _, after)) = calls.next().await {
            sections += u32::from(after);
        }
        sections
    };
    let points = sweep(work, |round| match &round.end {
        End::Finished(sections) => assert_eq!(*sections, 3),
        end => assert!(matches!(end, End::Dropped)),
    })
    .await;
    assert!(points >= 9);
}
