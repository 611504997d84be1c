//! Several tasks together: as they finish, in the order of spawning, by a deadline, and a bounded map.

mod support;

use std::cell::Cell;
use std::future::pending;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::FutureExt;
use stoppable_group::{HandleError, Handles, Policy, TaskError, TaskGroup, ok, root, with_timeout};
use stoppable_scope::{Cancelled, Deadline, OrCancelledExt, Scope, cleanup};
use stoppable_test::{End, Intervention, Sweep};
use support::{Alive, Log, ends, ms, registrations, runtimes, secs};
use tokio::time::{Instant, sleep};

/// One task for each number, which waits so long and gives it.
fn naps<const N: usize>(group: &TaskGroup, times: [u64; N]) -> Handles<u64> {
    times
        .into_iter()
        .map(|time| {
            group.spawn(async move {
                sleep(ms(time)).await;
                ok(time)
            })
        })
        .collect()
}

fn values(results: Vec<(usize, Result<u64, HandleError>)>) -> Vec<(usize, Option<u64>)> {
    results.into_iter().map(|(position, result)| (position, result.ok())).collect()
}

// W-40: in the order in which they finish; nothing is lost on a break.
#[tokio::test(start_paused = true)]
async fn join_next_gives_them_as_they_finish() {
    ends(TaskGroup::run(|group| async move {
        let mut handles = naps(&group, [30, 10, 20]);
        assert_eq!(handles.len(), 3);
        let first = handles.join_next().await?.unwrap();
        assert_eq!((first.0, first.1?), (1, 10));
        sleep(ms(100)).await;
        // More may be pushed in between; those that finished meanwhile come in the order of their ends.
        handles.push(group.spawn(async { ok(0) }));
        let mut rest = Vec::new();
        while let Some((position, result)) = handles.join_next().await? {
            rest.push((position, result?));
        }
        rest.sort_unstable();
        assert_eq!(rest, [(0, 30), (2, 20), (3, 0)]);
        assert!(handles.is_empty() && handles.join_next().await?.is_none());
        ok(())
    }))
    .await
    .unwrap();
}

// W-39: of several that finish at one instant none is lost.
#[tokio::test(start_paused = true)]
async fn all_that_finish_at_one_instant_are_given() {
    ends(TaskGroup::run(|group| async move {
        let mut handles = naps(&group, [5; 100]);
        let mut seen = 0;
        while let Some((_, five)) = handles.join_next().await? {
            assert_eq!(five?, 5);
            seen += 1;
        }
        assert_eq!(seen, 100);
        ok(())
    }))
    .await
    .unwrap();
}

// Waiting for many costs a wake-up for each that ends, and a look at that one only.
#[tokio::test(start_paused = true)]
async fn one_end_wakes_once() {
    let group = TaskGroup::new();
    let mut handles: Handles<()> =
        (1..=3).map(|n| group.spawn(async move { sleep(secs(n)).await })).collect();
    let mut next = tokio_test::task::spawn(handles.join_next());
    assert!(next.poll().is_pending());
    sleep(ms(500)).await;
    assert!(!next.is_woken());
    sleep(ms(600)).await;
    assert!(next.is_woken());
    assert!(next.poll().is_ready());
    drop(next);
    group.cancel(());
    let mut group = group;
    let _ = group.join().await;
}

// R10: with the waker of its task a wait for many registers nothing beyond the task's own registration.
#[tokio::test(start_paused = true)]
async fn a_wait_for_many_registers_nothing() {
    ends(TaskGroup::run(|group| async move {
        let scope = group.scope();
        let waiter = group.spawn(async move {
            let inner = TaskGroup::new();
            let mut handles: Handles<()> = (0..50).map(|_| inner.spawn(pending::<()>())).collect();
            handles.join_next().await?;
            ok(())
        });
        sleep(ms(1)).await;
        let tree = waiter.scope().tree();
        assert_eq!(tree.registrations, 1);
        assert!(registrations(&scope.tree()) <= 52, "one for each task and the body");
        waiter.cancel();
        let _ = waiter.await;
        ok(())
    }))
    .await
    .unwrap();
}

// A result that was not given stays for the next call: leaving `join_next` loses nothing.
#[tokio::test(start_paused = true)]
async fn leaving_join_next_loses_nothing() {
    ends(TaskGroup::run(|group| async move {
        let mut handles = naps(&group, [10, 20, 30, 40]);
        let mut seen = Vec::new();
        while !handles.is_empty() {
            // Left often before, at and after a result.
            if let Ok(next) = tokio::time::timeout(ms(3), handles.join_next()).await {
                let (position, value) = next?.unwrap();
                seen.push((position, value?));
            }
            assert!(handles.join_next().now_or_never().is_none() || handles.len() < 4);
        }
        let _ = &seen;
        ok(())
    }))
    .await
    .unwrap();
}

// A cancelled waiter hears of its own cancel; a result that is there waits for who asks next.
#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_for_the_next_takes_nothing() {
    ends(TaskGroup::run(|group| async move {
        let mut handles = naps(&group, [1]);
        sleep(ms(5)).await;
        let scope = Scope::named("waiter");
        scope.cancel("enough");
        let next = scope.run(async { handles.join_next().await }).await;
        assert!(!matches!(next, Ok(Ok(_))));
        assert_eq!(handles.len(), 1);
        assert_eq!(handles.join_next().await?.unwrap().1?, 1);
        ok(())
    }))
    .await
    .unwrap();
}

// A request that comes while it waits is answered; a result at the same instant wins.
#[tokio::test(start_paused = true)]
async fn a_result_wins_over_a_request_at_the_same_instant() {
    ends(TaskGroup::run(|group| async move {
        let scope = Scope::named("waiter");
        let mut handles = naps(&group, [10, 50]);
        let asked = scope.clone();
        group.spawn(async move {
            sleep(ms(10)).await;
            asked.cancel("tie");
        });
        let both = scope
            .run(async {
                let first = handles.join_next().await;
                let second = handles.join_next().await;
                (first, second)
            })
            .await;
        let (first, second) = both.unwrap();
        assert_eq!(first.unwrap().unwrap().0, 0);
        assert_eq!(second.unwrap_err().to_string(), "cancelled: tie");
        ok(())
    }))
    .await
    .unwrap();
}

// Memory does not grow with what was taken.
#[tokio::test(start_paused = true)]
async fn handles_may_be_pushed_and_taken_for_ever() {
    ends(TaskGroup::run(|group| async move {
        let mut handles = Handles::new();
        for round in 0..10_000 {
            handles.push(group.spawn(async move { ok(round) }));
            if handles.len() > 8 {
                let (position, value) = handles.join_next().await?.unwrap();
                assert_eq!(position, value?);
            }
        }
        assert_eq!(handles.len(), 8);
        ok(())
    }))
    .await
    .unwrap();
}

// W-25: in the order of spawning, whatever the order of the ends.
#[tokio::test(start_paused = true)]
async fn collect_gives_values_in_the_order_of_spawning() {
    let values = ends(TaskGroup::run(|group| async move {
        let empty: Handles<u64> = Handles::new();
        assert!(empty.collect().await?.is_empty());
        ok(naps(&group, [30, 10, 20]).collect().await?)
    }));
    assert_eq!(values.await.unwrap(), [30, 10, 20]);
}

// W-24, B-15: the first failure ends the wait at once; what becomes of the others the policy says.
#[tokio::test(start_paused = true)]
async fn collect_tells_the_first_failure_at_once() {
    let (log, started) = (Log::default(), Instant::now());
    let seen = log.clone();
    let error = ends(TaskGroup::run(|group| async move {
        let writes: Handles<()> = [("fails", 50), ("writes", 100)]
            .into_iter()
            .map(|(name, after)| {
                let log = seen.clone();
                group.spawn(async move {
                    sleep(ms(after)).await;
                    if name == "fails" {
                        return Err(TaskError::from("disk full"));
                    }
                    log.add("written");
                    Ok(())
                })
            })
            .collect();
        writes.collect().await?;
        ok(())
    }))
    .await
    .unwrap_err();
    assert_eq!((error.failures().len(), started.elapsed()), (1, ms(50)));
    sleep(secs(1)).await;
    assert_eq!(log.len(), 0);

    let started = Instant::now();
    let error = ends(TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
        let fails = group.spawn(async { Err::<(), _>(TaskError::from("disk full")) });
        let slow = group.spawn(async { sleep(secs(1)).await });
        let failed = [slow, fails].into_iter().collect::<Handles<_>>().collect().await.unwrap_err();
        assert_eq!((failed.failure().is_some(), started.elapsed()), (true, ms(0)));
        ok(())
    }));
    assert_eq!(error.await.unwrap_err().failures().len(), 1);
    assert_eq!(started.elapsed(), secs(1));
}

// B-10, W-26, W-27: one cancelled task is one result among the others.
#[tokio::test(start_paused = true)]
async fn a_task_that_was_cancelled_alone_is_one_result() {
    let started = Instant::now();
    ends(TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
        let tasks: Vec<_> = (0..3).map(|_| group.spawn(async { sleep(ms(50)).await })).collect();
        sleep(ms(10)).await;
        tasks[1].cancel();
        let results = tasks.into_iter().collect::<Handles<_>>().collect_results().await?;
        let cancelled =
            |result: &Result<(), HandleError>| result.as_ref().is_err_and(HandleError::is_cancelled);
        assert_eq!(results.iter().map(cancelled).collect::<Vec<_>>(), [false, true, false]);
        assert!(results[0].is_ok() && results[2].is_ok());
        assert_eq!(started.elapsed(), ms(50));
        ok(())
    }))
    .await
    .unwrap();
}

// B-16, W-35: the waiter's own cancel is never a list of cancelled results.
#[tokio::test(start_paused = true)]
async fn the_waiters_cancel_is_not_a_result() {
    for way in ["collect", "collect_results", "collect_by"] {
        let (alive, scope, started) = (Alive::default(), Scope::named("caller"), Instant::now());
        let guards: Vec<_> = (0..3).map(|_| alive.guard()).collect();
        let cancel = async {
            sleep(ms(100)).await;
            scope.cancel("caller gone");
        };
        let run = scope.run(TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
            let tasks = guards.into_iter().map(|guard| {
                group.spawn(async move {
                    let _guard = guard;
                    sleep(secs(1)).await;
                })
            });
            let tasks: Handles<()> = tasks.collect();
            let error: TaskError = match way {
                "collect" => tasks.collect().await.unwrap_err().into(),
                "collect_results" => tasks.collect_results().await.unwrap_err().into(),
                _ => tasks.collect_by(secs(30)).await.unwrap_err().into(),
            };
            assert!(Cancelled::is_in(&*error), "{way}");
            Err::<(), _>(error)
        }));
        let (result, ()) = tokio::join!(ends(run), cancel);
        let error = result.unwrap().unwrap_err();
        assert_eq!(error.cancelled().unwrap().to_string(), "cancelled: caller gone", "{way}");
        assert_eq!((alive.now(), started.elapsed()), (0, ms(100)), "{way}");
    }
}

// W-37: what is done and who has missed it; those run on, and can be waited for, or cancelled.
#[tokio::test(start_paused = true)]
async fn collect_by_tells_who_missed_the_deadline() {
    let started = Instant::now();
    ends(TaskGroup::run(|group| async move {
        let found = naps(&group, [500, 10, 900, 20]).collect_by(ms(100)).await?;
        assert_eq!(started.elapsed(), ms(100));
        assert_eq!(values(found.done), [(1, Some(10)), (3, Some(20))]);
        let mut missed = found.missed.into_iter();
        let (position, handle) = missed.next().unwrap();
        assert_eq!((position, handle.await?), (0, 500));
        let (position, handle) = missed.next().unwrap();
        assert_eq!(position, 2);
        assert!(handle.shutdown().await.unwrap_err().is_cancelled());
        ok(())
    }))
    .await
    .unwrap();
    assert_eq!(started.elapsed(), ms(500));
}

// Zero, the past and never; and nobody to wait for.
#[tokio::test(start_paused = true)]
async fn collect_by_takes_any_deadline() {
    ends(TaskGroup::run(|group| async move {
        let handles = naps(&group, [10, 20]);
        sleep(ms(15)).await;
        let found = handles.collect_by(Duration::ZERO).await?;
        assert_eq!((values(found.done), found.missed.len()), (vec![(0, Some(10))], 1));
        let past = Deadline::at(Instant::now() - ms(10));
        let found = naps(&group, [10]).collect_by(past).await?;
        assert_eq!((found.done.len(), found.missed.len()), (0, 1));
        let found = naps(&group, [10]).collect_by(Deadline::never()).await?;
        assert_eq!((values(found.done), found.missed.len()), (vec![(0, Some(10))], 0));
        let found = Handles::<()>::new().collect_by(Duration::MAX).await?;
        assert!(found.done.is_empty() && found.missed.is_empty());
        ok(())
    }))
    .await
    .unwrap();
}

// A tie: who ends at the instant of the deadline is in one of the lists, and in one only.
#[tokio::test(start_paused = true)]
async fn who_ends_at_the_deadline_is_counted_once() {
    ends(TaskGroup::run(|group| async move {
        let found = naps(&group, [100, 100, 99, 101]).collect_by(ms(100)).await?;
        let mut positions: Vec<_> = found.done.iter().map(|(position, _)| *position).collect();
        assert!(positions.contains(&2) && !positions.contains(&3));
        positions.extend(found.missed.iter().map(|(position, _)| *position));
        positions.sort_unstable();
        assert_eq!(positions, [0, 1, 2, 3]);
        ok(())
    }))
    .await
    .unwrap();
}

// R5: a deadline around it that comes first is the waiter's cancel, not a result.
#[tokio::test(start_paused = true)]
async fn an_enclosing_deadline_wins_over_collect_by() {
    for zero in [false, true] {
        let limit = if zero { Duration::ZERO } else { ms(50) };
        let found = with_timeout(
            limit,
            TaskGroup::run(|group| async move {
                let found = naps(&group, [500]).collect_by(ms(100)).await?;
                ok(found.done.len())
            }),
        );
        assert!(ends(found).await.unwrap_err().is_elapsed());
    }
}

// A failure in the report of `collect_by` counts once in the error of the group.
#[tokio::test(start_paused = true)]
async fn a_failure_that_was_collected_counts_once() {
    let error = ends(TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
        let tasks = (0..2)
            .map(|n| group.spawn(async move { if n == 0 { Err(TaskError::from("bad")) } else { Ok(()) } }));
        let found = tasks.collect::<Handles<_>>().collect_by(secs(1)).await?;
        for (_, result) in found.done {
            result?;
        }
        ok(())
    }))
    .await
    .unwrap_err();
    assert_eq!(error.failures().len(), 1);
}

// All three ways to wait can be left at every point.
#[tokio::test(start_paused = true)]
async fn a_collection_can_be_left_at_every_point() {
    for way in ["join_next", "collect", "collect_by"] {
        let alive = Alive::default();
        let swept = Sweep::new(|| {
            let guards = [alive.guard(), alive.guard(), alive.guard()];
            TaskGroup::run(|group| async move {
                let mut handles: Handles<u64> = guards
                    .into_iter()
                    .zip([30, 10, 20])
                    .map(|(guard, time)| {
                        group.spawn(async move {
                            let _guard = guard;
                            sleep(ms(time)).or_cancelled().await?;
                            cleanup(secs(1), sleep(ms(1))).await?;
                            ok(time)
                        })
                    })
                    .collect();
                let mut sum = 0;
                match way {
                    "join_next" => {
                        while let Some((_, value)) = handles.join_next().await? {
                            sum += value?;
                        }
                    }
                    "collect" => sum = handles.collect().await?.into_iter().sum(),
                    _ => {
                        for (_, value) in handles.collect_by(secs(1)).await?.done {
                            sum += value?;
                        }
                    }
                }
                ok(sum)
            })
        })
        .run(|round| match round.end {
            End::Finished(Ok(sum)) => assert_eq!(sum, 60),
            End::Finished(Err(error)) => assert!(error.is_cancelled(), "{way}: {error}"),
            End::Cut => panic!("a group answers by itself"),
            End::Dropped => assert_eq!(round.intervention, Intervention::Drop),
        })
        .await;
        assert!(swept.points() > 6, "{way}: {swept:?}");
        ends(root().join()).await.unwrap();
        assert_eq!(alive.now(), 0, "{way}");
    }
}

// On both runtimes every result is given once, however the ends and the waits interleave.
#[test]
fn every_result_is_given_once() {
    for runtime in runtimes() {
        runtime.block_on(async {
            for _ in 0..200 {
                let sum = TaskGroup::run(|group| async move {
                    let mut handles: Handles<usize> = (0..16)
                        .map(|n| {
                            group.spawn(async move {
                                for _ in 0..n % 3 {
                                    tokio::task::yield_now().await;
                                }
                                ok(n)
                            })
                        })
                        .collect();
                    let mut sum = 0;
                    while let Some((position, value)) = handles.join_next().await? {
                        let value = value?;
                        assert_eq!(position, value);
                        sum += value;
                    }
                    ok(sum)
                });
                let sum = tokio::time::timeout(secs(10), sum).await.expect("a wake-up was lost");
                assert_eq!(sum.unwrap(), 120);
            }
        });
    }
}

// `map`: in the order of the items, at most so many at a time.
#[tokio::test(start_paused = true)]
async fn map_keeps_the_order_and_the_limit() {
    let (alive, most, started) = (Alive::default(), Arc::new(AtomicUsize::new(0)), Instant::now());
    let (seen, highest) = (alive.clone(), Arc::clone(&most));
    let values = TaskGroup::map(0..10_u64, 3, move |n| {
        let (alive, most) = (seen.clone(), Arc::clone(&highest));
        async move {
            let _guard = alive.guard();
            most.fetch_max(alive.now(), Ordering::Relaxed);
            sleep(ms(100 - n)).await;
            ok(n)
        }
    });
    assert_eq!(ends(values).await.unwrap(), (0..10).collect::<Vec<_>>());
    assert_eq!((most.load(Ordering::Relaxed), alive.now()), (3, 0));
    assert!(started.elapsed() < ms(400));
}

// The iterator is advanced only when there is a place.
#[tokio::test(start_paused = true)]
async fn map_takes_an_item_when_there_is_a_place() {
    let taken = Rc::new(Cell::new(0_usize));
    let counted = Rc::clone(&taken);
    let items = (0..6_usize).inspect(move |_| counted.set(counted.get() + 1));
    let map = TaskGroup::map(items, 2, |n| async move {
        sleep(secs(1)).await;
        ok(n)
    });
    let look = async {
        for expected in [2, 4, 6] {
            sleep(ms(500)).await;
            assert_eq!(taken.get(), expected);
            sleep(ms(500)).await;
        }
    };
    let (values, ()) = tokio::join!(ends(map), look);
    assert_eq!(values.unwrap().len(), 6);
}

// The first failure cancels the rest and takes no more items, also of an endless source.
#[tokio::test(start_paused = true)]
async fn map_ends_with_the_first_failure() {
    let (alive, started) = (Alive::default(), Instant::now());
    let seen = alive.clone();
    let here = Location::caller();
    let map = TaskGroup::map(0_u64.., 4, move |n| {
        let guard = seen.guard();
        async move {
            let _guard = guard;
            sleep(ms(10)).await;
            if n == 9 { Err(TaskError::from("bad page")) } else { Ok(n) }
        }
    });
    let error = ends(map).await.unwrap_err();
    assert_eq!(error.failures().len(), 1, "{error}");
    let site = error.failures()[0].site();
    assert_eq!((site.file(), site.line()), (file!(), here.line() + 1));
    assert_eq!((alive.now(), started.elapsed()), (0, ms(30)));
}

// Nothing to do, more places than items, and the largest limit.
#[tokio::test(start_paused = true)]
async fn map_of_little() {
    let none = TaskGroup::map(Vec::<u32>::new(), 1, |n| async move { ok(n) });
    assert!(ends(none).await.unwrap().is_empty());
    let few = TaskGroup::map([1, 2], usize::MAX, |n| async move { ok(n) });
    assert_eq!(ends(few).await.unwrap(), [1, 2]);
}

// No task could ever run: said where it is called.
#[tokio::test]
#[should_panic(expected = "a limit of 0")]
async fn map_without_a_place_panics() {
    let _ = TaskGroup::map([1], 0, |n| async move { ok(n) }).await;
}

// A panic of the closure or the iterator is a failure; what runs is cancelled.
#[tokio::test(start_paused = true)]
async fn a_panic_of_the_closure_ends_the_map() {
    for in_closure in [true, false] {
        let alive = Alive::default();
        let seen = alive.clone();
        let items = (0..5).inspect(move |n| assert!(in_closure || *n < 3, "items"));
        let error = ends(TaskGroup::map(items, 10, move |n| {
            assert!(n < 3, "closure");
            let guard = seen.guard();
            async move {
                let _guard = guard;
                pending::<()>().await;
            }
        }))
        .await
        .unwrap_err();
        let expected = if in_closure { "closure" } else { "items" };
        assert_eq!(error.failures()[0].panic_message(), Some(expected));
        assert_eq!((error.failures().len(), alive.now()), (1, 0));
    }
}

// In a cancelled scope no item is taken.
#[tokio::test(start_paused = true)]
async fn map_in_a_cancelled_scope_takes_nothing() {
    let scope = Scope::named("outer");
    let taken = Cell::new(0);
    let items = (0..5).inspect(|_| taken.set(taken.get() + 1));
    let result = ends(scope.run(async {
        scope.cancel("too late");
        TaskGroup::map(items, 2, |n| async move { ok(n) }).await
    }))
    .await;
    assert!(result.unwrap().unwrap_err().is_cancelled());
    assert_eq!(taken.get(), 0);
}

// Left at every point, nothing of a map stays.
#[tokio::test(start_paused = true)]
async fn a_map_can_be_left_at_every_point() {
    let alive = Alive::default();
    let swept = Sweep::new(|| {
        let alive = alive.clone();
        TaskGroup::map(0..5, 2, move |n| {
            let guard = alive.guard();
            async move {
                let _guard = guard;
                sleep(ms(10 + n)).or_cancelled().await?;
                ok(n)
            }
        })
    })
    .run(|round| match round.end {
        End::Finished(Ok(values)) => assert_eq!(values, [0, 1, 2, 3, 4]),
        End::Finished(Err(error)) => assert!(error.is_cancelled(), "{error}"),
        End::Cut => panic!("a group answers by itself"),
        End::Dropped => assert_eq!(round.intervention, Intervention::Drop),
    })
    .await;
    assert!(swept.points() > 6, "{swept:?}");
    ends(root().join()).await.unwrap();
    assert_eq!(alive.now(), 0);
}
