use std::time::Duration;

use tokio::time::Instant;

use crate::deadline::Deadline;

/// How long a timed call may take: a `Duration`, counted from its first poll, or a [`Deadline`].
#[derive(Debug, Clone, Copy)]
pub struct Limit(Kind);

#[derive(Debug, Clone, Copy)]
enum Kind {
    After(Duration),
    At(Deadline),
}

impl Limit {
    /// Whether there is no time at all. For a duration that needs no look at the clock.
    pub(crate) fn is_over(self) -> bool {
        match self.0 {
            Kind::After(timeout) => timeout.is_zero(),
            Kind::At(deadline) => deadline.is_expired(),
        }
    }

    #[doc(hidden)]
    pub fn begin(self) -> Deadline {
        match self.0 {
            Kind::After(timeout) => Deadline::after(timeout),
            Kind::At(deadline) => deadline,
        }
    }
}

impl From<Duration> for Limit {
    fn from(timeout: Duration) -> Self {
        Self(Kind::After(timeout))
    }
}

impl From<Deadline> for Limit {
    fn from(deadline: Deadline) -> Self {
        Self(Kind::At(deadline))
    }
}

impl From<Instant> for Limit {
    fn from(instant: Instant) -> Self {
        Self(Kind::At(Deadline::at(instant)))
    }
}
