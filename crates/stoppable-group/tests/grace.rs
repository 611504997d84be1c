//! R2: "A request carries one end of grace: the earliest of those given on the scope it was made on and on
//! the scopes it passes; who gave none adds nothing; where nobody gave one, or zero, the cut is immediate."

mod support;

use std::future::pending;
use std::time::Duration;

use stoppable_group::{TaskGroup, ok, with_timeout};
use stoppable_scope::{Scope, cleanup};
use support::{Alive, ends, ms, secs};
use tokio::time::{Instant, sleep};

/// Where a group with one stubborn task ends after its cancel, by the graces on the group and the task.
async fn ends_after(group_grace: Option<Duration>, task_grace: Option<Duration>) -> Duration {
    let alive = Alive::default();
    let seen = alive.clone();
    let mut builder = TaskGroup::builder();
    if let Some(grace) = group_grace {
        builder = builder.grace(grace);
    }
    let asked = ends(builder.run(|group| async move {
        let mut task = group.task("stubborn");
        if let Some(grace) = task_grace {
            task = task.grace(grace);
        }
        let guard = seen.guard();
        task.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        });
        sleep(secs(1)).await;
        group.cancel(());
        ok(Instant::now())
    }))
    .await
    .unwrap();
    assert_eq!(alive.now(), 0);
    asked.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_earliest_grace_on_the_way_counts() {
    for (group, task, end) in [
        (None, None, 0),
        (Some(2), None, 2),
        (None, Some(3), 3),
        (Some(2), Some(3), 2),
        (Some(3), Some(2), 2),
        (Some(0), Some(3), 0),
        (Some(3), Some(0), 0),
    ] {
        let after = ends_after(group.map(secs), task.map(secs)).await;
        assert_eq!(after, secs(end), "{group:?} {task:?}");
    }
}

// The maximum works: it does not end by itself, and nothing overflows.
#[tokio::test(start_paused = true)]
async fn a_grace_of_the_maximum_does_not_end() {
    let value = TaskGroup::builder().grace(Duration::MAX).run(|group| async move {
        let task = group.task("slow").grace(Duration::MAX).spawn(async {
            sleep(secs(1_000_000)).await;
            ok(5)
        });
        sleep(secs(1)).await;
        group.cancel(());
        ok(cleanup(Duration::MAX, task).await)
    });
    // The 60 s of all sections together are over before, and so the handle answers; the task goes on to its end.
    let started = Instant::now();
    let waited = ends(value).await.unwrap().unwrap();
    assert!(waited.unwrap_err().is_waiter_cancelled());
    assert_eq!(started.elapsed(), secs(1_000_000));
}

// A request from outside passes the group: the graces above where it was made do not matter.
#[tokio::test(start_paused = true)]
async fn a_grace_above_the_request_does_not_matter() {
    let started = Instant::now();
    let run = TaskGroup::builder().grace(secs(50)).run(|_| async {
        TaskGroup::run(|inner| async move {
            inner.spawn(pending::<()>());
            sleep(secs(1)).await;
            inner.cancel(());
            ok(())
        })
        .await?;
        ok(())
    });
    ends(run).await.unwrap();
    assert_eq!(started.elapsed(), secs(1));
}

// The grace of a timeout goes to the tasks of the group below it; the tasks of a group with less have less.
#[tokio::test(start_paused = true)]
async fn the_grace_of_a_timeout_is_passed_down() {
    for (inner, end) in [(None, 5), (Some(2), 3), (Some(9), 5)] {
        let started = Instant::now();
        let mut builder = TaskGroup::builder();
        if let Some(inner) = inner {
            builder = builder.grace(secs(inner));
        }
        let group = builder.run(|group| async move {
            group.spawn(pending::<()>());
            ok(())
        });
        assert!(ends(with_timeout(secs(1), group).grace(secs(4))).await.unwrap_err().is_elapsed());
        assert_eq!(started.elapsed(), secs(end), "{inner:?}");
    }
}

// The group's grace is the body's too.
#[tokio::test(start_paused = true)]
async fn the_body_has_the_grace_of_the_group() {
    for (grace, value) in [(secs(1), None), (secs(3), Some(4))] {
        let run = TaskGroup::builder().grace(grace).run(|group| async move {
            group.cancel(());
            sleep(secs(2)).await;
            ok(4)
        });
        assert_eq!(ends(run).await.ok(), value);
    }
}

// R3: "running graces are void" after an uncancel.
#[tokio::test(start_paused = true)]
async fn an_uncancel_during_a_grace_voids_it() {
    let value = TaskGroup::run(|group| async move {
        let task = group.task("slow").grace(secs(2)).spawn(async {
            sleep(secs(20)).await;
            ok(6)
        });
        sleep(secs(1)).await;
        let scope: Scope = task.scope();
        task.cancel();
        sleep(secs(1)).await;
        scope.uncancel();
        sleep(secs(9)).await;
        // A new request has the whole grace again.
        task.cancel();
        sleep(ms(1900)).await;
        assert!(!task.is_finished());
        scope.uncancel();
        ok(task.await?)
    });
    assert_eq!(ends(value).await.unwrap(), 6);
}

// B-81: a single job is cancelled while a drain with a long grace runs.
#[tokio::test(start_paused = true)]
async fn one_task_can_be_cancelled_while_others_have_their_grace() {
    let started = Instant::now();
    let run = TaskGroup::builder().grace(secs(120)).run(|group| async move {
        let job = group.spawn(sleep(secs(60)));
        sleep(ms(1)).await;
        group.cancel("drain");
        cleanup(secs(9), sleep(secs(1))).await?;
        job.cancel();
        ok(())
    });
    ends(run).await.unwrap();
    assert_eq!(started.elapsed(), ms(1001));
}

// A task that ends by itself during its grace has its value.
#[tokio::test(start_paused = true)]
async fn a_task_may_finish_within_its_grace() {
    let (result, report) = TaskGroup::builder()
        .grace(secs(2))
        .run_reported(|group| async move {
            group.spawn(sleep(secs(2)));
            sleep(secs(1)).await;
            group.cancel(());
            ok(())
        })
        .await;
    result.unwrap();
    assert_eq!((report.ok, report.cancelled), (1, 0));
}
