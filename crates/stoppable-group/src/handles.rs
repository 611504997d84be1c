use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use stoppable_scope::{Cancelled, Deadline};
use tokio::time::timeout_at;

use crate::catch::wake_all;
use crate::handle_error::HandleError;
use crate::join_next::JoinNext;
use crate::task_handle::TaskHandle;

/// Several handles of one type: to be taken as they finish, or together in the order of spawning.
///
/// It holds handles, not tasks: dropping it cancels nothing, for the group owns the tasks. Collect it from an
/// iterator, or [`push`](Self::push) to it.
///
/// # Compared with
///
/// - `JoinSet` and `FuturesUnordered` own the work and hand out results; here the group owns it, and tasks of
///   different types can live in it. asyncio's `as_completed` is [`join_next`](Self::join_next), its `gather`
///   is [`collect`](Self::collect), its `wait(timeout=..)` is [`collect_by`](Self::collect_by). Unlike that
///   `gather`, a failure also cancels the other tasks, by the policy of their group.
/// - For a bounded number of tasks at a time over an iterator take [`TaskGroup::map`](crate::TaskGroup::map).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use stoppable_group::{Handles, TaskGroup, ok};
///
/// TaskGroup::run(|group| async move {
///     let mut waits: Handles<u64> = [30, 10, 20]
///         .into_iter()
///         .map(|ms| group.spawn(async move {
///             tokio::time::sleep(Duration::from_millis(ms)).await;
///             ok(ms)
///         }))
///         .collect();
///     let mut seen = Vec::new();
///     while let Some((position, ms)) = waits.join_next().await? {
///         seen.push((position, ms?));
///     }
///     assert_eq!(seen, [(1, 10), (2, 20), (0, 30)]);
///     ok(())
/// })
/// .await
/// .unwrap();
/// # }
/// ```
pub struct Handles<T> {
    /// By position; those whose result was taken are gone.
    entries: BTreeMap<usize, Entry<T>>,
    pushed: usize,
    ready: Arc<Ready>,
}

struct Entry<T> {
    handle: TaskHandle<T>,
    /// What the task wakes when it ends: it puts the position among those that are ready.
    ping: Waker,
}

/// What [`Handles::collect_by`] found at the deadline.
#[derive(Debug)]
#[must_use = "the tasks that were missed are still running"]
pub struct Collected<T> {
    /// Those that had finished, in the order of spawning, with their positions.
    pub done: Vec<(usize, Result<T, HandleError>)>,
    /// Those that had not. They run on; wait for them, cancel them, or leave them to the group.
    pub missed: Vec<(usize, TaskHandle<T>)>,
}

impl<T> Handles<T> {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self { entries: BTreeMap::new(), pushed: 0, ready: Arc::default() }
    }

    /// Adds a handle; its position is the number of those that were added before.
    pub fn push(&mut self, handle: TaskHandle<T>) {
        let position = self.pushed;
        let ping = Waker::from(Arc::new(Ping { position, ready: Arc::clone(&self.ready) }));
        self.entries.insert(position, Entry { handle, ping });
        self.pushed += 1;
        // The first look registers the ping, when somebody waits.
        self.ready.queue.lock().push_back(position);
    }

    /// How many have not been taken.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether all have been taken.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Waits for the next task that ends, and gives its position and its result; `None` when all have been
    /// taken. A stoppable wait.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a result that was not given stays for the next call.
    ///
    /// # Errors
    ///
    /// [`Cancelled`] for whoever waits; the tasks are not touched.
    #[track_caller]
    #[doc(alias = "as_completed")]
    pub fn join_next(&mut self) -> JoinNext<'_, T> {
        self.join_next_at(Location::caller())
    }

    /// Waits for all that were not taken and gives their values in the order of spawning, or the first failure as
    /// soon as it happens. A stoppable wait.
    ///
    /// # Cancel safety
    ///
    /// The tasks go on; values that have arrived are dropped with the wait.
    ///
    /// # Errors
    ///
    /// The [`HandleError`] of the first task that gives no value, or
    /// [`WaiterCancelled`](HandleError::WaiterCancelled).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use stoppable_group::{Handles, TaskGroup, ok};
    ///
    /// let squares = TaskGroup::run(|group| async move {
    ///     let squares: Handles<u32> = (1..4).map(|n| group.spawn(async move { ok(n * n) })).collect();
    ///     ok(squares.collect().await?)
    /// });
    /// assert_eq!(squares.await.unwrap(), [1, 4, 9]);
    /// # }
    /// ```
    #[doc(alias = "gather")]
    #[track_caller]
    pub fn collect(mut self) -> impl Future<Output = Result<Vec<T>, HandleError>> {
        let site = Location::caller();
        async move {
            let mut values = BTreeMap::new();
            loop {
                match self.join_next_at(site).await {
                    Ok(Some((position, result))) => values.insert(position, result?),
                    Ok(None) => return Ok(values.into_values().collect()),
                    Err(cancelled) => return Err(HandleError::WaiterCancelled(cancelled)),
                };
            }
        }
    }

    /// Waits for all and gives every result in the order of spawning, failures included: take a group with
    /// [`Policy::Supervise`](crate::Policy::Supervise). A stoppable wait.
    ///
    /// # Cancel safety
    ///
    /// The tasks go on; results that have arrived are dropped with the wait.
    ///
    /// # Errors
    ///
    /// [`Cancelled`] for whoever waits, never as one result among others.
    #[track_caller]
    pub fn collect_results(mut self) -> impl Future<Output = Result<Vec<Result<T, HandleError>>, Cancelled>> {
        let site = Location::caller();
        async move {
            let mut results = BTreeMap::new();
            while let Some((position, result)) = self.join_next_at(site).await? {
                results.insert(position, result);
            }
            Ok(results.into_values().collect())
        }
    }

    /// Waits for all, but not beyond `deadline`: what is done then, and who missed it. A stoppable wait.
    ///
    /// # Cancel safety
    ///
    /// The tasks go on; results that have arrived are dropped with the wait.
    ///
    /// # Errors
    ///
    /// [`Cancelled`] for whoever waits; an enclosing deadline that comes first is such a cancel.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_group::{Handles, TaskGroup, ok};
    ///
    /// TaskGroup::run(|group| async move {
    ///     let replicas: Handles<u64> = [10, 500]
    ///         .into_iter()
    ///         .map(|ms| group.spawn(async move {
    ///             tokio::time::sleep(Duration::from_millis(ms)).await;
    ///             ok(ms)
    ///         }))
    ///         .collect();
    ///     let answers = replicas.collect_by(Duration::from_millis(100)).await?;
    ///     assert_eq!(answers.done.len(), 1);
    ///     for (_position, late) in answers.missed {
    ///         late.cancel();
    ///     }
    ///     ok(())
    /// })
    /// .await
    /// .unwrap();
    /// # }
    /// ```
    #[track_caller]
    pub fn collect_by(
        mut self,
        deadline: impl Into<Deadline>,
    ) -> impl Future<Output = Result<Collected<T>, Cancelled>> {
        let (deadline, site) = (deadline.into(), Location::caller());
        async move {
            let mut done = BTreeMap::new();
            let all = async {
                while let Some((position, result)) = self.join_next_at(site).await? {
                    done.insert(position, result);
                }
                Ok(())
            };
            // A plain timeout serves: it polls first, and what it drops is a wait that loses nothing.
            match deadline.instant() {
                None => all.await?,
                Some(at) => timeout_at(at, all).await.unwrap_or(Ok(()))?,
            }
            // What has finished by now counts, also if it was not its turn.
            let mut cx = Context::from_waker(Waker::noop());
            while let Poll::Ready(Some((position, result))) = self.poll_next(&mut cx) {
                done.insert(position, result);
            }
            let missed = self.entries.into_iter().map(|(position, entry)| (position, entry.handle));
            Ok(Collected { done: done.into_iter().collect(), missed: missed.collect() })
        }
    }

    pub(crate) fn join_next_at(&mut self, site: &'static Location<'static>) -> JoinNext<'_, T> {
        JoinNext::new(self, site)
    }

    /// The next that is ready. Wakes `cx` when there may be one.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(usize, Result<T, HandleError>)>> {
        if self.is_empty() {
            return Poll::Ready(None);
        }
        // First the registration, then the look: a ping in between is seen or wakes.
        self.ready.register(cx.waker());
        loop {
            let next = self.ready.queue.lock().pop_front();
            let Some(position) = next else { return Poll::Pending };
            let Some(entry) = self.entries.get_mut(&position) else { continue };
            if let Poll::Ready(result) = entry.handle.poll_result(&mut Context::from_waker(&entry.ping)) {
                self.entries.remove(&position);
                return Poll::Ready(Some((position, result)));
            }
        }
    }
}

#[derive(Default)]
struct Ready {
    /// Positions to look at.
    queue: Mutex<VecDeque<usize>>,
    waiter: Mutex<Option<Waker>>,
}

impl Ready {
    /// Has the next ping wake `waker`, which is cloned and dropped outside of the lock.
    fn register(&self, waker: &Waker) {
        if self.waiter.lock().as_ref().is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        let waker = waker.clone();
        let old = self.waiter.lock().replace(waker);
        drop(old);
    }
}

struct Ping {
    position: usize,
    ready: Arc<Ready>,
}

impl Wake for Ping {
    fn wake(self: Arc<Self>) {
        self.ready.queue.lock().push_back(self.position);
        let waiter = self.ready.waiter.lock().take();
        wake_all(waiter);
    }
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Extend<TaskHandle<T>> for Handles<T> {
    fn extend<I: IntoIterator<Item = TaskHandle<T>>>(&mut self, handles: I) {
        handles.into_iter().for_each(|handle| self.push(handle));
    }
}

impl<T> FromIterator<TaskHandle<T>> for Handles<T> {
    fn from_iter<I: IntoIterator<Item = TaskHandle<T>>>(handles: I) -> Self {
        let mut all = Self::new();
        all.extend(handles);
        all
    }
}

impl<T> fmt::Debug for Handles<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handles")
            .field("pushed", &self.pushed)
            .field("left", &self.len())
            .finish_non_exhaustive()
    }
}
