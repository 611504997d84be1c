//! The one measuring loop.
//!
//! The machine is not ours alone: all sides of a case take turns in one process, in a rotating order, many
//! times and each time shortly, so that a disturbance meets all of them or is left out by the minimum.

use std::time::{Duration, Instant};

use crate::case::{Case, Measure, RuntimeKind, Side, Size, Variant};
use crate::child;
use crate::figures::Figures;
use crate::row::Row;
use crate::runtimes::Runtimes;

/// How much is done to get one figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    /// How long one run is to take at least, where its size is free.
    pub(crate) run: Duration,
    /// Fixed sizes are divided by this.
    pub(crate) shrink: u64,
}

impl Effort {
    /// Runs well below a time slice: where others want the processor too, many of them are not interrupted.
    pub(crate) const FULL: Self = Self { rounds: 61, run: Duration::from_millis(1), shrink: 1 };
    /// To see that everything runs. The figures say nothing.
    pub(crate) const QUICK: Self = Self { rounds: 3, run: Duration::from_micros(200), shrink: 100 };

    /// Rounds that take seconds need not be many, and sizes in memory do not jump.
    fn rounds_of(&self, case: &Case) -> usize {
        match (case.measure, case.size) {
            (Measure::Bytes, _) => self.rounds.min(3),
            (_, Size::Fixed(n)) if n >= 1_000_000 => self.rounds.min(5),
            (_, Size::Fixed(n)) if n >= 100_000 => self.rounds.min(9),
            _ => self.rounds,
        }
    }
}

/// One row for each runtime of the case: that of its worst variant.
pub(crate) fn measure(case: &Case, runtimes: &mut Runtimes, effort: &Effort) -> Vec<Row> {
    let mut rows = Vec::new();
    for &kind in case.runtimes {
        let measured = (0..case.variants.len()).filter_map(|at| {
            let mut bench = Bench { case, at, kind, runtimes: &mut *runtimes };
            bench.measure(effort)
        });
        rows.extend(measured.max_by(|a, b| a.ratio.total_cmp(&b.ratio)));
    }
    rows
}

/// One variant of a case on one runtime.
struct Bench<'a> {
    case: &'a Case,
    at: usize,
    kind: RuntimeKind,
    runtimes: &'a mut Runtimes,
}

impl Bench<'_> {
    fn variant(&self) -> &Variant {
        &self.case.variants[self.at]
    }

    fn measure(&mut self, effort: &Effort) -> Option<Row> {
        let n = self.size(effort);
        let sides = self.variant().sides().len();
        let mut samples = vec![Vec::new(); sides];
        for round in 0..effort.rounds_of(self.case) {
            for turn in 0..sides {
                let side = (turn + round) % sides;
                samples[side].extend(self.run(side, n));
            }
        }
        let mut figures: Vec<Option<Figures>> = samples.into_iter().map(Figures::of).collect();
        let variant = &self.case.variants[self.at];
        if variant.bare.is_some() {
            let bare = figures.pop()??;
            figures = figures.into_iter().map(|figures| Some(figures?.over(bare))).collect();
        }
        let by = Row::by(self.kind);
        let mut figures = figures.into_iter();
        let ours = figures.next()??;
        let names = variant.peers.iter().map(|peer| peer.name);
        let peers = names.zip(figures).filter_map(|(name, figures)| Some((name, figures?)));
        let best = peers.min_by(|a, b| by.of(a.1).total_cmp(&by.of(b.1)))?;
        Some(Row::new(self.case, self.kind, variant.name, ours, best))
    }

    /// How many units a run does: so many that the slowest side takes long enough.
    fn size(&mut self, effort: &Effort) -> u64 {
        let mut n = match self.case.size {
            Size::Fixed(n) => return (n / effort.shrink).max(1),
            Size::Calibrated => 64,
        };
        loop {
            let sides = 0..self.variant().sides().len();
            let slowest = sides.map(|side| self.best_of_three(side, n)).max();
            if slowest.is_none_or(|slowest| slowest >= effort.run) || n >= 1 << 24 {
                return n;
            }
            n *= 2;
        }
    }

    /// One run may have been interrupted, and would then make all later ones too short.
    fn best_of_three(&mut self, side: usize, n: u64) -> Duration {
        let run = |_| {
            let start = Instant::now();
            self.run(side, n);
            start.elapsed()
        };
        (0..3).map(run).min().unwrap_or_default()
    }

    /// The cost of a unit. `None` if the side hung.
    fn run(&mut self, side: usize, n: u64) -> Option<f64> {
        let of: &Side = self.case.variants[self.at].sides()[side];
        let cost = match self.case.measure {
            Measure::Bytes => child::sample(self.case, self.at, side, self.kind, n),
            Measure::Nanoseconds => self.runtimes.run(self.kind, of.run(n)).map(|sample| sample.per_unit()),
        };
        if cost.is_none() {
            eprintln!("{} {}: {} did not end; this sample is left out", self.case.key, self.kind, of.name);
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleepless(name: &'static str, cost: f64) -> Side {
        Side::new(name, move |units| async move { crate::case::Sample { cost: cost * units as f64, units } })
    }

    fn measured(case: Case) -> Row {
        let rows = measure(&case, &mut Runtimes::default(), &Effort { rounds: 2, ..Effort::QUICK });
        rows.into_iter().next().expect("one row")
    }

    #[test]
    fn the_worst_variant_and_the_best_peer_count() {
        let good = Variant::new("good", sleepless("ours", 1.0), sleepless("a", 9.0));
        let bad =
            Variant::new("bad", sleepless("ours", 6.0), sleepless("a", 9.0)).or_peer(sleepless("b", 8.0));
        let row = measured(Case::new("x", "", "unit").fixed(100).variant(good).variant(bad));
        assert_eq!((row.variant, row.peer, row.ratio), ("bad", "b", 0.75));
    }

    #[test]
    fn the_bare_work_is_subtracted_from_both() {
        let variant =
            Variant::new("", sleepless("ours", 12.0), sleepless("a", 20.0)).over(sleepless("bare", 10.0));
        let row = measured(Case::new("x", "", "unit").fixed(100).variant(variant));
        assert_eq!((row.ours.min, row.peer_figures.min, row.ratio), (2.0, 10.0, 0.2));
    }
}
