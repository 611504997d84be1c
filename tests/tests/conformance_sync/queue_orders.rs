//! Q rows of the queues that are last in, first out, and by priority.

use stoppable::{ShutdownQueue, TryRecvError};

use crate::kit::{Wait, drain};

fn filled<T>(queue: ShutdownQueue<T>, values: impl IntoIterator<Item = T>) -> ShutdownQueue<T> {
    for value in values {
        assert!(queue.try_send(value).is_ok());
    }
    queue
}

#[test]
fn q_30_last_in_first_out() {
    let queue = filled(ShutdownQueue::builder().lifo().build(), [1, 3, 2]);
    assert_eq!(drain(&queue), [2, 3, 1]);
}

// Adapted: the smallest first, as there, where a heap of the standard library would have the greatest.
#[test]
fn q_31_the_smallest_priority_first() {
    let queue = filled(ShutdownQueue::builder().priority(|n: &i32| *n).build(), [1, 3, 2]);
    assert_eq!(drain(&queue), [1, 2, 3]);
}

// Adapted, and stronger: the number alone decides, and equal ones keep the order of their acceptance.
#[test]
fn q_56_equal_priorities_keep_the_order_of_acceptance() {
    let jobs = [(1, "z"), (0, "b"), (1, "a"), (0, "a"), (1, "m")];
    let queue = filled(ShutdownQueue::builder().priority(|job: &(i32, &str)| job.0).build(), jobs);
    assert_eq!(drain(&queue), [(0, "b"), (0, "a"), (1, "z"), (1, "a"), (1, "m")]);
}

#[test]
fn q_57_a_shut_down_queue_drains_in_its_own_order() {
    for (queue, order) in crate::kinds(None).into_iter().zip([[1, 3, 2], [2, 3, 1], [1, 2, 3]]) {
        let queue = filled(queue, [1, 3, 2]);
        queue.shutdown();
        for expected in order {
            let item = Wait::new(queue.recv()).ready().unwrap().unwrap();
            assert_eq!(*item, expected);
            item.done();
        }
        assert!(Wait::new(queue.recv()).ready().unwrap().is_none());
        assert_eq!(queue.try_recv().unwrap_err(), TryRecvError::ShutDown);
    }
}
