//! R2 Honour: cleanup sections in tasks, bodies and nested groups; "A group that winds down counts as a
//! cleanup section of the code around it."

mod support;

use std::future::pending;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt};
use stoppable_group::{TaskError, TaskGroup, ok, with_timeout};
use stoppable_scope::{OrCancelledExt, Scope, cleanup, without_deadline};
use support::{Alive, ends, ms, secs};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// A task that needs `section` to clean up once it is asked.
async fn tidy(section: u64) -> Result<(), TaskError> {
    let answer = pending::<()>().or_cancelled().await;
    cleanup(secs(30), sleep(ms(section))).await?;
    answer?;
    ok(())
}

fn group_with_tidy_task(
    alive: &Alive,
    lock: Arc<Mutex<()>>,
) -> impl Future<Output = Result<(), stoppable_group::GroupError>> + Send + 'static {
    let guard = alive.guard();
    TaskGroup::run(move |group| async move {
        group.spawn(async move {
            let (_guard, _held) = (guard, lock.lock().await);
            tidy(200).await
        });
        ok(())
    })
}

// B-26: "Timeout returns while the cancelled work still runs its clean-up" must not be: limit + 200 ms. Through
// whatever stands between.
#[tokio::test(start_paused = true)]
async fn a_timeout_around_a_group_returns_when_its_sections_have_ended() {
    for around in
        ["nothing", "timeout", "or_cancelled", "scope", "without_deadline", "select", "unordered", "group"]
    {
        let (alive, lock, started) = (Alive::default(), Arc::new(Mutex::new(())), Instant::now());
        let group = group_with_tidy_task(&alive, lock.clone());
        let run = with_timeout(ms(50), async {
            match around {
                "nothing" => group.await?,
                "timeout" => with_timeout(secs(9), group).await?,
                "or_cancelled" => group.or_cancelled().await??,
                "scope" => Scope::new().run(group).await??,
                "without_deadline" => without_deadline(group).await?,
                "select" => tokio::select! {
                    end = group => end?,
                    () = pending() => {}
                },
                "unordered" => {
                    let mut all = FuturesUnordered::new();
                    all.push(group);
                    while let Some(end) = all.next().await {
                        end?;
                    }
                }
                _ => {
                    TaskGroup::run(|outer| async move {
                        outer.spawn(group);
                        ok(())
                    })
                    .await?;
                }
            }
            ok(())
        });
        assert!(ends(run).await.unwrap_err().is_elapsed(), "{around}");
        assert_eq!(started.elapsed(), ms(250), "{around}");
        assert!(lock.try_lock().is_ok(), "{around}");
        assert_eq!(alive.now(), 0, "{around}");
    }
}

// B-26, for a bare future: the drop is immediate.
#[tokio::test(start_paused = true)]
async fn a_bare_future_is_dropped_at_the_limit() {
    let (lock, started) = (Mutex::new(()), Instant::now());
    let run = with_timeout(ms(50), async {
        let _held = lock.lock().await;
        pending::<()>().await;
        ok(())
    });
    assert!(run.await.unwrap_err().is_elapsed());
    assert!(lock.try_lock().is_ok());
    assert_eq!(started.elapsed(), ms(50));
}

// The body's own section, while its tasks are cut at once.
#[tokio::test(start_paused = true)]
async fn a_section_of_the_body_is_honoured() {
    let started = Instant::now();
    let run = with_timeout(
        secs(1),
        TaskGroup::run(|group| async move {
            group.spawn(pending::<()>());
            let answer = pending::<()>().or_cancelled().await;
            cleanup(secs(9), sleep(secs(2))).await?;
            answer?;
            ok(())
        }),
    );
    assert!(ends(run).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(3));
}

// Sections at every depth: the outermost waits for the deepest.
#[tokio::test(start_paused = true)]
async fn sections_of_nested_groups_are_honoured() {
    fn nest(depth: u64) -> futures::future::BoxFuture<'static, Result<(), TaskError>> {
        Box::pin(async move {
            TaskGroup::run(|group| async move {
                group.spawn(tidy(100 * depth));
                if depth > 0 {
                    group.spawn(nest(depth - 1));
                }
                pending::<()>().await;
                ok(())
            })
            .await?;
            ok(())
        })
    }
    let started = Instant::now();
    assert!(ends(with_timeout(secs(1), nest(6))).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), ms(1600));
}

// A section has a limit of its own, at which the task is let go. B-59.
#[tokio::test(start_paused = true)]
async fn a_section_that_does_not_end_is_cut_at_its_limit() {
    let started = Instant::now();
    let result = TaskGroup::run(|group| async move {
        group.spawn(async {
            let _ = pending::<()>().or_cancelled().await;
            let goodbye = cleanup(ms(300), pending::<()>()).await;
            assert!(goodbye.is_err());
            pending::<()>().or_cancelled().await?;
            ok(())
        });
        sleep(secs(1)).await;
        group.cancel(());
        ok(())
    });
    ends(result).await.unwrap();
    assert_eq!(started.elapsed(), ms(1300));
}

// "Sections that follow one another have each their limit, and together end at the latest 60 s after the
// request (configurable)."
#[tokio::test(start_paused = true)]
async fn all_sections_together_have_a_limit() {
    for (limit, end) in [(None, 60), (Some(5), 5)] {
        let started = Instant::now();
        let mut builder = TaskGroup::builder();
        if let Some(limit) = limit {
            builder = builder.cleanup_limit(secs(limit));
        }
        let run = builder.run(|group| async move {
            group.spawn(async {
                let _ = pending::<()>().or_cancelled().await;
                while cleanup(secs(7), sleep(secs(3))).await.is_ok() {}
            });
            sleep(secs(1)).await;
            group.cancel(());
            ok(())
        });
        ends(run).await.unwrap();
        assert_eq!(started.elapsed(), secs(1 + end));
    }
}

// "timeouts in between only pass the question on": the task's own timeouts do not cut its section.
#[tokio::test(start_paused = true)]
async fn a_section_below_several_scopes_is_honoured() {
    let started = Instant::now();
    let run = TaskGroup::run(|group| async move {
        group.spawn(with_timeout(secs(50), async {
            with_timeout(secs(40), tidy(500)).await?;
            ok(())
        }));
        sleep(secs(1)).await;
        group.cancel(());
        ok(())
    });
    ends(run).await.unwrap();
    assert_eq!(started.elapsed(), ms(1500));
}

// A request on a group that joins, taken back: whoever is around can cut the group again... and waits for it
// again with the next request.
#[tokio::test(start_paused = true)]
async fn winding_down_is_over_when_the_request_is_taken_back() {
    let (scope, started) = (Scope::new(), Instant::now());
    let remote = scope.clone();
    tokio::spawn(async move {
        sleep(secs(1)).await;
        remote.cancel("first");
        sleep(secs(1)).await;
        remote.uncancel();
        sleep(secs(1)).await;
        remote.cancel("second");
    });
    let result = scope
        .run(TaskGroup::run(|group| async move {
            group.task("slow").grace(secs(5)).spawn(async {
                sleep(secs(9)).await;
                ok(())
            });
            ok(())
        }))
        .await
        .unwrap();
    assert_eq!(started.elapsed(), secs(8), "three seconds, and a grace of five");
    assert_eq!(result.unwrap_err().to_string(), "group `group` was cancelled: second");
}
