use std::panic::{AssertUnwindSafe, catch_unwind};

use stoppable_sync::{AbandonPolicy, Item, Leftovers, ShutdownQueue};
use tokio_test::{assert_pending, assert_ready_ok};

use crate::{assert_balanced, assert_no_waiters, by_hand, drain, take};

#[derive(Clone, Copy, PartialEq, Debug)]
struct Job(i64, char);

fn by_level() -> ShutdownQueue<Job> {
    ShutdownQueue::builder().priority(|job: &Job| job.0).build()
}

fn send_all<T: std::fmt::Debug>(queue: &ShutdownQueue<T>, values: impl IntoIterator<Item = T>) {
    for value in values {
        queue.try_send(value).unwrap();
    }
}

fn names(jobs: impl IntoIterator<Item = Job>) -> String {
    jobs.into_iter().map(|job| job.1).collect()
}

#[test]
fn lifo_gives_the_latest_first() {
    let queue = ShutdownQueue::builder().lifo().build();
    send_all(&queue, [1, 3, 2]);
    assert_eq!(drain(&queue), [2, 3, 1]);
}

#[test]
fn priority_gives_the_smallest_first() {
    let queue = ShutdownQueue::builder().priority(|n: &i32| *n).build();
    send_all(&queue, [1, 3, 2]);
    assert_eq!(drain(&queue), [1, 2, 3]);
}

#[test]
fn equal_priorities_come_out_as_they_were_accepted() {
    let queue = by_level();
    send_all(&queue, [Job(1, 'a'), Job(0, 'b'), Job(1, 'c'), Job(0, 'd'), Job(1, 'e')]);
    assert_eq!(names(drain(&queue)), "bdace");
}

#[test]
fn any_integer_is_a_priority() {
    let queue = by_level();
    let levels = [64, i64::MAX, 63, -1, 0, i64::MIN, 65, 1, -1, 64];
    send_all(&queue, levels.map(|level| Job(level, ' ')));
    let received: Vec<_> = drain(&queue).into_iter().map(|job| job.0).collect();
    assert_eq!(received, [i64::MIN, -1, -1, 0, 1, 63, 64, 64, 65, i64::MAX]);
    assert!(queue.is_empty());
}

#[test]
fn what_fits_an_i64_needs_no_cast() {
    let queue = ShutdownQueue::builder().priority(|urgent: &bool| !*urgent).build();
    send_all(&queue, [false, true]);
    assert_eq!(drain(&queue), [true, false]);
    let queue = ShutdownQueue::builder().priority(|n: &u32| *n).build();
    send_all(&queue, [u32::MAX, 0]);
    assert_eq!(drain(&queue), [0, u32::MAX]);
}

#[test]
fn a_shutdown_drains_in_the_order_of_the_queue() {
    let lifo = ShutdownQueue::builder().lifo().build();
    let priority = ShutdownQueue::builder().priority(|n: &i32| *n).build();
    for (queue, expected) in [(lifo, [2, 3, 1]), (priority, [1, 2, 3])] {
        send_all(&queue, [1, 3, 2]);
        queue.shutdown();
        assert_eq!(drain(&queue), expected);
        assert!(assert_ready_ok!(by_hand(queue.recv()).poll()).is_none());
    }
}

#[test]
fn leftovers_and_dead_letters_come_in_the_order_of_the_queue() {
    let lifo = ShutdownQueue::builder().lifo().build();
    let priority = ShutdownQueue::builder().priority(|n: &i32| *n).build();
    for (queue, expected) in [(lifo, [2, 3, 1]), (priority, [1, 2, 3])] {
        send_all(&queue, [1, 3, 2]);
        let leftovers: Leftovers<_> = queue.shutdown_immediate();
        assert_eq!(leftovers.into_iter().collect::<Vec<_>>(), expected);
        assert_balanced(&queue);
    }
}

#[test]
fn a_promise_is_for_an_item_and_the_priority_decides_which() {
    let queue = by_level();
    let mut receiver = by_hand(queue.recv());
    assert_pending!(receiver.poll());
    send_all(&queue, [Job(2, 'a'), Job(1, 'b')]);
    assert!(receiver.is_woken());
    assert_eq!(assert_ready_ok!(receiver.poll()).unwrap().1, 'b');
}

#[test]
fn a_requeued_item_is_received_last_in_a_lifo_queue() {
    let queue = ShutdownQueue::builder().lifo().build();
    send_all(&queue, [1, 2, 3]);
    take(&queue).requeue().unwrap();
    assert_eq!(drain(&queue), [2, 1, 3]);
}

#[test]
fn a_requeued_item_keeps_its_priority_and_is_last_among_its_equals() {
    let queue = by_level();
    send_all(&queue, [Job(1, 'a'), Job(1, 'b'), Job(2, 'c')]);
    take(&queue).requeue().unwrap();
    assert_eq!(names(drain(&queue)), "bac");
}

#[test]
fn an_item_may_be_given_another_priority_before_it_is_requeued() {
    let queue = by_level();
    send_all(&queue, [Job(1, 'a'), Job(1, 'b'), Job(70, 'c')]);
    let mut item: Item<Job> = take(&queue);
    item.0 = 100;
    item.requeue().unwrap();
    assert_eq!(names(drain(&queue)), "bca");
}

#[test]
fn senders_that_wait_are_served_in_the_order_of_waiting_whatever_the_priority() {
    let queue = ShutdownQueue::builder().capacity(1).priority(|job: &Job| job.0).build();
    send_all(&queue, [Job(5, 'a')]);
    let mut low = by_hand(queue.send(Job(9, 'b')));
    let mut high = by_hand(queue.send(Job(0, 'c')));
    assert_pending!(low.poll());
    assert_pending!(high.poll());
    take(&queue).done();
    assert!(low.is_woken() && !high.is_woken());
    assert_ready_ok!(low.poll());
    assert_eq!(names(drain(&queue)), "bc");
}

#[test]
fn a_priority_that_panics_leaves_the_queue_as_it_was() {
    let queue = ShutdownQueue::builder()
        .capacity(1)
        .abandon_policy(AbandonPolicy::Requeue)
        .priority(|job: &Job| if job.1 == '!' { panic!("no priority") } else { job.0 })
        .build();
    let panics = |f: &dyn Fn()| catch_unwind(AssertUnwindSafe(f)).is_err();
    assert!(panics(&|| assert!(queue.try_send(Job(0, '!')).is_ok())));
    assert!(panics(&|| drop(queue.send(Job(0, '!')))));
    assert!(panics(&|| assert!(queue.try_reserve().unwrap().send(Job(0, '!')).is_ok())));
    assert!(panics(&|| drop(queue.send_many(&mut [Job(0, 'a'), Job(0, '!')].into()))));
    assert_eq!(queue.stats().accepted, 0);
    assert_no_waiters(&queue);

    // A guard that is dropped must not panic a second time: the policy cannot put it back.
    send_all(&queue, [Job(0, 'a')]);
    let mut item = take(&queue);
    item.1 = '!';
    assert!(catch_unwind(AssertUnwindSafe(|| item.requeue().is_ok())).is_err());
    assert_eq!(queue.stats().abandoned, 1);
    assert_balanced(&queue);
}

#[test]
fn the_priority_may_use_the_queue() {
    use std::sync::{Arc, OnceLock};
    let known = Arc::new(OnceLock::<ShutdownQueue<u8>>::new());
    let asked = known.clone();
    let queue = ShutdownQueue::builder()
        .priority(move |n: &u8| if asked.get().is_none_or(ShutdownQueue::is_empty) { 0 } else { *n })
        .build();
    assert!(known.set(queue.clone()).is_ok());
    send_all(&queue, [9, 8, 7]);
    assert_eq!(drain(&queue), [9, 7, 8]);
}
