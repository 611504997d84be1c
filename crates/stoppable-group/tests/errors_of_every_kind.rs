//! R6: "Errors may be any `std::error::Error`, `Box<dyn Error + Send + Sync>`, `anyhow::Error` or
//! `eyre::Report`; a cancelled one is recognised in each, through `#[from]`, `#[source]` and
//! `#[error(transparent)]`."

mod support;

use std::future::pending;
use std::io;

use eyre::WrapErr as _;
use stoppable_group::{GroupError, HandleError, TaskError, TaskGroup, ok, with_timeout};
use stoppable_scope::{Cancelled, OrCancelledExt, TimeoutError, failure};
use support::{ends, secs};
use tokio::time::sleep;

#[derive(Debug, thiserror::Error)]
enum Own {
    #[error("from")]
    From(#[from] Cancelled),
    #[error("source")]
    Source { source: Cancelled },
    #[error(transparent)]
    Transparent(Cancelled),
    #[error("io")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Any(#[from] anyhow::Error),
    #[error("boxed")]
    Boxed(#[source] TaskError),
    #[error("plain")]
    Plain,
}

/// With a context of anyhow; the trait of eyre has a `context` too.
fn deep<T, E>(result: Result<T, E>) -> anyhow::Result<T>
where
    Result<T, E>: anyhow::Context<T, E>,
{
    anyhow::Context::context(result, "deep")
}

async fn wait() -> Result<(), Cancelled> {
    pending::<()>().or_cancelled().await
}

/// Spawns a task per kind of error, each of which ends because it was cancelled.
macro_rules! all_are_cancelled {
    ($group:ident, $($name:literal => $future:expr;)*) => {{
        let mut handles = Vec::new();
        $(
            let task = $group.task($name).spawn($future);
            handles.push(($name, tokio::spawn(async move { task.await.map(drop) })));
        )*
        handles
    }};
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_recognised_whatever_its_error() {
    let (result, report) = TaskGroup::builder()
        .run_reported(|group| async move {
            let handles = all_are_cancelled!(group,
                "Cancelled" => wait();
                "own, from" => async { Ok::<(), Own>(wait().await?) };
                "own, source" => async { wait().await.map_err(|source| Own::Source { source }) };
                "own, transparent" => async { wait().await.map_err(Own::Transparent) };
                "own, io inside" => async { Ok::<(), Own>(wait().await.map_err(io::Error::other)?) };
                "own, anyhow inside" => async { Ok::<(), Own>(deep(wait().await)?) };
                "own, boxed" => async { wait().await.map_err(|e| Own::Boxed(e.into())) };
                "boxed" => async { Ok::<(), TaskError>(wait().await?) };
                "boxed own" => async { Ok::<(), TaskError>(wait().await.map_err(Own::from)?) };
                "anyhow" => async { anyhow::Ok(wait().await?) };
                "anyhow, context" => async { deep(deep(wait().await)) };
                "anyhow own" => async { anyhow::Ok(wait().await.map_err(Own::from)?) };
                "eyre" => async { Ok::<(), eyre::Report>(wait().await?) };
                "eyre, context" => async { wait().await.wrap_err("one").wrap_err("two") };
                "io" => async { wait().await.map_err(io::Error::other) };
                "io, boxed own" => async { wait().await.map_err(|e| io::Error::other(Own::from(e))) };
                "timeout" => with_timeout(secs(99), wait());
                "timeout, boxed" => with_timeout(secs(99), async { wait().await?; ok(()) });
                "timeout, anyhow" => with_timeout(secs(99), async { deep(wait().await) });
                "group" => TaskGroup::run(|_| async { wait().await?; ok(()) });
                "group in anyhow" => async {
                    deep(TaskGroup::run(|_| async { wait().await?; ok(()) }).await)
                };
                "handle" => group.task("other").spawn(wait());
                "handle in eyre" => {
                    let other = group.task("other").spawn(pending::<()>());
                    async move { other.await.wrap_err("deep") }
                };
            );
            sleep(secs(1)).await;
            group.cancel("enough");
            ok(handles)
        })
        .await;
    assert_eq!(report.failed, 0, "{:?}", report.tasks);
    for (name, handle) in result.unwrap() {
        let error = handle.await.unwrap().unwrap_err();
        assert!(matches!(error, HandleError::Cancelled { .. }), "{name}: {error:?}");
        assert!(error.to_string().ends_with("was cancelled: enough"), "{name}: {error}");
    }
}

// The body's: whatever is passed on with `?` becomes the one concrete error, and no closure needs an annotation.
#[tokio::test(start_paused = true)]
async fn bodies_with_mixed_errors_need_no_annotation() {
    let value = TaskGroup::run(|group| async move {
        let number: u8 = "7".parse()?;
        let text = std::str::from_utf8(b"x")?;
        let own = Ok::<u8, Own>(1)?;
        let any = anyhow::Ok(2_u8)?;
        let report = Ok::<u8, eyre::Report>(3)?;
        let boxed = ok(4_u8)?;
        let handle = group.spawn(async { Ok::<u8, Own>(5) }).await?;
        let timed = with_timeout(secs(1), async { Ok::<u8, io::Error>(6) }).await?;
        let nested = TaskGroup::run(|_| async { Ok(7_u8) }).await?;
        sleep(secs(1)).or_cancelled().await?;
        Ok((number + own + any + report + boxed + handle + timed + nested, text.len()))
    });
    assert_eq!(ends(value).await.unwrap(), (35, 1));
    for kind in 0..9 {
        let result = TaskGroup::run(|group| async move {
            group.cancel("C");
            match kind {
                0 => wait().await?,
                1 => wait().await.map_err(Own::from)?,
                2 => deep(wait().await)?,
                3 => wait().await.wrap_err("deep")?,
                4 => wait().await.map_err(io::Error::other)?,
                5 => with_timeout(secs(1), wait()).await?,
                6 => group.spawn(async { ok(()) }).await?,
                7 => TaskGroup::run(|_| async { Ok(wait().await?) }).await?,
                _ => drop(group.spawn_when_free(async {}).await?),
            }
            Ok(())
        });
        let error = ends(result).await.unwrap_err();
        assert_eq!(error.cancelled().map(ToString::to_string).as_deref(), Some("cancelled: C"), "{kind}");
    }
}

// "`failure(e)` marks a real failure whose cause is a cancel."
#[tokio::test(start_paused = true)]
async fn a_marked_failure_is_one_whatever_lies_beneath() {
    let error = TaskGroup::run(|group| async move {
        group.task("boxed").spawn(async { wait().await.map_err(failure) });
        group.task("own").spawn(async { wait().await.map_err(|e| Own::Boxed(failure(e))) });
        group
            .task("anyhow")
            .spawn(async { wait().await.map_err(|e| anyhow::Error::new(Own::Boxed(failure(e)))) });
        group.task("io").spawn(async { wait().await.map_err(|e| io::Error::other(failure(e))) });
        group.task("timeout").spawn(with_timeout(secs(9), async { wait().await.map_err(failure) }));
        group.task("nested").spawn(TaskGroup::run(|_| async { wait().await.map_err(failure) }));
        sleep(secs(1)).await;
        group.cancel("C");
        ok(())
    });
    let error: GroupError = ends(error).await.unwrap_err();
    assert_eq!(error.failures().len(), 6, "{error}");
    assert!(!Cancelled::is_in(&error));
}

// A failure of every kind is kept and can be found by its type.
#[tokio::test(start_paused = true)]
async fn a_failure_of_every_kind_can_be_found() {
    let error = TaskGroup::builder()
        .policy(stoppable_group::Policy::Supervise)
        .run(|group| async move {
            group.task("own").spawn(async { Err::<(), _>(Own::Plain) });
            group.task("boxed").spawn(async { Err::<(), TaskError>(Own::Plain.into()) });
            group.task("anyhow").spawn(async { Err::<(), _>(anyhow::Error::new(Own::Plain)) });
            group.task("context").spawn(async { deep(Err::<(), _>(Own::Plain)) });
            group.task("eyre").spawn(async { Err::<(), _>(eyre::Report::new(Own::Plain)) });
            group.task("wrapped").spawn(async { Err::<(), _>(Own::Plain).wrap_err("deep") });
            group.task("timeout").spawn(with_timeout(secs(1), async { Err::<(), _>(Own::Plain) }));
            group.task("timed anyhow").spawn(with_timeout(secs(1), async {
                Err::<(), _>(anyhow::Error::new(Own::Plain).context("c"))
            }));
            ok(())
        })
        .await
        .unwrap_err();
    for failure in error.failures() {
        // What a timeout adds is transparent: its source is that of the error inside.
        let found = match failure.downcast_ref::<TimeoutError<Own>>() {
            Some(TimeoutError::Failed(own)) => Some(own),
            _ => failure.downcast_ref::<Own>(),
        };
        assert!(matches!(found, Some(Own::Plain)), "{failure:?}");
    }
    assert_eq!(error.failures().len(), 8);
}

// The message of an error is kept as it was.
#[tokio::test(start_paused = true)]
async fn an_error_is_shown_as_itself() {
    let error = TaskGroup::run(|group| async move {
        group.task("t").spawn(async { Err::<(), _>(anyhow::anyhow!("inner").context("outer")) });
        ok(())
    })
    .await
    .unwrap_err();
    let failure = &error.failures()[0];
    assert_eq!(failure.to_string(), "task `t` failed: outer");
    let chain: Vec<String> =
        std::iter::successors(failure.error().map(|e| e as &dyn std::error::Error), |e| e.source())
            .map(ToString::to_string)
            .collect();
    assert_eq!(chain, ["outer", "inner"]);
}

// "For other types a group takes `cancelled_if`": asked only where nothing else tells, believed only where the
// task was in fact cancelled; its panic is the task's failure.
#[tokio::test(start_paused = true)]
async fn cancelled_if_tells_what_the_error_does_not() {
    #[derive(Debug, thiserror::Error)]
    #[error("status {0}")]
    struct Status(u8);
    let is_cancelled = |error: &(dyn std::error::Error + 'static)| {
        assert!(!error.is::<Cancelled>(), "that is known");
        error.downcast_ref::<Status>().is_some_and(|status| status.0 == 1)
    };
    let (result, report) = TaskGroup::builder()
        .cancelled_if(is_cancelled)
        .run_reported(|group| async move {
            group.spawn(async {
                let _ = wait().await;
                Err::<(), _>(Status(1))
            });
            group.spawn(wait());
            group.task("real").spawn(async {
                let _ = wait().await;
                Err::<(), _>(Status(2))
            });
            sleep(secs(1)).await;
            group.cancel(());
            ok(())
        })
        .await;
    assert_eq!((report.cancelled, report.failed), (2, 1));
    assert_eq!(result.unwrap_err().failures()[0].name(), "real");
    // Nobody was cancelled.
    let run = TaskGroup::builder().cancelled_if(is_cancelled).run(|group| async move {
        group.task("liar").spawn(async { Err::<(), _>(Status(1)) });
        ok(())
    });
    assert_eq!(run.await.unwrap_err().failures().len(), 1);
    let run = TaskGroup::builder().cancelled_if(|_| panic!("judge")).run(|group| async move {
        group.spawn(async { Err::<(), _>(Status(1)) });
        ok(())
    });
    assert_eq!(run.await.unwrap_err().failures()[0].panic_message(), Some("judge"));
}
