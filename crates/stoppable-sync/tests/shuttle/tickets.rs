use std::time::Duration;

use shuttle::future::block_on;
use shuttle::thread;
use stoppable_sync::ShutdownQueue;

use crate::{at_rest, check, recv_all};

#[test]
fn of_a_receiver_and_a_cancel_only_one_gets_the_item() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || recv_all(&queue))
            })
            .collect();
        let ticket = block_on(queue.send(1)).unwrap();
        let canceller = {
            let queue = queue.clone();
            thread::spawn(move || queue.cancel(ticket).is_some() as u32)
        };
        let sender = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.send(2)).map(drop).unwrap())
        };
        let cancelled = canceller.join().unwrap();
        sender.join().unwrap();
        queue.shutdown();
        let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        assert_eq!(received + cancelled, 2);
        assert_eq!(block_on(queue.join()).unwrap().returned, u64::from(cancelled));
        at_rest(&queue);
    });
}

#[test]
fn who_lost_its_promise_to_a_cancel_is_served_by_the_next_item() {
    check(|| {
        let queue = ShutdownQueue::<u32>::unbounded();
        let collector = {
            let queue = queue.clone();
            thread::spawn(move || {
                block_on(queue.recv_batch(2, Duration::MAX))
                    .unwrap()
                    .unwrap()
                    .into_iter()
                    .for_each(|i| i.done())
            })
        };
        let receiver = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.recv()).unwrap().unwrap().done())
        };
        let ticket = queue.try_send(1).unwrap();
        let cancelled = queue.cancel(ticket).is_some();
        for n in 0..3 {
            // One more than is needed, unless the first was taken.
            if n != 2 || cancelled {
                queue.try_send(n).unwrap();
            }
        }
        collector.join().unwrap();
        receiver.join().unwrap();
        at_rest(&queue);
    });
}

#[test]
fn cancelling_the_last_of_a_draining_queue_lets_everybody_go() {
    check(|| {
        let queue = ShutdownQueue::<u32>::unbounded();
        let ticket = queue.try_send(1).unwrap();
        queue.shutdown();
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || recv_all(&queue))
            })
            .collect();
        let joiner = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.join()).map(drop).unwrap())
        };
        let cancelled = queue.cancel(ticket).is_some() as u32;
        joiner.join().unwrap();
        let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        assert_eq!(received + cancelled, 1);
        at_rest(&queue);
    });
}
