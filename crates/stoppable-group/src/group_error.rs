use std::error::Error;
use std::fmt;

use stoppable_scope::{Cancelled, Name, TaskError, TimeoutError};

use crate::task_failure::TaskFailure;

/// How a group ended without a value: all failures of its tasks, or a cancellation.
///
/// One failure stays an aggregate of one. Failures stand in the order in which the tasks ended, the body
/// last. It prints as a tree, since a failure may be the error of a nested group; `{:?}` prints the same, for
/// that is what a `main` shows that returns it, and `{:#?}` the fields. asyncio's
/// `ExceptionGroup` is the model, and [`split`](Self::split) is its `except*`.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_group::{TaskError, TaskGroup};
///
/// let error = TaskGroup::run(|group| async move {
///     group.task("parse").spawn(async { Ok::<i32, TaskError>("x".parse::<i32>()?) });
///     Ok(())
/// })
/// .await
/// .unwrap_err();
/// assert_eq!(error.failures()[0].name(), "parse");
/// assert!(error.find::<std::num::ParseIntError>().is_some());
/// # }
/// ```
#[derive(Clone)]
pub struct GroupError {
    name: Name,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Never empty.
    Failed(Vec<TaskFailure>),
    Cancelled(Cancelled),
}

impl GroupError {
    pub(crate) fn failed(name: Name, failures: Vec<TaskFailure>) -> Self {
        debug_assert!(!failures.is_empty(), "a group fails with something");
        Self { name, kind: Kind::Failed(failures) }
    }

    pub(crate) fn cancelled_by(name: Name, cancelled: Cancelled) -> Self {
        Self { name, kind: Kind::Cancelled(cancelled) }
    }

    /// The name of the group.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Whether the group was only cancelled: nothing in it has failed.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled().is_some()
    }

    /// The cancellation, if nothing has failed.
    pub fn cancelled(&self) -> Option<&Cancelled> {
        match &self.kind {
            Kind::Cancelled(cancelled) => Some(cancelled),
            Kind::Failed(_) => None,
        }
    }

    /// All failures; empty if the group was only cancelled.
    pub fn failures(&self) -> &[TaskFailure] {
        match &self.kind {
            Kind::Failed(failures) => failures,
            Kind::Cancelled(_) => &[],
        }
    }

    /// All failures, by value.
    pub fn into_failures(self) -> Vec<TaskFailure> {
        match self.kind {
            Kind::Failed(failures) => failures,
            Kind::Cancelled(_) => Vec::new(),
        }
    }

    /// All failures, with the error of a nested group replaced by its failures, at any depth.
    pub fn flatten(&self) -> Vec<TaskFailure> {
        let mut flat = Vec::new();
        let mut rest: Vec<TaskFailure> = self.failures().iter().rev().cloned().collect();
        while let Some(failure) = rest.pop() {
            match nested(&failure) {
                Some(nested) => rest.extend(nested.failures().iter().rev().cloned()),
                None => flat.push(failure),
            }
        }
        flat
    }

    /// The first error of type `E` in any failure, nested groups included.
    pub fn find<E: Error + 'static>(&self) -> Option<&E> {
        self.failures()
            .iter()
            .find_map(|failure| failure.downcast_ref().or_else(|| nested(failure).and_then(Self::find)))
    }

    /// Takes apart what failed with an `E` from the rest, as `except*` does.
    ///
    /// The first part are the failures whose error is an `E` or has one among its sources, those of nested
    /// groups included. The second is the error without them, nested as before, if anything is left.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_group::{Policy, TaskError, TaskGroup};
    ///
    /// let error = TaskGroup::builder()
    ///     .policy(Policy::Supervise)
    ///     .run(|group| async move {
    ///         group.spawn(async { Err::<(), _>(std::io::Error::other("disk")) });
    ///         group.spawn(async { Err::<(), _>(TaskError::from("other")) });
    ///         Ok(())
    ///     })
    ///     .await
    ///     .unwrap_err();
    /// let (disk, rest) = error.split::<std::io::Error>();
    /// assert_eq!(disk.len(), 1);
    /// assert_eq!(rest.unwrap().failures().len(), 1);
    /// # }
    /// ```
    pub fn split<E: Error + 'static>(self) -> (Vec<TaskFailure>, Option<Self>) {
        let name = self.name;
        match self.kind {
            Kind::Cancelled(_) => (Vec::new(), Some(Self { name, kind: self.kind })),
            Kind::Failed(failures) => {
                let (mut hit, mut rest) = (Vec::new(), Vec::new());
                for failure in failures {
                    let itself = failure.error().is_some_and(|error| error.is::<E>());
                    match nested(&failure).filter(|_| !itself) {
                        Some(nested) => {
                            let (inner_hit, inner_rest) = nested.clone().split::<E>();
                            match inner_rest {
                                _ if inner_hit.is_empty() => rest.push(failure),
                                Some(inner_rest) => rest.push(failure.with_error(inner_rest.into())),
                                None => {}
                            }
                            hit.extend(inner_hit);
                        }
                        None if failure.downcast_ref::<E>().is_some() => hit.push(failure),
                        None => rest.push(failure),
                    }
                }
                (hit, (!rest.is_empty()).then(|| Self::failed(name, rest)))
            }
        }
    }

    /// Goes on with the first panic among the failures, for who wants a panic in a task to be a panic of
    /// the program. Gives the error back if there was none.
    ///
    /// # Panics
    ///
    /// With the payload of that panic.
    #[must_use]
    pub fn resume_panic(self) -> Self {
        let payload = self.flatten().iter().find_map(TaskFailure::take_panic);
        match payload {
            Some(payload) => std::panic::resume_unwind(payload),
            None => self,
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, indent: usize) -> fmt::Result {
        let failures = match &self.kind {
            Kind::Cancelled(cancelled) => return write!(f, "group `{}` was {cancelled}", self.name),
            Kind::Failed(failures) => failures,
        };
        let plural = if failures.len() == 1 { "task" } else { "tasks" };
        write!(f, "group `{}`: {} {plural} failed", self.name, failures.len())?;
        for failure in failures {
            write!(f, "\n{:indent$}- ", "", indent = indent)?;
            match nested(failure) {
                Some(nested) => {
                    write!(f, "task `{}` ({}): ", failure.name(), failure.site())?;
                    nested.print(f, indent + 2)?;
                }
                None => write!(f, "{failure} ({})", failure.site())?,
            }
        }
        Ok(())
    }
}

/// The failures of a nested group, where `failure` is its error: also with a timeout around the group, which
/// shows its sources as its own.
fn nested(failure: &TaskFailure) -> Option<&GroupError> {
    let error: &(dyn Error + 'static) = failure.error()?;
    let timed = error.downcast_ref::<TimeoutError<GroupError>>().map(|timed| match timed {
        TimeoutError::Failed(nested) => Some(nested),
        _ => None,
    });
    let boxed = || match error.downcast_ref::<TimeoutError<TaskError>>() {
        Some(TimeoutError::Failed(error)) => error.downcast_ref(),
        _ => None,
    };
    let nested = error.downcast_ref().or(timed.flatten()).or_else(boxed);
    nested.filter(|nested: &&GroupError| !nested.is_cancelled())
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(f, 0)
    }
}

impl fmt::Debug for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return f.debug_struct("GroupError").field("name", &self.name).field("kind", &self.kind).finish();
        }
        self.print(f, 0)
    }
}

impl Error for GroupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::Failed(failures) => failures.first().map(|first| first as &(dyn Error + 'static)),
            Kind::Cancelled(cancelled) => Some(cancelled),
        }
    }
}
