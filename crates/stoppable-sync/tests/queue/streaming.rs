use futures::stream::{self, FusedStream};
use futures::{SinkExt, StreamExt, TryStreamExt};
use stoppable_scope::{InScopeExt, Scope};
use stoppable_sync::{ShutdownQueue, SinkError};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok};

use crate::{assert_balanced, assert_no_waiters, by_hand, drain, take};

#[test]
fn a_stream_gives_the_items_and_ends_with_the_queue() {
    let queue = ShutdownQueue::bounded(4);
    let mut stream = queue.stream();
    let mut next = by_hand(stream.next());
    assert_pending!(next.poll());
    queue.try_send(1).unwrap();
    assert!(next.is_woken());
    assert_ready!(next.poll()).unwrap().unwrap().done();
    drop(next);
    queue.try_send(2).unwrap();
    queue.shutdown();
    let mut rest = by_hand(stream.by_ref().map_ok(|item| *item).try_collect::<Vec<_>>());
    assert_eq!(assert_ready_ok!(rest.poll()), [2]);
    drop(rest);
    assert!(stream.is_terminated());
    assert!(assert_ready!(by_hand(stream.next()).poll()).is_none());
}

#[test]
fn a_cancel_is_the_last_element_of_a_stream() {
    let queue = ShutdownQueue::bounded(4);
    let scope = Scope::new();
    let mut stream = queue.stream();
    {
        let mut next = by_hand(stream.next().in_scope(&scope));
        assert_pending!(next.poll());
        queue.try_send(1).unwrap();
        scope.cancel(());
        assert_ready_err!(next.poll().map(Option::unwrap));
    }
    assert!(assert_ready!(by_hand(stream.next()).poll()).is_none());
    assert_no_waiters(&queue);
    assert_eq!(drain(&queue), [1]);
    // Another one works.
    queue.try_send(2).unwrap();
    assert_eq!(*assert_ready!(by_hand(queue.stream().next()).poll()).unwrap().unwrap(), 2);
}

#[test]
fn a_dropped_stream_passes_its_promise_on() {
    let queue = ShutdownQueue::bounded(4);
    let mut leaver = queue.stream();
    let mut stayer = by_hand(queue.recv());
    assert_pending!(by_hand(leaver.next()).poll());
    assert_pending!(stayer.poll());
    queue.try_send(1).unwrap();
    assert!(!stayer.is_woken());
    drop(leaver);
    assert!(stayer.is_woken());
    assert_eq!(*assert_ready_ok!(stayer.poll()).unwrap(), 1);
}

///
#[tokio::test]
async fn all_streams_of_a_queue_end_and_each_item_is_in_one_of_them() {
    let queue = ShutdownQueue::<u32>::bounded(2);
    let consumers: Vec<_> = (0..5)
        .map(|_| {
            let stream = queue.stream();
            tokio::spawn(async move {
                let mut received = Vec::new();
                let mut stream = std::pin::pin!(stream);
                while let Some(item) = stream.next().await {
                    let item = item.unwrap();
                    received.push(*item);
                    item.done();
                    tokio::task::yield_now().await;
                }
                received
            })
        })
        .collect();
    for n in 0..10 {
        queue.send(n).await.unwrap();
        tokio::task::yield_now().await;
    }
    queue.shutdown();
    let mut all = Vec::new();
    for consumer in consumers {
        all.extend(consumer.await.unwrap());
    }
    all.sort_unstable();
    assert_eq!(all, (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_an_adapter_holds_when_it_is_dropped_is_abandoned() {
    let queue = ShutdownQueue::bounded(4);
    for n in 0..4 {
        queue.send(n).await.unwrap();
    }
    let mut buffered = queue
        .stream()
        .map(|item| async move {
            let item = item.unwrap();
            tokio::task::yield_now().await;
            item.done();
        })
        .buffer_unordered(2);
    buffered.next().await.unwrap();
    drop(buffered);
    assert_balanced(&queue);
    assert_no_waiters(&queue);
    assert_eq!(queue.stats().in_flight, 0);
}

#[test]
fn a_sink_waits_for_room() {
    let queue = ShutdownQueue::bounded(1);
    let mut sink = queue.producer().into_sink();
    assert_ready_ok!(by_hand(sink.send(1)).poll());
    {
        let mut second = by_hand(sink.send(2));
        assert_pending!(second.poll());
        assert_eq!(*take(&queue), 1);
        assert!(second.is_woken());
        assert_ready_ok!(second.poll());
    }
    assert_eq!(drain(&queue), [2]);
    assert!(!queue.is_shut_down());
    drop(sink);
    assert!(queue.is_shut_down());
}

#[test]
fn a_closed_sink_drops_its_producer() {
    let queue = ShutdownQueue::bounded(4);
    let other = queue.producer();
    let mut sink = queue.producer().into_sink();
    assert_ready_ok!(by_hand(sink.close()).poll());
    assert_ready_ok!(by_hand(<_ as SinkExt<u32>>::close(&mut sink)).poll());
    assert!(!queue.is_shut_down());
    assert!(matches!(assert_ready_err!(by_hand(sink.send(1)).poll()), SinkError::ShutDown(None)));
    drop(other);
    assert!(queue.is_shut_down());
}

#[test]
fn a_sink_that_is_ready_holds_a_slot_until_it_is_used_or_dropped() {
    let queue = ShutdownQueue::bounded(1);
    let keep = queue.producer();
    let mut sink = queue.producer().into_sink();
    assert_ready_ok!(by_hand(futures::future::poll_fn(|cx| sink.poll_ready_unpin(cx))).poll());
    assert_ready_ok!(by_hand(futures::future::poll_fn(|cx| sink.poll_ready_unpin(cx))).poll());
    assert_eq!(queue.stats().reserved, 1);
    let mut sender = by_hand(keep.send(2));
    assert_pending!(sender.poll());
    drop(sink);
    assert_ready_ok!(sender.poll());
    assert_eq!(drain(&queue), [2]);
}

#[test]
fn a_shutdown_gives_the_value_of_a_ready_sink_back() {
    let queue = ShutdownQueue::bounded(1);
    let mut sink = queue.producer().into_sink();
    assert_ready_ok!(by_hand(futures::future::poll_fn(|cx| sink.poll_ready_unpin(cx))).poll());
    queue.shutdown();
    let error = sink.start_send_unpin(7).unwrap_err();
    assert_eq!(error.into_inner(), Some(7));
    assert_no_waiters(&queue);
}

#[test]
fn a_sink_that_waits_answers_a_cancel_and_leaves_no_ghost() {
    let queue = ShutdownQueue::bounded(1);
    queue.try_send(0).unwrap();
    let scope = Scope::new();
    let mut sink = queue.producer().into_sink();
    {
        let mut sending = by_hand(sink.send(1).in_scope(&scope));
        assert_pending!(sending.poll());
        take(&queue).done();
        scope.cancel(());
        assert!(matches!(assert_ready_err!(sending.poll()), SinkError::Cancelled(_)));
    }
    assert_no_waiters(&queue);
    assert_ready_ok!(by_hand(sink.send(2)).poll());
    assert_eq!(drain(&queue), [2]);
}

#[test]
#[should_panic(expected = "without a `poll_ready`")]
fn a_sink_that_is_not_ready_refuses() {
    let queue = ShutdownQueue::bounded(1);
    let _ = queue.producer().into_sink().start_send_unpin(1);
}

#[tokio::test]
async fn from_a_stream_through_a_sink_and_a_queue_to_a_stream() {
    let queue = ShutdownQueue::bounded(2);
    let sources: Vec<_> = (0..3)
        .map(|source| {
            let sink = queue.producer().into_sink();
            tokio::spawn(stream::iter((0..20).map(move |n| Ok(source * 100 + n))).forward(sink))
        })
        .collect();
    let mut received: Vec<_> = queue
        .stream()
        .map_ok(|item| {
            let n = *item;
            item.done();
            n
        })
        .try_collect()
        .await
        .unwrap();
    for source in sources {
        source.await.unwrap().unwrap();
    }
    received.sort_unstable();
    let expected: Vec<_> = (0..3).flat_map(|source| (0..20).map(move |n| source * 100 + n)).collect();
    assert_eq!(received, expected);
    assert!(queue.join().await.unwrap().all_done());
}
