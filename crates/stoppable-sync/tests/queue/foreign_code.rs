//! Values, wakers and sinks that panic or use the queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use stoppable_sync::{AbandonPolicy, ShutdownQueue};
use tokio_test::{assert_pending, assert_ready_ok};

use crate::{assert_balanced, assert_no_waiters, by_hand, take};

/// Counts how often it was woken.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct PanicsWhenWoken;

impl Wake for PanicsWhenWoken {
    fn wake(self: Arc<Self>) {
        panic!("this waker panics");
    }
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("this value panics when dropped");
    }
}

fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

#[test]
fn a_waker_that_panics_keeps_nobody_from_being_woken() {
    let queue = ShutdownQueue::<u32>::unbounded();
    let bad = Waker::from(Arc::new(PanicsWhenWoken));
    let mut first = pin!(queue.recv());
    let mut second = by_hand(queue.recv());
    assert!(first.as_mut().poll(&mut Context::from_waker(&bad)).is_pending());
    assert_pending!(second.poll());
    queue.shutdown();
    assert!(second.is_woken());
    assert!(assert_ready_ok!(second.poll()).is_none());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(first.as_mut().poll(&mut cx), Poll::Ready(Ok(None))));
}

#[test]
fn a_waker_that_panics_does_not_disturb_the_one_who_wakes() {
    let queue = ShutdownQueue::unbounded();
    let bad = Waker::from(Arc::new(PanicsWhenWoken));
    let mut receiver = Box::pin(queue.recv());
    assert!(receiver.as_mut().poll(&mut Context::from_waker(&bad)).is_pending());
    assert_eq!(queue.try_send(1), Ok(1));
    drop(receiver);
    assert_eq!(*take(&queue), 1);
    assert_no_waiters(&queue);
}

#[test]
fn a_done_counts_also_when_the_value_panics_in_its_destructor() {
    let queue = ShutdownQueue::unbounded();
    assert!(queue.try_send(PanicsWhenDropped).is_ok());
    let item = take(&queue);
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    assert!(panics(|| item.done()));
    assert!(join.is_woken());
    assert_eq!(assert_ready_ok!(join.poll()).done, 1);
}

#[test]
fn an_abandoned_or_rejected_item_counts_also_when_its_value_panics() {
    let queue = ShutdownQueue::unbounded();
    for _ in 0..2 {
        assert!(queue.try_send(PanicsWhenDropped).is_ok());
    }
    let (first, second) = (take(&queue), take(&queue));
    assert!(panics(|| drop(first)));
    assert!(panics(|| second.reject()));
    assert_eq!((queue.stats().abandoned, queue.stats().rejected), (1, 1));
    assert_balanced(&queue);
}

#[test]
fn a_sink_that_panics_is_caught() {
    let queue = ShutdownQueue::builder()
        .abandon_policy(AbandonPolicy::Sink)
        .dead_letters(|_| panic!("this sink panics"))
        .build();
    for n in 0..3 {
        queue.try_send(n).unwrap();
    }
    take(&queue).reject();
    drop(take(&queue));
    assert_eq!((queue.stats().abandoned, queue.stats().rejected), (1, 1));
    drop(queue);
}

/// A value that looks at its queue while it is dropped: with a lock held that would be a deadlock.
struct LooksAtItsQueue(Option<ShutdownQueue<LooksAtItsQueue>>, Arc<AtomicUsize>);

impl Drop for LooksAtItsQueue {
    fn drop(&mut self) {
        if let Some(queue) = &self.0 {
            assert_balanced(queue);
            let _ = queue.len();
        }
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn no_value_is_dropped_under_the_lock() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let queue = ShutdownQueue::bounded(4);
    let value = || LooksAtItsQueue(Some(queue.clone()), dropped.clone());
    for _ in 0..4 {
        assert!(queue.try_send(value()).is_ok());
    }
    let mut sender = by_hand(queue.send(value()));
    assert!(sender.poll().is_pending());
    drop(sender);
    assert!(queue.try_send(value()).is_err());
    take(&queue).done();
    take(&queue).reject();
    drop(take(&queue));
    drop(queue.shutdown_immediate());
    assert_eq!(dropped.load(Ordering::SeqCst), 6);
}

/// A waker that uses the queue when it is woken.
struct UsesTheQueue(ShutdownQueue<u32>);

impl Wake for UsesTheQueue {
    fn wake(self: Arc<Self>) {
        let _ = self.0.stats();
        let _ = self.0.try_send(2);
    }
}

impl Drop for UsesTheQueue {
    fn drop(&mut self) {
        let _ = self.0.stats();
    }
}

#[test]
fn no_waker_is_woken_or_dropped_under_the_lock() {
    let queue = ShutdownQueue::unbounded();
    let waker = Waker::from(Arc::new(UsesTheQueue(queue.clone())));
    let mut receiver = Box::pin(queue.recv());
    assert!(receiver.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    queue.try_send(1).unwrap();
    assert_eq!(queue.len(), 2);
    drop(waker);
    drop(receiver);

    crate::drain(&queue);
    let mut receiver = Box::pin(queue.recv());
    let waker = Waker::from(Arc::new(UsesTheQueue(queue.clone())));
    assert!(receiver.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    assert!(receiver.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let waker = Waker::from(Arc::new(UsesTheQueue(queue.clone())));
    assert!(receiver.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    drop(receiver);
    assert_no_waiters(&queue);
}

#[test]
fn each_wait_is_woken_once() {
    let queue = ShutdownQueue::bounded(1);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    let mut receiver = pin!(queue.recv());
    assert!(receiver.as_mut().poll(&mut cx).is_pending());
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    queue.shutdown();
    drop(queue.shutdown_immediate());
    assert_eq!(count.get(), 1);
}
