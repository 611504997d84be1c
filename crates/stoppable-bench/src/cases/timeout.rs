//! Timeouts: ours share one timer and shrink to a read of a flag, tokio's arm one each.

use std::future::ready;

use stoppable::{OrCancelledExt, TaskError, ok, with_timeout};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::support::{HOUR, wait};
use super::wait::in_group;
use crate::case::{Case, Side, Variant};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("timeout.scope10", "10 pending waits under one new timeout", "round of ten")
            .limits(0.55, 0.4)
            .counted(1000)
            .variant(Variant::new("", scope_of_ten(), ten_timeouts())),
        Case::new("timeout.ready", "a ready wait under an open deadline", "wait")
            .limits(0.2, 0.1)
            .counted(10_000)
            .variant(Variant::new("", ready_under_deadline(), timeout_of_ready())),
        Case::new("timeout.nested10", "10 timeouts deep, a pending wait", "call")
            .limits(1.3, 0.8)
            .counted(1000)
            .variant(Variant::new("", nested_ours(), nested_peer())),
    ]
}

fn scope_of_ten() -> Side {
    Side::timed("with_timeout", |n| async move {
        in_group(async move {
            for _ in 0..n {
                let waits = async {
                    for _ in 0..10 {
                        wait().await;
                    }
                    ok(())
                };
                with_timeout(HOUR, waits).await?;
            }
            ok(())
        })
        .await;
        n
    })
}

fn ten_timeouts() -> Side {
    Side::timed("10 of timeout", |n| async move {
        for _ in 0..n {
            for _ in 0..10 {
                timeout(HOUR, wait()).await.expect("an hour is long");
            }
        }
        n
    })
}

fn ready_under_deadline() -> Side {
    Side::timed("or_cancelled in with_timeout", |n| async move {
        in_group(async move {
            let waits = async {
                for i in 0..n {
                    std::hint::black_box(ready(i).or_cancelled().await?);
                }
                ok(())
            };
            Ok(with_timeout(HOUR, waits).await?)
        })
        .await;
        n
    })
}

fn timeout_of_ready() -> Side {
    Side::timed("timeout", |n| async move {
        for i in 0..n {
            std::hint::black_box(timeout(HOUR, ready(i)).await.expect("an hour is long"));
        }
        n
    })
}

/// `outer` calls `inner` under a timeout of its own, as layers of a program do.
macro_rules! layers {
    ($ours:ident, $peer:ident:) => {
        pub(super) async fn $ours() -> Result<(), TaskError> {
            wait().await;
            ok(())
        }
        pub(super) async fn $peer() -> Result<(), Elapsed> {
            wait().await;
            Ok(())
        }
    };
    ($ours:ident, $peer:ident: $layer:ident $($rest:ident)*) => {
        mod $layer {
            use super::*;
            layers!($ours, $peer: $($rest)*);
        }
        pub(super) async fn $ours() -> Result<(), TaskError> {
            Ok(with_timeout(HOUR, $layer::$ours()).await?)
        }
        pub(super) async fn $peer() -> Result<(), Elapsed> {
            timeout(HOUR, $layer::$peer()).await?
        }
    };
}

layers!(ours, peer: l1 l2 l3 l4 l5 l6 l7 l8 l9 l10);

fn nested_ours() -> Side {
    Side::timed("10 of with_timeout", |n| async move {
        in_group(async move {
            for _ in 0..n {
                ours().await?;
            }
            ok(())
        })
        .await;
        n
    })
}

fn nested_peer() -> Side {
    Side::timed("10 of timeout", |n| async move {
        for _ in 0..n {
            peer().await.expect("an hour is long");
        }
        n
    })
}
