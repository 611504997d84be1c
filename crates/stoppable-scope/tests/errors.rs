//! R6: errors may be any; a cancellation is recognised in each. R4: and only if it names the judge's scope
//! or one above.
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::error::Error;
use std::future::pending;

use stoppable_scope::{
    Cancelled, OrCancelledExt, Scope, TaskError, TimeoutError, cleanup, failure, ok, with_timeout,
};
use support::{ends, secs};

#[derive(Debug, thiserror::Error)]
enum Own {
    #[error("stopped")]
    From(#[from] Cancelled),
    #[error("upload failed")]
    Source {
        #[source]
        cause: Cancelled,
    },
    #[error(transparent)]
    Transparent(Transparent),
    #[error("two levels")]
    Deep(#[source] Box<Own>),
    #[error("boxed")]
    Boxed(#[source] Box<dyn Error + Send + Sync>),
    #[error(transparent)]
    AnyTransparent(Box<dyn Error + Send + Sync>),
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Transparent(Cancelled);

fn chain<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut chain = vec![error];
    while let Some(source) = chain[chain.len() - 1].source() {
        chain.push(source);
    }
    chain
}

/// A call whose body waits, and turns the answer into an error of its own.
async fn timed<E, M>(turn: impl FnOnce(Cancelled) -> E) -> TimeoutError<E>
where
    E: stoppable_scope::TaskFailureError<M>,
{
    let call = with_timeout(secs(1), async {
        let answer = pending::<()>().or_cancelled().await.unwrap_err();
        Err::<(), E>(turn(answer))
    });
    ends(call).await.unwrap_err()
}

// R6: "through `#[from]`, `#[source]` and `#[error(transparent)]`".
#[tokio::test(start_paused = true)]
async fn a_cancellation_is_recognised_in_an_error_of_ones_own() {
    assert!(timed(Own::From).await.is_elapsed());
    assert!(timed(|cause| Own::Source { cause }).await.is_elapsed());
    assert!(timed(|cause| Own::Transparent(Transparent(cause))).await.is_elapsed());
    assert!(timed(|cause| Own::Deep(Box::new(Own::From(cause)))).await.is_elapsed());
    assert!(timed(|cause| Own::Boxed(cause.into())).await.is_elapsed());
    assert!(timed(|cause| Own::AnyTransparent(cause.into())).await.is_elapsed());
    assert!(timed(|cause| cause).await.is_elapsed());
}

// R6: boxed, anyhow (with context), eyre, io, and what the library itself returns.
#[tokio::test(start_paused = true)]
async fn a_cancellation_is_recognised_in_boxed_errors() {
    assert!(timed(|c| -> Box<dyn Error + Send + Sync> { c.into() }).await.is_elapsed());
    assert!(timed(|c| -> TaskError { Own::From(c).into() }).await.is_elapsed());
    assert!(timed(anyhow::Error::from).await.is_elapsed());
    assert!(timed(|c| anyhow::Error::from(c).context("loading").context("starting")).await.is_elapsed());
    assert!(timed(|c| anyhow::anyhow!(Own::From(c))).await.is_elapsed());
    assert!(timed(eyre::Report::from).await.is_elapsed());
    assert!(timed(|c| eyre::Report::from(c).wrap_err("loading")).await.is_elapsed());
    assert!(timed(std::io::Error::other).await.is_elapsed());
    assert!(timed(|c| std::io::Error::other(std::io::Error::other(c))).await.is_elapsed());
    assert!(timed(|c| std::io::Error::other(Own::From(c))).await.is_elapsed());
    assert!(timed(TimeoutError::<std::io::Error>::Cancelled).await.is_elapsed());
    assert!(timed(|c| c.request().clone()).await.is_elapsed());
}

// R6 through nested calls: a `TimeoutError` of each kind of error is an error, and passes by `?`.
#[tokio::test(start_paused = true)]
async fn a_cancellation_passes_through_nested_calls_of_every_error() {
    async fn nested<E, M>(turn: impl FnOnce(Cancelled) -> E) -> bool
    where
        E: stoppable_scope::TaskFailureError<M> + std::fmt::Debug + std::fmt::Display + Send + Sync,
    {
        let outer = with_timeout(secs(1), async {
            let inner = with_timeout(secs(9), async {
                let answer = pending::<()>().or_cancelled().await.unwrap_err();
                Err::<(), E>(turn(answer))
            });
            inner.await?;
            ok(())
        });
        ends(outer).await.unwrap_err().is_elapsed()
    }
    assert!(nested(Own::From).await);
    assert!(nested(|c| c).await);
    assert!(nested(anyhow::Error::from).await);
    assert!(nested(eyre::Report::from).await);
    assert!(nested(|c| -> TaskError { c.into() }).await);
    assert!(nested(std::io::Error::other).await);
}

// "`Failed(E)`" shows the sources of E, also where E is a boxed error.
#[tokio::test(start_paused = true)]
async fn a_failed_call_shows_the_sources_of_its_error() {
    async fn failed<E, M>(error: E) -> Option<String>
    where
        E: stoppable_scope::TaskFailureError<M> + std::fmt::Debug + std::fmt::Display,
    {
        let error = with_timeout(secs(1), async { Err::<(), _>(error) }).await.unwrap_err();
        error.source().map(ToString::to_string)
    }
    let inner = || std::io::Error::other("disk");
    assert_eq!(failed(anyhow::Error::from(inner()).context("save")).await, Some("disk".into()));
    assert_eq!(failed(eyre::Report::from(inner()).wrap_err("save")).await, Some("disk".into()));
    assert_eq!(failed(Own::Boxed(inner().into())).await, Some("disk".into()));
    assert_eq!(failed(inner()).await, None);
}

// R4: "A judge takes a `Cancelled` for a cancellation only if it names the judge's own scope or one above it;
// elsewhere it is a failure."
#[tokio::test(start_paused = true)]
async fn a_cancelled_of_a_sibling_or_an_inner_scope_is_a_failure() {
    let around = Scope::new();
    let run = around.run(async {
        let inner = with_timeout(secs(1), async {
            let inner = Scope::named("inner");
            inner.cancel(());
            inner.run(pending::<()>()).await?;
            ok(())
        });
        let error = inner.await.unwrap_err().into_failed().expect("a failure");
        assert!(Cancelled::is_in(&*error));

        let sibling = around.child("sibling");
        sibling.cancel(());
        let answer = sibling.check().unwrap_err();
        let call = with_timeout(secs(1), async { Err::<(), _>(answer) });
        assert!(call.await.unwrap_err().into_failed().is_some());

        let elsewhere = Scope::new();
        elsewhere.cancel(());
        let answer = elsewhere.check().unwrap_err();
        let call = with_timeout(secs(1), async { Err::<(), _>(anyhow::Error::from(answer)) });
        call.await.unwrap_err().into_failed().is_some()
    });
    assert!(ends(run).await.unwrap());
}

// R4: a request on the scope around is one above, so it is a cancellation.
#[tokio::test(start_paused = true)]
async fn a_cancelled_of_a_scope_above_is_a_cancellation() {
    let around = Scope::new();
    let run = around.run(async {
        let call = with_timeout(secs(1), async {
            around.cancel("above");
            pending::<()>().or_cancelled().await?;
            ok(())
        });
        call.await.unwrap_err()
    });
    assert_eq!(ends(run).await.unwrap().to_string(), "cancelled: above");
}

// R4: "`failure(e)` marks a real failure whose cause is a cancel."
#[tokio::test(start_paused = true)]
async fn a_failure_is_one_though_a_cancel_is_its_cause() {
    let error = timed(|c| failure(Own::From(c))).await.into_failed().unwrap();
    assert_eq!(error.to_string(), "stopped", "it shows as the error it marks");
    assert!(chain(&*error).iter().any(|e| e.is::<Cancelled>()), "the cause is still there to see");
    for marked in [
        timed(|c| anyhow::Error::from_boxed(failure(c)).context("more")).await.into_failed().is_some(),
        timed(|c| std::io::Error::other(failure(c))).await.into_failed().is_some(),
        timed(|c| Own::AnyTransparent(failure(c))).await.into_failed().is_some(),
        timed(|c| Own::Boxed(failure(c))).await.into_failed().is_some(),
        timed(|c| failure(failure(c))).await.into_failed().is_some(),
    ] {
        assert!(marked);
    }
}

// An `Elapsed` of something inside is an ordinary error of the work (T-44, W-22).
#[tokio::test(start_paused = true)]
async fn an_elapsed_of_something_inside_is_a_failure() {
    let outer = with_timeout(secs(9), async {
        with_timeout(secs(1), async { ok(pending::<()>().await) }).await?;
        ok(())
    });
    let error = ends(outer).await.unwrap_err().into_failed().unwrap();
    assert!(error.is::<TimeoutError<TaskError>>());
    let section = with_timeout(secs(9), async { ok(cleanup(secs(1), pending::<()>()).await?) });
    assert!(ends(section).await.unwrap_err().into_failed().unwrap().is::<stoppable_scope::Elapsed>());
}

// The reason may be an error of the user's: it is at the end of the chain.
#[test]
fn the_reason_is_in_the_chain() {
    let scope = Scope::named("import");
    scope.cancel(stoppable_scope::Reason::error(std::io::Error::other("disk full")));
    let error = Own::From(scope.check().unwrap_err());
    let chain: Vec<_> = chain(&error).iter().map(ToString::to_string).collect();
    assert_eq!(chain, ["stopped", "cancelled: disk full", "cancel of `import`: disk full", "disk full"]);
}

// A work that cannot fail: `into_elapsed` leaves two cases.
#[tokio::test(start_paused = true)]
async fn work_that_can_not_fail_has_two_ends() {
    let call = with_timeout(secs(1), async { Ok::<(), std::convert::Infallible>(pending().await) });
    assert!(ends(call).await.unwrap_err().into_elapsed().is_ok());
}
