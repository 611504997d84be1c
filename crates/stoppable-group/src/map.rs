use std::future::Future;

use stoppable_scope::ok;

use crate::group_error::GroupError;
use crate::handles::Handles;
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
    pub async fn map<I, W, F, M>(
        items: I,
        limit: usize,
        mut work: W,
    ) -> Result<Vec<<F::Output as TaskOutput<M>>::Value>, GroupError>
    where
        I: IntoIterator,
        W: FnMut(I::Item) -> F,
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        let map = Self::builder().name("map").limit(limit).run(|group| async move {
            let mut handles = Handles::new();
            for item in items {
                handles.push(group.spawn_when_free(work(item)).await?);
            }
            ok(handles.collect().await?)
        });
        map.await
    }
}
