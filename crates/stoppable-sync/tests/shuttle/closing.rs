use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::future::block_on;
use shuttle::thread;
use stoppable_sync::{AbandonPolicy, ShutdownQueue, TrySendError};

use crate::{at_rest, balanced, check, recv_all};

#[test]
fn a_shutdown_in_the_middle_tells_everybody() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let producers: Vec<_> = (0..2)
            .map(|n| {
                let queue = queue.clone();
                thread::spawn(move || {
                    let sent = block_on(queue.send(n)).is_ok();
                    sent as u32 + block_on(queue.send(n)).is_ok() as u32
                })
            })
            .collect();
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || recv_all(&queue))
            })
            .collect();
        let joiner = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.join()).unwrap())
        };
        queue.shutdown();
        balanced(&queue.stats());
        let sent: u32 = producers.into_iter().map(|producer| producer.join().unwrap()).sum();
        let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        joiner.join().unwrap();
        assert_eq!(sent, received);
        at_rest(&queue);
    });
}

#[test]
fn an_immediate_shutdown_gives_what_nobody_received() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(2);
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || (0..3).filter(|n| block_on(queue.send(*n)).is_ok()).count())
        };
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || recv_all(&queue))
            })
            .collect();
        let leftovers = queue.shutdown_immediate();
        let joined = block_on(queue.join()).unwrap();
        let sent = producer.join().unwrap();
        let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        assert_eq!(sent, received as usize + leftovers.len());
        assert_eq!(joined.returned, leftovers.len() as u64);
        at_rest(&queue);
    });
}

#[test]
fn an_abandoned_item_is_put_back_or_buried_but_not_lost_in_a_shutdown() {
    check(|| {
        let buried = Arc::new(AtomicUsize::new(0));
        let sink = Arc::clone(&buried);
        let queue = ShutdownQueue::builder()
            .capacity(1)
            .abandon_policy(AbandonPolicy::Requeue)
            .dead_letters(move |_| {
                sink.fetch_add(1, Ordering::SeqCst);
            })
            .build();
        queue.try_send(1).unwrap();
        let item = queue.try_recv().unwrap();
        let dropper = thread::spawn(move || drop(item));
        let closer = {
            let queue = queue.clone();
            thread::spawn(move || queue.shutdown())
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || recv_all(&queue))
        };
        let report = block_on(queue.join()).unwrap();
        dropper.join().unwrap();
        closer.join().unwrap();
        let received = consumer.join().unwrap() as usize + recv_all(&queue) as usize;
        assert_eq!(received + buried.load(Ordering::SeqCst), 1);
        assert_eq!(report.done + report.abandoned, 1);
        at_rest(&queue);
    });
}

#[test]
fn a_permit_and_a_shutdown() {
    check(|| {
        let queue = ShutdownQueue::<u32>::bounded(1);
        let holder = {
            let queue = queue.clone();
            thread::spawn(move || {
                block_on(async {
                    let Ok(permit) = queue.reserve().await else {
                        return 0;
                    };
                    permit.send(1).is_ok() as u32
                })
            })
        };
        let sender = {
            let queue = queue.clone();
            thread::spawn(move || match queue.try_send(2) {
                Ok(_) => 1,
                Err(TrySendError::Full(value)) => block_on(queue.send(value)).is_ok() as u32,
                Err(TrySendError::ShutDown(_)) => 0,
            })
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || recv_all(&queue))
        };
        queue.shutdown();
        let sent = holder.join().unwrap() + sender.join().unwrap();
        assert_eq!(consumer.join().unwrap(), sent);
        at_rest(&queue);
    });
}
