//! Many of a thing beside few of it: what is linear costs the same a unit, but for what the machine adds. Pages are
//! fetched and caches missed by tokio's own tasks too; how much that makes is shown beside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures::future::BoxFuture;
use stoppable::{ShutdownQueue, TaskError, TaskGroup, ok, with_timeout};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::group::{aborted_set, cancelled_group};
use super::support::{HOUR, resident};
use crate::case::{Case, RuntimeKind, Sample, Side, Variant};

pub(super) fn cases() -> Vec<Case> {
    let cancel = Case::new("scale.cancel", "1M tasks cancelled and joined, against 1k", "task");
    let mut cases = vec![growth(cancel.limits(2.0, 1.3), 1_000_000, "", cancelled_group)];
    for (time, bytes, what, unit, n, load) in LOADS {
        cases
            .push(growth(Case::new(time, what, unit).limits(2.0, 1.3), n, "", |name| under_load(name, load)));
        let grown = Case::new(bytes, what, unit).bytes(n).limits(1.2, 1.05);
        cases.push(grown.variant(Variant::new(
            "",
            Side::new("many", move |n| grown_by(load, n)),
            Side::new(FEW, move |_| grown_by(load, 1000)),
        )));
    }
    let plain = |key, what, unit| Case::new(key, what, unit);
    let cancel = plain("scale.cancel.tokio", "the same with `JoinSet::abort_all`", "task");
    cases.push(growth(cancel, 1_000_000, "JoinSet itself", aborted_set));
    let tasks = plain("scale.tasks.tokio", "the same in a `JoinSet`", "task");
    cases.push(growth(tasks, 1_000_000, "JoinSet itself", |name| under_load(name, plain_tasks)));
    let timeouts = plain("scale.timeouts.tokio", "the same with tokio's `timeout`", "timeout");
    cases.push(growth(timeouts, 100_000, "timeout itself", |name| under_load(name, plain_timeouts)));
    cases
}

const FEW: &str = "1k of the same";

type Load = fn(u64, Peak) -> BoxFuture<'static, ()>;

const LOADS: [(&str, &str, &str, &str, u64, Load); 4] = [
    ("scale.tasks", "scale.tasks.bytes", "1M tasks in a group, against 1k", "task", 1_000_000, tasks),
    ("scale.items", "scale.items.bytes", "1M queued items, against 1k", "item", 1_000_000, items),
    ("scale.timeouts", "scale.timeouts.bytes", "100k timeouts, against 1k", "timeout", 100_000, timeouts),
    ("scale.groups", "scale.groups.bytes", "10k groups nested 100 deep, against 1k", "group", 10_000, groups),
];

/// A case whose peer is ours, with a thousand of it.
fn growth(case: Case, n: u64, load: &'static str, side: impl Fn(&'static str) -> Side) -> Case {
    let few = side(FEW);
    let few = Side::new(FEW, move |_| {
        // Often enough that the clock can tell, each time anew.
        let runs: Vec<_> = (0..20).map(|_| few.run(1000)).collect();
        async move {
            let mut all = Sample { cost: 0.0, units: 0 };
            for run in runs {
                let one = run.await;
                all = Sample { cost: all.cost + one.cost, units: all.units + one.units };
            }
            all
        }
    });
    let case = case.fixed(n).on(&[RuntimeKind::Ct]);
    case.variant(Variant::new(load, side("many"), few))
}

/// Where the memory is read, if anywhere: when all there is to be is there.
#[derive(Clone, Default)]
struct Peak(Option<Arc<AtomicU64>>);

impl Peak {
    fn reached(&self) {
        if let Some(bytes) = &self.0 {
            bytes.store(resident(), Ordering::Relaxed);
        }
    }
}

fn under_load(name: &'static str, load: Load) -> Side {
    Side::new(name, move |n| async move {
        let start = Instant::now();
        load(n, Peak::default()).await;
        Sample::since(start, n)
    })
}

async fn grown_by(load: Load, n: u64) -> Sample {
    let peak = Arc::new(AtomicU64::new(0));
    let before = resident();
    load(n, Peak(Some(Arc::clone(&peak)))).await;
    let grown = peak.load(Ordering::Relaxed) - before;
    Sample { cost: grown as f64, units: n }
}

/// All meet at a barrier, so all are alive at once.
fn tasks(n: u64, peak: Peak) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let all = Arc::new(Barrier::new(n as usize + 1));
        let group = TaskGroup::run(|group| async move {
            for _ in 0..n {
                let all = Arc::clone(&all);
                group.task("worker").spawn(async move {
                    all.wait().await;
                    ok(())
                });
            }
            tokio::task::yield_now().await;
            peak.reached();
            all.wait().await;
            ok(())
        });
        group.await.expect("all end well");
    })
}

fn plain_tasks(n: u64, _: Peak) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let all = Arc::new(Barrier::new(n as usize + 1));
        let mut tasks = JoinSet::new();
        for _ in 0..n {
            let all = Arc::clone(&all);
            tasks.spawn(async move {
                all.wait().await;
            });
        }
        tokio::task::yield_now().await;
        all.wait().await;
        tasks.join_all().await;
    })
}

fn plain_timeouts(n: u64, _: Peak) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let all = Arc::new(Barrier::new(n as usize + 1));
        let mut tasks = JoinSet::new();
        for _ in 0..n {
            let all = Arc::clone(&all);
            tasks.spawn(timeout(HOUR, async move {
                all.wait().await;
            }));
        }
        tokio::task::yield_now().await;
        all.wait().await;
        tasks.join_all().await;
    })
}

fn items(n: u64, peak: Peak) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let queue = ShutdownQueue::unbounded();
        for value in 0..n {
            queue.send(value).await.expect("nobody shuts down");
        }
        peak.reached();
        queue.shutdown();
        while let Some(item) = queue.recv_ref().await.expect("nobody cancels") {
            item.done();
        }
        assert!(queue.join().await.expect("nobody cancels").all_done());
    })
}

fn timeouts(n: u64, peak: Peak) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let all = Arc::new(Barrier::new(n as usize + 1));
        let group = TaskGroup::run(|group| async move {
            for _ in 0..n {
                let all = Arc::clone(&all);
                group.task("worker").spawn(with_timeout(HOUR, async move {
                    all.wait().await;
                    ok(())
                }));
            }
            tokio::task::yield_now().await;
            peak.reached();
            all.wait().await;
            ok(())
        });
        group.await.expect("all end well");
    })
}

fn groups(n: u64, peak: Peak) -> BoxFuture<'static, ()> {
    const DEEP: u64 = 100;
    Box::pin(async move {
        let chains = n.div_ceil(DEEP);
        let all = Arc::new(Barrier::new(chains as usize + 1));
        let group = TaskGroup::run(|group| async move {
            for _ in 0..chains {
                group.task("chain").spawn(nested(DEEP, Arc::clone(&all)));
            }
            tokio::task::yield_now().await;
            peak.reached();
            all.wait().await;
            ok(())
        });
        group.await.expect("all end well");
    })
}

fn nested(deep: u64, bottom: Arc<Barrier>) -> BoxFuture<'static, Result<(), TaskError>> {
    Box::pin(async move {
        if deep == 0 {
            bottom.wait().await;
            return ok(());
        }
        Ok(TaskGroup::run(|_| nested(deep - 1, bottom)).await?)
    })
}
