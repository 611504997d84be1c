use std::fmt;

use crate::deadline::Deadline;

/// A limit has been reached.
///
/// It carries the deadline it speaks of, so that an `Elapsed` of one's own can be told from one that
/// the work underneath returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed {
    deadline: Deadline,
}

impl Elapsed {
    pub(crate) fn new(deadline: Deadline) -> Self {
        Self { deadline }
    }

    /// The deadline that was reached.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline has elapsed")
    }
}

impl std::error::Error for Elapsed {}
