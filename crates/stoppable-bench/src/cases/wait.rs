//! What it costs to make a wait stoppable. Told is the overhead: the time of the wrapped wait less that of the
//! bare one in a bare tokio task. Ours is one group task with many waits, so what its root does for each of
//! them is in it.

use stoppable::{OrCancelledExt, TaskError, TaskGroup, ok, with_timeout};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::support::{HOUR, wait};
use crate::case::{Case, Side, Variant};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("wait.stoppable", "overhead of a pending wait made stoppable", "wait")
            .limits(0.4, 0.2)
            .counted(10_000)
            .variant(Variant::new("", stoppable(), run_until_cancelled()).over(bare())),
        Case::new("wait.deadline", "overhead of stoppable and under a deadline", "wait")
            .limits(0.2, 0.1)
            .counted(10_000)
            .variant(Variant::new("", under_deadline(), timeout_of_run_until_cancelled()).over(bare())),
    ]
}

/// The only task of a group.
pub(super) async fn in_group(task: impl Future<Output = Result<(), TaskError>> + Send + 'static) {
    let group = TaskGroup::run(|group| async move {
        group.task("worker").spawn(task);
        ok(())
    });
    group.await.expect("the task ends well");
}

fn bare() -> Side {
    Side::timed("bare", |n| async move {
        for _ in 0..n {
            wait().await;
        }
        n
    })
}

fn stoppable() -> Side {
    Side::timed("or_cancelled", |n| async move {
        in_group(async move {
            for _ in 0..n {
                wait().or_cancelled().await?;
            }
            ok(())
        })
        .await;
        n
    })
}

fn run_until_cancelled() -> Side {
    Side::timed("run_until_cancelled", |n| async move {
        let token = CancellationToken::new();
        for _ in 0..n {
            token.run_until_cancelled(wait()).await.expect("nobody cancels");
        }
        n
    })
}

fn under_deadline() -> Side {
    Side::timed("or_cancelled in with_timeout", |n| async move {
        in_group(async move {
            let waits = async {
                for _ in 0..n {
                    wait().or_cancelled().await?;
                }
                ok(())
            };
            Ok(with_timeout(HOUR, waits).await?)
        })
        .await;
        n
    })
}

fn timeout_of_run_until_cancelled() -> Side {
    Side::timed("timeout(run_until_cancelled(..))", |n| async move {
        let token = CancellationToken::new();
        for _ in 0..n {
            let waited = timeout(HOUR, token.run_until_cancelled(wait())).await;
            waited.expect("an hour is long").expect("nobody cancels");
        }
        n
    })
}
