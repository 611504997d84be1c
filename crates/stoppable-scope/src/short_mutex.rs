//! A lock for a few instructions at a time; in a model run `shuttle`'s.

#[cfg(shuttle)]
pub use model::ShortMutex;
#[cfg(not(shuttle))]
pub use spinning::ShortMutex;

#[cfg(not(shuttle))]
mod spinning {
    use std::time::Duration;

    use crossbeam_utils::Backoff;
    use spin::mutex::{SpinMutex, SpinMutexGuard};

    /// A lock that is held for some nanoseconds, by code that neither waits nor calls anything of a user.
    ///
    /// It is left by a plain store, so a pair costs half of what it costs with a lock that has sleepers to
    /// look after.
    #[derive(Debug, Default)]
    pub struct ShortMutex<T>(SpinMutex<T>);

    /// How long the lock is left alone where yielding did not help: whoever holds it may have been
    /// interrupted, and have a lower priority than who yields to it.
    const NAP: Duration = Duration::from_micros(50);

    impl<T> ShortMutex<T> {
        /// A lock around `value`.
        pub const fn new(value: T) -> Self {
            Self(SpinMutex::new(value))
        }

        /// Waits for the lock.
        #[inline]
        pub fn lock(&self) -> SpinMutexGuard<'_, T> {
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

        /// What is inside, for who has it alone.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut()
        }
    }
}

#[cfg(shuttle)]
mod model {
    /// `shuttle`'s mutex with the interface of the real one.
    #[derive(Debug, Default)]
    pub struct ShortMutex<T>(shuttle::sync::Mutex<T>);

    impl<T> ShortMutex<T> {
        /// A lock around `value`.
        pub fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }

        /// What is inside, for who has it alone.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }
}
