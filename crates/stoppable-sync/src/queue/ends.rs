//! What may be written without the lock: which items are done.

use crate::sync::{AtomicBool, Ordering};

/// So many items in flight can be settled without the lock.
#[cfg(not(shuttle))]
pub(crate) const SEATS: usize = 64;
/// Few, so that a model run meets those that cannot.
#[cfg(shuttle)]
pub(crate) const SEATS: usize = 2;

/// Ends that are noted and not counted yet. Noted by whoever has the seat, counted under the lock.
pub(crate) struct Ends([AtomicBool; SEATS]);

impl Ends {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicBool::new(false)))
    }

    #[inline]
    pub(crate) fn note(&self, seat: usize) {
        self.0[seat].store(true, Ordering::Release);
    }

    /// Whether an end was noted there, which is then forgotten.
    #[inline]
    pub(crate) fn take(&self, seat: usize) -> bool {
        let noted = self.0[seat].load(Ordering::Acquire);
        if noted {
            self.0[seat].store(false, Ordering::Relaxed);
        }
        noted
    }
}
