use std::fmt;

use crate::end::End;
use crate::intervention::Intervention;

/// One run of the future, as the check of a [`Sweep`](crate::Sweep) sees it: it has ended and is dropped.
#[non_exhaustive]
pub struct Round<T, S = ()> {
    /// What was done to it.
    pub intervention: Intervention,
    /// When: after it was polled so often and still waited. Counts from 1.
    pub poll: usize,
    /// How it ended.
    pub end: End<T>,
    /// What was made together with it.
    pub state: S,
    /// The scopes that are still alive below the one it ran in. Not 0 if it left tasks behind that carry its
    /// scope, or kept a [`Scope`](stoppable_scope::Scope) that it made.
    pub live_scopes: usize,
}

/// Without the state, which need not be `Debug`.
impl<T: fmt::Debug, S> fmt::Debug for Round<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Round")
            .field("intervention", &self.intervention)
            .field("poll", &self.poll)
            .field("end", &self.end)
            .field("live_scopes", &self.live_scopes)
            .finish_non_exhaustive()
    }
}
