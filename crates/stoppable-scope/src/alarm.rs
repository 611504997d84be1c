use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::task::coop;
use tokio::time::{Instant, Sleep};

/// The one timer of a frame.
///
/// It is polled outside the coop budget, or a busy body would never meet it, and not again while it is
/// registered for the same instant with the same waker.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    armed: Option<Armed>,
}

#[derive(Debug)]
struct Armed {
    sleep: Pin<Box<Sleep>>,
    at: Instant,
    waker: Waker,
}

impl Alarm {
    /// Whether the timer has fired for `at` or a later instant. Does not look at the clock.
    pub(crate) fn has_fired(&self, at: Instant) -> bool {
        self.armed.as_ref().is_some_and(|armed| armed.at >= at && armed.sleep.is_elapsed())
    }

    /// Ready once `at` has come; otherwise wakes `cx` then.
    pub(crate) fn poll_at(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(armed) = &mut self.armed {
            if armed.at == at {
                if armed.sleep.is_elapsed() {
                    return Poll::Ready(());
                }
                if armed.waker.will_wake(cx.waker()) {
                    return Poll::Pending;
                }
            } else {
                armed.sleep.as_mut().reset(at);
                armed.at = at;
            }
            if !armed.waker.will_wake(cx.waker()) {
                armed.waker = cx.waker().clone();
            }
        }
        let armed = self.armed.get_or_insert_with(|| Armed {
            sleep: Box::pin(tokio::time::sleep_until(at)),
            at,
            waker: cx.waker().clone(),
        });
        Pin::new(&mut coop::unconstrained(armed.sleep.as_mut())).poll(cx)
    }
}
