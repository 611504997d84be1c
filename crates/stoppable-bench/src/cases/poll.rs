//! Primitives without a runtime, polled by hand: what is left is the primitive itself.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use stoppable::{OrCancelledExt, Scope};
use tokio_util::sync::CancellationToken;

use super::queue::{AsyncChannel, Borrowed, Channel, Kanal, Owned};
use super::support::{poll_by_hand, wait};
use crate::case::{Case, RuntimeKind, Side, Variant};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("poll.queue", "send + recv + done, always ready", "item")
            .on(&[RuntimeKind::None])
            .counted(20_000)
            .variant(
                Variant::new("", in_turn::<Owned>(), in_turn::<Kanal>()).or_peer(in_turn::<AsyncChannel>()),
            ),
        Case::new("poll.queue.ref", "the same, borrowed", "item").on(&[RuntimeKind::None]).variant(
            Variant::new("", in_turn::<Borrowed>(), in_turn::<Kanal>()).or_peer(in_turn::<AsyncChannel>()),
        ),
        Case::new("poll.queue.parked", "recv is pending, then send wakes it", "item")
            .on(&[RuntimeKind::None])
            .counted(20_000)
            .variant(
                Variant::new("", parked::<Owned>(), parked::<Kanal>()).or_peer(parked::<AsyncChannel>()),
            ),
        Case::new("poll.wait", "overhead of a pending wait made stoppable", "wait")
            .on(&[RuntimeKind::None])
            .counted(10_000)
            .variant(Variant::new("", stoppable(), run_until_cancelled()).over(bare())),
    ]
}

/// Fills half of the queue, then empties it.
fn in_turn<C: Channel>() -> Side {
    const HALF: u64 = 32;
    Side::timed(C::NAME, |n| async move {
        let channel = C::bounded(64);
        for _ in 0..n.div_ceil(HALF) {
            for value in 0..HALF {
                poll_by_hand(channel.send(value));
            }
            for _ in 0..HALF {
                std::hint::black_box(poll_by_hand(channel.settle()));
            }
        }
        n.next_multiple_of(HALF)
    })
}

fn parked<C: Channel>() -> Side {
    Side::timed(C::NAME, |n| async move {
        let channel = C::bounded(64);
        let mut cx = Context::from_waker(Waker::noop());
        for value in 0..n {
            let mut settled = pin!(channel.settle());
            assert!(settled.as_mut().poll(&mut cx).is_pending());
            poll_by_hand(channel.send(value));
            assert_eq!(settled.as_mut().poll(&mut cx), Poll::Ready(value));
        }
        n
    })
}

fn bare() -> Side {
    Side::timed("bare", |n| async move {
        poll_by_hand(async {
            for _ in 0..n {
                wait().await;
            }
        });
        n
    })
}

fn stoppable() -> Side {
    Side::timed("or_cancelled", |n| async move {
        let waits = Scope::named("by hand").run(async {
            for _ in 0..n {
                wait().or_cancelled().await.expect("nobody cancels");
            }
        });
        poll_by_hand(waits).expect("nobody cancels");
        n
    })
}

fn run_until_cancelled() -> Side {
    Side::timed("run_until_cancelled", |n| async move {
        let token = CancellationToken::new();
        poll_by_hand(async {
            for _ in 0..n {
                token.run_until_cancelled(wait()).await.expect("nobody cancels");
            }
        });
        n
    })
}
