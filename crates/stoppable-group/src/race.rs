use std::future::Future;
use std::time::Duration;

use stoppable_scope::{Deadline, TaskError, ok};

use crate::group_error::GroupError;
use crate::handles::Handles;
use crate::policy::Policy;
use crate::task_group::TaskGroup;
use crate::task_output::TaskOutput;

/// Runs all at once and gives the value of the first that succeeds; the rest is cancelled and waited for.
///
/// It is a group with [`Policy::FirstSuccess`]. Java's `ShutdownOnSuccess` and Kotlin's `select` over `async`
/// are alike; `tokio::select!` drops the losers where they are and knows no owner.
///
/// # Cancel safety
///
/// As [`TaskGroup::run`].
///
/// # Errors
///
/// [`GroupError`] with all failures if none succeeds, also if there are none to run.
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
pub async fn race<I, F, M>(futures: I) -> Result<<F::Output as TaskOutput<M>>::Value, GroupError>
where
    I: IntoIterator<Item = F>,
    F: Future + Send + 'static,
    F::Output: TaskOutput<M, Value: Send> + Send,
    M: 'static,
{
    let race = TaskGroup::builder().name("race").policy(Policy::FirstSuccess).run(|group| async move {
        let mut runners: Handles<_> = futures.into_iter().map(|future| group.spawn(future)).collect();
        let mut last = TaskError::from("a race of nobody has no winner");
        while let Some((_, result)) = runners.join_next().await? {
            match result {
                Ok(value) => return ok(value),
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    });
    race.await
}

/// Starts a further attempt whenever the ones that run have not succeeded for `delay`, at most `attempts` in
/// all, or at once when they have all failed; gives the first value and cancels the rest.
///
/// For calls whose slowest few are much slower than the rest, and that may safely be made twice. `attempt` gets
/// the number of the attempt, from 0.
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
pub async fn hedge<W, F, M>(
    attempts: usize,
    delay: Duration,
    mut attempt: W,
) -> Result<<F::Output as TaskOutput<M>>::Value, GroupError>
where
    W: FnMut(usize) -> F,
    F: Future + Send + 'static,
    F::Output: TaskOutput<M, Value: Send> + Send,
    M: 'static,
{
    let hedge = TaskGroup::builder().name("hedge").policy(Policy::FirstSuccess).run(|group| async move {
        let mut runners = Handles::new();
        let mut last = TaskError::from("a hedge without attempts has no answer");
        for number in 0..attempts {
            runners.push(group.spawn(attempt(number)));
            let last_one = number + 1 == attempts;
            let patience = if last_one { Deadline::never() } else { Deadline::after(delay) };
            // What the cut drops is a wait that loses nothing.
            while let Ok(next) = patience.cut(runners.join_next()).await {
                match next? {
                    Some((_, Ok(value))) => return ok(value),
                    Some((_, Err(error))) => last = error.into(),
                    None => break,
                }
            }
        }
        Err(last)
    });
    hedge.await
}
