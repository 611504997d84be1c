use shuttle::thread;
use stoppable_sync::ShutdownQueue;

use crate::{at_rest, check, recv_all};

/// B-47.
#[test]
fn the_last_producer_sends_and_leaves_at_once_and_nothing_is_lost() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(2);
        let producers = [queue.producer(), queue.producer()]
            .map(|producer| thread::spawn(move || producer.try_send(1).map(drop).unwrap()));
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || recv_all(&queue))
            })
            .collect();
        let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        assert_eq!(received, 2);
        for producer in producers {
            producer.join().unwrap();
        }
        at_rest(&queue);
    });
}

#[test]
fn a_producer_that_comes_while_the_last_one_goes_sends_or_is_told() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(2);
        let last = queue.producer();
        let leaver = thread::spawn(move || drop(last));
        let newcomer = {
            let queue = queue.clone();
            thread::spawn(move || queue.producer().try_send(1).is_ok() as u32)
        };
        let received = recv_all(&queue);
        leaver.join().unwrap();
        assert_eq!(newcomer.join().unwrap(), received);
        at_rest(&queue);
    });
}

#[test]
fn a_weak_queue_gives_a_handle_or_none_but_never_one_after_the_last() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(2);
        let weak = queue.downgrade();
        let upgrader = thread::spawn(move || weak.upgrade().map(|queue| queue.try_send(1).unwrap()));
        drop(queue);
        upgrader.join().unwrap();
    });
}
