use std::fmt;
use std::sync::{Arc, Weak};

use super::shared::Shared;
use super::shutdown_queue::ShutdownQueue;

/// A reference to a queue that does not keep it: for whoever may look in, but should not be its last handle.
///
/// Made by [`ShutdownQueue::downgrade`]. Take it where the queue owns what refers to it, such as its
/// dead-letter sink.
///
/// As `WeakSender` of tokio's channel.
///
/// # Examples
///
/// ```
/// use std::sync::OnceLock;
/// use stoppable_sync::{AbandonPolicy, ShutdownQueue, WeakQueue};
///
/// static RETRIES: OnceLock<WeakQueue<&str>> = OnceLock::new();
///
/// let retries = ShutdownQueue::unbounded();
/// RETRIES.set(retries.downgrade()).unwrap();
/// let jobs = ShutdownQueue::builder()
///     .abandon_policy(AbandonPolicy::Sink)
///     .dead_letters(|letter| {
///         if let Some(retries) = RETRIES.get().and_then(WeakQueue::upgrade) {
///             let _ = retries.try_send(letter.value);
///         }
///     })
///     .build();
/// jobs.try_send("flaky").unwrap();
/// drop(jobs.try_recv());
/// assert_eq!(retries.len(), 1);
///
/// drop(retries);
/// assert!(RETRIES.get().unwrap().upgrade().is_none());
/// ```
pub struct WeakQueue<T> {
    shared: Weak<Shared<T>>,
}

impl<T> WeakQueue<T> {
    pub(crate) fn new(shared: &Arc<Shared<T>>) -> Self {
        Self { shared: Arc::downgrade(shared) }
    }

    /// A handle, if there still is one: once the last is gone, the queue is, whatever guards are still out.
    pub fn upgrade(&self) -> Option<ShutdownQueue<T>> {
        ShutdownQueue::revived(self.shared.upgrade()?)
    }
}

/// Another reference to the same queue.
impl<T> Clone for WeakQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for WeakQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.shared.upgrade();
        let name = shared.as_ref().and_then(|shared| shared.name.as_deref());
        f.debug_struct("WeakQueue").field("name", &name).finish()
    }
}
