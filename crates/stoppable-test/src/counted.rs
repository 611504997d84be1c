use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

/// How often a future was polled and still waited.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts the polls of a future that return `Pending`.
pub(crate) struct Counted<F> {
    future: Pin<Box<F>>,
    count: Count,
}

impl<F> Counted<F> {
    pub(crate) fn new(future: F, count: Count) -> Self {
        Self { future: Box::pin(future), count }
    }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.future.as_mut().poll(cx);
        if polled.is_pending() {
            self.count.0.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}
