//! The report of a group: every task once, by how it ended.

mod support;

use std::future::pending;

use stoppable_group::{Outcome, Policy, TaskError, TaskGroup, ok};
use stoppable_scope::OrCancelledExt;
use support::{ends, ms, secs};
use tokio::time::sleep;

// B-116: 40 finish, 30 are cancelled mid-way, 20 panic, 10 are cancelled before their first poll.
#[tokio::test(start_paused = true)]
async fn the_counts_add_up() {
    let (_, report) = TaskGroup::builder()
        .policy(Policy::Supervise)
        .run_reported(|group| async move {
            for n in 0..90 {
                let task = group.spawn(async move {
                    sleep(ms(1)).await;
                    match n {
                        0..40 => {}
                        40..70 => pending::<()>().await,
                        _ => panic!("boom"),
                    }
                });
                if (40..70).contains(&n) {
                    drop(tokio::spawn(async move {
                        sleep(ms(50)).await;
                        task.cancel();
                    }));
                }
            }
            for _ in 0..10 {
                group.spawn(pending::<()>()).cancel();
            }
            let before = group.report();
            assert_eq!((before.live, before.ended()), (100, 0));
            sleep(ms(20)).await;
            let midway = group.report();
            assert_eq!((midway.live, midway.ok, midway.failed, midway.not_started), (30, 40, 20, 10));
            ok(())
        })
        .await;
    assert_eq!((report.ok, report.cancelled, report.failed, report.not_started), (40, 30, 20, 10));
    assert_eq!((report.live, report.ended(), report.tasks.len()), (0, 100, 60));
}

// "Reports list every task that did not end Ok; those that did are counted, and listed with `.keep_report()`."
#[tokio::test(start_paused = true)]
async fn tasks_that_end_well_are_listed_on_request() {
    for keep in [false, true] {
        let mut builder = TaskGroup::builder().policy(Policy::Supervise);
        if keep {
            builder = builder.keep_report();
        }
        let (_, report) = builder
            .run_reported(|group| async move {
                group.task("well").spawn(sleep(secs(2)));
                group.task("badly").spawn(async {
                    sleep(secs(1)).or_cancelled().await?;
                    Err::<(), TaskError>("E".into())
                });
                ok(())
            })
            .await;
        let names: Vec<_> = report.tasks.iter().map(|task| task.name.as_str()).collect();
        assert_eq!(
            names,
            if keep { vec!["badly", "well"] } else { vec!["badly"] },
            "in the order of their ends"
        );
        let badly = &report.tasks[0];
        assert!(matches!(&badly.outcome, Outcome::Failed(failure) if failure.id() == badly.id));
        assert_eq!(badly.ran_for, keep.then_some(secs(1)));
        assert_eq!((badly.site.file(), badly.last_wait.unwrap().file()), (file!(), file!()));
        assert!(badly.last_wait.unwrap().line() > badly.site.line());
    }
}

// G-24: finished tasks are forgotten while the group stays open.
#[tokio::test(start_paused = true)]
async fn finished_tasks_are_forgotten() {
    TaskGroup::run(|group| async move {
        for _ in 0..1000 {
            group.spawn(async { ok(()) }).await?;
            assert!(group.scope().tree().children.len() <= 2);
        }
        sleep(ms(1)).await;
        assert_eq!((group.live(), group.scope().tree().children.len()), (0, 0));
        assert_eq!((group.report().ok, group.report().tasks.len()), (1000, 0));
        ok(())
    })
    .await
    .unwrap();
}

// B-120, G-27: the live tree shows the caller's lines and names, of closers too.
#[tokio::test(start_paused = true)]
async fn the_live_tree_shows_names_and_spawn_sites() {
    let run = TaskGroup::builder().name("mine").run(|group| async move {
        group.task("one").spawn(pending::<()>());
        group.task("two").spawn(async {
            pending::<()>().or_cancelled().await?;
            ok(())
        });
        drop(stoppable_group::defer((), secs(9), |()| sleep(secs(5))));
        sleep(secs(1)).await;
        let tree = group.scope().tree();
        assert_eq!((tree.name.as_str(), tree.site.file(), tree.children.len()), ("mine", file!(), 3));
        let mut lines: Vec<_> =
            tree.children.iter().map(|child| (child.site.file(), child.site.line())).collect();
        assert!(lines.iter().all(|(at, _)| *at == file!()), "{tree}");
        lines.dedup();
        assert_eq!(lines.len(), 3);
        assert!(tree.children.iter().any(|child| child.last_wait.is_some()));
        group.cancel(());
        ok(())
    });
    ends(run).await.unwrap();
}

// What is alive is in the picture, not what somebody still has a handle of.
#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_is_not_in_the_live_tree() {
    let run = TaskGroup::run(|group| async move {
        let ended = group.task("ended").spawn(async { ok(7) });
        let alive = group.task("alive").spawn(pending::<()>());
        sleep(ms(1)).await;
        let tree = group.scope().tree();
        assert_eq!(tree.children.iter().map(|child| child.name.as_str()).collect::<Vec<_>>(), ["alive"]);
        alive.cancel();
        ok(ended.await?)
    });
    assert_eq!(ends(run).await.unwrap(), 7);
}

// The builder's name is in errors; the name of a task without one is that of its function.
#[tokio::test(start_paused = true)]
async fn names_come_without_asking() {
    async fn fetch_user() {}
    TaskGroup::run(|group| async move {
        assert_eq!(group.name(), "group");
        assert_eq!(group.spawn(fetch_user()).name(), "fetch_user");
        assert_eq!(group.spawn(async {}).name(), "names_come_without_asking");
        assert_eq!(group.task(format!("job {}", 7)).spawn(async {}).name(), "job 7");
        assert_eq!(group.spawn_blocking(|_| {}).name(), "names_come_without_asking");
        ok(())
    })
    .await
    .unwrap();
    let _ = format!("{:?}", TaskGroup::builder());
}
