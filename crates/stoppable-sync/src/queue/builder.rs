use std::borrow::Cow;
use std::fmt;

use super::abandon_policy::AbandonPolicy;
use super::dead_letter::DeadLetter;
use super::shared::{Shared, Sink};
use super::shutdown_queue::ShutdownQueue;
use super::store::Order;

/// Makes a [`ShutdownQueue`] with a name, a limit, an order, a policy and a sink.
///
/// Without any of them: unbounded, first in, first out, abandoned items are counted.
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
    order: Order<T>,
    policy: AbandonPolicy,
    sink: Option<Sink<T>>,
}

pub(crate) const CAPACITY_0: &str =
    "a queue of capacity 0 can hold nothing; for no limit use `ShutdownQueue::unbounded`";

impl<T> Builder<T> {
    pub(crate) fn new() -> Self {
        let policy = AbandonPolicy::default();
        Self { name: None, capacity: None, order: Order::Fifo, policy, sink: None }
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
        assert!(capacity != 0, "{CAPACITY_0}");
        self.capacity = Some(capacity);
        self
    }

    /// Last in, first out: what was accepted last is received next.
    ///
    /// As asyncio's `LifoQueue`. A requeued item goes to the bottom, and so is received last, where a
    /// second `put` in asyncio would bring it right back. Receivers, and senders that wait for room, are
    /// still served in the order of waiting. Of this and [`priority`](Self::priority) the one called last
    /// counts.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// let undo = ShutdownQueue::builder().lifo().build();
    /// for step in [1, 3, 2] {
    ///     undo.try_send(step).unwrap();
    /// }
    /// let order: Vec<i32> = std::iter::from_fn(|| undo.try_recv().ok().map(|item| item.detach())).collect();
    /// assert_eq!(order, [2, 3, 1]);
    /// ```
    #[doc(alias = "LifoQueue")]
    pub fn lifo(mut self) -> Self {
        self.order = Order::Lifo;
        self
    }

    /// By priority: the smallest number is received next, and among equal ones what was accepted first.
    ///
    /// Any integer that fits an `i64` will do, such as a field, an enum `as u8`, or a due time. Levels from
    /// 0 to 63 cost a few nanoseconds; others are kept in a sorted map, which costs more. For the greatest
    /// first, negate it.
    ///
    /// `priority` is called when a value is sent or requeued, before the queue is locked: it may use the
    /// queue, and may panic, which leaves the queue as it was. Where the policy puts an abandoned item back
    /// a panic in it is caught and logged, and the item ends as abandoned. An item so keeps its priority, unless it was
    /// changed through its guard before it was requeued, and is then the last among its equals. The order
    /// is among what is queued: a sender that waits for room does so in the order of waiting, whatever its
    /// value.
    ///
    /// As asyncio's `PriorityQueue`, which compares whole values, and so says nothing about equal ones.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_sync::ShutdownQueue;
    ///
    /// struct Job {
    ///     level: u8,
    ///     name: &'static str,
    /// }
    ///
    /// let jobs = ShutdownQueue::builder().priority(|job: &Job| job.level).build();
    /// for (level, name) in [(2, "report"), (0, "page"), (2, "backup")] {
    ///     jobs.try_send(Job { level, name }).unwrap();
    /// }
    /// let next = || jobs.try_recv().ok().map(|item| item.detach().name);
    /// let order: Vec<_> = std::iter::from_fn(next).collect();
    /// assert_eq!(order, ["page", "report", "backup"]);
    /// ```
    #[doc(alias = "PriorityQueue")]
    pub fn priority<P, L>(mut self, priority: P) -> Self
    where
        P: Fn(&T) -> L + Send + Sync + 'static,
        L: Into<i64>,
    {
        self.order = Order::Priority(Box::new(move |value| priority(value).into()));
        self
    }

    /// What happens to an item whose guard is dropped unsettled.
    pub fn abandon_policy(mut self, policy: AbandonPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Who gets the values that nobody processed. See [`DeadLetter`] for when and how it is called.
    ///
    /// The queue owns the sink: one that holds a handle to the same queue keeps it from ever being the last;
    /// give it a [`WeakQueue`](super::WeakQueue).
    pub fn dead_letters<F>(mut self, sink: F) -> Self
    where
        F: Fn(DeadLetter<T>) + Send + Sync + 'static,
    {
        self.sink = Some(Box::new(sink));
        self
    }

    /// Makes the queue.
    pub fn build(self) -> ShutdownQueue<T> {
        let Self { name, capacity, order, policy, sink } = self;
        ShutdownQueue::from_shared(Shared::new(capacity, order, name, policy, sink))
    }
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("capacity", &self.capacity)
            .field("order", &self.order)
            .field("abandon_policy", &self.policy)
            .field("dead_letters", &self.sink.is_some())
            .finish()
    }
}
