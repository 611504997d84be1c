use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_sink::Sink;

use super::error::{ReserveManyError, SinkError};
use super::producer::Producer;
use super::reserving::Reserving;

/// A producer as a sink, made by [`Producer::into_sink`].
///
/// It is ready once it holds a slot of the queue, which it gives back when it is dropped. A value is in the
/// queue when `start_send` returns, so there is nothing to flush. Closing it drops the producer; if that is
/// the last, the queue is shut down.
///
/// # Cancel safety
///
/// Where `poll_ready` fails nothing is lost: adapters such as `send_all` keep the value that is next.
#[must_use = "sinks do nothing unless you poll them"]
pub struct ProducerSink<T> {
    /// `None` once closed.
    producer: Option<Producer<T>>,
    reserving: Reserving,
    /// Whether it holds a slot.
    ready: bool,
}

const NOT_READY: &str = "`start_send` without a `poll_ready` that was ready before it";

impl<T> ProducerSink<T> {
    #[track_caller]
    pub(crate) fn new(producer: Producer<T>) -> Self {
        Self { producer: Some(producer), reserving: Reserving::new(), ready: false }
    }

    /// Gives back what it holds, and the producer.
    fn close(&mut self) {
        let Some(producer) = self.producer.take() else { return };
        let shared = producer.shared();
        self.reserving.leave(shared);
        if std::mem::take(&mut self.ready) {
            shared.change(|core, wakes| core.return_permit(wakes));
        }
    }
}

impl<T> Sink<T> for ProducerSink<T> {
    type Error = SinkError<T>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError<T>>> {
        let Self { producer, reserving, ready } = self.get_mut();
        let Some(producer) = producer else {
            return Poll::Ready(Err(SinkError::ShutDown(None)));
        };
        if !*ready {
            match ready!(reserving.poll(producer.shared(), 1, cx)) {
                Ok(()) => *ready = true,
                Err(ReserveManyError::Cancelled(cancelled)) => return Poll::Ready(Err(cancelled.into())),
                // Every queue has room for one.
                Err(ReserveManyError::ShutDown | ReserveManyError::BeyondCapacity { .. }) => {
                    return Poll::Ready(Err(SinkError::ShutDown(None)));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// # Panics
    ///
    /// If `poll_ready` was not ready before it.
    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), SinkError<T>> {
        let Self { producer, ready, .. } = self.get_mut();
        assert!(*ready, "{NOT_READY}");
        let shared = producer.as_ref().expect(NOT_READY).shared();
        let unsent = shared.unsent(value);
        *ready = false;
        let sent = shared.change(|core, wakes| core.send_with_permit(unsent, wakes));
        sent.map(drop).map_err(|value| SinkError::ShutDown(Some(value)))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Result<(), SinkError<T>>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Result<(), SinkError<T>>> {
        self.get_mut().close();
        Poll::Ready(Ok(()))
    }
}

impl<T> Drop for ProducerSink<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> fmt::Debug for ProducerSink<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducerSink").field("producer", &self.producer).field("ready", &self.ready).finish()
    }
}
