//! L rows of the lock, on tokio's mutex in a stoppable wait. Who waited already is polled first, and a result
//! wins: where a row cancels a waiter that was given the lock in the same step, that waiter has it, and it
//! passes on with its guard. A waiter that is dropped passes it on at once, as the rows say.

use stoppable::OrCancelledExt;
use tokio::sync::{Mutex, MutexGuard};

use crate::kit::{Leave, Wait};

type Answer<'a> = Result<MutexGuard<'a, ()>, stoppable::Cancelled>;

fn waiting(lock: &Mutex<()>) -> Wait<impl Future<Output = Answer<'_>>> {
    Wait::blocked(lock.lock().or_cancelled())
}

fn held(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    lock.try_lock().expect("it is free")
}

#[test]
fn l_01_waiters_get_the_lock_in_order_one_with_each_release() {
    let lock = Mutex::new(());
    let mut guard = held(&lock);
    let mut waiters = [(); 3].map(|()| waiting(&lock));
    for next in 0..3 {
        assert!(waiters[next..].iter().all(|waiter| !waiter.is_woken()));
        drop(guard);
        let woken: Vec<_> = (0..3).filter(|n| waiters[*n].is_woken()).collect();
        assert_eq!(woken, [next]);
        guard = waiters[next].ready().unwrap();
        assert!(lock.try_lock().is_err());
    }
    drop(guard);
    drop(held(&lock));
}

// Of the record nothing can be seen but that it stands in nobody's way.
#[test]
fn l_02_a_cancelled_waiter_leaves_no_record() {
    for how in Leave::BOTH {
        let lock = Mutex::new(());
        let guard = held(&lock);
        match waiting(&lock).leave(how).end() {
            None => assert_eq!(how, Leave::Drop),
            Some(answer) => assert!(answer.is_err()),
        }
        drop(guard);
        drop(held(&lock));
    }
}

#[test]
fn l_04_a_cancel_and_a_release_in_one_step_give_the_lock_to_exactly_one() {
    for how in Leave::BOTH {
        for release_first in [true, false] {
            let lock = Mutex::new(());
            let guard = held(&lock);
            let first = waiting(&lock);
            let mut others = [waiting(&lock), waiting(&lock)];
            let leaving = if release_first {
                drop(guard);
                first.leave(how)
            } else {
                let leaving = first.leave(how);
                drop(guard);
                leaving
            };
            let first = leaving.end();
            match how {
                // Exactly one of the others.
                Leave::Drop => {
                    assert_eq!(others.each_ref().map(Wait::is_woken), [true, false]);
                    let guard = others[0].ready().unwrap();
                    others[1].pending();
                    drop(guard);
                }
                // Overruled: it has the lock, and never a second one with it.
                Leave::Request => {
                    others[0].pending();
                    others[1].pending();
                    drop(first.unwrap().unwrap());
                    drop(others[0].ready().unwrap());
                }
            }
            drop(others[1].ready().unwrap());
            drop(held(&lock));
        }
    }
}

#[test]
fn l_05_a_lock_given_to_a_cancelled_waiter_goes_to_the_other_and_stays_held() {
    for how in Leave::BOTH {
        let lock = Mutex::new(());
        let guard = held(&lock);
        let first = waiting(&lock);
        let mut other = waiting(&lock);
        drop(guard);
        assert!(first.is_woken());
        match first.leave(how).end() {
            None => assert_eq!(how, Leave::Drop),
            // Overruled: a result wins, and the other has it next.
            Some(answer) => {
                other.pending();
                drop(answer.unwrap());
            }
        }
        assert!(other.is_woken());
        let guard = other.ready().unwrap();
        assert!(lock.try_lock().is_err());
        drop(guard);
        drop(held(&lock));
    }
}

#[test]
fn l_09_the_only_woken_waiter_leaves_a_free_lock() {
    for how in Leave::BOTH {
        let lock = Mutex::new(());
        let guard = held(&lock);
        let only = waiting(&lock);
        drop(guard);
        assert!(only.is_woken());
        match only.leave(how).end() {
            None => assert_eq!(how, Leave::Drop),
            // Overruled: a result wins.
            Some(answer) => drop(answer.unwrap()),
        }
        drop(Wait::new(lock.lock().or_cancelled()).ready().unwrap());
        drop(held(&lock));
    }
}

#[test]
fn l_10_a_cancel_before_or_after_the_hand_over_strands_nobody() {
    for how in Leave::BOTH {
        for after_hand_over in [true, false] {
            let lock = Mutex::new(());
            let guard = held(&lock);
            let first = waiting(&lock);
            let mut behind = [waiting(&lock), waiting(&lock)];
            let answer = if after_hand_over {
                drop(guard);
                first.leave(how).end()
            } else {
                let answer = first.leave(how).end();
                assert!(!behind[0].is_woken());
                drop(guard);
                answer
            };
            // It does not keep the lock: it never had it, or it has a guard, which ends.
            match answer {
                None => assert_eq!(how, Leave::Drop),
                Some(answer) => assert_eq!(answer.is_ok(), after_hand_over),
            }
            for waiter in &mut behind {
                assert!(waiter.is_woken());
                drop(waiter.ready().unwrap());
            }
            drop(held(&lock));
        }
    }
}
