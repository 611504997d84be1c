//! Tasks that are not `Send`: the same rules, on one thread.

mod support;

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;

use stoppable_group::{HandleError, TaskError, TaskGroup, defer, ok, root};
use stoppable_scope::{OrCancelledExt, Scope};
use stoppable_test::{End, Intervention, Sweep};
use support::{Log, ends, ms, runtimes, secs};
use tokio::task::LocalSet;
use tokio::time::sleep;

// A value that is not `Send` comes back by the handle.
#[tokio::test(start_paused = true)]
async fn a_local_task_gives_a_local_value() {
    let local = LocalSet::new();
    let value = local.run_until(TaskGroup::run(|group| async move {
        let seven = Rc::new(7);
        let task = group.spawn_local(async move {
            sleep(ms(1)).await;
            ok(seven)
        });
        ok(*task.await?)
    }));
    assert_eq!(ends(value).await.unwrap(), 7);
}

// The rules of failure are the same, and name and site are known.
#[tokio::test(start_paused = true)]
async fn a_local_failure_cancels_the_siblings() {
    let dropped = Rc::new(Cell::new(false));
    let guard = Dropped(dropped.clone());
    let local = LocalSet::new();
    let error = local.run_until(TaskGroup::run(|group| async move {
        group.spawn_local(async move {
            let _guard = guard;
            pending::<()>().await;
        });
        group.task("parser").spawn_local(async {
            let local = Rc::new("bad input");
            sleep(ms(1)).await;
            Err::<(), _>(TaskError::from(*local))
        });
        pending::<()>().await;
        ok(())
    }));
    let error = ends(error).await.unwrap_err();
    assert_eq!(error.failures()[0].to_string(), "task `parser` failed: bad input");
    assert_eq!(error.failures()[0].site().file(), file!());
    assert!(dropped.get());
}

struct Dropped(Rc<Cell<bool>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

// Outside of a `LocalSet` it panics; that is the spawner's panic, and the group still ends.
#[tokio::test(start_paused = true)]
async fn outside_of_a_local_set_the_spawner_panics() {
    let dropped = Rc::new(Cell::new(false));
    let guard = Dropped(dropped.clone());
    let error = ends(TaskGroup::run(|group| async move {
        group.spawn(async { sleep(ms(1)).await });
        group.spawn_local(async move {
            let _guard = guard;
        });
        ok(())
    }))
    .await
    .unwrap_err();
    assert_eq!(error.failures()[0].name(), "body");
    assert!(error.failures()[0].is_panic() && dropped.get());
}

// A cancelled group refuses it unpolled.
#[tokio::test(start_paused = true)]
async fn a_cancelled_group_refuses_local_tasks() {
    LocalSet::new()
        .run_until(async {
            let _ = ends(TaskGroup::run(|group| async move {
                group.cancel(());
                let refused = group.spawn_local(async { ok(Rc::new(1)) });
                assert!(refused.is_finished());
                ok(())
            }))
            .await;
        })
        .await;
}

// Services, graces and limits hold for local tasks as well.
#[tokio::test(start_paused = true)]
async fn a_local_service_ends_with_the_group() {
    let log = Log::default();
    let seen = log.clone();
    let local = LocalSet::new();
    let value = local.run_until(TaskGroup::builder().limit(1).run(|group| async move {
        let local = Rc::new(seen);
        group.task("service").service().spawn_local(async move {
            let _ = pending::<()>().or_cancelled().await;
            local.add("stopped");
        });
        let first = group.spawn_local(async { sleep(ms(10)).await });
        let second = group.spawn_local(async { ok(Rc::new(7)) });
        sleep(ms(5)).await;
        assert!(!second.is_finished(), "there is one place");
        first.await?;
        ok(*second.await?)
    }));
    assert_eq!(ends(value).await.unwrap(), 7);
    assert_eq!(log.lines(), ["stopped"]);
}

// The set may end before its tasks: they are dropped, accounted for, and the group does not hang.
#[tokio::test(start_paused = true)]
async fn a_local_set_that_goes_away_takes_its_tasks_along() {
    let local = LocalSet::new();
    let group = TaskGroup::new();
    let dropped = Rc::new(Cell::new(false));
    let guard = Dropped(dropped.clone());
    let mut spawned = None;
    let spawn = async {
        spawned = Some(group.spawn_local(async move {
            let _guard = guard;
            pending::<()>().await;
        }));
        sleep(ms(1)).await;
    };
    local.run_until(spawn).await;
    drop(local);
    assert!(dropped.get());
    assert!(matches!(spawned.unwrap().await, Err(HandleError::Cancelled { .. })));
    let mut group = group;
    assert!(ends(group.join()).await.is_ok());
}

// What a local task defers is closed by the group.
#[tokio::test(start_paused = true)]
async fn a_local_task_may_defer() {
    let log = Log::default();
    let seen = log.clone();
    let local = LocalSet::new();
    let group = local.run_until(TaskGroup::run(|group| async move {
        group.spawn_local(async move {
            let _local = Rc::new(());
            let _conn = defer(seen, secs(1), |log| async move { log.add("closed") });
            sleep(ms(1)).await;
        });
        ok(())
    }));
    ends(group).await.unwrap();
    assert_eq!(log.lines(), ["closed"]);
}

// Left at every point: what was adopted is dropped while its set still runs.
#[tokio::test(start_paused = true)]
async fn a_group_of_local_tasks_can_be_left_at_every_point() {
    let local = LocalSet::new();
    local
        .run_until(async {
            let alive = Rc::new(());
            let swept = Sweep::new(|| {
                let alive = alive.clone();
                TaskGroup::run(|group| async move {
                    let task = group.spawn_local(async move {
                        let _alive = alive;
                        sleep(ms(10)).or_cancelled().await?;
                        ok(7)
                    });
                    ok(task.await?)
                })
            })
            .run(|round| match round.end {
                End::Finished(Ok(value)) => assert_eq!(value, 7),
                End::Finished(Err(error)) => assert!(error.is_cancelled(), "{error}"),
                End::Cut => panic!("a group answers by itself"),
                End::Dropped => assert_eq!(round.intervention, Intervention::Drop),
            })
            .await;
            assert!(swept.points() > 2, "{swept:?}");
            ends(root().join()).await.unwrap();
            assert_eq!(Rc::strong_count(&alive), 1);
        })
        .await;
}

// On a runtime with many threads a local task stays on its own, and its waker may come from another.
#[test]
fn local_tasks_are_woken_from_other_threads() {
    for runtime in runtimes() {
        LocalSet::new().block_on(&runtime, async {
            for _ in 0..200 {
                let here = std::thread::current().id();
                let value = TaskGroup::run(|group| async move {
                    let remote = group.spawn(async {
                        tokio::task::yield_now().await;
                        ok(7)
                    });
                    let local = group.spawn_local(async move {
                        let value = Rc::new(remote.await?);
                        assert_eq!(std::thread::current().id(), here);
                        ok(value)
                    });
                    assert!(Scope::current().is_some());
                    ok(*local.await?)
                });
                assert_eq!(value.await.unwrap(), 7);
            }
        });
    }
}
