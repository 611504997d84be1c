use std::collections::VecDeque;

use shuttle::future::block_on;
use shuttle::thread;
use stoppable_sync::ShutdownQueue;

use crate::{at_rest, check, poll_and_drop, recv_all};

#[test]
fn a_send_many_and_a_send_get_through_a_small_queue() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let many = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut values = VecDeque::from([1, 2, 3]);
                block_on(queue.send_many(&mut values)).unwrap();
                assert!(values.is_empty());
            })
        };
        let one = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.send(10)).map(drop).unwrap())
        };
        let mut received = Vec::new();
        block_on(async {
            while received.len() < 4 {
                let item = queue.recv().await.unwrap().unwrap();
                received.push(*item);
                item.done();
            }
        });
        received.retain(|value| *value != 10);
        assert_eq!(received, [1, 2, 3]);
        many.join().unwrap();
        one.join().unwrap();
        at_rest(&queue);
    });
}

#[test]
fn a_send_many_that_leaves_keeps_the_rest_and_its_slots_pass_on() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let leaver = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut values = VecDeque::from([1, 1, 1]);
                poll_and_drop(queue.send_many(&mut values));
                3 - values.len() as u32
            })
        };
        let stayer = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.send_many(&mut [1, 1].into())).unwrap())
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || recv_all(&queue))
        };
        let sent = leaver.join().unwrap();
        stayer.join().unwrap();
        queue.shutdown();
        assert_eq!(consumer.join().unwrap(), sent + 2);
        at_rest(&queue);
    });
}

#[test]
fn a_shutdown_in_the_middle_of_a_send_many_leaves_the_rest() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let many = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut values = VecDeque::from([1, 2, 3]);
                let sent = block_on(queue.send_many(&mut values));
                assert_eq!(sent.is_ok(), values.is_empty());
                3 - values.len() as u32
            })
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || recv_all(&queue))
        };
        let closer = {
            let queue = queue.clone();
            thread::spawn(move || queue.shutdown())
        };
        let sent = many.join().unwrap();
        closer.join().unwrap();
        assert_eq!(consumer.join().unwrap(), sent);
        at_rest(&queue);
    });
}

#[test]
fn those_who_reserve_many_do_not_starve_each_other_or_a_sender() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(2);
        let reservers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || {
                    for permit in block_on(queue.reserve_many(2)).unwrap() {
                        permit.send(1).unwrap();
                    }
                })
            })
            .collect();
        let leaver = {
            let queue = queue.clone();
            thread::spawn(move || drop(poll_and_drop(queue.reserve_many(2))))
        };
        let sender = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.send(1)).map(drop).unwrap())
        };
        block_on(async {
            for _ in 0..5 {
                queue.recv().await.unwrap().unwrap().done();
            }
        });
        for thread in reservers.into_iter().chain([leaver, sender]) {
            thread.join().unwrap();
        }
        at_rest(&queue);
    });
}

#[test]
fn a_resize_while_senders_wait_tells_everybody() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(2);
        queue.try_send(0).unwrap();
        let reserver = {
            let queue = queue.clone();
            thread::spawn(move || match block_on(queue.reserve_many(2)) {
                Ok(permits) => permits.into_iter().filter_map(|permit| permit.send(1).ok()).count(),
                Err(_) => 0,
            })
        };
        let sender = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.send(1)).map(drop).unwrap())
        };
        let resizer = {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.resize(1);
                queue.resize(3);
                queue.resize(1);
            })
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || recv_all(&queue))
        };
        let reserved = reserver.join().unwrap() as u32;
        sender.join().unwrap();
        resizer.join().unwrap();
        queue.shutdown();
        assert_eq!(consumer.join().unwrap(), 2 + reserved);
        at_rest(&queue);
    });
}
