//! What one writes by hand on tokio to have named tasks that fail, are cancelled and are accounted for:
//! a `JoinSet`, a child token for every task, and a map from task ids to names.
//!
//! It has less than a `TaskGroup` (no deferred closers, no last wait, no deadline, no owner for tasks whose set
//! is dropped), and nothing that is not needed.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::panic::Location;

use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Who a task is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    pub(crate) name: &'static str,
    pub(crate) site: &'static Location<'static>,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.site)
    }
}

/// How everything ended.
#[derive(Debug, Default)]
pub(crate) struct Report<T> {
    pub(crate) results: Vec<(Who, T)>,
    pub(crate) failures: Vec<(Who, BoxError)>,
    pub(crate) cancelled: Vec<Who>,
}

impl<T> Report<T> {
    pub(crate) fn ended(&self) -> usize {
        self.results.len() + self.failures.len() + self.cancelled.len()
    }
}

/// Tasks with one owner, made by hand.
#[derive(Debug)]
pub(crate) struct Handwritten<T> {
    tasks: JoinSet<Option<Result<T, BoxError>>>,
    token: CancellationToken,
    names: HashMap<Id, Who>,
}

impl<T: Send + 'static> Handwritten<T> {
    pub(crate) fn new() -> Self {
        Self { tasks: JoinSet::new(), token: CancellationToken::new(), names: HashMap::new() }
    }

    #[track_caller]
    pub(crate) fn spawn(
        &mut self,
        name: &'static str,
        future: impl Future<Output = Result<T, BoxError>> + Send + 'static,
    ) {
        let token = self.token.child_token();
        let task = self.tasks.spawn(async move { token.run_until_cancelled(future).await });
        self.names.insert(task.id(), Who { name, site: Location::caller() });
    }

    pub(crate) fn cancel(&self) {
        self.token.cancel();
    }

    /// Waits for all. The first failure cancels the others.
    pub(crate) async fn join(mut self) -> Report<T> {
        let mut report = Report { results: Vec::new(), failures: Vec::new(), cancelled: Vec::new() };
        while let Some(ended) = self.tasks.join_next_with_id().await {
            let id = ended.as_ref().map_or_else(|error| error.id(), |(id, _)| *id);
            let who = self.names.remove(&id).expect("every task has a name");
            let failure: BoxError = match ended {
                Ok((_, Some(Ok(value)))) => {
                    report.results.push((who, value));
                    continue;
                }
                Ok((_, None)) => {
                    report.cancelled.push(who);
                    continue;
                }
                Ok((_, Some(Err(error)))) => error,
                Err(panic) => panic.into(),
            };
            report.failures.push((who, failure));
            self.cancel();
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failure_cancels_the_others_and_all_are_accounted_for() {
        let mut tasks = Handwritten::new();
        tasks.spawn("quick", async { Ok(1) });
        tasks.spawn("stuck", std::future::pending());
        tasks.spawn("broken", async { Err("broken".into()) });
        let report = tasks.join().await;
        assert_eq!(report.ended(), 3);
        assert_eq!((report.results[0].0.name, report.results[0].1), ("quick", 1));
        assert_eq!(report.cancelled[0].name, "stuck");
        assert!(
            report.failures[0].0.to_string().contains("broken (crates/stoppable-bench/src/handwritten.rs")
        );
    }
}
