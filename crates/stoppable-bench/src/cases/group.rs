//! Groups beside `JoinSet`, and beside what one writes by hand to have what a group has.

use std::hint::black_box;
use std::time::Instant;

use stoppable::{TaskError, TaskGroup, ok};
use tokio::task::JoinSet;

use super::support::{Parking, resident};
use crate::case::{Case, Sample, Side, Variant};
use crate::handwritten::{BoxError, Handwritten};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("group.spawn", "spawn and join, static name, result kept", "task")
            .limits(1.25, 1.1)
            .counted(2000)
            .variant(spawning("100 at once", 100))
            .variant(spawning("1000 at once", 1000)),
        Case::new("group.full", "the same with error kept, cancel, report", "task")
            .limits(0.6, 0.5)
            .counted(2000)
            .variant(accounting("100, all end well", Ending::Well))
            .variant(accounting("100, one fails and 49 are cancelled", Ending::OneFails)),
        Case::new("group.bytes", "a parked task that can be cancelled", "task")
            .limits(0.85, 0.75)
            .bytes(100_000)
            .variant(Variant::new("", parked_in_group(), parked_by_hand())),
        cancelling(Case::new("group.cancel.10k", "10k tasks, from cancel to all joined", "task"), 10_000),
        cancelling(Case::new("group.cancel.1m", "1M tasks, from cancel to all joined", "task"), 1_000_000),
    ]
}

fn spawning(name: &'static str, batch: u64) -> Variant {
    let ours = Side::timed("TaskGroup", move |n| async move {
        for _ in 0..n.div_ceil(batch) {
            let results = TaskGroup::run(|group| async move {
                let tasks: Vec<_> =
                    (0..batch).map(|i| group.task("worker").spawn(async move { ok(i) })).collect();
                let mut results = Vec::new();
                for task in tasks {
                    results.push(task.await?);
                }
                ok(results)
            });
            black_box(results.await.expect("no task fails"));
        }
        n.next_multiple_of(batch)
    });
    let peer = Side::timed("JoinSet", move |n| async move {
        for _ in 0..n.div_ceil(batch) {
            let mut tasks = JoinSet::new();
            for i in 0..batch {
                tasks.spawn(async move { ("worker", Ok::<u64, BoxError>(i)) });
            }
            let mut results = Vec::new();
            while let Some(ended) = tasks.join_next().await {
                results.push(ended.expect("no task panics"));
            }
            black_box(results);
        }
        n.next_multiple_of(batch)
    });
    Variant::new(name, ours, peer)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Well,
    /// The first half ends well, the last one fails, the others wait until they are cancelled.
    OneFails,
}

const FEW: u64 = 100;

impl Ending {
    async fn work(self, i: u64) -> Result<u64, std::io::Error> {
        if self == Self::OneFails && i == FEW - 1 {
            return Err(std::io::Error::other("the disk is full"));
        }
        if self == Self::OneFails && i >= FEW / 2 {
            std::future::pending::<()>().await;
        }
        Ok(i)
    }
}

fn accounting(name: &'static str, ending: Ending) -> Variant {
    let ours = Side::timed("TaskGroup", move |n| async move {
        for _ in 0..n.div_ceil(FEW) {
            let group = TaskGroup::builder().run_reported(|group| async move {
                let tasks: Vec<_> = (0..FEW).map(|i| group.task("worker").spawn(ending.work(i))).collect();
                let mut results = Vec::new();
                for task in tasks {
                    results.push(task.await?);
                }
                ok(results)
            });
            let (result, report) = group.await;
            assert_eq!(result.is_ok(), ending == Ending::Well);
            assert_eq!(report.ended(), FEW as usize);
            black_box(&(result, report));
        }
        n.next_multiple_of(FEW)
    });
    let peer = Side::timed("handwritten", move |n| async move {
        for _ in 0..n.div_ceil(FEW) {
            let mut tasks = Handwritten::new();
            for i in 0..FEW {
                tasks.spawn("worker", async move { Ok(ending.work(i).await?) });
            }
            let report = tasks.join().await;
            assert_eq!(report.failures.is_empty(), ending == Ending::Well);
            assert_eq!(report.ended(), FEW as usize);
            black_box(&report);
        }
        n.next_multiple_of(FEW)
    });
    Variant::new(name, ours, peer)
}

fn parked_in_group() -> Side {
    Side::new("TaskGroup", |n| async move {
        let before = resident();
        let grown = TaskGroup::run(|group| async move {
            let parking = Parking::default();
            for _ in 0..n {
                let parked = parking.clone().park();
                group.task("worker").spawn(async move {
                    parked.await;
                    ok(())
                });
            }
            parking.until(n).await;
            let grown = resident() - before;
            group.cancel(());
            ok(grown)
        });
        Sample { cost: grown.await.expect("no task fails") as f64, units: n }
    })
}

fn parked_by_hand() -> Side {
    Side::new("handwritten", |n| async move {
        let before = resident();
        let parking = Parking::default();
        let mut tasks = Handwritten::<()>::new();
        for _ in 0..n {
            let parked = parking.clone().park();
            tasks.spawn("worker", async move {
                parked.await;
                Ok(())
            });
        }
        parking.until(n).await;
        let grown = resident() - before;
        tasks.cancel();
        black_box(&tasks.join().await);
        Sample { cost: grown as f64, units: n }
    })
}

fn cancelling(case: Case, n: u64) -> Case {
    case.limits(1.3, 1.0).fixed(n).variant(Variant::new(
        "",
        cancelled_group("TaskGroup"),
        aborted_set("JoinSet::abort_all"),
    ))
}

/// From the cancel to the end of the group.
pub(super) fn cancelled_group(name: &'static str) -> Side {
    Side::new(name, |n| async move {
        let group = TaskGroup::run(|group| async move {
            let parking = Parking::default();
            for _ in 0..n {
                group.task("worker").spawn(parking.clone().park());
            }
            parking.until(n).await;
            let start = Instant::now();
            group.cancel(());
            Ok::<_, TaskError>(start)
        });
        let start = group.await.expect("the body has a value");
        Sample::since(start, n)
    })
}

/// The same with what is there without a group.
pub(super) fn aborted_set(name: &'static str) -> Side {
    Side::new(name, |n| async move {
        let parking = Parking::default();
        let mut tasks = JoinSet::new();
        for _ in 0..n {
            tasks.spawn(parking.clone().park());
        }
        parking.until(n).await;
        let start = Instant::now();
        tasks.abort_all();
        while let Some(ended) = tasks.join_next().await {
            black_box(ended.is_err());
        }
        Sample::since(start, n)
    })
}
