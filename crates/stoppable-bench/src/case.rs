//! What is measured: a case compares one thing of ours with what a user would pick instead.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

pub(crate) type Running = Pin<Box<dyn Future<Output = Sample> + Send>>;

/// What one run of a side cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Nanoseconds or bytes, see [`Measure`].
    pub(crate) cost: f64,
    pub(crate) units: u64,
}

impl Sample {
    pub(crate) fn since(start: Instant, units: u64) -> Self {
        Self { cost: start.elapsed().as_nanos() as f64, units }
    }

    pub(crate) fn per_unit(self) -> f64 {
        self.cost / self.units.max(1) as f64
    }
}

/// One contender. It is given how many units to do, and tells what so many (or a few more) cost.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    run: Box<dyn Fn(u64) -> Running + Send + Sync>,
}

impl Side {
    /// A side that says itself which part counts.
    pub(crate) fn new<F>(name: &'static str, run: impl Fn(u64) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Sample> + Send + 'static,
    {
        Self { name, run: Box::new(move |n| Box::pin(run(n))) }
    }

    /// All of `work` counts; it tells how many units it did.
    pub(crate) fn timed<F>(name: &'static str, work: impl Fn(u64) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = u64> + Send + 'static,
    {
        Self::new(name, move |n| {
            let work = work(n);
            async move {
                let start = Instant::now();
                let units = work.await;
                Sample::since(start, units)
            }
        })
    }

    pub(crate) fn run(&self, n: u64) -> Running {
        (self.run)(n)
    }
}

/// One load under which a case is measured. The worst variant of a case counts.
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) ours: Side,
    /// The cheapest of them counts.
    pub(crate) peers: Vec<Side>,
    /// What is subtracted from all others: the same work, with nothing around it.
    pub(crate) bare: Option<Side>,
}

impl Variant {
    pub(crate) fn new(name: &'static str, ours: Side, peer: Side) -> Self {
        Self { name, ours, peers: vec![peer], bare: None }
    }

    pub(crate) fn or_peer(mut self, peer: Side) -> Self {
        self.peers.push(peer);
        self
    }

    pub(crate) fn over(mut self, bare: Side) -> Self {
        self.bare = Some(bare);
        self
    }

    /// Ours, the peers, and the bare one.
    pub(crate) fn sides(&self) -> Vec<&Side> {
        [&self.ours].into_iter().chain(&self.peers).chain(&self.bare).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    Nanoseconds,
    /// Each sample is taken in a process of its own.
    Bytes,
}

impl Measure {
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Bytes => "B",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RuntimeKind {
    /// tokio's current-thread runtime.
    Ct,
    /// tokio's multi-thread runtime with two workers.
    Mt2,
    /// None: the case polls by hand.
    None,
}

impl fmt::Display for RuntimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ct => "ct",
            Self::Mt2 => "mt2",
            Self::None => "none",
        })
    }
}

/// How many units a run does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Size {
    /// As many as take long enough to be measured.
    Calibrated,
    Fixed(u64),
}

/// The highest ratio that will do, and the one that is aimed at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) must: f64,
    pub(crate) aim: f64,
}

pub(crate) struct Case {
    pub(crate) key: &'static str,
    pub(crate) what: &'static str,
    /// What one unit is: `task`, `item`, `wait`.
    pub(crate) unit: &'static str,
    pub(crate) measure: Measure,
    pub(crate) limits: Option<Limits>,
    pub(crate) runtimes: &'static [RuntimeKind],
    pub(crate) size: Size,
    pub(crate) variants: Vec<Variant>,
    /// So many units are run where instructions are counted; none where that says nothing.
    pub(crate) counted: Option<u64>,
}

impl Case {
    pub(crate) fn new(key: &'static str, what: &'static str, unit: &'static str) -> Self {
        Self {
            key,
            what,
            unit,
            measure: Measure::Nanoseconds,
            limits: None,
            runtimes: &[RuntimeKind::Ct, RuntimeKind::Mt2],
            size: Size::Calibrated,
            variants: Vec::new(),
            counted: None,
        }
    }

    pub(crate) fn limits(mut self, must: f64, aim: f64) -> Self {
        self.limits = Some(Limits { must, aim });
        self
    }

    pub(crate) fn on(mut self, runtimes: &'static [RuntimeKind]) -> Self {
        self.runtimes = runtimes;
        self
    }

    pub(crate) fn fixed(mut self, n: u64) -> Self {
        self.size = Size::Fixed(n);
        self
    }

    pub(crate) fn bytes(mut self, n: u64) -> Self {
        self.measure = Measure::Bytes;
        self.fixed(n).on(&[RuntimeKind::Ct])
    }

    pub(crate) fn counted(mut self, n: u64) -> Self {
        self.counted = Some(n);
        self
    }

    pub(crate) fn variant(mut self, variant: Variant) -> Self {
        self.variants.push(variant);
        self
    }
}

/// Whether `area` is that key or one it is in: `queue`, `queue.64`.
pub(crate) fn is_in(key: &str, area: &str) -> bool {
    key.strip_prefix(area).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_a_prefix_of_whole_words() {
        let is_in = |area| is_in("queue.64.ref", area);
        assert!(is_in("queue") && is_in("queue.64") && is_in("queue.64.ref"));
        assert!(!is_in("queue.6") && !is_in("que") && !is_in("wait"));
    }

    #[test]
    fn a_sample_is_told_per_unit() {
        assert_eq!(Sample { cost: 300.0, units: 100 }.per_unit(), 3.0);
        assert_eq!(Sample { cost: 300.0, units: 0 }.per_unit(), 300.0);
    }
}
