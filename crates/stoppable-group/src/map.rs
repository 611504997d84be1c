use std::future::Future;
use std::panic::Location;

use stoppable_scope::ok;

use crate::group_error::GroupError;
use crate::handles::Handles;
use crate::spawn_when_free::free_place;
use crate::task_group::TaskGroup;
use crate::task_output::TaskOutput;

impl TaskGroup {
    /// Runs `work` for every item, at most `limit` at a time, and gives the values in the order of the items.
    ///
    /// The iterator is advanced only when there is a place, so an endless source or a large one costs no memory
    /// ahead of time. The first failure cancels the rest. It is a group of its own, below the scope around it.
    ///
    /// # Compared with
    ///
    /// `futures::stream::buffered` polls all in one task; here each is a task that runs on any worker thread.
    /// Go's `errgroup` with `SetLimit` and Java's `StructuredTaskScope` are alike. Where results of different
    /// types are needed, or each as it comes, spawn into a group and use handles or [`Handles`].
    ///
    /// # Cancel safety
    ///
    /// As [`TaskGroup::run`].
    ///
    /// # Errors
    ///
    /// [`GroupError`].
    ///
    /// # Panics
    ///
    /// If `limit` is 0, or outside of a tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_group::{TaskGroup, ok};
    ///
    /// let lengths = TaskGroup::map(["a", "bb", "ccc"], 2, |word| async move { ok(word.len()) });
    /// assert_eq!(lengths.await.unwrap(), [1, 2, 3]);
    /// # }
    /// ```
    #[track_caller]
    pub fn map<I, W, F, M>(
        items: I,
        limit: usize,
        mut work: W,
    ) -> impl Future<Output = Result<Vec<<F::Output as TaskOutput<M>>::Value>, GroupError>>
    where
        I: IntoIterator,
        W: FnMut(I::Item) -> F,
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        let site = Location::caller();
        Self::builder().name("map").limit(limit).run(move |group| async move {
            let mut items = items.into_iter();
            let mut handles = Handles::new();
            loop {
                // First the place, then the item, for it may be costly to get or to lose.
                let place = free_place(group.core().places.clone()).await?;
                let Some(item) = items.next() else { break };
                handles.push(group.task_at(site).spawn_in(place, work(item)));
            }
            ok(handles.collect().await?)
        })
    }
}
