//! Panics of users' code, kept from ours.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use stoppable_scope::TaskError;

use crate::task_failure::panic_message;

pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs code of a user. After a panic nothing it has touched is looked at again.
pub(crate) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Payload> {
    catch_unwind(AssertUnwindSafe(run))
}

/// Wakes them all, also when one of them panics.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        if catch(|| waker.wake()).is_err() {
            tracing::error!("a waker panicked while a task ended");
        }
    }
}

/// A panic as an error, where the payload itself is not needed.
pub(crate) fn panic_error(payload: Payload) -> TaskError {
    format!("panicked: {}", panic_message(&*payload)).into()
}
