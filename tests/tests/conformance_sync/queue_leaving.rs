//! Q rows: waits that are cancelled or dropped, before and after they were served.

use std::sync::{Arc, Mutex};

use stoppable::{
    InScopeExt, RecvByError, Scope, SendError, ShutdownQueue, TaskGroup, TryRecvError, TrySendError, ok,
    with_timeout,
};
use tokio::time::{Instant, advance};
use tokio_util::sync::CancellationToken;

use crate::kit::{Leave, RECEIVES, Receive, Wait, assert_no_waiters, both, drain, ms, paused, settle, take};

/// A receiver that left by request answered `Cancelled`.
#[track_caller]
fn assert_left<T, E>(answer: Option<Result<Option<T>, E>>, how: Leave) {
    match answer {
        None => assert_eq!(how, Leave::Drop),
        Some(answer) => assert!(answer.is_err(), "left by request, and has an item"),
    }
}

/// Every way to receive, left in both ways.
fn ways_to_leave() -> impl Iterator<Item = (Leave, Receive)> {
    Leave::BOTH.into_iter().flat_map(|how| RECEIVES.map(|receive| (how, receive)))
}

#[test]
fn q_12_a_cancelled_receiver_does_not_get_a_later_item() {
    for how in Leave::BOTH {
        let queue = ShutdownQueue::unbounded();
        let first = Wait::blocked(queue.recv());
        let mut second = Wait::blocked(queue.recv());
        assert_left(first.leave(how).end(), how);
        queue.try_send(0).unwrap();
        assert!(second.is_woken());
        assert_eq!(*second.ready().unwrap().unwrap(), 0);
    }
}

// Adapted: the count of waiters is what can be seen of the record.
#[test]
fn q_15_an_expired_wait_leaves_no_record() {
    paused(async {
        let queue = ShutdownQueue::<()>::unbounded();
        let mut receive = Box::pin(queue.recv_by(ms(100)));
        let started = Instant::now();
        assert!(matches!(receive.as_mut().await, Err(RecvByError::Elapsed(_))));
        assert_eq!(started.elapsed(), ms(100));
        assert_no_waiters(&queue);
        assert!(with_timeout(ms(100), queue.recv()).await.unwrap_err().is_elapsed());
        assert_no_waiters(&queue);
        // One that is dropped from outside by somebody else's timeout.
        assert!(tokio::time::timeout(ms(100), queue.recv()).await.is_err());
        assert_no_waiters(&queue);
    });
}

#[test]
fn q_19_a_reader_cancelled_after_it_was_served_loses_no_item() {
    paused(async {
        for (how, receive) in ways_to_leave() {
            let queue = ShutdownQueue::unbounded();
            let reader = Wait::blocked(receive(&queue));
            queue.try_send(1).unwrap();
            queue.try_send(2).unwrap();
            assert!(reader.is_woken());
            assert_left(reader.leave(how).end(), how);
            assert_eq!(Wait::new(receive(&queue)).ready(), Ok(Some(1)));
            assert_eq!(drain(&queue), [2]);
        }
    });

    // As tasks: one of a group that is cancelled by its handle, one whose scope hears a token.
    both(|| async {
        for by_token in [false, true] {
            let run = TaskGroup::run(|group| async move {
                let queue = ShutdownQueue::<i32>::unbounded();
                let token = CancellationToken::new();
                let scope = Scope::from_token(token.clone());
                let (reads, readers) = (queue.clone(), queue.clone());
                let reader = group.spawn(async move {
                    let received = reads.recv().in_scope(&scope).await;
                    ok(received.ok().flatten().map(|item| item.detach()))
                });
                while readers.stats().waiting_receivers == 0 {
                    tokio::task::yield_now().await;
                }
                queue.try_send(1).unwrap();
                queue.try_send(2).unwrap();
                if by_token {
                    token.cancel();
                } else {
                    reader.cancel();
                }
                // On two threads it may have read the item before it heard of the cancel.
                let read = reader.await.unwrap_or(None);
                let rest = drain(&queue);
                assert_eq!(read.into_iter().chain(rest).collect::<Vec<_>>(), [1, 2]);
                if tokio::runtime::Handle::current().metrics().num_workers() == 1 {
                    assert_eq!(read, None);
                }
                ok(())
            });
            run.await.unwrap();
        }
    });
}

#[test]
fn q_20_of_three_readers_the_two_that_stay_get_the_two_items() {
    for how in Leave::BOTH {
        let queue = ShutdownQueue::unbounded();
        let first = Wait::blocked(queue.recv());
        let mut second = Wait::blocked(queue.recv());
        let mut third = Wait::blocked(queue.recv());
        queue.try_send(1).unwrap();
        queue.try_send(2).unwrap();
        assert!(first.is_woken());
        assert_left(first.leave(how).end(), how);
        assert!(second.is_woken() && third.is_woken());
        let mut items = [*second.ready().unwrap().unwrap(), *third.ready().unwrap().unwrap()];
        items.sort_unstable();
        assert_eq!(items, [1, 2]);
        assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
    }
}

#[test]
fn q_21_a_sender_cancelled_after_a_slot_came_free_sends_exactly_once() {
    for how in Leave::BOTH {
        let queue = ShutdownQueue::bounded(1);
        queue.try_send(1).unwrap();
        let sender = Wait::blocked(queue.send(2));
        take(&queue).done();
        assert!(sender.is_woken());
        // It has a slot, which is no acceptance yet: by request the value comes back.
        let value = match sender.leave(how).end() {
            None => 2,
            Some(Err(SendError::Cancelled(value, _))) => value,
            Some(other) => panic!("{other:?}"),
        };
        assert_eq!((value, queue.len()), (2, 0));
        Wait::new(queue.send(value)).ready().unwrap();
        assert_eq!(queue.len(), 1);
        assert_eq!(*take(&queue), 2);
        assert_eq!((queue.len(), queue.stats().accepted), (0, 2));
        assert_no_waiters(&queue);
    }
}

#[test]
fn q_25_the_value_of_a_cancelled_sender_never_appears() {
    for how in Leave::BOTH {
        let queue = ShutdownQueue::bounded(1);
        Wait::new(queue.send("a")).ready().unwrap();
        let mut second = Wait::blocked(queue.send("b"));
        let third = Wait::blocked(queue.send("c"));
        match third.leave(how).end() {
            None => assert_eq!(how, Leave::Drop),
            Some(answer) => assert!(matches!(answer, Err(SendError::Cancelled("c", _)))),
        }
        take(&queue).done();
        second.ready().unwrap();
        assert_eq!(drain(&queue), ["b"]);
        assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
        assert_no_waiters(&queue);
    }
}

// Adapted: what could go wrong here is to take the same waiter out twice.
#[test]
fn q_29_leaving_after_the_slot_was_granted_is_a_plain_cancellation() {
    for how in Leave::BOTH {
        let queue = ShutdownQueue::bounded(1);
        queue.try_send(1).unwrap();
        let sender = Wait::blocked(queue.send(2));
        let permit = Wait::blocked(queue.reserve());
        take(&queue).done();
        assert_eq!((queue.stats().reserved, queue.stats().waiting_senders), (1, 1));
        match sender.leave(how).end() {
            None => assert_eq!(how, Leave::Drop),
            Some(answer) => assert!(matches!(answer, Err(SendError::Cancelled(2, _)))),
        }
        // The slot is with the next, who goes away in the same way.
        assert!(permit.is_woken());
        assert_eq!((queue.stats().reserved, queue.stats().waiting_senders), (1, 0));
        match permit.leave(how).end() {
            None => assert_eq!(how, Leave::Drop),
            Some(answer) => assert!(matches!(answer, Err(stoppable::ReserveError::Cancelled(_)))),
        }
        assert_no_waiters(&queue);
        queue.try_send(3).unwrap();
        assert_eq!(drain(&queue), [3]);
    }
}

// Adapted: cancel first, whichever came first.
#[test]
fn q_49_a_cancel_wins_over_a_shutdown_in_the_same_step() {
    for cancel_first in [true, false] {
        let queue = ShutdownQueue::<()>::unbounded();
        let scope = Scope::new();
        let mut receiver = tokio_test::task::spawn(queue.recv().in_scope(&scope));
        tokio_test::assert_pending!(receiver.poll());
        if cancel_first {
            scope.cancel("first");
            queue.shutdown();
        } else {
            queue.shutdown();
            scope.cancel("second");
        }
        let answer = tokio_test::assert_ready!(receiver.poll());
        assert!(answer.is_err(), "cancel first: {cancel_first}");
    }
}

#[test]
fn q_50_an_item_passes_from_a_leaving_receiver_to_the_next_or_stays() {
    paused(async {
        for (how, receive) in ways_to_leave() {
            for next in RECEIVES {
                let queue = ShutdownQueue::unbounded();
                let first = Wait::blocked(receive(&queue));
                let mut second = Wait::blocked(next(&queue));
                queue.try_send(1).unwrap();
                assert!(first.is_woken() && !second.is_woken());
                assert_left(first.leave(how).end(), how);
                assert!(second.is_woken());
                assert_eq!(second.ready(), Ok(Some(1)));
            }
            let queue = ShutdownQueue::unbounded();
            let only = Wait::blocked(receive(&queue));
            queue.try_send(2).unwrap();
            assert!(only.is_woken());
            assert_left(only.leave(how).end(), how);
            assert_eq!((queue.len(), queue.stats().promised), (1, 0));
            assert_eq!(drain(&queue), [2]);
        }
    });
}

// Overruled: a promised item cannot be taken away, so it is the newcomer who sees `Empty`. What the row asks
// of the receiver holds all the same: it never sees it, and gets an item.
#[test]
fn q_51_a_promised_item_is_not_taken_away_by_try_recv() {
    let queue = ShutdownQueue::unbounded();
    let mut receiver = Wait::blocked(queue.recv());
    queue.try_send(1).unwrap();
    assert!(receiver.is_woken());
    assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
    assert_eq!((queue.len(), queue.stats().promised), (1, 1));
    assert_eq!(*receiver.ready().unwrap().unwrap(), 1);
}

// Adapted, and stricter: nobody overtakes a sender who waits for room.
#[test]
fn q_52_a_newcomer_does_not_overtake_a_woken_sender() {
    let queue = ShutdownQueue::bounded(2);
    queue.try_send(1).unwrap();
    queue.try_send(2).unwrap();
    let mut third = Wait::blocked(queue.send(3));
    take(&queue).done();
    take(&queue).done();
    assert!(third.is_woken());
    queue.try_send(4).unwrap();
    third.ready().unwrap();
    assert_eq!(drain(&queue), [3, 4]);
}

#[test]
fn q_54_a_slot_passes_from_a_cancelled_sender_to_the_next() {
    for how in Leave::BOTH {
        let queue = ShutdownQueue::bounded(1);
        queue.try_send(1).unwrap();
        let first = Wait::blocked(queue.send(2));
        let mut second = Wait::blocked(queue.send(3));
        let taken = take(&queue);
        assert!(first.is_woken() && !second.is_woken());
        match first.leave(how).end() {
            None => assert_eq!(how, Leave::Drop),
            Some(answer) => assert!(matches!(answer, Err(SendError::Cancelled(2, _)))),
        }
        assert!(second.is_woken());
        second.ready().unwrap();
        assert_eq!((queue.len(), queue.stats().unfinished()), (1, 2));
        assert_eq!(drain(&queue), [3]);
        taken.done();
    }
}

#[test]
fn q_55_a_cancelled_join_disturbs_no_count() {
    for how in Leave::BOTH {
        let queue = ShutdownQueue::unbounded();
        queue.try_send(1).unwrap();
        let first = Wait::blocked(queue.join());
        let before = queue.stats();
        match first.leave(how).end() {
            None => assert_eq!(how, Leave::Drop),
            Some(answer) => assert!(answer.is_err()),
        }
        assert_eq!((queue.stats().unfinished(), queue.stats().waiting_joiners), (before.unfinished(), 0));
        let mut second = Wait::blocked(queue.join());
        take(&queue).done();
        assert!(second.is_woken());
        assert!(second.ready().unwrap().all_done());
    }
}

#[test]
fn q_62_an_expired_receiver_is_not_delivered_to() {
    paused(async {
        let queue = ShutdownQueue::bounded(1);
        assert!(matches!(queue.recv_by(ms(10)).await, Err(RecvByError::Elapsed(_))));
        queue.send(1).await.unwrap();
        assert_eq!((queue.len(), queue.stats().promised), (1, 0));
        assert_eq!(drain(&queue), [1]);
    });
}

#[test]
fn q_70_waiting_counts_return_to_zero_and_the_peak_stays() {
    for how in Leave::BOTH {
        let queue = ShutdownQueue::bounded(3);
        let receivers = [(); 2].map(|()| Wait::blocked(queue.recv()));
        assert_eq!(queue.stats().waiting_receivers, 2);
        for receiver in receivers {
            assert_left(receiver.leave(how).end(), how);
        }
        assert_eq!(queue.stats().waiting_receivers, 0);

        for n in 0..3 {
            queue.try_send(n).unwrap();
        }
        let senders = [10, 11].map(|n| Wait::blocked(queue.send(n)));
        assert_eq!(queue.stats().waiting_senders, 2);
        for sender in senders {
            drop(sender.leave(how).end());
        }
        assert_eq!(queue.stats().waiting_senders, 0);
        assert_eq!(drain(&queue), [0, 1, 2]);
        assert_eq!((queue.len(), queue.stats().peak_len), (0, 3));
        assert_no_waiters(&queue);
    }
}

#[test]
fn q_71_a_wait_cancelled_through_its_group_leaves_no_ghost_partner() {
    both(|| async {
        let queue = ShutdownQueue::bounded(1);
        let answer = Arc::new(Mutex::new(None));
        let run = TaskGroup::run({
            let (queue, answer) = (queue.clone(), answer.clone());
            |group| async move {
                let consumer = queue.clone();
                group.spawn(async move {
                    *answer.lock().unwrap() = Some(consumer.recv().await.is_err());
                    ok(())
                });
                while queue.stats().waiting_receivers == 0 {
                    tokio::task::yield_now().await;
                }
                group.cancel("enough");
                ok(())
            }
        });
        run.await.unwrap();
        assert_eq!(answer.lock().unwrap().take(), Some(true));
        // A receiver that is still there would make room.
        queue.try_send(1).unwrap();
        assert_eq!(queue.try_send(2), Err(TrySendError::Full(2)));

        let run = TaskGroup::run({
            let (queue, answer) = (queue.clone(), answer.clone());
            |group| async move {
                let producer = queue.clone();
                group.spawn(async move {
                    let sent = producer.send(3).await;
                    *answer.lock().unwrap() = Some(matches!(sent, Err(SendError::Cancelled(3, _))));
                    ok(())
                });
                while queue.stats().waiting_senders == 0 {
                    tokio::task::yield_now().await;
                }
                group.cancel("enough");
                ok(())
            }
        });
        run.await.unwrap();
        assert_eq!(answer.lock().unwrap().take(), Some(true));
        // A sender that is still there would have a value.
        assert_eq!(drain(&queue), [1]);
        assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::Empty);
        assert_no_waiters(&queue);
    });
}

// The choice: a wait that starts in a cancelled scope does not take effect.
#[test]
fn q_72_a_wait_that_starts_cancelled_takes_and_sends_nothing() {
    let queue = ShutdownQueue::bounded(3);
    queue.try_send("a").unwrap();
    queue.try_send("b").unwrap();
    let mut receiver = Wait::new(queue.recv()).leave(Leave::Request).end();
    assert!(receiver.take().unwrap().is_err());
    let sender = Wait::new(queue.send("c")).leave(Leave::Request).end().unwrap();
    assert!(matches!(sender, Err(SendError::Cancelled("c", _))));
    assert_no_waiters(&queue);
    assert_eq!(*Wait::new(queue.recv()).ready().unwrap().unwrap(), "a");
    assert_eq!(drain(&queue), ["b"]);
}

#[test]
fn q_74_an_item_sent_to_a_cancelled_receiver_stays_in_the_queue() {
    for how in Leave::BOTH {
        let queue = ShutdownQueue::bounded(10);
        let receiver = Wait::blocked(queue.recv());
        let leaving = receiver.leave(how);
        queue.try_send("item").unwrap();
        assert_left(leaving.end(), how);
        assert_eq!((queue.len(), queue.stats().promised), (1, 0));
        assert_eq!(drain(&queue), ["item"]);
    }
}

#[test]
fn q_75_an_item_sent_to_an_aborted_task_is_there_for_others() {
    both(|| async {
        let queue = ShutdownQueue::<&str>::bounded(10);
        let receiver = tokio::spawn({
            let queue = queue.clone();
            async move { queue.recv().await.unwrap().unwrap().detach() }
        });
        while queue.stats().waiting_receivers == 0 {
            tokio::task::yield_now().await;
        }
        receiver.abort();
        queue.try_send("item").unwrap();
        assert!(receiver.await.unwrap_err().is_cancelled());
        assert_eq!(*queue.recv().await.unwrap().unwrap(), "item");
    });
}

// The table knows no third: the request of the limit wins, and the item stays.
#[test]
fn w_17_of_item_and_limit_at_one_instant_the_limit_wins_and_the_item_stays() {
    paused(async {
        for item_first in [true, false] {
            let queue = ShutdownQueue::unbounded();
            let mut receiver = tokio_test::task::spawn(queue.recv_by(ms(10)));
            tokio_test::assert_pending!(receiver.poll());
            if item_first {
                queue.try_send(1).unwrap();
                advance(ms(10)).await;
            } else {
                advance(ms(10)).await;
                queue.try_send(1).unwrap();
            }
            let answer = tokio_test::assert_ready!(receiver.poll());
            assert!(matches!(answer, Err(RecvByError::Elapsed(_))), "item first: {item_first}");
            assert_eq!((queue.len(), queue.stats().promised), (1, 0));
            assert_eq!(drain(&queue), [1]);

            let mut receiver = tokio_test::task::spawn(with_timeout(ms(10), queue.recv()));
            tokio_test::assert_pending!(receiver.poll());
            if item_first {
                queue.try_send(2).unwrap();
                advance(ms(10)).await;
            } else {
                advance(ms(10)).await;
                queue.try_send(2).unwrap();
            }
            let answer = tokio_test::assert_ready!(receiver.poll());
            assert!(answer.unwrap_err().is_elapsed(), "item first: {item_first}");
            assert_eq!(drain(&queue), [2]);
        }
        settle().await;
    });
}
