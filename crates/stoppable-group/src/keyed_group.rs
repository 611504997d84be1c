use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use stoppable_scope::machinery::Node;
use stoppable_scope::{Name, Reason};

use crate::group_error::GroupError;
use crate::lifeline::{Lifeline, home};
use crate::task_group::TaskGroup;
use crate::task_handle::TaskHandle;
use crate::task_output::TaskOutput;

/// One group for each key: the tasks of one connection, tenant or device can be stopped and waited for without
/// touching the others.
///
/// A failure cancels the siblings under the same key only, and is heard of when that key is stopped or joined;
/// until then the key takes no more tasks. All groups lie below the scope in which this was made, whoever spawns.
/// Dropped, it cancels all tasks, which are adopted as those of a [`Lifeline`].
///
/// # Compared with `JoinMap`
///
/// `tokio_util::task::JoinMap` has one task a key, replaces it by the next one, and does not wait. Take it where
/// the key names a task; here it names a group. For a few groups whose names are known when the program is written,
/// nest [`TaskGroup::run`], or hold a [`Lifeline`] for each.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use stoppable_group::KeyedGroup;
///
/// let tenants = KeyedGroup::new("tenants");
/// tenants.spawn("acme", std::future::pending::<()>());
/// tenants.spawn("acme", std::future::pending::<()>());
/// tenants.spawn("globex", async {});
///
/// // Its own cancel is a good end.
/// assert!(tenants.stop(&"acme", "contract ended").await.unwrap().is_ok());
/// assert_eq!(tenants.keys(), ["globex"]);
/// assert!(tenants.join(&"globex").await.unwrap().is_ok());
///
/// // All at once: first ask every one, then wait.
/// tenants.spawn("initech", std::future::pending::<()>());
/// for key in tenants.keys() {
///     tenants.group(key).cancel("shutting down");
/// }
/// assert_eq!(tenants.join_all().await.len(), 1);
/// # }
/// ```
#[must_use = "dropping a keyed group cancels its tasks"]
pub struct KeyedGroup<K> {
    name: Name,
    home: Arc<Node>,
    groups: Mutex<HashMap<K, Lifeline>>,
}

impl<K: Eq + Hash + Clone + fmt::Debug> KeyedGroup<K> {
    /// No key yet.
    #[track_caller]
    pub fn new(name: impl Into<Name>) -> Self {
        Self { name: name.into(), home: home(), groups: Mutex::default() }
    }

    /// Spawns a task under `key`, as [`TaskGroup::spawn`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn spawn<F, M>(&self, key: K, future: F) -> TaskHandle<<F::Output as TaskOutput<M>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<M, Value: Send> + Send,
        M: 'static,
    {
        self.group(key).spawn(future)
    }

    /// The group of `key`, made if there is none, for all else that one can do with a group.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn group(&self, key: K) -> TaskGroup {
        if let Some(group) = self.groups.lock().get(&key) {
            return TaskGroup::clone(group);
        }
        let name = format!("{}[{key:?}]", self.name);
        let mut groups = self.groups.lock();
        if let Some(group) = groups.get(&key) {
            return TaskGroup::clone(group);
        }
        let group = TaskGroup::builder().name(name).open_in(Arc::clone(&self.home));
        let handle = TaskGroup::clone(&group);
        groups.insert(key, group);
        handle
    }

    /// Cancels the tasks under `key`, waits for them and forgets the key. `None` if there is no such key.
    ///
    /// The key is forgotten first: what is spawned under it meanwhile is in a new group.
    ///
    /// # Cancel safety
    ///
    /// Leaving the wait leaves the tasks, which were asked, to the group around.
    pub async fn stop(&self, key: &K, reason: impl Into<Reason>) -> Option<Result<(), GroupError>> {
        let mut group = self.take(key)?;
        group.cancel(reason);
        Some(group.join().await)
    }

    /// Waits for the tasks under `key` and forgets the key. `None` if there is no such key.
    ///
    /// # Cancel safety
    ///
    /// Leaving the wait cancels the tasks and leaves them to the group around.
    pub async fn join(&self, key: &K) -> Option<Result<(), GroupError>> {
        Some(self.take(key)?.join().await)
    }

    /// Waits for the tasks under all keys, also those that come meanwhile, and forgets the keys: what became of
    /// each. Cancel those that should not be waited for first.
    ///
    /// # Cancel safety
    ///
    /// Leaving the wait cancels the tasks of the key it is at; the others stay.
    pub async fn join_all(&self) -> Vec<(K, Result<(), GroupError>)> {
        let mut results = Vec::new();
        loop {
            let next = self.groups.lock().keys().next().cloned();
            let Some(key) = next else { return results };
            if let Some(result) = self.join(&key).await {
                results.push((key, result));
            }
        }
    }

    /// The keys that were not stopped or joined, in no order.
    pub fn keys(&self) -> Vec<K> {
        self.groups.lock().keys().cloned().collect()
    }

    fn take(&self, key: &K) -> Option<Lifeline> {
        self.groups.lock().remove(key)
    }
}

impl<K> fmt::Debug for KeyedGroup<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.groups.lock().len();
        f.debug_struct("KeyedGroup").field("name", &self.name).field("keys", &keys).finish_non_exhaustive()
    }
}
