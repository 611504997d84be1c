/// What the end of one task does to the others.
///
/// Which to take: [`FailFast`](Self::FailFast) where the results are needed together, [`Supervise`](Self::Supervise)
/// where each counts by itself (then mostly with
/// [`Handles::collect_results`](crate::Handles::collect_results)), [`FirstSuccess`](Self::FirstSuccess) where one is
/// enough. Java's joiners `awaitAllSuccessfulOrThrow`, `awaitAll` and `anySuccessfulResultOrThrow` are these three.
/// To have a task started again see [`Restart`](crate::Restart).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Policy {
    /// The first failure cancels the siblings and the body at once.
    #[default]
    FailFast,
    /// The others live on; all failures are in the error at the end.
    Supervise,
    /// The first task that ends `Ok` cancels the other tasks, and no more are taken; the body goes on. Failures of
    /// tasks are in the error only if none succeeds. A service or a shielded task does not decide. See
    /// [`race`](crate::race()).
    FirstSuccess,
}
