use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use stoppable_scope::{Deadline, Scope, with_timeout_handle};

use crate::counted::{Count, Counted};
use crate::end::End;
use crate::intervention::Intervention;
use crate::live_scopes::live_scopes;
use crate::round::Round;
use crate::swept::Swept;

/// Runs a future again and again, and intervenes at each of its waits in turn.
///
/// In the k-th round of an [`Intervention`] the future runs undisturbed until it has been polled k times
/// and still waits; there it is dropped, cancelled or expired, and driven to its end. Then your check looks
/// at what is left. The sweep ends when the future finishes before its k-th wait.
///
/// The future runs in the task that awaits [`run`](Self::run), so time passes and other tasks run while it
/// waits; under paused time the clock advances by itself and a sweep takes no time. It has a scope of its
/// own, which is what is cancelled; around it the deadline is what expires.
///
/// # Examples
///
/// A future that holds something over an await, and gives it back however it ends:
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use stoppable_test::Sweep;
/// use tokio::sync::Semaphore;
///
/// let permits = Arc::new(Semaphore::new(1));
/// let swept = Sweep::new(|| async {
///     let _permit = permits.acquire().await;
///     tokio::time::sleep(Duration::from_secs(1)).await;
/// })
/// .run(|round| assert_eq!(permits.available_permits(), 1, "{round:?}"))
/// .await;
/// assert_eq!(swept.points(), 3);
/// # }
/// ```
#[must_use = "a sweep does nothing until it is run"]
pub struct Sweep<M> {
    make: M,
    interventions: Vec<Intervention>,
    max_polls: usize,
    patience: Duration,
}

impl Sweep<()> {
    /// Sweeps the futures that `make` gives, a fresh one for each round.
    pub fn new<F: Future>(mut make: impl FnMut() -> F) -> Sweep<impl FnMut() -> ((), F)> {
        Self::with_state(move || ((), make()))
    }

    /// Like [`new`](Self::new), for futures that share something with the check: `make` gives a fresh state
    /// and a fresh future for each round, and the check gets the state in [`Round::state`].
    pub fn with_state<S, F: Future, M: FnMut() -> (S, F)>(make: M) -> Sweep<M> {
        Sweep {
            make,
            interventions: Intervention::ALL.to_vec(),
            max_polls: 10_000,
            patience: Duration::from_secs(600),
        }
    }
}

impl<M> Sweep<M> {
    /// Only these interventions, in this order. Without it all three, in the order of
    /// [`Intervention::ALL`].
    pub fn only(mut self, interventions: impl IntoIterator<Item = Intervention>) -> Self {
        self.interventions = interventions.into_iter().collect();
        self
    }

    /// How often the future may be polled in one round before the sweep gives up; 10 000 if not set.
    pub fn max_polls(mut self, max_polls: usize) -> Self {
        self.max_polls = max_polls;
        self
    }

    /// How long one round may take by tokio's clock before the sweep gives up; 10 minutes if not set. Under
    /// paused time it costs nothing, so set more for work that sleeps longer.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Runs the sweep. `check` looks at each round and asserts.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the future of the round that is running. It is not a stoppable wait: the test owns
    /// it.
    ///
    /// # Panics
    ///
    /// When a future neither ends nor comes to its next wait within the limits, and outside of a tokio
    /// runtime with time enabled. Where the check or the future panics, the round is named on stderr.
    pub async fn run<S, F>(mut self, mut check: impl FnMut(Round<F::Output, S>)) -> Swept
    where
        F: Future,
        M: FnMut() -> (S, F),
    {
        let mut swept = Swept::default();
        for intervention in std::mem::take(&mut self.interventions) {
            for poll in 1.. {
                let named = NamedOnPanic { intervention, poll };
                let (state, future) = (self.make)();
                let Some((end, live_scopes)) = self.round(future, &named).await else { break };
                check(Round { intervention, poll, end, state, live_scopes });
                swept.count(intervention);
                // The next round begins on a fresh budget, and after whatever this one has woken.
                tokio::task::yield_now().await;
            }
        }
        swept
    }

    /// How the future ended and how many scopes it left; `None` if it finished before the point was reached.
    async fn round<F: Future>(&self, future: F, point: &NamedOnPanic) -> Option<(End<F::Output>, usize)> {
        let scope = Scope::named("sweep");
        let count = Count::default();
        let counted = Counted::new(future, count.clone());
        let mut timeout = None;
        let timed = with_timeout_handle(Deadline::never(), |handle| {
            timeout = Some(handle);
            async { Ok::<_, Infallible>(counted.await) }
        });
        let timeout = timeout?;
        let mut work = Box::pin(scope.run(timed));
        let mut patience = pin!(tokio::time::sleep(self.patience));
        let mut reached = false;
        let end = poll_fn(|cx| {
            let stage = if reached { "did not end after it" } else { "neither ended nor waited so often" };
            let patient = patience.as_mut().poll(cx).is_pending();
            assert!(patient, "{point}: within {:?} the future {stage}", self.patience);
            assert!(
                count.get() <= self.max_polls,
                "{point}: within {} polls the future {stage}",
                self.max_polls
            );
            if let Poll::Ready(ended) = work.as_mut().poll(cx) {
                return Poll::Ready(match ended {
                    Ok(Ok(output)) => End::Finished(output),
                    _ => End::Cut,
                });
            }
            if !reached && count.get() >= point.poll {
                reached = true;
                match point.intervention {
                    Intervention::Drop => return Poll::Ready(End::Dropped),
                    Intervention::Cancel => scope.cancel("swept"),
                    Intervention::Expire => {
                        let moved = timeout.reschedule(Deadline::after(Duration::ZERO));
                        debug_assert!(moved.is_ok(), "it is running, and had no limit");
                    }
                }
            }
            Poll::Pending
        })
        .await;
        drop(work);
        reached.then(|| (end, live_scopes(&timeout.scope())))
    }
}

impl<M> fmt::Debug for Sweep<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweep")
            .field("interventions", &self.interventions)
            .field("max_polls", &self.max_polls)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// The point of one round. Says where the sweep was when something in it panics.
struct NamedOnPanic {
    intervention: Intervention,
    poll: usize,
}

impl fmt::Display for NamedOnPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sweep: {} at pending poll {}", self.intervention, self.poll)
    }
}

impl Drop for NamedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{self}");
        }
    }
}
