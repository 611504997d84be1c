//! The arithmetic: from samples to figures, from figures to ratios.

/// What the samples of one side came to, per unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figures {
    pub(crate) min: f64,
    pub(crate) median: f64,
}

impl Figures {
    /// `None` where there is no sample.
    pub(crate) fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let middle = samples.len() / 2;
        let median = match samples.len() % 2 {
            0 => (samples.get(middle.checked_sub(1)?)? + samples[middle]) / 2.0,
            _ => samples[middle],
        };
        Some(Self { min: samples[0], median })
    }

    /// What is left over `bare`; never less than nothing, which noise could make of it.
    pub(crate) fn over(self, bare: Self) -> Self {
        Self { min: (self.min - bare.min).max(0.0), median: (self.median - bare.median).max(0.0) }
    }
}

/// Which of the two figures is compared: minima hardly move, medians are fair where two threads race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Min,
    Median,
}

impl By {
    pub(crate) fn of(self, figures: Figures) -> f64 {
        match self {
            Self::Min => figures.min,
            Self::Median => figures.median,
        }
    }
}

/// `ours / peer`. Infinite where the peer costs nothing.
pub(crate) fn ratio(ours: f64, peer: f64) -> f64 {
    if ours == peer { 1.0 } else { ours / peer }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(Figures::of(vec![4.0, 1.0, 3.0, 2.0]), Some(Figures { min: 1.0, median: 2.5 }));
    }

    #[test]
    fn the_median_of_an_odd_number_is_the_middle() {
        assert_eq!(Figures::of(vec![9.0, 1.0, 2.0]), Some(Figures { min: 1.0, median: 2.0 }));
    }

    #[test]
    fn no_samples_no_figures() {
        assert_eq!(Figures::of(Vec::new()), None);
    }

    #[test]
    fn an_overhead_is_never_negative() {
        let bare = Figures { min: 5.0, median: 10.0 };
        let over = Figures { min: 7.0, median: 9.0 }.over(bare);
        assert_eq!(over, Figures { min: 2.0, median: 0.0 });
    }

    #[test]
    fn a_ratio_is_ours_over_the_peers() {
        assert_eq!(ratio(1.0, 2.0), 0.5);
        assert_eq!(ratio(0.0, 0.0), 1.0);
        assert_eq!(ratio(0.0, 3.0), 0.0);
        assert_eq!(ratio(3.0, 0.0), f64::INFINITY);
    }
}
