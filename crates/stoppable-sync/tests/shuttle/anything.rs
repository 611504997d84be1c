use std::time::Duration;

use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use stoppable_sync::{AbandonPolicy, ShutdownQueue};

use crate::{at_rest, balanced, check, poll_and_drop, recv_all};

#[test]
fn whatever_others_do_and_leave_a_producer_and_a_consumer_get_through() {
    check(|| {
        let queue =
            ShutdownQueue::<u32>::builder().capacity(1).abandon_policy(AbandonPolicy::Requeue).build();
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || {
                block_on(queue.send(0)).unwrap();
                block_on(queue.send(0)).unwrap();
            })
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || recv_all(&queue))
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || {
                    for _ in 0..3 {
                        anything(&queue);
                    }
                })
            })
            .collect();
        for thread in others.into_iter().chain([producer]) {
            thread.join().unwrap();
        }
        block_on(queue.join()).unwrap();
        queue.shutdown();
        consumer.join().unwrap();
        at_rest(&queue);
    });
}

/// Something at random that does not block.
fn anything(queue: &ShutdownQueue<u32>) {
    match thread_rng().gen_range(0..14) {
        0 => drop(poll_and_drop(queue.send(1))),
        1 => drop(poll_and_drop(queue.recv())),
        2 => drop(poll_and_drop(queue.join())),
        3 => drop(poll_and_drop(queue.reserve())),
        4 => drop(queue.try_send(1)),
        5 => {
            if let Ok(item) = queue.try_recv() {
                item.requeue().unwrap();
            }
        }
        6 => {
            if let Ok(permit) = queue.try_reserve() {
                permit.send(1).unwrap();
            }
        }
        7 => drop(poll_and_drop(queue.send_many(&mut [1, 1].into()))),
        8 => drop(poll_and_drop(queue.reserve_many(2))),
        9 => {
            if let Some(batch) = poll_and_drop(queue.recv_batch(2, Duration::MAX)) {
                batch.unwrap().unwrap().into_iter().for_each(|item| item.requeue().unwrap());
            }
        }
        10 => {
            if let Some(batch) = poll_and_drop(queue.recv_many(2)) {
                batch.unwrap().unwrap().done();
            }
        }
        11 => queue.resize(thread_rng().gen_range(1..3)),
        12 => {
            if let Ok(ticket) = queue.try_send(1) {
                queue.cancel(ticket);
            }
        }
        _ => {
            if let Ok(item) = queue.try_recv() {
                assert!(item.detach() < 2);
                queue.task_done().unwrap();
            }
            balanced(&queue.stats());
        }
    }
}
