use std::borrow::Cow;
use std::fmt;

use super::abandon_policy::AbandonPolicy;
use super::dead_letter::DeadLetter;
use super::shared::{Shared, Sink};
use super::shutdown_queue::ShutdownQueue;

/// Makes a [`ShutdownQueue`] with a name, a limit, a policy and a sink.
///
/// Without any of them: unbounded, abandoned items are counted.
///
/// # Examples
///
/// ```
/// use stoppable_sync::{AbandonPolicy, ShutdownQueue};
///
/// let jobs: ShutdownQueue<u32> = ShutdownQueue::builder()
///     .name("jobs")
///     .capacity(100)
///     .abandon_policy(AbandonPolicy::Sink)
///     .dead_letters(|letter| eprintln!("lost job {}: {:?}", letter.value, letter.reason))
///     .build();
/// assert_eq!((jobs.name(), jobs.capacity()), (Some("jobs"), Some(100)));
/// ```
#[must_use = "call `build`"]
pub struct Builder<T> {
    name: Option<Cow<'static, str>>,
    capacity: Option<usize>,
    policy: AbandonPolicy,
    sink: Option<Sink<T>>,
}

impl<T> Builder<T> {
    pub(crate) fn new() -> Self {
        Self { name: None, capacity: None, policy: AbandonPolicy::default(), sink: None }
    }

    /// The name that events and `Debug` show.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How many values may be queued at a time.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, as [`ShutdownQueue::bounded`] does.
    #[doc(alias = "maxsize")]
    #[track_caller]
    pub fn capacity(mut self, capacity: usize) -> Self {
        assert!(
            capacity != 0,
            "a queue of capacity 0 can hold nothing; for no limit use `ShutdownQueue::unbounded`"
        );
        self.capacity = Some(capacity);
        self
    }

    /// What happens to an item whose guard is dropped unsettled.
    pub fn abandon_policy(mut self, policy: AbandonPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Who gets the values that nobody processed. See [`DeadLetter`] for when and how it is called.
    ///
    /// The queue owns the sink: one that holds a handle to the same queue keeps it from ever being the last.
    pub fn dead_letters<F>(mut self, sink: F) -> Self
    where
        F: Fn(DeadLetter<T>) + Send + Sync + 'static,
    {
        self.sink = Some(Box::new(sink));
        self
    }

    /// Makes the queue.
    pub fn build(self) -> ShutdownQueue<T> {
        ShutdownQueue::from_shared(Shared::new(self.capacity, self.name, self.policy, self.sink))
    }
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("capacity", &self.capacity)
            .field("abandon_policy", &self.policy)
            .field("dead_letters", &self.sink.is_some())
            .finish()
    }
}
