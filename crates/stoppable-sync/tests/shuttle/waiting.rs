use std::sync::Arc;

use shuttle::future::block_on;
use shuttle::thread;
use stoppable_sync::ShutdownQueue;

use crate::{at_rest, check, poll_and_drop, recv_all};

#[test]
fn producers_consumers_and_a_join() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let producers: Vec<_> = (0..2)
            .map(|n| {
                let queue = queue.clone();
                thread::spawn(move || {
                    block_on(async {
                        queue.send(n).await.unwrap();
                        queue.send(n + 2).await.unwrap();
                    })
                })
            })
            .collect();
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || recv_all(&queue))
            })
            .collect();
        for producer in producers {
            producer.join().unwrap();
        }
        let report = block_on(queue.join()).unwrap();
        assert_eq!(report.done, 4);
        queue.shutdown();
        let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        assert_eq!(received, 4);
        at_rest(&queue);
    });
}

#[test]
fn no_departure_of_a_receiver_loses_a_wake_up() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let leavers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || {
                    if let Some(item) = poll_and_drop(queue.recv()) {
                        item.unwrap().unwrap().requeue().unwrap();
                    }
                })
            })
            .collect();
        let stayers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || block_on(queue.recv()).unwrap().unwrap().done())
            })
            .collect();
        block_on(queue.send(1)).unwrap();
        block_on(queue.send(2)).unwrap();
        for thread in stayers.into_iter().chain(leavers) {
            thread.join().unwrap();
        }
        at_rest(&queue);
    });
}

#[test]
fn no_departure_of_a_sender_loses_a_slot() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        queue.try_send(0).unwrap();
        let leaver = {
            let queue = queue.clone();
            thread::spawn(move || drop(poll_and_drop(queue.send(1))))
        };
        let reserver = {
            let queue = queue.clone();
            thread::spawn(move || drop(poll_and_drop(queue.reserve())))
        };
        let stayer = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.send(2)).map(drop).unwrap())
        };
        block_on(queue.recv()).unwrap().unwrap().done();
        let mut last = 0;
        while last != 2 {
            let item = block_on(queue.recv()).unwrap().unwrap();
            last = *item;
            item.done();
        }
        leaver.join().unwrap();
        reserver.join().unwrap();
        stayer.join().unwrap();
        queue.shutdown();
        recv_all(&queue);
        at_rest(&queue);
    });
}

#[test]
fn a_wait_that_moves_to_another_thread_is_woken_there() {
    check(|| {
        let queue = Arc::new(ShutdownQueue::<u32>::bounded(1));
        let producer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                block_on(queue.send(1)).unwrap();
                block_on(queue.send(2)).unwrap();
            })
        };
        let moved = {
            let queue = Arc::clone(&queue);
            async move {
                let first = queue.recv().await.unwrap().unwrap();
                let second = queue.recv().await.unwrap().unwrap();
                assert_eq!((*first, *second), (1, 2));
                first.done();
                second.done();
            }
        };
        let mut moved = Box::pin(moved);
        let ready = block_on(async { futures::poll!(&mut moved).is_ready() });
        if !ready {
            thread::spawn(move || block_on(moved)).join().unwrap();
        }
        producer.join().unwrap();
        at_rest(&queue);
    });
}
