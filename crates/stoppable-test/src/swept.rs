use std::collections::HashMap;

use crate::intervention::Intervention;

/// How many points a [`Sweep`](crate::Sweep) has hit. A future that never waits has none, and a test that
/// sweeps it shows nothing: assert that there are some.
#[derive(Debug, Clone, Default)]
#[must_use = "assert that some points were swept"]
pub struct Swept {
    points: HashMap<Intervention, usize>,
}

impl Swept {
    pub(crate) fn count(&mut self, intervention: Intervention) {
        *self.points.entry(intervention).or_default() += 1;
    }

    /// All of them.
    pub fn points(&self) -> usize {
        self.points.values().sum()
    }

    /// Those at which this was done.
    pub fn points_of(&self, intervention: Intervention) -> usize {
        self.points.get(&intervention).copied().unwrap_or(0)
    }
}
