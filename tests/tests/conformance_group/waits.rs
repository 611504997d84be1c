//! Section W: `wait_for`, `gather`, `wait`. A gather is a group whose body awaits the handles; waiting for
//! several is done with what `futures` has, over handles.

use std::future::pending;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use stoppable::{
    Elapsed, HandleError, OrCancelledExt, Policy, Scope, ShutdownQueue, TaskError, TaskGroup, TaskHandle,
    TimeoutError, cleanup, ok, with_timeout,
};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{advance, sleep};
use tokio_test::{assert_pending, assert_ready};

use crate::kit::{
    Boom, Clock, Counter, LONG, as_task, both, cancelled_at, fail, fail_after, is_paused, ms, real, secs,
    settle, sleeper, texts,
};

#[test]
fn w_04_a_limit_of_zero_never_starts_the_work() {
    both(async || {
        let started = Counter::default();
        let polls = started.clone();
        let call = with_timeout(ms(0), async move {
            polls.bump();
            ok(())
        });
        assert!(call.await.unwrap_err().is_elapsed());
        assert_eq!(started.get(), 0);
    });
}

#[test]
fn w_07_without_a_limit_the_result_comes() {
    both(async || {
        let call = with_timeout(stoppable::Deadline::never(), async {
            sleep(ms(10)).await;
            ok(7)
        });
        assert_eq!(call.await.unwrap(), 7);
        with_timeout(secs(60), async { ok(()) }).await.unwrap();
    });
}

#[test]
fn w_09_a_value_that_the_work_returns_after_the_limit_counts() {
    both(async || {
        let call = with_timeout(ms(10), async {
            if sleep(LONG).or_cancelled().await.is_err() { ok(7) } else { ok(8) }
        });
        assert_eq!(call.await.unwrap(), 7);
    });
}

#[test]
fn w_10_the_timeout_comes_after_the_cleanup() {
    both(async || {
        let (clock, cleaned) = (Clock::start(), Counter::default());
        let counter = cleaned.clone();
        let call = with_timeout(ms(10), async move {
            let answer = sleep(LONG).or_cancelled().await;
            cleanup(secs(1), sleep(ms(30))).await?;
            counter.bump();
            ok(answer?)
        });
        assert!(call.await.unwrap_err().is_elapsed());
        clock.at(40);
        assert_eq!(cleaned.get(), 1);
    });
}

#[test]
fn w_11_a_failure_in_the_cleanup_is_not_replaced_by_the_timeout() {
    both(async || {
        let call = with_timeout(ms(10), async {
            if sleep(LONG).or_cancelled().await.is_err() {
                cleanup(secs(1), fail_after(ms(10), "cleanup")).await??;
            }
            ok(())
        });
        assert_eq!(call.await.unwrap_err().into_failed().unwrap().to_string(), "cleanup");
    });
}

#[test]
fn w_14_a_limit_of_zero_around_a_shield_leaves_the_work_running() {
    both(async || {
        let done = Counter::default();
        let counter = done.clone();
        TaskGroup::run(|group| async move {
            let shield = group.shield(async move {
                sleep(ms(10)).or_cancelled().await?;
                counter.bump();
                ok(())
            });
            assert!(with_timeout(ms(0), shield).await.unwrap_err().is_elapsed());
            ok(())
        })
        .await
        .unwrap();
        assert_eq!(done.get(), 1);
    });
}

#[test]
fn w_15_a_limit_around_a_shield_leaves_its_result_to_be_read_later() {
    both(async || {
        let clock = Clock::start();
        TaskGroup::run(|group| async move {
            let work = || async {
                sleep(ms(30)).or_cancelled().await?;
                ok(7)
            };
            assert_eq!(with_timeout(stoppable::Deadline::never(), group.shield(work())).await?, 7);
            clock.at(30);
            let mut shield = group.shield(work());
            assert!(with_timeout(ms(10), &mut shield).await.unwrap_err().is_elapsed());
            clock.at(40);
            assert_eq!(shield.await?, 7);
            clock.at(60);
            ok(())
        })
        .await
        .unwrap();
    });
}

#[tokio::test(start_paused = true)]
async fn w_17_an_item_that_lands_with_the_limit_stays_in_the_queue() {
    for item_first in [true, false] {
        let queue = ShutdownQueue::unbounded();
        let mut call = tokio_test::task::spawn(with_timeout(ms(10), queue.recv()));
        assert_pending!(call.poll());
        if item_first {
            queue.try_send(7).unwrap();
            advance(ms(20)).await;
        } else {
            advance(ms(20)).await;
            queue.try_send(7).unwrap();
        }
        assert!(assert_ready!(call.poll()).unwrap_err().is_elapsed());
        drop(call);
        let item = queue.try_recv().unwrap();
        assert_eq!(*item, 7);
        item.done();
        assert_eq!((queue.stats().done, queue.stats().abandoned), (1, 0));
    }
}

#[test]
fn w_19_a_value_after_an_outside_cancel_counts_and_the_request_stays() {
    both(async || {
        let end = cancelled_at(ms(10), async {
            let call = with_timeout(secs(60), async {
                if sleep(LONG).or_cancelled().await.is_err() { ok(7) } else { ok(8) }
            });
            let value = call.await?;
            let scope = Scope::current().unwrap();
            ok((value, scope.cancelling(), scope.is_cancelled()))
        });
        assert_eq!(end.await.unwrap(), (7, 1, true));
    });
}

#[test]
fn w_20_zero_does_not_start_and_a_tiny_limit_lets_the_ready_through() {
    both(async || {
        let started = Counter::default();
        let (one, two) = (started.clone(), started.clone());
        let zero = with_timeout(ms(0), async move {
            one.bump();
            ok(1)
        });
        assert!(zero.await.unwrap_err().is_elapsed());
        assert_eq!(started.get(), 0);
        let tiny = with_timeout(Duration::from_nanos(if is_paused() { 1 } else { 50_000_000 }), async move {
            two.bump();
            ok(2)
        });
        assert_eq!(tiny.await.unwrap(), 2);
    });
}

/// Adapted: told apart by the type, which is better than asyncio can.
#[test]
fn w_22_a_timeout_error_of_the_work_is_told_apart() {
    both(async || {
        let inner = with_timeout(ms(10), async { ok(pending::<()>().await) }).await;
        let Err(TimeoutError::Elapsed(own)) = inner else { panic!("{inner:?}") };
        let outer = with_timeout(secs(60), async move { Err::<(), Elapsed>(own) }).await;
        match outer {
            Err(TimeoutError::Failed(elapsed)) => assert_eq!(elapsed.deadline(), own.deadline()),
            other => panic!("{other:?}"),
        }
    });
}

/// Five children; the third fails at 10 ms, the others take 20 ms.
fn five(group: &TaskGroup, ended: &Counter) -> Vec<TaskHandle<usize>> {
    (0..5)
        .map(|n| {
            let ended = ended.clone();
            group.spawn(async move {
                if n == 2 {
                    sleep(ms(10)).await;
                    return fail("boom");
                }
                sleep(ms(20)).await;
                ended.bump();
                ok(n)
            })
        })
        .collect()
}

/// The choice: the others are cancelled and waited for.
#[test]
fn w_24_one_failure_cancels_the_others_and_waits_for_them() {
    both(async || {
        let (clock, ended) = (Clock::start(), Counter::default());
        let counter = ended.clone();
        let (result, report) = TaskGroup::builder()
            .run_reported(|group| async move {
                let mut values = Vec::new();
                for task in five(&group, &counter) {
                    values.push(task.await?);
                }
                ok(values)
            })
            .await;
        clock.at(10);
        assert_eq!(texts(result.unwrap_err().failures()), ["boom"]);
        assert_eq!((report.failed, report.cancelled, report.live, ended.get()), (1, 4, 0, 0));
        sleep(ms(30)).await;
        assert_eq!(ended.get(), 0);
    });
}

#[test]
fn w_25_collecting_gives_values_and_failures_in_order() {
    both(async || {
        let clock = Clock::start();
        let mut collected = Vec::new();
        let place = &mut collected;
        let error = TaskGroup::builder()
            .policy(Policy::Supervise)
            .run(|group| async move {
                let tasks: Vec<_> = (0..4_u64)
                    .map(|n| {
                        group.spawn(async move {
                            sleep(ms(40 - 10 * n)).await;
                            match n {
                                1 => fail("one"),
                                3 => fail("three"),
                                n => ok(n),
                            }
                        })
                    })
                    .collect();
                for task in tasks {
                    place.push(task.await);
                }
                ok(())
            })
            .await
            .unwrap_err();
        clock.at(40);
        let shown: Vec<_> = collected
            .iter()
            .map(|result| match result {
                Ok(n) => n.to_string(),
                Err(HandleError::Failed(failure)) => failure.downcast_ref::<Boom>().unwrap().to_string(),
                Err(other) => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(shown, ["0", "one", "2", "three"]);
        // The group has them as well, in the order in which the tasks ended.
        assert_eq!(texts(error.failures()), ["three", "one"]);
    });
}

#[test]
fn w_26_a_cancelled_child_is_an_error_of_its_own_kind_and_harms_no_sibling() {
    both(async || {
        let clock = Clock::start();
        TaskGroup::run(|group| async move {
            let mut tasks: Vec<_> = (0..3_u64)
                .map(|n| {
                    group.spawn(async move {
                        sleep(ms(20)).or_cancelled().await?;
                        ok(n)
                    })
                })
                .collect();
            sleep(ms(10)).await;
            tasks[1].cancel();
            let error = futures::future::try_join_all(tasks.iter_mut()).await.unwrap_err();
            clock.at(10);
            assert!(error.is_cancelled() && !error.is_waiter_cancelled());
            assert!(!Scope::current().unwrap().is_cancelled());
            assert_eq!((tasks.swap_remove(2).await?, tasks.swap_remove(0).await?), (2, 0));
            clock.at(20);
            ok(())
        })
        .await
        .unwrap();
    });
}

#[test]
fn w_27_collecting_lists_a_cancelled_child() {
    both(async || {
        TaskGroup::run(|group| async move {
            let tasks: Vec<_> = (0..3_u64)
                .map(|n| {
                    group.spawn(async move {
                        sleep(ms(20)).or_cancelled().await?;
                        ok(n)
                    })
                })
                .collect();
            sleep(ms(10)).await;
            tasks[1].cancel();
            let results = futures::future::join_all(tasks).await;
            assert!(
                matches!(&results[..], [Ok(0), Err(HandleError::Cancelled { .. }), Ok(2)]),
                "{results:?}"
            );
            ok(())
        })
        .await
        .unwrap();
    });
}

#[test]
fn w_31_cancelling_the_awaiter_of_a_gather_cancels_all_children() {
    both(async || {
        let seen = Counter::default();
        let counter = seen.clone();
        TaskGroup::run(|outer| async move {
            let mut gather = outer.spawn_value(TaskGroup::run(|group| async move {
                let tasks: Vec<_> = (0..3).map(|_| group.spawn(sleeper(counter.clone()))).collect();
                for task in tasks {
                    task.await?;
                }
                ok(())
            }));
            sleep(ms(10)).await;
            assert!(gather.cancel());
            assert!((&mut gather).await?.unwrap_err().is_cancelled());
            assert!(!gather.cancel());
            ok(())
        })
        .await
        .unwrap();
        assert_eq!(seen.get(), 3);
    });
}

/// Adapted: all failures are in the aggregate, so none can be unhandled; no panic hook hears of one.
#[test]
fn w_32_a_second_failure_is_kept_and_not_reported_as_unhandled() {
    both(async || {
        let error = TaskGroup::run(|group| async move {
            let first = group.spawn(fail_after(ms(10), "first"));
            group.spawn(async {
                if sleep(LONG).or_cancelled().await.is_err() {
                    return fail("second");
                }
                ok(())
            });
            ok(first.await?)
        })
        .await
        .unwrap_err();
        assert_eq!(texts(error.failures()), ["first", "second"]);
    });
}

/// Adapted: completed beats cancelled. The request is not refused, it stays pending.
#[tokio::test(start_paused = true)]
async fn w_34_a_gather_whose_children_are_done_gives_its_result() {
    let (tx, rx) = oneshot::channel::<u32>();
    let scope = Scope::new();
    let mut gather = tokio_test::task::spawn(scope.run(TaskGroup::run(|group| async move {
        let task = group.spawn(async move { ok(rx.await?) });
        ok(task.await?)
    })));
    assert_pending!(gather.poll());
    settle().await;
    tx.send(7).unwrap();
    settle().await;
    assert!(gather.is_woken());
    scope.cancel("too late");
    let mut end = gather.poll();
    while end.is_pending() && gather.is_woken() {
        end = gather.poll();
    }
    assert_eq!(assert_ready!(end).unwrap().unwrap(), 7);
    assert_eq!(scope.cancelling(), 1);
}

#[test]
fn w_35_a_cancelled_collect_is_cancelled_with_its_reason() {
    both(async || {
        let end = cancelled_at(ms(10), async {
            let collect = TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
                let tasks: Vec<_> = (0..3).map(|_| group.spawn(sleeper(Counter::default()))).collect();
                ok(futures::future::join_all(tasks).await.len())
            });
            ok(collect.await)
        });
        let error = end.await.unwrap().unwrap_err();
        assert_eq!(error.cancelled().unwrap().to_string(), "cancelled: outside");
    });
}

#[test]
fn w_36_a_gather_whose_children_swallow_the_cancel_is_cancelled_all_the_same() {
    both(async || {
        for policy in [Policy::FailFast, Policy::Supervise] {
            let end = cancelled_at(ms(10), async move {
                let gather = TaskGroup::builder().policy(policy).run(|group| async move {
                    for _ in 0..3 {
                        group.spawn(async {
                            let _ = sleep(LONG).or_cancelled().await;
                            ok(7)
                        });
                    }
                    ok(())
                });
                ok(gather.await)
            });
            let error = end.await.unwrap().unwrap_err();
            assert_eq!(error.cancelled().unwrap().to_string(), "cancelled: outside");
        }
    });
}

/// The handles of tasks that sleep so long, as a stream in the order in which they end.
fn tasks(group: &TaskGroup, sleeps: &[u64]) -> Vec<TaskHandle<u64>> {
    sleeps
        .iter()
        .map(|time| {
            let time = *time;
            group.spawn(async move {
                sleep(ms(time)).or_cancelled().await?;
                if time == 15 { fail("fifteen") } else { ok(time) }
            })
        })
        .collect()
}

#[test]
fn w_37_waiting_for_the_first_the_first_failure_or_all_stops_nobody() {
    both(async || {
        let clock = Clock::start();
        let result = TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
            let mut tasks = tasks(&group, &[10, 15, 30]);
            let done =
                |tasks: &[TaskHandle<u64>]| tasks.iter().map(TaskHandle::is_finished).collect::<Vec<_>>();
            let mut waiting: FuturesUnordered<_> = tasks.iter_mut().collect();
            // First completed.
            assert_eq!(waiting.next().await.unwrap()?, 10);
            clock.at(10);
            // First failure: as a result, nothing is raised.
            assert!(matches!(waiting.next().await, Some(Err(HandleError::Failed(_)))));
            clock.at(15);
            drop(waiting);
            assert!(!is_paused() || done(&tasks) == [true, true, false]);
            // All.
            assert_eq!(tasks.pop().unwrap().await?, 30);
            clock.at(30);
            ok(())
        });
        assert_eq!(texts(result.await.unwrap_err().failures()), ["fifteen"]);
    });
}

#[tokio::test(start_paused = true)]
async fn w_39_two_that_complete_in_one_step_are_both_reported() {
    TaskGroup::run(|group| async move {
        let mut tasks = tasks(&group, &[10, 10, 30]);
        let mut waiting: FuturesUnordered<_> = tasks.iter_mut().collect();
        let mut done = vec![waiting.next().await.unwrap()?];
        while let Some(Some(next)) = waiting.next().now_or_never() {
            done.push(next?);
        }
        assert_eq!((done, waiting.len()), (vec![10, 10], 1));
        ok(())
    })
    .await
    .unwrap();
}

/// Adapted: the handles are borrowed by the iteration, which ends once with the limit around it.
#[tokio::test(start_paused = true)]
async fn w_40_results_come_in_the_order_of_completion_also_after_a_limit() {
    TaskGroup::run(|group| async move {
        let clock = Clock::start();
        let mut open = tasks(&group, &[90, 30, 60]);
        let mut seen = Vec::new();
        let limited = with_timeout(ms(45), async {
            let mut waiting: FuturesUnordered<_> = open.iter_mut().collect();
            while let Some(next) = waiting.next().await {
                seen.push(next?);
            }
            ok(())
        });
        assert!(limited.await.unwrap_err().is_elapsed());
        clock.at(45);
        assert_eq!(seen, [30]);
        // Nothing is lost by breaking off: it goes on.
        let mut waiting: FuturesUnordered<_> = open.into_iter().filter(|task| !task.is_finished()).collect();
        while let Some(next) = waiting.next().await {
            seen.push(next?);
            clock.at(seen[seen.len() - 1]);
        }
        assert_eq!(seen, [30, 60, 90]);
        ok(())
    })
    .await
    .unwrap();
}

/// Adapted: a group spawns from any thread, and a handle is a future that any executor can wait for.
#[test]
fn w_41_another_thread_submits_and_waits() {
    real(async || {
        let runtime = tokio::runtime::Handle::current();
        let result = TaskGroup::builder().policy(Policy::Supervise).run(|group| async move {
            let (ended, wait) = oneshot::channel::<()>();
            let submit = group.clone();
            let thread = std::thread::spawn(move || {
                let _ended = ended;
                assert_eq!(runtime.block_on(submit.spawn(async { ok(7) })).unwrap(), 7);
                let failed = runtime.block_on(submit.spawn(async { fail::<u32>("boom") }));
                assert!(matches!(failed, Err(HandleError::Failed(_))));
                let cancelled = submit.spawn(async { ok(pending::<u32>().await) });
                cancelled.cancel();
                assert!(runtime.block_on(cancelled).unwrap_err().is_cancelled());
                // A limit cancels the work that was submitted.
                let work = with_timeout(ms(10), async { ok(pending::<u32>().await) });
                let limited = runtime.block_on(submit.spawn_value(work)).unwrap();
                assert!(limited.unwrap_err().is_elapsed());
            });
            let _ = wait.await;
            thread.join().unwrap();
            ok(())
        });
        assert_eq!(texts(result.await.unwrap_err().failures()), ["boom"]);
    });
}

#[test]
fn w_42_a_task_that_ended_in_its_first_step_cannot_be_cancelled_and_one_that_waits_can() {
    both(async || {
        let end = as_task(async {
            TaskGroup::run(|group| async move {
                let ended = group.spawn(async { ok(7) });
                while !ended.is_finished() {
                    yield_now().await;
                }
                assert!(!ended.cancel());
                assert_eq!(ended.await?, 7);
                let waiting = group.spawn(sleeper(Counter::default()));
                sleep(ms(10)).await;
                assert!(waiting.cancel_because("a message"));
                match waiting.await {
                    Err(HandleError::Cancelled { cancelled, .. }) => {
                        assert_eq!(cancelled.to_string(), "cancelled: a message");
                    }
                    other => panic!("{other:?}"),
                }
                ok(())
            })
            .await?;
            Ok::<(), TaskError>(())
        });
        end.await.unwrap();
    });
}
