use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use stoppable_scope::machinery::{ambient_node, request_in};
use stoppable_scope::{Cancelled, OrCancelledExt, TaskError, checkpoint};
use tokio::time::{Instant, sleep};

use crate::catch::{catch, panic_error};
use crate::task_output::TaskOutput;

/// How often a piece of work may be started again: at most `max` times within `period`. More often means that
/// starting again does not help, and the failure goes up.
///
/// # Compared with a retry, and with Erlang's supervisors
///
/// A retry is for one call that may fail: it counts attempts and ends with a value. This is for work that should run
/// as long as the program: failures long past do not count. Mostly such work is a
/// [`service`](crate::TaskBuilder::service), which then needs nobody to end it. Erlang calls the bound the restart
/// intensity; to restart several tasks together run them in a [`TaskGroup`](crate::TaskGroup), and restart that.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use std::time::Duration;
/// use stoppable_group::{Restart, TaskError, TaskGroup, ok};
///
/// static RUNS: AtomicU32 = AtomicU32::new(0);
///
/// async fn poll_mailbox() -> Result<(), TaskError> {
///     if RUNS.fetch_add(1, Relaxed) < 2 { Err("connection reset")? }
///     Ok(())
/// }
///
/// TaskGroup::run(|group| async move {
///     let restart = Restart::at_most(5, Duration::from_secs(60)).delay(Duration::from_millis(100));
///     group.task("mailbox").spawn(restart.run(poll_mailbox));
///     ok(())
/// })
/// .await
/// .unwrap();
/// assert_eq!(RUNS.load(Relaxed), 3);
/// # }
/// ```
#[must_use = "a restart policy does nothing until `run`"]
pub struct Restart {
    max: usize,
    period: Duration,
    delays: Box<dyn FnMut(usize) -> Duration + Send>,
}

/// Why a piece of work is not started again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestartError {
    /// It was cancelled.
    #[error("{0}")]
    Cancelled(#[source] Cancelled),
    /// It has failed too often, or while it was being cancelled; this is the last failure.
    #[error("given up after {restarts} restarts within {period:?}: {last}")]
    GivenUp {
        /// How often it was started again within the period.
        restarts: usize,
        /// The period.
        period: Duration,
        /// How it failed last.
        #[source]
        last: TaskError,
    },
}

impl Restart {
    /// At most `max` restarts within any `period`, without a delay. `0` never starts again.
    pub fn at_most(max: usize, period: Duration) -> Self {
        Self { max, period, delays: Box::new(|_| Duration::ZERO) }
    }

    /// Waits for `delay` before each restart. A stoppable wait.
    pub fn delay(self, delay: Duration) -> Self {
        self.backoff(move |_| delay)
    }

    /// Waits before each restart for what `delay` says; it gets the number of restarts within the period so far.
    /// A well-kept source of such delays is the `backon` crate.
    pub fn backoff(mut self, delay: impl FnMut(usize) -> Duration + Send + 'static) -> Self {
        self.delays = Box::new(delay);
        self
    }

    /// Runs what `make` makes, again and again until it ends `Ok`, is cancelled, or fails too often. An error
    /// and a panic count alike. The delay before a restart is a stoppable wait; what fails while the scope is being
    /// cancelled is not started again.
    ///
    /// # Cancel safety
    ///
    /// That of the work.
    ///
    /// # Errors
    ///
    /// [`RestartError`].
    pub async fn run<W, F, M>(
        mut self,
        mut make: W,
    ) -> Result<<F::Output as TaskOutput<M>>::Value, RestartError>
    where
        W: FnMut() -> F,
        F: Future,
        F::Output: TaskOutput<M>,
    {
        let mut restarts: Vec<Instant> = Vec::new();
        loop {
            let last = match once(&mut make).await {
                Ok(output) => {
                    if let Some(cancelled) = output.as_error().and_then(cancellation) {
                        return Err(RestartError::Cancelled(cancelled));
                    }
                    match output.into_result() {
                        Ok(value) => return Ok(value),
                        Err(error) => error,
                    }
                }
                Err(panic) => panic,
            };
            let now = Instant::now();
            restarts.retain(|at| now.saturating_duration_since(*at) < self.period);
            // What fails while it is being cancelled is not started again, and its failure must not be lost.
            let leaving = ambient_node().is_some_and(|node| node.effective_request().is_some());
            if leaving || restarts.len() >= self.max {
                let (restarts, period) = (restarts.len(), self.period);
                return Err(RestartError::GivenUp { restarts, period, last });
            }
            let delay = (self.delays)(restarts.len());
            tracing::debug!(restarts = restarts.len(), ?delay, "starting again after: {last}");
            let waited = match delay {
                // Lets the others have their turn, also where the work never waits.
                Duration::ZERO => checkpoint().await,
                delay => sleep(delay).or_cancelled().await,
            };
            waited.map_err(RestartError::Cancelled)?;
            restarts.push(Instant::now());
        }
    }
}

/// One run, with its panic as an error.
async fn once<F: Future>(make: &mut impl FnMut() -> F) -> Result<F::Output, TaskError> {
    let mut future = pin!(Some(catch(make).map_err(panic_error)?));
    poll_fn(|cx| {
        let Some(running) = future.as_mut().as_pin_mut() else { unreachable!("polled until it is ready") };
        let end = match catch(|| running.poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(payload),
        };
        // Its destructors are the work's too.
        let dropped = catch(|| future.set(None));
        Poll::Ready(end.and_then(|output| dropped.map(|()| output)).map_err(panic_error))
    })
    .await
}

/// A cancellation that names the scope in which this runs, or one above.
fn cancellation(error: &(dyn std::error::Error + 'static)) -> Option<Cancelled> {
    let node = ambient_node()?;
    let request = request_in(error).filter(|request| node.is_within(request.scope()))?;
    Some(Cancelled::new(request.clone()))
}

impl fmt::Debug for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restart")
            .field("max", &self.max)
            .field("period", &self.period)
            .finish_non_exhaustive()
    }
}
