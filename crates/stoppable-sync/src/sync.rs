//! The lock and the atomics, from `std`, or from `shuttle` in a model run.

pub(crate) use stoppable_scope::machinery::ShortMutex as Mutex;

#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
