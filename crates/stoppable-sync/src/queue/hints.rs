//! What a wait may guess before it takes the lock.

use crate::sync::{AtomicBool, Ordering};

/// Who is sure to wait clones its waker first, and so needs the lock once and not twice. A wrong guess costs
/// a clone of a waker that is not needed, or a look that finds nothing; nothing else depends on it.
pub(crate) struct Hints {
    empty: AtomicBool,
    full: AtomicBool,
}

impl Hints {
    pub(crate) fn new() -> Self {
        Self { empty: AtomicBool::new(false), full: AtomicBool::new(false) }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.empty.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Under the lock, which who writes here has just taken from the others anyway.
    #[inline(always)]
    pub(crate) fn set(&self, empty: bool, full: bool) {
        self.empty.store(empty, Ordering::Relaxed);
        self.full.store(full, Ordering::Relaxed);
    }
}
