//! L rows of semaphore, capacity limiter and barrier, on tokio's own in a stoppable wait. A result wins over
//! a cancel of the same step, as it does for the lock.

use std::sync::Arc;

use stoppable::OrCancelledExt;
use tokio::sync::{AcquireError, Barrier, Semaphore, SemaphorePermit, TryAcquireError};

use crate::kit::{Leave, Wait, both};

type Answer<'a> = Result<Result<SemaphorePermit<'a>, AcquireError>, stoppable::Cancelled>;

fn waiting(semaphore: &Semaphore) -> Wait<impl Future<Output = Answer<'_>>> {
    Wait::blocked(semaphore.acquire().or_cancelled())
}

#[track_caller]
fn acquired<'a>(wait: &mut Wait<impl Future<Output = Answer<'a>>>) -> SemaphorePermit<'a> {
    wait.ready().unwrap().unwrap()
}

// A negative count cannot be said.
#[test]
fn l_27_a_semaphore_of_zero_is_locked() {
    let semaphore = Semaphore::new(0);
    assert_eq!(semaphore.available_permits(), 0);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    let mut waiter = waiting(&semaphore);
    semaphore.add_permits(1);
    acquired(&mut waiter).forget();

    let semaphore = Semaphore::new(2);
    let first = semaphore.try_acquire().unwrap();
    assert_eq!(semaphore.available_permits(), 1);
    let _second = semaphore.try_acquire().unwrap();
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    drop(first);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn l_29_one_release_after_cancels_lets_exactly_one_go_on() {
    // Cancelled, and polled since.
    for how in Leave::BOTH {
        let semaphore = Semaphore::new(0);
        let [first, second, mut third, mut fourth] = [(); 4].map(|()| waiting(&semaphore));
        for waiter in [first, second] {
            match waiter.leave(how).end() {
                None => assert_eq!(how, Leave::Drop),
                Some(answer) => assert!(answer.is_err()),
            }
        }
        semaphore.add_permits(1);
        assert!(third.is_woken() && !fourth.is_woken());
        acquired(&mut third).forget();
        fourth.pending();
    }
    // All in one step.
    for how in Leave::BOTH {
        let semaphore = Semaphore::new(0);
        let [first, second, mut third, mut fourth] = [(); 4].map(|()| waiting(&semaphore));
        let leaving = [first.leave(how), second.leave(how)];
        semaphore.add_permits(1);
        let [first, second] = leaving.map(|leaving| leaving.end());
        match how {
            Leave::Drop => {
                acquired(&mut third).forget();
                fourth.pending();
            }
            // Overruled: a result wins. It is still one, and in order.
            Leave::Request => {
                first.unwrap().unwrap().unwrap().forget();
                assert!(second.unwrap().is_err());
                third.pending();
                fourth.pending();
            }
        }
    }
}

#[test]
fn l_30_a_permit_given_to_a_leaving_waiter_is_passed_on_or_restored() {
    for how in Leave::BOTH {
        let semaphore = Semaphore::new(1);
        let held = semaphore.try_acquire().unwrap();
        let first = waiting(&semaphore);
        let mut second = waiting(&semaphore);
        drop(held);
        assert!(first.is_woken() && !second.is_woken());
        // By request a result wins (overruled), and its permit ends here.
        drop(first.leave(how).end().map(Result::unwrap));
        assert!(second.is_woken());
        let held = acquired(&mut second);

        let only = waiting(&semaphore);
        drop(held);
        assert!(only.is_woken());
        drop(only.leave(how).end().map(Result::unwrap));
        assert_eq!(semaphore.available_permits(), 1);
        drop(Wait::new(semaphore.acquire().or_cancelled()).ready().unwrap().unwrap());
    }
    // Killed by the task that releases.
    both(|| async {
        let semaphore = Arc::new(Semaphore::new(1));
        let held = semaphore.acquire().await.unwrap();
        let waiter = tokio::spawn({
            let semaphore = semaphore.clone();
            async move { semaphore.acquire().or_cancelled().await.unwrap().unwrap().forget() }
        });
        tokio::task::yield_now().await;
        waiter.abort();
        drop(held);
        if waiter.await.is_err() {
            drop(semaphore.acquire().or_cancelled().await.unwrap().unwrap());
            assert_eq!(semaphore.available_permits(), 1);
        }
    });
}

#[test]
fn l_31_waiters_are_served_strictly_in_order() {
    // One release each.
    let semaphore = Semaphore::new(1);
    let mut held = semaphore.try_acquire().unwrap();
    let mut waiters = [(); 3].map(|()| waiting(&semaphore));
    for next in 0..3 {
        drop(held);
        assert_eq!((next..3).filter(|n| waiters[*n].is_woken()).collect::<Vec<_>>(), [next]);
        held = acquired(&mut waiters[next]);
    }
    drop(held);

    // Several permits at once wake as many; who comes late is behind them, also where nothing was polled.
    let semaphore = Semaphore::new(0);
    let mut waiters = [(); 3].map(|()| waiting(&semaphore));
    semaphore.add_permits(2);
    assert_eq!(waiters.each_ref().map(Wait::is_woken), [true, true, false]);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    let mut late = waiting(&semaphore);
    acquired(&mut waiters[0]).forget();
    acquired(&mut waiters[1]).forget();
    waiters[2].pending();
    semaphore.add_permits(1);
    assert!(waiters[2].is_woken() && !late.is_woken());
    acquired(&mut waiters[2]).forget();
    late.pending();

    // One in the middle leaves before its turn, one at the head after it was served.
    for how in Leave::BOTH {
        let semaphore = Semaphore::new(0);
        let [first, second, mut third, mut fourth] = [(); 4].map(|()| waiting(&semaphore));
        drop(second.leave(how).end());
        semaphore.add_permits(1);
        assert!(first.is_woken() && !third.is_woken());
        drop(first.leave(how).end());
        assert!(third.is_woken() && !fourth.is_woken());
        drop(acquired(&mut third));
        assert!(fourth.is_woken());
        drop(acquired(&mut fourth));
        assert_eq!(semaphore.available_permits(), 1);
    }
}

// Adapted: a permit gives back what it took, once. Only `add_permits`, a change of the limit, adds to it.
#[test]
fn l_32_permits_cannot_be_released_twice() {
    let semaphore = Semaphore::new(2);
    for _ in 0..3 {
        let (one, two) = (semaphore.try_acquire().unwrap(), semaphore.try_acquire().unwrap());
        drop((one, two));
        assert_eq!(semaphore.available_permits(), 2);
    }
    let over = std::panic::catch_unwind(|| Semaphore::new(1).add_permits(Semaphore::MAX_PERMITS));
    assert!(over.is_err());
}

// Adapted: tokio's semaphore forgets free permits only. To lower the limit by what is lent out, each
// borrower's permit is forgotten instead of given back.
#[test]
fn l_34_the_limit_goes_up_down_and_to_zero_under_waiters() {
    let semaphore = Semaphore::new(2);
    let (one, two) = (semaphore.try_acquire().unwrap(), semaphore.try_acquire().unwrap());

    // Up: a waiter is admitted.
    let [mut first, mut second] = [(); 2].map(|()| waiting(&semaphore));
    semaphore.add_permits(1);
    assert!(first.is_woken() && !second.is_woken());
    let three = acquired(&mut first);

    // Down to 1: nobody is revoked, and who waits goes on waiting as two of three come back.
    assert_eq!(semaphore.forget_permits(2), 0);
    one.forget();
    two.forget();
    second.pending();
    drop(three);
    assert!(second.is_woken());
    let held = acquired(&mut second);

    // To zero: the borrower ends, and nobody is admitted until the limit is raised.
    let mut third = waiting(&semaphore);
    held.forget();
    third.pending();
    assert_eq!(semaphore.available_permits(), 0);
    semaphore.add_permits(1);
    drop(acquired(&mut third));
    assert_eq!(semaphore.forget_permits(5), 1);

    // A cancelled waiter leaves no record that would swallow a permit.
    for how in Leave::BOTH {
        for _ in 0..100 {
            drop(waiting(&semaphore).leave(how).end());
        }
        semaphore.add_permits(1);
        assert_eq!(semaphore.available_permits(), 1);
        assert_eq!(semaphore.forget_permits(1), 1);
    }
}

// tokio's barrier falls short: instead of an index it says who is the leader, and 0 parties are taken for 1.
#[test]
fn l_35_parties_meet_and_meet_again() {
    let barrier = Barrier::new(3);
    let arrive = || Wait::blocked(barrier.wait().or_cancelled());
    let mut round = [arrive(), arrive()];
    let mut last = Wait::new(barrier.wait().or_cancelled());
    let mut leaders = usize::from(last.ready().unwrap().is_leader());
    assert!(round.iter().all(Wait::is_woken));

    // An early second wait, before the first round has drained, belongs to the next one.
    let mut early = arrive();
    for party in &mut round {
        leaders += usize::from(party.ready().unwrap().is_leader());
    }
    assert_eq!(leaders, 1);
    early.pending();
    let mut second = arrive();
    early.pending();
    let mut third = Wait::new(barrier.wait().or_cancelled());
    let parties = [third.ready(), early.ready(), second.ready()];
    assert_eq!(parties.into_iter().filter(|party| party.as_ref().unwrap().is_leader()).count(), 1);

    // And an arrival that has left still counts (L-36): of two parties one is here, and it goes on.
    for how in Leave::BOTH {
        let barrier = Barrier::new(2);
        drop(Wait::blocked(barrier.wait().or_cancelled()).leave(how).end());
        assert!(Wait::new(barrier.wait().or_cancelled()).ready().is_ok());
    }
    assert!(Wait::new(Barrier::new(0).wait().or_cancelled()).ready().unwrap().is_leader());
}
