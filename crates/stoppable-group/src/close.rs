use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use stoppable_scope::{Cleanup, Name, TaskError, cleanup};

use crate::closers::{Closer, Closing};
use crate::deferred::Owner;

/// The future of [`Deferred::close`](crate::Deferred::close).
#[must_use = "the closer runs when this is awaited; dropped, it is handed to the owner"]
pub struct Close {
    owner: Owner,
    name: Name,
    site: &'static Location<'static>,
    limit: Duration,
    state: State,
}

enum State {
    New(Box<dyn FnOnce() -> Closing + Send>),
    Running(Pin<Box<Cleanup<Shared>>>, Shared),
    Ended,
}

impl Close {
    pub(crate) fn new(owner: Owner, closer: Closer) -> Self {
        let Closer { name, site, limit, begin } = closer;
        Self { owner, name, site, limit, state: State::New(begin) }
    }
}

/// The closing future, in reach both for the section that polls it and for the owner that may get it.
#[derive(Clone)]
struct Shared(std::sync::Arc<parking_lot::Mutex<Option<Closing>>>);

impl Future for Shared {
    type Output = Result<(), TaskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Taken out, for it is code of a user and must not run under the lock.
        let Some(mut closing) = self.0.lock().take() else {
            panic!("a closer was polled after it had ended or panicked");
        };
        let result = closing.as_mut().poll(cx);
        if result.is_pending() {
            *self.0.lock() = Some(closing);
        }
        result
    }
}

impl Future for Close {
    type Output = Result<(), TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let State::New(_) = this.state {
            let State::New(begin) = std::mem::replace(&mut this.state, State::Ended) else {
                unreachable!("matched")
            };
            let closing = Shared(std::sync::Arc::new(parking_lot::Mutex::new(Some(begin()))));
            this.state = State::Running(Box::pin(cleanup(this.limit, closing.clone())), closing);
        }
        let State::Running(section, _) = &mut this.state else {
            panic!("`Close` polled after it was ready");
        };
        match section.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(end) => {
                this.state = State::Ended;
                Poll::Ready(end.map_err(TaskError::from).and_then(|result| result))
            }
        }
    }
}

impl Drop for Close {
    fn drop(&mut self) {
        let begin: Box<dyn FnOnce() -> Closing + Send> =
            match std::mem::replace(&mut self.state, State::Ended) {
                State::New(begin) => begin,
                State::Running(section, closing) => {
                    let rest = closing.0.lock().take();
                    drop(section);
                    let Some(rest) = rest else { return };
                    Box::new(move || rest)
                }
                State::Ended => return,
            };
        let closer = Closer { name: self.name.clone(), site: self.site, limit: self.limit, begin };
        self.owner.close_later(closer);
    }
}

impl fmt::Debug for Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Close").field("name", &self.name).field("limit", &self.limit).finish_non_exhaustive()
    }
}
