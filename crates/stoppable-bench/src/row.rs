//! The result of one case on one runtime, and its JSON.

use serde_json::{Value, json};

use crate::case::{Case, Limits, Measure, RuntimeKind};
use crate::figures::{By, Figures, ratio};

#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) key: &'static str,
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) measure: Measure,
    pub(crate) limits: Option<Limits>,
    pub(crate) runtime: RuntimeKind,
    /// The load that was worst for us.
    pub(crate) variant: &'static str,
    /// Without the bare work, where there is one.
    pub(crate) ours: Figures,
    pub(crate) peer: &'static str,
    pub(crate) peer_figures: Figures,
    pub(crate) ratio: f64,
}

/// How a ratio stands to its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Aim,
    Must,
    Missed,
    /// There is no limit for it.
    Unjudged,
}

impl Row {
    pub(crate) fn new(
        case: &Case,
        runtime: RuntimeKind,
        variant: &'static str,
        ours: Figures,
        peer: (&'static str, Figures),
    ) -> Self {
        let by = Self::by(runtime);
        Self {
            key: case.key,
            what: case.what,
            unit: case.unit,
            measure: case.measure,
            limits: case.limits,
            runtime,
            variant,
            ours,
            peer: peer.0,
            peer_figures: peer.1,
            ratio: ratio(by.of(ours), by.of(peer.1)),
        }
    }

    /// What is compared on a runtime.
    pub(crate) fn by(runtime: RuntimeKind) -> By {
        match runtime {
            RuntimeKind::Mt2 => By::Median,
            RuntimeKind::Ct | RuntimeKind::None => By::Min,
        }
    }

    /// Two workers jump, so there the limit is only not to be worse than the peer; unless a case is
    /// about two workers.
    pub(crate) fn must(&self) -> Option<f64> {
        let must = self.limits?.must;
        Some(if self.runtime == RuntimeKind::Mt2 && self.key != "queue.mt" { must.max(1.0) } else { must })
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let (Some(limits), Some(must)) = (self.limits, self.must()) else { return Verdict::Unjudged };
        if self.ratio <= limits.aim {
            Verdict::Aim
        } else if self.ratio <= must {
            Verdict::Must
        } else {
            Verdict::Missed
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "key": self.key,
            "runtime": self.runtime.to_string(),
            "ours_min_ns": round(self.ours.min),
            "ours_median_ns": round(self.ours.median),
            "peer": self.peer,
            "peer_min_ns": round(self.peer_figures.min),
            "peer_median_ns": round(self.peer_figures.median),
            "ratio": round(self.ratio),
            "variant": self.variant,
            "unit": format!("{} a {}", self.measure.short(), self.unit),
            "must": self.limits.map(|limits| limits.must),
            "aim": self.limits.map(|limits| limits.aim),
        })
    }
}

/// To the thousandth. JSON knows no infinity, so that becomes `null`.
pub(crate) fn round(value: f64) -> Value {
    json!((value * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(runtime: RuntimeKind, min: f64, median: f64) -> Row {
        let case = Case::new("queue.64", "", "item").limits(1.25, 1.1);
        let peer = Figures { min: 10.0, median: 20.0 };
        Row::new(&case, runtime, "1 pair", Figures { min, median }, ("kanal", peer))
    }

    #[test]
    fn one_thread_is_judged_by_minima_two_by_medians() {
        assert_eq!(row(RuntimeKind::Ct, 12.0, 60.0).ratio, 1.2);
        assert_eq!(row(RuntimeKind::Mt2, 12.0, 60.0).ratio, 3.0);
    }

    #[test]
    fn a_verdict_follows_the_limits() {
        assert_eq!(row(RuntimeKind::Ct, 11.0, 0.0).verdict(), Verdict::Aim);
        assert_eq!(row(RuntimeKind::Ct, 12.5, 0.0).verdict(), Verdict::Must);
        assert_eq!(row(RuntimeKind::Ct, 12.6, 0.0).verdict(), Verdict::Missed);
        let free = Row { limits: None, ..row(RuntimeKind::Ct, 99.0, 0.0) };
        assert_eq!(free.verdict(), Verdict::Unjudged);
    }

    #[test]
    fn two_workers_only_have_to_be_no_worse_than_the_peer() {
        let strict = Some(Limits { must: 0.5, aim: 0.4 });
        let two = Row { limits: strict, ..row(RuntimeKind::Mt2, 0.0, 19.0) };
        assert_eq!(two.verdict(), Verdict::Must);
        let about_two = Row { key: "queue.mt", ..two };
        assert_eq!(about_two.verdict(), Verdict::Missed);
    }

    #[test]
    fn the_json_has_the_keys_that_readers_of_it_rely_on() {
        let json = row(RuntimeKind::Mt2, 1.23456, 2.0).to_json();
        assert_eq!(json["key"], "queue.64");
        assert_eq!(json["runtime"], "mt2");
        assert_eq!(json["ours_min_ns"], 1.235);
        assert_eq!(json["ours_median_ns"], 2.0);
        assert_eq!(json["peer"], "kanal");
        assert_eq!(json["peer_min_ns"], 10.0);
        assert_eq!(json["peer_median_ns"], 20.0);
        assert_eq!(json["ratio"], 0.1);
        assert!(round(f64::INFINITY).is_null());
    }
}
