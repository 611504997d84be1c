//! Sentences of the rules that a campaign of mutations found untested.

mod support;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stoppable_group::{Policy, TaskError, TaskGroup, defer, ok, root, with_timeout};
use stoppable_scope::{InScopeExt, OrCancelledExt, Scope, checkpoint, cleanup};
use support::{events, ms, secs};
use tokio::time::sleep;

// R1: "a stoppable wait there says so once, in a tracing event that names its line". Alone in its program.
#[tokio::test]
async fn a_wait_in_a_plain_task_says_so_once() {
    let (log, _guard) = events();
    for _ in 0..2 {
        for _ in 0..2 {
            tokio::spawn(async { checkpoint().await.unwrap() }).await.unwrap();
        }
    }
    let said: Vec<_> = log.lines().into_iter().filter(|line| line.contains("without a scope")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains(file!()), "{said:?}");
}

// R2: "the group in which `defer` was called, or the nearest living one above it", also where somebody still holds
// the group that has ended.
#[tokio::test(start_paused = true)]
async fn a_closer_passes_a_group_that_has_ended() {
    let closed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&closed);
    TaskGroup::run(|_outer| async move {
        let inner = TaskGroup::run(|inner| async move {
            let guard = defer((), secs(5), |()| async move {
                sleep(ms(10)).await;
                closed.store(true, Ordering::SeqCst);
            });
            ok((guard, inner))
        });
        let (guard, _ended) = inner.await?;
        drop(guard);
        ok(())
    })
    .await
    .unwrap();
    assert!(seen.load(Ordering::SeqCst), "the outer group has waited for it");
}

// R3: "a group that already winds down keeps its reason", though the request is taken back meanwhile.
#[tokio::test(start_paused = true)]
async fn a_group_that_winds_down_keeps_its_reason() {
    let error = TaskGroup::run(|group| async move {
        let scope = group.scope();
        group.spawn(async move {
            let _answered = pending::<()>().or_cancelled().await;
            cleanup(secs(5), sleep(ms(10))).await?;
            scope.uncancel();
            ok(())
        });
        sleep(ms(1)).await;
        group.cancel("first");
        checkpoint().await?;
        ok(())
    })
    .await
    .unwrap_err();
    assert_eq!(error.cancelled().unwrap().reason().to_string(), "first");
}

// R6: "passing it on with `?` does not count it twice", also where another group was the first to have it.
#[tokio::test(start_paused = true)]
async fn the_failure_of_another_group_counts_once_in_this_one() {
    let outer = TaskGroup::builder().policy(Policy::Supervise).run(|outer| async move {
        let first = outer.spawn(async { Err::<(), TaskError>("disk".into()) });
        let inner = TaskGroup::builder().policy(Policy::Supervise).run(|inner| async move {
            let second = inner.spawn(async move { ok(first.await?) });
            inner.spawn(async move { ok(second.await?) });
            ok(())
        });
        assert_eq!(inner.await.unwrap_err().failures().len(), 1);
        ok(())
    });
    assert_eq!(outer.await.unwrap_err().failures().len(), 1);
}

// `Root::join` is a stoppable wait at which nothing can be lost: a request comes first.
#[tokio::test(start_paused = true)]
async fn a_request_comes_before_an_empty_root() {
    let scope = Scope::new();
    scope.cancel("enough");
    assert!(root().join().in_scope(&scope).await.is_err());
}

// R2: "Who is cut after having answered [..] is logged": the work of a timeout and the body of a group too.
#[tokio::test(start_paused = true)]
async fn a_timeout_and_a_body_that_are_cut_after_an_answer_are_warned_of() {
    async fn answers_and_waits_again() -> Result<(), TaskError> {
        let _answered = pending::<()>().or_cancelled().await;
        pending().await
    }
    let warned = |log: &support::Log, name: &str| {
        let lines = log.lines();
        lines.iter().filter(|line| line.contains("waiting again") && line.contains(name)).count()
    };
    let (log, _guard) = events();
    assert!(with_timeout(secs(1), answers_and_waits_again()).await.unwrap_err().is_elapsed());
    assert_eq!(warned(&log, "timeout"), 1, "{log:?}");
    let group = TaskGroup::builder().name("stubborn").deadline(secs(1));
    assert!(group.run(|_group| answers_and_waits_again()).await.unwrap_err().is_cancelled());
    assert_eq!(warned(&log, "stubborn"), 1, "{log:?}");
}

// A section that does not end within its limit is warned of, with the line where it begins.
#[tokio::test(start_paused = true)]
async fn a_section_that_misses_its_limit_is_warned_of() {
    let (log, _guard) = events();
    cleanup(secs(1), pending::<()>()).await.unwrap_err();
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("WARN") && lines[0].contains(file!()), "{lines:?}");
}
