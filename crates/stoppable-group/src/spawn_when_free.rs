use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use stoppable_scope::{Cancelled, OrCancelled, OrCancelledExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::core::Core;
use crate::task_builder::NewTask;
use crate::task_handle::TaskHandle;
use crate::task_output::TaskOutput;
use crate::task_root::Kind;

pub(crate) type Acquire = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

/// The future of [`TaskGroup::spawn_when_free`](crate::TaskGroup::spawn_when_free).
#[must_use = "nothing is spawned until this is awaited"]
pub struct SpawnWhenFree<F, M> {
    task: Option<(F, Arc<Core>, NewTask, Kind)>,
    place: OrCancelled<Acquire>,
    marker: PhantomData<fn() -> M>,
}

impl<F, M> SpawnWhenFree<F, M> {
    #[track_caller]
    pub(crate) fn new(
        future: F,
        core: Arc<Core>,
        task: NewTask,
        kind: Kind,
        places: Option<Arc<Semaphore>>,
    ) -> Self {
        Self { task: Some((future, core, task, kind)), place: free_place(places), marker: PhantomData }
    }
}

/// Waits for a place, where they are limited.
#[track_caller]
pub(crate) fn free_place(places: Option<Arc<Semaphore>>) -> OrCancelled<Acquire> {
    let place: Acquire = Box::pin(async move {
        match places {
            Some(places) => places.acquire_owned().await.ok(),
            None => None,
        }
    });
    place.or_cancelled()
}

impl<F, M> Unpin for SpawnWhenFree<F, M> {}

impl<F, M> Future for SpawnWhenFree<F, M>
where
    F: Future + Send + 'static,
    F::Output: TaskOutput<M, Value: Send> + Send,
    M: 'static,
{
    type Output = Result<TaskHandle<<F::Output as TaskOutput<M>>::Value>, Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let place = ready!(Pin::new(&mut self.place).poll(cx))?;
        let Some((future, core, task, kind)) = self.task.take() else {
            panic!("`SpawnWhenFree` polled after it was ready")
        };
        Poll::Ready(Ok(task.start(&core, future, kind, place)))
    }
}

impl<F, M> fmt::Debug for SpawnWhenFree<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnWhenFree").finish_non_exhaustive()
    }
}
