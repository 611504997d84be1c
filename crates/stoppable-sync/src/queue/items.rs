use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::stream::{FusedStream, Stream};
use stoppable_scope::Cancelled;

use super::item::Item;
use super::receiving::Receiving;
use super::shared::Shared;
use super::shutdown_queue::ShutdownQueue;

/// The items of a queue as a stream, made by [`ShutdownQueue::stream`].
#[must_use = "streams do nothing unless you poll them"]
pub struct Items<T> {
    queue: ShutdownQueue<T>,
    receiving: Receiving,
    /// Shut down and drained, or cancelled.
    ended: bool,
}

impl<T> Items<T> {
    #[track_caller]
    pub(crate) fn new(queue: ShutdownQueue<T>) -> Self {
        Self { queue, receiving: Receiving::new(), ended: false }
    }

    fn shared(&self) -> &Arc<Shared<T>> {
        self.queue.shared()
    }
}

impl<T> Stream for Items<T> {
    type Item = Result<Item<T>, Cancelled>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { queue, receiving, ended } = self.get_mut();
        if *ended {
            return Poll::Ready(None);
        }
        let shared = queue.shared();
        let received = ready!(receiving.poll(shared, shared, cx));
        *ended = !matches!(received, Ok(Some(_)));
        Poll::Ready(received.transpose())
    }
}

impl<T> FusedStream for Items<T> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<T> Drop for Items<T> {
    fn drop(&mut self) {
        self.receiving.leave(self.queue.shared());
    }
}

impl<T> fmt::Debug for Items<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items")
            .field("queue", &self.shared().name.as_deref())
            .field("waiting", &self.receiving.is_waiting())
            .field("ended", &self.ended)
            .finish()
    }
}
