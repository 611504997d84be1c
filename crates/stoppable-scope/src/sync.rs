//! The lock, the atomics and the thread-locals, from `spin` and `std`, or from `shuttle` in a model run.

#[cfg(not(shuttle))]
pub(crate) use short::Mutex;
#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
#[cfg(not(shuttle))]
pub(crate) use std::thread_local;

#[cfg(shuttle)]
pub(crate) use model::Mutex;
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
#[cfg(shuttle)]
pub(crate) use shuttle::thread_local;

#[cfg(not(shuttle))]
mod short {
    use crossbeam_utils::Backoff;
    use spin::mutex::{SpinMutex, SpinMutexGuard};

    /// A lock for a few instructions at a time, under which nothing of a user runs. To let it go is a plain store,
    /// which is half the price of one that has to look for sleepers.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(SpinMutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(SpinMutex::new(value))
        }

        #[inline]
        pub(crate) fn lock(&self) -> SpinMutexGuard<'_, T> {
            self.0.try_lock().unwrap_or_else(|| self.wait())
        }

        /// Who holds it may have lost the processor.
        #[cold]
        fn wait(&self) -> SpinMutexGuard<'_, T> {
            let backoff = Backoff::new();
            loop {
                backoff.snooze();
                if let Some(guard) = self.0.try_lock() {
                    return guard;
                }
            }
        }
    }
}

#[cfg(shuttle)]
mod model {
    /// `shuttle`'s mutex with the interface of `parking_lot`'s.
    #[derive(Debug, Default)]
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
