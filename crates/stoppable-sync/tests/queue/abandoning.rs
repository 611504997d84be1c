use std::sync::{Arc, Mutex};

use stoppable_sync::{AbandonPolicy, DeadLetterReason, ShutdownQueue};
use tokio_test::{assert_pending, assert_ready_ok};

use crate::{assert_balanced, by_hand, take};

type Letters = Arc<Mutex<Vec<(u32, u32, DeadLetterReason)>>>;

fn with_sink(policy: AbandonPolicy) -> (ShutdownQueue<u32>, Letters) {
    let letters = Letters::default();
    let sink = letters.clone();
    let queue = ShutdownQueue::builder()
        .capacity(1)
        .abandon_policy(policy)
        .dead_letters(move |letter| {
            sink.lock().unwrap().push((letter.value, letter.attempt, letter.reason));
        })
        .build();
    (queue, letters)
}

#[test]
fn a_dropped_item_is_abandoned_and_releases_join() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(1).unwrap();
    let item = take(&queue);
    let mut join = by_hand(queue.join());
    assert_pending!(join.poll());
    drop(item);
    assert!(join.is_woken());
    let report = assert_ready_ok!(join.poll());
    assert_eq!((report.done, report.abandoned), (0, 1));
}

#[tokio::test]
async fn a_panic_and_an_early_return_abandon() {
    let queue = ShutdownQueue::bounded(2);
    queue.send(1).await.unwrap();
    queue.send(2).await.unwrap();
    let panics = queue.clone();
    let panicked = tokio::spawn(async move {
        let _item = panics.recv().await.unwrap();
        panic!("on purpose");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    let fails = queue.clone();
    let failed = tokio::spawn(async move {
        let item = fails.recv().await.unwrap().unwrap();
        Err::<(), _>("no")?;
        item.done();
        Ok::<_, &str>(())
    });
    assert_eq!(failed.await.unwrap(), Err("no"));
    assert_eq!(queue.join().await.unwrap().abandoned, 2);
}

#[test]
fn count_tells_no_sink() {
    let (queue, letters) = with_sink(AbandonPolicy::Count);
    queue.try_send(1).unwrap();
    drop(take(&queue));
    assert!(letters.lock().unwrap().is_empty());
    assert_eq!(queue.stats().abandoned, 1);
}

#[test]
fn requeue_puts_it_back_three_times_and_then_buries_it() {
    let (queue, letters) = with_sink(AbandonPolicy::Requeue);
    queue.try_send(7).unwrap();
    for attempt in 1..=4 {
        let item = take(&queue);
        assert_eq!(item.attempt(), attempt);
        assert_eq!(queue.stats().abandoned, 0);
        drop(item);
        assert_balanced(&queue);
    }
    let stats = queue.stats();
    assert_eq!((stats.requeued, stats.abandoned, stats.len), (3, 1, 0));
    assert_eq!(*letters.lock().unwrap(), [(7, 4, DeadLetterReason::Abandoned)]);
}

#[test]
fn requeues_by_hand_do_not_use_up_the_policys() {
    let (queue, _) = with_sink(AbandonPolicy::Requeue);
    queue.try_send(7).unwrap();
    for _ in 0..10 {
        take(&queue).requeue().unwrap();
    }
    drop(take(&queue));
    assert_eq!((queue.len(), queue.stats().abandoned), (1, 0));
}

#[test]
fn an_item_put_back_wakes_a_receiver() {
    let (queue, _) = with_sink(AbandonPolicy::Requeue);
    queue.try_send(7).unwrap();
    let item = take(&queue);
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    drop(item);
    assert!(receiver.is_woken());
    assert_eq!(assert_ready_ok!(receiver.poll()).unwrap().attempt(), 2);
}

#[test]
fn sink_gets_it_at_once_and_before_it_is_counted() {
    let (queue, letters) = with_sink(AbandonPolicy::Sink);
    queue.try_send(7).unwrap();
    drop(take(&queue));
    assert_eq!(*letters.lock().unwrap(), [(7, 1, DeadLetterReason::Abandoned)]);
    assert_eq!(queue.stats().abandoned, 1);
}

#[test]
fn after_a_shutdown_the_sink_gets_it_whatever_the_policy() {
    for policy in [AbandonPolicy::Count, AbandonPolicy::Requeue, AbandonPolicy::Sink] {
        for immediate in [false, true] {
            let (queue, letters) = with_sink(policy);
            queue.try_send(7).unwrap();
            let item = take(&queue);
            if immediate {
                drop(queue.shutdown_immediate());
            } else {
                queue.shutdown();
            }
            drop(item);
            assert_eq!(letters.lock().unwrap().len(), 1, "{policy:?}");
            assert_eq!((queue.len(), queue.stats().abandoned), (0, 1));
        }
    }
}

#[test]
fn a_rejected_item_goes_to_the_sink_and_counts_also_without_one() {
    let (queue, letters) = with_sink(AbandonPolicy::Count);
    queue.try_send(7).unwrap();
    take(&queue).reject();
    assert_eq!(*letters.lock().unwrap(), [(7, 1, DeadLetterReason::Rejected)]);
    assert_eq!(queue.stats().rejected, 1);

    let queue = ShutdownQueue::bounded(1);
    queue.try_send(7).unwrap();
    take(&queue).reject();
    assert_eq!(queue.stats().rejected, 1);
    assert_balanced(&queue);
}

#[test]
fn the_sink_may_use_the_queue() {
    let slot = Arc::new(Mutex::new(None::<ShutdownQueue<u32>>));
    let for_sink = slot.clone();
    let queue = ShutdownQueue::builder()
        .dead_letters(move |letter| {
            if let Some(queue) = &*for_sink.lock().unwrap() {
                assert_eq!(queue.stats().in_flight, 1);
                queue.try_send(letter.value + 1).unwrap();
            }
        })
        .build();
    *slot.lock().unwrap() = Some(queue.clone());
    queue.try_send(1).unwrap();
    take(&queue).reject();
    assert_eq!(*take(&queue), 2);
    slot.lock().unwrap().take();
}
