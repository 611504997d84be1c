/// What the failure of one task does to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Policy {
    /// The first failure cancels the siblings and the body at once.
    #[default]
    FailFast,
    /// The others live on; all failures are in the error at the end.
    Supervise,
    /// The first task that ends `Ok` cancels the other tasks; the body goes on. Failures are in the error only if
    /// no task succeeds. See [`race`](crate::race).
    FirstSuccess,
}
