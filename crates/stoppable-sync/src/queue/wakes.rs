//! Wakers are foreign code: they are cloned, woken and dropped only while the lock is not held.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakers collected under the lock, and woken when this is dropped: after it.
///
/// Mostly there is none, and then there is nothing to do; so it is not for the compiler to drop what is in it.
#[must_use]
pub(crate) struct Wakes(ManuallyDrop<Collected>);

/// Invariant: if `first` is vacant, there are no others to be woken.
#[derive(Default)]
struct Collected {
    first: Option<Waker>,
    more: Option<Box<More>>,
}

#[derive(Default)]
struct More {
    wakers: Vec<Waker>,
    /// Not to be woken, only to be dropped where no lock is held. One call retires at most one.
    retired: Option<Waker>,
}

impl Wakes {
    #[inline]
    pub(crate) fn new() -> Self {
        Self(ManuallyDrop::new(Collected { first: None, more: None }))
    }

    #[inline]
    pub(crate) fn push(&mut self, waker: Option<Waker>) {
        if self.0.first.is_none() {
            self.0.first = waker;
        } else {
            self.push_more(waker);
        }
    }

    #[cold]
    fn push_more(&mut self, waker: Option<Waker>) {
        self.0.more.get_or_insert_default().wakers.extend(waker);
    }

    /// Takes the waker of a record that is gone.
    #[inline]
    pub(crate) fn retire(&mut self, waker: Option<Waker>) {
        if waker.is_some() {
            let retired = &mut self.0.more.get_or_insert_default().retired;
            debug_assert!(retired.is_none());
            *retired = waker;
        }
    }

    #[inline(never)]
    fn wake_each(&mut self) {
        if let Some(first) = self.0.first.take() {
            wake(first);
        }
        if let Some(more) = self.0.more.take() {
            more.wake_each();
        }
    }
}

impl More {
    #[cold]
    fn wake_each(self) {
        self.wakers.into_iter().for_each(wake);
        discard(self.retired);
    }
}

fn wake(waker: Waker) {
    shrug_off("a waker panicked", || waker.wake());
}

/// Wakes all, in order. A waker that panics does not keep the next one from being woken.
impl Drop for Wakes {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.first.is_some() || self.0.more.is_some() {
            self.wake_each();
        }
    }
}

/// Runs foreign code whose panic must not reach whoever happens to be here.
pub(crate) fn shrug_off(what: &'static str, foreign: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(foreign)).is_err() {
        go_on(what);
    }
}

#[cold]
fn go_on(what: &'static str) {
    tracing::error!("{what}; the queue goes on");
}

/// Drops a waker, which may be foreign code too.
#[cold]
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
    #[cold]
    pub(crate) fn make_clone(&mut self) {
        self.spare = Some(self.waker.clone());
    }

    /// A waker for a new record.
    #[inline]
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
    #[inline]
    fn drop(&mut self) {
        if self.spare.is_some() {
            discard(self.spare.take());
        }
    }
}
