//! The lock and the atomics, from `spin` and `std`, or from `shuttle` in a model run.

#[cfg(not(shuttle))]
pub(crate) use short::Mutex;
#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(shuttle)]
pub(crate) use model::Mutex;
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(not(shuttle))]
mod short {
    use std::time::Duration;

    use crossbeam_utils::Backoff;
    use spin::mutex::{SpinMutex, SpinMutexGuard};

    /// A lock that is held for some nanoseconds, by code that neither waits nor calls anything of a user.
    ///
    /// It is left by a plain store, so a pair costs half of what it costs with a lock that has sleepers to
    /// look after; and an item costs three pairs.
    pub(crate) struct Mutex<T>(SpinMutex<T>);

    /// How long the lock is left alone where yielding did not help: whoever holds it may have been
    /// interrupted, and have a lower priority than who yields to it.
    const NAP: Duration = Duration::from_micros(50);

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(SpinMutex::new(value))
        }

        #[inline]
        pub(crate) fn lock(&self) -> SpinMutexGuard<'_, T> {
            match self.0.try_lock() {
                Some(guard) => guard,
                None => self.lock_contended(),
            }
        }

        #[cold]
        #[inline(never)]
        fn lock_contended(&self) -> SpinMutexGuard<'_, T> {
            let backoff = Backoff::new();
            loop {
                if backoff.is_completed() {
                    std::thread::sleep(NAP);
                } else {
                    backoff.snooze();
                }
                // Looks before it tries, so that those who wait do not take the line from who works.
                if !self.0.is_locked() {
                    if let Some(guard) = self.0.try_lock() {
                        return guard;
                    }
                }
            }
        }
    }
}

#[cfg(shuttle)]
mod model {
    /// `shuttle`'s mutex with the interface of the real one.
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }
}
