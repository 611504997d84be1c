//! L rows of event, on what tokio has for it, in a stoppable wait.

use std::sync::atomic::{AtomicBool, Ordering};

use stoppable::OrCancelledExt;
use tokio::sync::{Notify, watch};

use crate::kit::{Leave, Wait};

/// An event in the sense of the rows: tokio has none, and this is what it takes.
#[derive(Default)]
struct Event {
    is_set: AtomicBool,
    notify: Notify,
}

impl Event {
    fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    fn clear(&self) {
        self.is_set.store(false, Ordering::Release);
    }

    async fn wait(&self) {
        // Made before the flag is read, it also gets a `set` that comes in between.
        let notified = self.notify.notified();
        if !self.is_set.load(Ordering::Acquire) {
            notified.await;
        }
    }
}

#[test]
fn l_14_set_releases_all_and_stays_until_cleared() {
    let event = Event::default();
    let mut waiters = [(); 3].map(|()| Wait::blocked(event.wait().or_cancelled()));
    event.set();
    for waiter in &mut waiters {
        assert!(waiter.is_woken());
        waiter.ready().unwrap();
    }
    Wait::new(event.wait().or_cancelled()).ready().unwrap();
    event.clear();
    let mut later = Wait::blocked(event.wait().or_cancelled());
    event.set();
    later.ready().unwrap();
}

#[test]
fn l_15_a_cancelled_waiter_leaves_no_record() {
    for how in Leave::BOTH {
        let event = Event::default();
        match Wait::blocked(event.wait().or_cancelled()).leave(how).end() {
            None => assert_eq!(how, Leave::Drop),
            Some(answer) => assert!(answer.is_err()),
        }
        // With a record left, this one would be for that.
        event.notify.notify_one();
        Wait::new(event.notify.notified()).ready();
        let mut next = Wait::blocked(event.wait().or_cancelled());
        event.set();
        next.ready().unwrap();
    }
}

#[test]
fn l_16_a_set_that_is_cleared_at_once_still_releases() {
    let event = Event::default();
    let mut waiter = Wait::blocked(event.wait().or_cancelled());
    event.set();
    event.clear();
    assert!(waiter.is_woken());
    waiter.ready().unwrap();
    // Where a `watch` falls short: it looks at the value again.
    let (event, mut seen) = watch::channel(false);
    let mut waiter = Wait::blocked(async move { seen.wait_for(|set| *set).or_cancelled().await.map(drop) });
    event.send_replace(true);
    event.send_replace(false);
    assert!(waiter.is_woken());
    waiter.pending();
}

// The choice, as for every `.or_cancelled()`: it was waiting, so it is polled first, and the result wins.
#[test]
fn l_17_a_set_and_then_a_cancel_in_one_step_complete_the_waiter() {
    let event = Event::default();
    let waiter = Wait::blocked(event.wait().or_cancelled());
    event.set();
    assert!(waiter.leave(Leave::Request).end().unwrap().is_ok());
}
