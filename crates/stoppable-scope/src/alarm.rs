use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use pin_project::pin_project;
use tokio::task::coop;
use tokio::time::Sleep;

use crate::node::Ticks;

/// The one timer of all frames that are polled with the same waker, in the outermost of them.
///
/// It is polled outside the coop budget, or a busy body would never meet it, and not again while it is
/// registered with the same waker. Instants are [`Ticks`].
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    armed: Option<Pin<Box<Armed>>>,
}

#[derive(Debug)]
#[pin_project]
struct Armed {
    #[pin]
    sleep: Sleep,
    at: u64,
    waker: Waker,
}

impl Alarm {
    /// The instant for which the timer has fired, else 0. Does not look at the clock.
    #[inline]
    pub(crate) fn fired(&self) -> u64 {
        self.armed.as_ref().map_or(0, |armed| if armed.sleep.is_elapsed() { armed.at } else { 0 })
    }

    /// Ready once `at` has come; otherwise wakes `cx` then, or earlier: a timer that is armed stays so where it comes
    /// first, and who is woken in vain sets it again. So a call that ends in time, as nearly all do, leaves its timer
    /// to the next one.
    #[inline]
    pub(crate) fn poll_at(&mut self, at: u64, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.armed {
            None if at == Ticks::NEVER => Poll::Pending,
            Some(armed) if armed.serves(at, cx) => Poll::Pending,
            _ => self.arm(at, cx),
        }
    }

    fn arm(&mut self, at: u64, cx: &mut Context<'_>) -> Poll<()> {
        if at == Ticks::NEVER {
            self.armed = None;
            return Poll::Pending;
        }
        let armed = self.armed.get_or_insert_with(|| Armed::boxed(at, cx));
        armed.as_mut().poll_at(at, cx)
    }
}

impl Armed {
    fn boxed(at: u64, cx: &Context<'_>) -> Pin<Box<Self>> {
        let sleep = tokio::time::sleep_until(Ticks::to_instant(at));
        Box::pin(Self { sleep, at, waker: cx.waker().clone() })
    }

    fn serves(&self, at: u64, cx: &Context<'_>) -> bool {
        self.at <= at && at != Ticks::NEVER && self.waker.will_wake(cx.waker()) && !self.sleep.is_elapsed()
    }

    fn poll_at(self: Pin<&mut Self>, at: u64, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if *this.at >= at && this.sleep.is_elapsed() {
            return Poll::Ready(());
        }
        if !this.waker.will_wake(cx.waker()) {
            *this.waker = cx.waker().clone();
        }
        if *this.at != at {
            *this.at = at;
            this.sleep.as_mut().reset(Ticks::to_instant(at));
        }
        Pin::new(&mut coop::unconstrained(this.sleep)).poll(cx)
    }
}
