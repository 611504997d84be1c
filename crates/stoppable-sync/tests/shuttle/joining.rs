use shuttle::future::block_on;
use shuttle::thread;
use stoppable_sync::ShutdownQueue;

use crate::{at_rest, balanced, check, poll_and_drop};

#[test]
fn done_and_join_do_not_miss_each_other() {
    check(|| {
        let queue = ShutdownQueue::<u32>::unbounded();
        let workers: Vec<_> = (0..2)
            .map(|n| {
                queue.try_send(n).unwrap();
                let item = queue.try_recv().unwrap();
                thread::spawn(move || item.done())
            })
            .collect();
        let joiners: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || assert_eq!(block_on(queue.join()).unwrap().done, 2))
            })
            .collect();
        let leaver = {
            let queue = queue.clone();
            thread::spawn(move || drop(poll_and_drop(queue.join())))
        };
        balanced(&queue.stats());
        for thread in workers.into_iter().chain(joiners) {
            thread.join().unwrap();
        }
        leaver.join().unwrap();
        at_rest(&queue);
    });
}
