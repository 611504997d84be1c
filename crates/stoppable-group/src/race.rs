use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use stoppable_scope::{TaskError, ok};
use tokio::time::{Instant, timeout_at};

use crate::group_error::GroupError;
use crate::handles::Handles;
use crate::policy::Policy;
use crate::task_group::TaskGroup;
use crate::task_output::TaskOutput;

/// Runs all at once and gives the value of the first that succeeds; the rest is cancelled and waited for.
///
/// It is a group with [`Policy::FirstSuccess`]; write that yourself where the body has something to say too, or where
/// the results are of different types. If several succeed at the same instant, one of them wins, not certainly the
/// first in the list.
///
/// # Compared with `select!` and `select_ok`
///
/// - `tokio::select!` takes the first that *ends*, and drops the losers where they are: take it for waits that have
///   nothing to clean up. Here the losers are asked, run their cleanup sections, and are waited for.
/// - `futures::future::select_ok` polls all in one task and forgets all errors but the last; here each is a task, and
///   all are in the error.
/// - Java's `StructuredTaskScope` with `anySuccessfulResultOrThrow` is the model.
///
/// # Cancel safety
///
/// As [`TaskGroup::run`].
///
/// # Errors
///
/// [`GroupError`] with all failures if none succeeds, also if there are none to run. If it is cancelled before one
/// has, those that had failed are the error; [`is_cancelled`](GroupError::is_cancelled) is it only without any.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use stoppable_group::{TaskError, race};
///
/// async fn mirror(name: &'static str, ms: u64) -> Result<&'static str, TaskError> {
///     tokio::time::sleep(Duration::from_millis(ms)).await;
///     if name == "broken" { Err("no route")? }
///     Ok(name)
/// }
///
/// let fastest = race([mirror("far", 300), mirror("broken", 10), mirror("near", 30)]).await;
/// assert_eq!(fastest.unwrap(), "near");
/// # }
/// ```
#[track_caller]
pub fn race<I, F, M>(
    futures: I,
) -> impl Future<Output = Result<<F::Output as TaskOutput<M>>::Value, GroupError>>
where
    I: IntoIterator<Item = F>,
    F: Future + Send + 'static,
    F::Output: TaskOutput<M, Value: Send> + Send,
    M: 'static,
{
    let site = Location::caller();
    TaskGroup::builder().name("race").policy(Policy::FirstSuccess).run(move |group| async move {
        let mut runners = Handles::new();
        for future in futures {
            runners.push(group.task_at(site).spawn(future));
        }
        let mut last = TaskError::from("a race of nobody has no winner");
        while let Some((_, result)) = runners.join_next_at(site).await? {
            match result {
                Ok(value) => return ok(value),
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    })
}

/// Starts a further attempt whenever the ones that run have not succeeded for `delay`, at most `attempts` in
/// all, or at once when they have all failed; gives the first value and cancels the rest.
///
/// For calls whose slowest few are much slower than the rest, and that may safely be made twice. `attempt` gets
/// the number of the attempt, from 0. A `delay` of zero starts all at once.
///
/// # Compared with `race` and with a retry
///
/// [`race`] starts all at once: take it where they differ, or where the first answer counts more than the load. A
/// retry starts the next only when the last has failed; this also when it is slow, and so makes more calls.
///
/// # Cancel safety
///
/// As [`TaskGroup::run`].
///
/// # Errors
///
/// [`GroupError`] with all failures if none succeeds.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use stoppable_group::{hedge, ok};
///
/// let answer = hedge(3, Duration::from_millis(50), |attempt| async move {
///     // The first server hangs.
///     let ms = if attempt == 0 { 10_000 } else { 20 };
///     tokio::time::sleep(Duration::from_millis(ms)).await;
///     ok(attempt)
/// });
/// assert_eq!(answer.await.unwrap(), 1);
/// # }
/// ```
#[track_caller]
pub fn hedge<W, F, M>(
    attempts: usize,
    delay: Duration,
    mut attempt: W,
) -> impl Future<Output = Result<<F::Output as TaskOutput<M>>::Value, GroupError>>
where
    W: FnMut(usize) -> F,
    F: Future + Send + 'static,
    F::Output: TaskOutput<M, Value: Send> + Send,
    M: 'static,
{
    let site = Location::caller();
    TaskGroup::builder().name("hedge").policy(Policy::FirstSuccess).run(move |group| async move {
        let mut runners = Handles::new();
        let mut last = TaskError::from("a hedge without attempts has no answer");
        for number in 0..attempts {
            runners.push(group.task_at(site).spawn(attempt(number)));
            let last_one = number + 1 == attempts;
            let patience = if last_one { None } else { Instant::now().checked_add(delay) };
            loop {
                // A plain timeout serves: it polls first, and what it drops is a wait that loses nothing.
                let next = match patience {
                    Some(at) => timeout_at(at, runners.join_next_at(site)).await,
                    None => Ok(runners.join_next_at(site).await),
                };
                let Ok(next) = next else { break };
                match next? {
                    Some((_, Ok(value))) => return ok(value),
                    Some((_, Err(error))) => last = error.into(),
                    None => break,
                }
            }
        }
        Err(last)
    })
}
