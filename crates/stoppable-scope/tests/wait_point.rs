//! `WaitPoint`: what makes a hand-written future a stoppable wait.

mod support;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::task::{Poll, ready};

use futures::stream::{FuturesUnordered, StreamExt};
use stoppable_scope::{Cancelled, InScopeExt, Scope, WaitPoint};
use support::Hand;

/// Waits for a cancel, and counts its polls.
fn wait(polls: &Cell<usize>) -> impl Future<Output = Cancelled> {
    let mut point = WaitPoint::new();
    poll_fn(move |cx| {
        polls.set(polls.get() + 1);
        loop {
            if let Err(cancelled) = ready!(point.check()) {
                return Poll::Ready(cancelled);
            }
            ready!(point.park(cx));
        }
    })
}

// R10: under the root's waker it registers nothing, and notes where it waits.
#[test]
fn under_the_roots_waker_it_reads_a_flag() {
    let (scope, polls) = (Scope::new(), Cell::new(0));
    let mut task = Hand::new(wait(&polls).in_scope(&scope));
    task.pending();
    let tree = scope.tree();
    assert_eq!(tree.children[0].registrations, 1, "the root's");
    assert!(tree.children[0].last_wait.unwrap().file().ends_with("wait_point.rs"));
    scope.cancel("enough");
    assert_eq!(task.ready().to_string(), "cancelled: enough");
    assert_eq!(polls.get(), 2);
}

// R10: "A wait polled with a different waker registers itself".
#[test]
fn under_another_waker_it_registers_itself() {
    let (scope, polls) = (Scope::new(), Cell::new(0));
    let set = async {
        let mut set: FuturesUnordered<_> = (0..3).map(|_| wait(&polls)).collect();
        while set.next().await.is_some() {}
    };
    let mut task = Hand::new(set.in_scope(&scope));
    task.pending();
    assert_eq!(scope.tree().children[0].registrations, 4);
    scope.cancel(());
    task.ready();
    assert_eq!(polls.get(), 6, "each is polled once to wait and once to answer");
}

// R3: after 128 answers it is silent, and works again when the request is another one.
#[test]
fn it_falls_silent_after_128_answers_to_one_request() {
    let (scope, polls, answers) = (Scope::new(), Cell::new(0), Cell::new(0));
    let swallow = async {
        loop {
            wait(&polls).await;
            answers.set(answers.get() + 1);
        }
    };
    let mut task = Hand::new(swallow.in_scope(&scope));
    scope.cancel("one");
    task.pending();
    task.pending();
    assert_eq!((answers.get(), task.wakes()), (128, 0));
    scope.uncancel();
    task.pending();
    scope.cancel("two");
    assert_eq!(task.wakes(), 1);
    task.pending();
    assert_eq!(answers.get(), 256);
}

// Without a scope there is nothing to ask: it parks, and stays so.
#[test]
fn without_a_scope_it_waits() {
    let polls = Cell::new(0);
    let mut task = Hand::new(wait(&polls));
    task.pending();
    task.pending();
    assert_eq!((polls.get(), task.wakes()), (2, 0));
}
