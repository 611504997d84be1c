//! R2, R5: "asked means: polled on a coop budget that is not spent"; a busy body meets its deadline (B-31).

mod support;

use std::cell::Cell;
use std::future::pending;

use stoppable_scope::{OrCancelledExt, Scope, ok, with_timeout};
use support::{ms, secs};
use tokio::sync::mpsc;

/// A channel that never runs dry.
fn endless() -> (mpsc::UnboundedSender<()>, mpsc::UnboundedReceiver<()>) {
    let (send, recv) = mpsc::unbounded_channel();
    send.send(()).unwrap();
    (send, recv)
}

async fn busy() {
    let (send, mut recv) = endless();
    while recv.recv().await.is_some() {
        send.send(()).unwrap();
    }
}

// B-31: the limit fires while the inner future uses up its scheduling budget every poll. Real time.
#[tokio::test]
async fn a_busy_body_meets_its_deadline() {
    let started = std::time::Instant::now();
    let call = with_timeout(ms(30), async {
        busy().await;
        ok(())
    });
    assert!(call.await.unwrap_err().is_elapsed());
    assert!(started.elapsed() < secs(5));
}

// B-31, variant: a cancel instead of a limit.
#[tokio::test]
async fn a_busy_body_is_cut_by_a_cancel() {
    let scope = Scope::new();
    let remote = scope.clone();
    tokio::spawn(async move {
        tokio::time::sleep(ms(20)).await;
        remote.cancel(());
    });
    assert!(scope.run(busy()).await.is_err());
}

// B-32: a busy stream whose every wait is stoppable answers, and its loop ends.
#[tokio::test]
async fn a_busy_loop_of_stoppable_waits_answers() {
    let (send, mut recv) = endless();
    let call = with_timeout(ms(20), async {
        let cancelled = loop {
            match recv.recv().or_cancelled().await {
                Ok(_) => send.send(()).unwrap(),
                Err(cancelled) => break cancelled,
            }
        };
        ok(cancelled)
    });
    assert!(call.await.is_ok(), "it answered; it was not cut");
}

// R2: the busy branch spends the budget before the other has its turn, which then can not tell whether its
// future has a result; it is not cut before it could answer.
#[tokio::test]
async fn a_wait_beside_a_busy_branch_answers_before_the_cut() {
    for wait in ["or_cancelled", "run"] {
        for order in 0..2 {
            let answered = Cell::new(false);
            let call = with_timeout(ms(20), async {
                let stoppable = async {
                    let answer = match wait {
                        // Ready only with budget, as all of tokio's resources are.
                        "or_cancelled" => pending::<()>().or_cancelled().await.is_err(),
                        _ => Scope::new().run(pending::<()>()).await.is_err(),
                    };
                    answered.set(answer);
                    pending::<()>().await;
                };
                if order == 0 {
                    futures::join!(busy(), stoppable);
                } else {
                    futures::join!(stoppable, busy());
                }
                ok(())
            });
            assert!(call.await.unwrap_err().is_elapsed());
            assert!(answered.get(), "{wait}, order {order}: cut without an answer");
        }
    }
}

// A result that only a fresh budget can show is not lost by a cancel.
#[tokio::test]
async fn a_result_behind_a_spent_budget_wins() {
    let scope = Scope::new();
    let (send, mut recv) = mpsc::channel(1);
    let run = scope.run(async {
        let stoppable = async { recv.recv().or_cancelled().await };
        let spend = async {
            // First turn: both wait. Then the item comes, the budget goes, and the cancel comes.
            tokio::task::yield_now().await;
            send.try_send(5).unwrap();
            let (more, mut items) = endless();
            while tokio::task::coop::has_budget_remaining() {
                more.send(()).unwrap();
                items.recv().await;
            }
            scope.cancel(());
        };
        let (_, item) = tokio::join!(biased; spend, stoppable);
        item
    });
    assert_eq!(run.await.unwrap().unwrap(), Some(5));
}

// An unbudgeted task (tokio's `unconstrained`) is stopped all the same.
#[tokio::test]
async fn an_unconstrained_body_that_yields_is_stopped() {
    let call = with_timeout(
        ms(20),
        tokio::task::coop::unconstrained(async {
            loop {
                tokio::task::yield_now().await;
            }
            #[allow(unreachable_code)]
            ok(())
        }),
    );
    assert!(call.await.unwrap_err().is_elapsed());
}
