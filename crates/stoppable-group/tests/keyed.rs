//! One group for each key.

mod support;

use std::future::pending;
use std::sync::Arc;

use futures::FutureExt;
use stoppable_group::{HandleError, KeyedGroup, TaskError, TaskGroup, ok, root};
use stoppable_scope::{OrCancelledExt, Scope, cleanup};
use stoppable_test::{End, Intervention, Sweep};
use support::{Alive, ends, ms, runtimes, secs};
use tokio::time::{Instant, sleep, timeout};

// One key is stopped and waited for, with its cleanup; the others are not touched.
#[tokio::test(start_paused = true)]
async fn stopping_one_key_leaves_the_others() {
    let (alive, tenants, started) = (Alive::default(), KeyedGroup::new("tenants"), Instant::now());
    for key in ["acme", "acme", "globex"] {
        let guard = alive.guard();
        tenants.spawn(key, async move {
            let _guard = guard;
            let asked = pending::<()>().or_cancelled().await;
            cleanup(secs(5), sleep(secs(2))).await?;
            ok(asked?)
        });
    }
    sleep(ms(1)).await;
    assert_eq!(tenants.group("acme").name(), "tenants[\"acme\"]");
    assert!(ends(tenants.stop(&"acme", "contract ended")).await.unwrap().is_ok());
    assert_eq!((alive.now(), started.elapsed()), (1, ms(2001)));
    assert_eq!(tenants.keys(), ["globex"]);
    assert!(ends(tenants.stop(&"globex", ())).await.unwrap().is_ok());
    assert_eq!((alive.now(), tenants.keys().len()), (0, 0));
}

// A key that is not there: nothing to wait for.
#[tokio::test(start_paused = true)]
async fn an_unknown_key_is_none() {
    let tenants = KeyedGroup::<u32>::new("tenants");
    assert!(tenants.stop(&1, ()).now_or_never().unwrap().is_none());
    assert!(tenants.join(&1).now_or_never().unwrap().is_none());
    assert!(tenants.join_all().now_or_never().unwrap().is_empty());
}

// A failure cancels the siblings of its key, is told when that is joined, and until then the key is closed.
#[tokio::test(start_paused = true)]
async fn a_failure_stays_under_its_key() {
    let tenants = KeyedGroup::new("tenants");
    let sibling = tenants.spawn(1, pending::<()>());
    let other = tenants.spawn(2, async { sleep(ms(50)).await });
    tenants.spawn(1, async { Err::<(), _>(TaskError::from("bad tenant")) });
    assert!(sibling.await.unwrap_err().is_cancelled());
    assert!(matches!(tenants.spawn(1, async {}).await, Err(HandleError::Refused { .. })));
    assert!(ends(tenants.join(&1)).await.unwrap().unwrap_err().to_string().contains("bad tenant"));
    assert!(other.await.is_ok());
    // Joined, it may begin again.
    assert!(tenants.spawn(1, async {}).await.is_ok());
    assert!(ends(tenants.join_all()).await.iter().all(|(_, result)| result.is_ok()));
}

// The key is free as soon as it is being stopped: a new task is in a new group.
#[tokio::test(start_paused = true)]
async fn a_key_can_be_used_again_while_it_is_stopped() {
    let tenants = KeyedGroup::new("tenants");
    tenants.spawn("acme", async {
        let _ = pending::<()>().or_cancelled().await;
        cleanup(secs(5), sleep(secs(2))).await?;
        ok(())
    });
    sleep(ms(1)).await;
    let again = async {
        sleep(secs(1)).await;
        tenants.spawn("acme", async { sleep(secs(3)).await }).await
    };
    let (stopped, again) = tokio::join!(ends(tenants.stop(&"acme", ())), again);
    assert!(stopped.unwrap().is_ok() && again.is_ok());
    assert_eq!(tenants.keys(), ["acme"]);
}

// R1: a task takes its scope from its group, whoever spawns it: a request that ends does not end what it has begun.
#[tokio::test(start_paused = true)]
async fn a_key_outlives_who_used_it_first() {
    let tenants = Arc::new(KeyedGroup::new("tenants"));
    let seen = Arc::clone(&tenants);
    let task = ends(TaskGroup::run(|requests| async move {
        let request = requests.spawn(async move { ok(seen.spawn("acme", async { sleep(secs(1)).await })) });
        let task = request.await?;
        requests.cancel("all requests");
        ok(task)
    }))
    .await
    .unwrap();
    assert!(ends(tenants.join(&"acme")).await.unwrap().is_ok());
    assert!(task.await.is_ok());
}

// It lies below the scope in which it was made: that cancel reaches every key.
#[tokio::test(start_paused = true)]
async fn a_cancel_around_it_reaches_every_key() {
    let (scope, alive, started) = (Scope::named("app"), Alive::default(), Instant::now());
    let tenants = Arc::new(scope.in_sync(|| KeyedGroup::new("tenants")));
    for key in 0..10 {
        let guard = alive.guard();
        tenants.spawn(key, async move {
            let _guard = guard;
            let asked = pending::<()>().or_cancelled().await;
            cleanup(secs(5), sleep(secs(2))).await?;
            ok(asked?)
        });
    }
    sleep(ms(1)).await;
    scope.cancel("shutting down");
    let results = ends(tenants.join_all()).await;
    // They have wound down together, not one after another.
    assert_eq!((results.len(), alive.now(), started.elapsed()), (10, 0, ms(2001)));
    assert!(results.iter().all(|(_, result)| result.as_ref().unwrap_err().is_cancelled()));
}

// Dropped, it leaves its tasks, which were asked, to the group in which it was made.
#[tokio::test(start_paused = true)]
async fn a_dropped_keyed_group_leaves_its_tasks_to_the_group_around() {
    let alive = Alive::default();
    let guards = [alive.guard(), alive.guard()];
    let (_, report) = ends(TaskGroup::builder().run_reported(|_group| async move {
        let tenants = KeyedGroup::new("tenants");
        for (key, guard) in guards.into_iter().enumerate() {
            tenants.spawn(key, async move {
                let _guard = guard;
                pending::<()>().await;
            });
        }
        sleep(ms(1)).await;
        ok(())
    }))
    .await;
    assert_eq!((alive.now(), report.adopted.len()), (0, 2));
}

// Leaving `stop` or `join` half-way leaves nobody behind.
#[tokio::test(start_paused = true)]
async fn stop_and_join_can_be_left_at_every_point() {
    let alive = Alive::default();
    for stops in [true, false] {
        let swept = Sweep::new(|| {
            let guard = alive.guard();
            async move {
                let tenants = KeyedGroup::new("tenants");
                tenants.spawn("acme", async move {
                    let _guard = guard;
                    let _ = sleep(ms(10)).or_cancelled().await;
                    cleanup(secs(1), sleep(ms(5))).await?;
                    ok(())
                });
                sleep(ms(1)).or_cancelled().await?;
                let end = if stops { tenants.stop(&"acme", ()).await } else { tenants.join(&"acme").await };
                end.expect("the key is there").map_err(TaskError::from)
            }
        })
        .run(|round| match round.end {
            End::Finished(Ok(())) => {}
            End::Finished(Err(error)) => assert!(stoppable_scope::Cancelled::is_in(&*error), "{error}"),
            End::Cut => panic!("it answers by itself"),
            End::Dropped => assert_eq!(round.intervention, Intervention::Drop),
        })
        .await;
        assert!(swept.points() > 3, "{swept:?}");
        ends(root().join()).await.unwrap();
        assert_eq!(alive.now(), 0);
    }
}

// On both runtimes: keys are used and stopped at once; each group ends, and nothing is left.
#[test]
fn keys_that_are_used_and_stopped_at_once() {
    for runtime in runtimes() {
        runtime.block_on(async {
            for _ in 0..200 {
                let (alive, tenants) = (Alive::default(), Arc::new(KeyedGroup::new("tenants")));
                let users: Vec<_> = (0..4)
                    .map(|user| {
                        let (tenants, alive) = (Arc::clone(&tenants), alive.clone());
                        tokio::spawn(async move {
                            for n in 0..4 {
                                let guard = alive.guard();
                                tenants.spawn(n % 2, async move {
                                    let _guard = guard;
                                    pending::<()>().await;
                                });
                                if user == n {
                                    let stopped = timeout(secs(10), tenants.stop(&(n % 2), ())).await;
                                    let stopped = stopped.expect("it hangs");
                                    assert!(stopped.is_none_or(|result| result.is_ok()));
                                }
                            }
                        })
                    })
                    .collect();
                for user in users {
                    user.await.unwrap();
                }
                for key in tenants.keys() {
                    tenants.group(key).cancel(());
                }
                timeout(secs(10), tenants.join_all()).await.expect("it hangs");
                assert_eq!(alive.now(), 0);
            }
        });
    }
}
