use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::task::coop;
use tokio::time::Sleep;

use crate::node::Ticks;

/// The one timer of a frame.
///
/// It is polled outside the coop budget, or a busy body would never meet it, and not again while it is
/// registered with the same waker. Instants are [`Ticks`].
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    armed: Option<Armed>,
}

#[derive(Debug)]
struct Armed {
    sleep: Pin<Box<Sleep>>,
    at: u64,
    waker: Waker,
}

impl Alarm {
    /// Whether the timer has fired for `at` or a later instant. Does not look at the clock.
    pub(crate) fn has_fired(&self, at: u64) -> bool {
        self.armed.as_ref().is_some_and(|armed| armed.at >= at && armed.sleep.is_elapsed())
    }

    /// Whether it will wake `cx` at `at`, or, where that does, `or_earlier`.
    pub(crate) fn is_set(&self, at: u64, or_earlier: bool, cx: &Context<'_>) -> bool {
        self.armed.as_ref().is_some_and(|armed| {
            let serves = armed.at == at || or_earlier && armed.at < at;
            serves && armed.waker.will_wake(cx.waker()) && !armed.sleep.is_elapsed()
        })
    }

    /// Ready once `at` has come; otherwise wakes `cx` then.
    ///
    /// With `or_earlier` a timer that is armed for an earlier instant stays so: it fires, the frame is polled, and
    /// arms it again. Frames inside rely on that, which arm no timer of their own while this one comes first.
    pub(crate) fn poll_at(&mut self, at: u64, or_earlier: bool, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_set(at, or_earlier, cx) {
            return Poll::Pending;
        }
        if let Some(armed) = &mut self.armed {
            if armed.at == at && armed.sleep.is_elapsed() {
                return Poll::Ready(());
            }
            if !armed.waker.will_wake(cx.waker()) {
                armed.waker = cx.waker().clone();
            }
            if armed.at != at {
                armed.at = at;
                armed.sleep.as_mut().reset(Ticks::to_instant(at));
            }
        }
        let armed = self.armed.get_or_insert_with(|| Armed {
            sleep: Box::pin(tokio::time::sleep_until(Ticks::to_instant(at))),
            at,
            waker: cx.waker().clone(),
        });
        Pin::new(&mut coop::unconstrained(armed.sleep.as_mut())).poll(cx)
    }
}
