//! What real users ran into with permits, on tokio's semaphore in a stoppable wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use stoppable::{InScopeExt, OrCancelledExt, Scope, ok, with_timeout};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use crate::kit::{Leave, ms, paused, secs};

#[test]
fn b_65_cancelling_the_chosen_waiter_does_not_break_the_semaphore() {
    for how in Leave::BOTH {
        paused(async {
            let semaphore = Arc::new(Semaphore::new(1));
            let started = Instant::now();
            let scope = Scope::named("One");
            let zero = semaphore.clone().acquire_owned().await.unwrap();
            sleep(secs(1)).await;
            let one = tokio::spawn({
                let semaphore = semaphore.clone();
                async move { semaphore.acquire().or_cancelled().await.map(drop) }.in_scope(&scope)
            });
            sleep(secs(1)).await;
            // Zero releases, and in the same turn cancels One.
            drop(zero);
            match how {
                Leave::Request => scope.cancel("One is not needed"),
                Leave::Drop => one.abort(),
            }
            match how {
                // It was given the permit, and a result wins: One has it, and ends.
                Leave::Request => assert!(one.await.unwrap().is_ok()),
                Leave::Drop => assert!(one.await.unwrap_err().is_cancelled()),
            }
            sleep(secs(1)).await;
            assert_eq!(started.elapsed(), secs(3));
            let two = semaphore.acquire().or_cancelled().await.unwrap().unwrap();
            assert_eq!(started.elapsed(), secs(3));
            drop(two);
            assert_eq!(semaphore.available_permits(), 1);
        });
    }
}

#[test]
fn b_71_a_hot_task_does_not_starve_those_who_wait() {
    paused(async {
        let semaphore = Arc::new(Semaphore::new(1));
        let started = Instant::now();
        let grants = Arc::new(Mutex::new(Vec::new()));
        let hold = {
            let grants = grants.clone();
            move |semaphore: Arc<Semaphore>, who: &'static str, times: u32| {
                let grants = grants.clone();
                async move {
                    for _ in 0..times {
                        let asked = Instant::now();
                        let permit = semaphore.acquire().or_cancelled().await.unwrap().unwrap();
                        grants.lock().unwrap().push((who, started.elapsed(), asked.elapsed()));
                        sleep(ms(10)).await;
                        drop(permit);
                    }
                }
            }
        };
        let mut tasks = vec![tokio::spawn(hold(semaphore.clone(), "hot", 3))];
        for (n, who) in (1..).zip(["W1", "W2", "W3", "W4", "W5"]) {
            let hold = hold(semaphore.clone(), who, 1);
            tasks.push(tokio::spawn(async move {
                sleep(ms(n)).await;
                hold.await;
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let grants = grants.lock().unwrap().clone();
        let order: Vec<_> = grants.iter().map(|(who, at, _)| (*who, *at)).collect();
        assert_eq!(
            order,
            [
                ("hot", ms(0)),
                ("W1", ms(10)),
                ("W2", ms(20)),
                ("W3", ms(30)),
                ("W4", ms(40)),
                ("W5", ms(50)),
                ("hot", ms(60)),
                ("hot", ms(70)),
            ]
        );
        let longest = grants.iter().filter(|(who, ..)| *who != "hot").map(|(.., waited)| *waited).max();
        assert!(longest <= Some(ms(45)), "{longest:?}");
    });
}

/// A permit that is handed over only after its health check.
async fn checked(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let permit = semaphore.clone().acquire_owned().await.unwrap();
    sleep(ms(10)).await;
    permit
}

#[test]
fn b_72_an_acquire_left_before_hand_over_loses_no_slot() {
    paused(async {
        let semaphore = Arc::new(Semaphore::new(2));
        let limit: Duration = ms(5);
        for _ in 0..100 {
            // Dropped from outside, and cut by a deadline of ours.
            assert!(timeout(limit, checked(&semaphore).or_cancelled()).await.is_err());
            assert_eq!(semaphore.available_permits(), 2);
            let acquired = with_timeout(limit, async { ok(checked(&semaphore).or_cancelled().await?) });
            assert!(acquired.await.unwrap_err().is_elapsed());
            assert_eq!(semaphore.available_permits(), 2);
        }
        let started = Instant::now();
        let both = tokio::join!(checked(&semaphore).or_cancelled(), checked(&semaphore).or_cancelled());
        assert!(both.0.is_ok() && both.1.is_ok());
        assert_eq!(started.elapsed(), ms(10));
        assert_eq!(semaphore.available_permits(), 0);
    });
}
