//! Where a task leaves its result for its handle.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::catch::wake_all;
use crate::handle_error::HandleError;

pub(crate) struct Slot<T>(Mutex<State<T>>);

enum State<T> {
    Running(Option<Waker>),
    Done(Result<T, HandleError>),
    Taken,
    /// The handle is gone; nobody will ask.
    Unwanted,
}

impl<T> Slot<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::Running(None))))
    }

    /// Leaves the result, or gives it back if nobody will ask for it.
    pub(crate) fn complete(&self, result: Result<T, HandleError>) -> Result<(), Result<T, HandleError>> {
        let mut state = self.0.lock();
        match &mut *state {
            State::Running(waker) => {
                let waker = waker.take();
                *state = State::Done(result);
                drop(state);
                wake_all(waker);
                Ok(())
            }
            _ => Err(result),
        }
    }

    pub(crate) fn is_unwanted(&self) -> bool {
        matches!(*self.0.lock(), State::Unwanted)
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(*self.0.lock(), State::Done(_) | State::Taken)
    }

    /// Takes the result, or has its arrival wake `cx`.
    pub(crate) fn poll_take(&self, cx: &Context<'_>) -> Poll<Result<T, HandleError>> {
        let mut waker = None;
        loop {
            let mut state = self.0.lock();
            match &mut *state {
                State::Running(Some(known)) if known.will_wake(cx.waker()) => return Poll::Pending,
                State::Running(place) => match waker.take() {
                    Some(new) => {
                        let old = place.replace(new);
                        drop(state);
                        drop(old);
                        return Poll::Pending;
                    }
                    // Cloned outside the lock; then look again.
                    None => {
                        drop(state);
                        waker = Some(cx.waker().clone());
                    }
                },
                State::Done(_) => match mem::replace(&mut *state, State::Taken) {
                    State::Done(result) => return Poll::Ready(result),
                    _ => unreachable!("matched above"),
                },
                State::Taken | State::Unwanted => panic!("`TaskHandle` polled after it gave its result"),
            }
        }
    }

    /// Nobody will ask any more. Gives what was left and not taken.
    pub(crate) fn give_up(&self) -> Option<Result<T, HandleError>> {
        let state = mem::replace(&mut *self.0.lock(), State::Unwanted);
        match state {
            State::Done(result) => Some(result),
            _ => None,
        }
    }
}
