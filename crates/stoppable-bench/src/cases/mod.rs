//! The cases, by area.

mod group;
mod poll;
mod queue;
mod scale;
mod support;
mod timeout;
mod wait;

use crate::case::Case;

/// All of them, in the order in which they are shown.
pub(crate) fn all() -> Vec<Case> {
    let areas =
        [group::cases(), wait::cases(), timeout::cases(), queue::cases(), poll::cases(), scale::cases()];
    areas.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_key_is_there_once() {
        let keys: Vec<_> = all().iter().map(|case| case.key).collect();
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    }

    #[test]
    fn an_aim_is_not_above_its_must() {
        for limits in all().iter().filter_map(|case| case.limits) {
            assert!(limits.aim <= limits.must);
        }
    }
}
