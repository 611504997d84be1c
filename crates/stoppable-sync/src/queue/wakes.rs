//! Wakers are foreign code: they are cloned, woken and dropped only while the lock is not held.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakers collected under the lock, to be woken after it.
#[derive(Default)]
#[must_use]
pub(crate) struct Wakes {
    first: Option<Waker>,
    rest: Vec<Waker>,
    /// Not to be woken, only to be dropped where no lock is held. One call retires at most one.
    retired: Option<Waker>,
}

impl Wakes {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { first: None, rest: Vec::new(), retired: None }
    }

    #[inline]
    pub(crate) fn push(&mut self, waker: Option<Waker>) {
        let Some(waker) = waker else { return };
        if self.first.is_none() {
            self.first = Some(waker);
        } else {
            self.rest.push(waker);
        }
    }

    /// Takes the waker of a record that is gone.
    #[inline]
    pub(crate) fn retire(&mut self, waker: Option<Waker>) {
        debug_assert!(self.retired.is_none() || waker.is_none());
        if waker.is_some() {
            self.retired = waker;
        }
    }

    /// Wakes all, in order. A waker that panics does not keep the next one from being woken.
    #[inline]
    pub(crate) fn wake_all(self) {
        if self.first.is_some() || self.retired.is_some() {
            self.wake_each();
        }
    }

    #[cold]
    fn wake_each(self) {
        for waker in self.first.into_iter().chain(self.rest) {
            shrug_off("a waker panicked", || waker.wake());
        }
        discard(self.retired);
    }
}

/// Runs foreign code whose panic must not reach whoever happens to be here.
pub(crate) fn shrug_off(what: &'static str, foreign: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(foreign)).is_err() {
        tracing::error!("{what}; the queue goes on");
    }
}

/// Drops a waker, which may be foreign code too.
pub(crate) fn discard(waker: Option<Waker>) {
    if let Some(waker) = waker {
        shrug_off("a waker panicked when dropped", || drop(waker));
    }
}

/// The waker of whoever polls now, and the clone that is exchanged for the one on record.
pub(crate) struct Poller<'a> {
    waker: &'a Waker,
    /// Before the exchange a clone, afterwards what was on record; made and dropped outside the lock.
    spare: Option<Waker>,
}

/// There is no clone of the waker yet: make one outside the lock, then look at everything again.
pub(crate) struct NeedsClone;

impl<'a> Poller<'a> {
    pub(crate) fn new(waker: &'a Waker) -> Self {
        Self { waker, spare: None }
    }

    /// Outside the lock only.
    pub(crate) fn make_clone(&mut self) {
        self.spare = Some(self.waker.clone());
    }

    /// A waker for a new record.
    pub(crate) fn take_clone(&mut self) -> Result<Waker, NeedsClone> {
        self.spare.take().ok_or(NeedsClone)
    }

    /// Puts the waker on an old record, unless that has it already.
    pub(crate) fn register(&mut self, record: &mut Option<Waker>) -> Result<(), NeedsClone> {
        if record.as_ref().is_some_and(|known| known.will_wake(self.waker)) {
            return Ok(());
        }
        let clone = self.take_clone()?;
        self.spare = record.replace(clone);
        Ok(())
    }
}

impl Drop for Poller<'_> {
    fn drop(&mut self) {
        discard(self.spare.take());
    }
}
