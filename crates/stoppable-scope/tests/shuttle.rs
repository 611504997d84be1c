//! Random schedules of the races between who asks and who waits. Run with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p stoppable-scope --test shuttle --release`.
//!
//! A lost wake-up is a deadlock here, and shuttle reports it with the schedule that led to it. There are no
//! deadlines in the model: tokio's timers know nothing of shuttle.
#![cfg(shuttle)]

use std::future::{Future, pending, poll_fn};
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::stream::{FuturesUnordered, StreamExt};
use shuttle::future::block_on;
use shuttle::rand::Rng;
use shuttle::thread;
use stoppable_scope::machinery::{Ended, Frame, Node, Origin, Rule};
use stoppable_scope::{
    Deadline, InScopeExt, Name, OrCancelledExt, Reason, Scope, ScopeKind, Tree, ok, with_timeout,
    with_timeout_handle,
};

const SCHEDULES: usize = 8_000;

fn check(race: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(race, SCHEDULES);
}

/// In half of the schedules lets the others come any distance first: by chance alone they would seldom come far.
fn hesitate() {
    let mut chance = shuttle::rand::thread_rng();
    if chance.gen_bool(0.5) {
        for _ in 0..chance.gen_range(0..50) {
            thread::yield_now();
        }
    }
}

/// A timed call without a limit: a frame in the middle.
async fn timed(wait: impl Future<Output = bool>) -> bool {
    let call = with_timeout(Deadline::never(), async { ok(wait.await) });
    call.await.unwrap_or(true)
}

async fn answers() -> bool {
    pending::<()>().or_cancelled().await.is_err()
}

/// Each kind of wait; true when it has answered or was cut.
fn wait(kind: usize, scope: &Scope) -> Pin<Box<dyn Future<Output = bool> + Send>> {
    let scope = scope.clone();
    match kind {
        // The frame of an entry, cut.
        0 => Box::pin(async move { scope.run(pending::<()>()).await.is_err() }),
        // A wait that reads the flag, under the root's waker.
        1 => Box::pin(answers().in_scope(&scope)),
        // Nested frames.
        2 => Box::pin(timed(timed(answers())).in_scope(&scope)),
        // Under wakers of their own: a single wait, and a frame.
        3 => {
            let set = async {
                let mut set = FuturesUnordered::new();
                set.push(Box::pin(answers()) as Pin<Box<dyn Future<Output = bool> + Send>>);
                set.push(Box::pin(timed(answers())));
                set.next().await == Some(true) && set.next().await == Some(true)
            };
            Box::pin(set.in_scope(&scope))
        }
        // From outside.
        _ => Box::pin(async move {
            scope.cancelled().await;
            true
        }),
    }
}

const KINDS: usize = 5;

fn registrations(tree: &Tree) -> usize {
    tree.registrations + tree.children.iter().map(registrations).sum::<usize>()
}

fn at_rest(scope: &Scope) {
    let tree = scope.tree();
    assert_eq!((registrations(&tree), tree.children.len()), (0, 0), "{tree}");
}

fn each_kind(race: impl Fn(usize) + Send + Sync + Copy + 'static) {
    for kind in 0..KINDS {
        check(move || race(kind));
    }
}

// A wait that registers while the cancel is announced.
#[test]
fn a_wait_beside_a_cancel_answers() {
    each_kind(|kind| {
        let scope = Scope::new();
        let waiter = {
            let scope = scope.clone();
            thread::spawn(move || block_on(wait(kind, &scope)))
        };
        hesitate();
        scope.cancel(());
        assert!(waiter.join().unwrap());
        at_rest(&scope);
    });
}

// Scopes that are made below while the cancel is announced, two deep.
#[test]
fn a_scope_made_beside_a_cancel_hears_of_it() {
    each_kind(|kind| {
        let root = Scope::new();
        let waiter = {
            let root = root.clone();
            thread::spawn(move || {
                let child = root.child("child");
                block_on(wait(kind, &child.child("grandchild")))
            })
        };
        hesitate();
        root.cancel(());
        assert!(waiter.join().unwrap());
        at_rest(&root);
    });
}

// A request that is taken back meanwhile; the one that stands in the end is heard.
#[test]
fn uncancel_beside_a_cancel_loses_nobody() {
    each_kind(|kind| {
        let scope = Scope::new();
        let waiter = {
            let scope = scope.clone();
            thread::spawn(move || block_on(wait(kind, &scope)))
        };
        let back = {
            let scope = scope.clone();
            thread::spawn(move || {
                scope.cancel("first");
                scope.uncancel();
            })
        };
        hesitate();
        scope.cancel("stands");
        back.join().unwrap();
        // Of the two requests one was taken back.
        assert_eq!(scope.cancelling(), 1);
        assert!(waiter.join().unwrap());
    });
}

// The request of a user is taken back, and one of the library's stands behind it.
#[test]
fn the_request_behind_the_one_taken_back_is_announced() {
    each_kind(|kind| {
        let scope = Scope::new();
        let waiter = {
            let scope = scope.clone();
            thread::spawn(move || block_on(wait(kind, &scope)))
        };
        let user = {
            let scope = scope.clone();
            thread::spawn(move || {
                scope.cancel("user");
                assert_eq!(scope.uncancel(), 0);
            })
        };
        hesitate();
        scope.node().request(Reason::Shutdown, Origin::Library);
        user.join().unwrap();
        assert!(waiter.join().unwrap());
    });
}

// Two threads cancel two scopes on the way down to one wait.
#[test]
fn two_cancels_from_two_threads() {
    each_kind(|kind| {
        let outer = Scope::new();
        let inner = outer.child("inner");
        let waiter = {
            let inner = inner.clone();
            thread::spawn(move || block_on(wait(kind, &inner)))
        };
        let other = thread::spawn(move || inner.cancel("inner"));
        hesitate();
        outer.cancel("outer");
        other.join().unwrap();
        assert!(waiter.join().unwrap());
    });
}

// A wait that is dropped while it is woken leaves no registration, and nobody else is forgotten.
#[test]
fn a_wait_dropped_while_it_is_woken() {
    each_kind(|kind| {
        let scope = Scope::new();
        let other = {
            let scope = scope.clone();
            thread::spawn(move || block_on(wait(kind, &scope)))
        };
        let dropper = {
            let scope = scope.clone();
            thread::spawn(move || {
                let mut wait = wait(kind, &scope);
                let _ = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                thread::yield_now();
            })
        };
        hesitate();
        scope.cancel(());
        assert!(other.join().unwrap());
        dropper.join().unwrap();
        at_rest(&scope);
    });
}

// The scope of a nested call, which has no registration of its own: the frame around it is woken.
#[test]
fn a_cancel_of_a_nested_call_wakes_the_frame_around() {
    for polled_before in [false, true] {
        check(move || {
            let scope = Scope::new();
            let mut handle = None;
            let call = with_timeout_handle(Deadline::never(), |timeout| {
                handle = Some(timeout);
                async { ok(pending::<()>().await) }
            });
            let waiter = thread::spawn(move || {
                let body = async {
                    let mut call = pin!(call);
                    if polled_before {
                        // By somebody else first, whose registration is stale from then on.
                        if call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                            return true;
                        }
                    }
                    call.await.is_err()
                };
                block_on(scope.run(body))
            });
            hesitate();
            handle.unwrap().scope().cancel(());
            assert!(waiter.join().unwrap().unwrap());
        });
    }
}

/// What the root of a task does: `work` in a scope of its own below `scope`. True also when it is cut.
async fn task(scope: Scope, work: impl Future<Output = bool>) -> bool {
    let above = Some(Arc::clone(scope.node()));
    let node = Node::new(ScopeKind::Task, Name::from_static("task"), Location::caller(), above);
    let mut frame = Frame::new(node, Rule::Any);
    let mut work = pin!(work);
    poll_fn(|cx| match frame.poll(work.as_mut(), cx) {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Ended::Finished(answered)) => Poll::Ready(answered),
        Poll::Ready(Ended::Cut(_)) => Poll::Ready(true),
    })
    .await
}

// The root of a task registers after its first poll, so a cancel in the middle of that wakes nobody.
#[test]
fn a_task_hears_of_a_cancel_beside_its_first_poll() {
    for timeouts in 0..3 {
        check(move || {
            let scope = Scope::new();
            let waiter = {
                let scope = scope.clone();
                let work: Pin<Box<dyn Future<Output = bool> + Send>> = match timeouts {
                    0 => Box::pin(answers()),
                    1 => Box::pin(timed(answers())),
                    // Does not answer, and is cut.
                    _ => Box::pin(async { timed(pending()).await }),
                };
                thread::spawn(move || block_on(task(scope, work)))
            };
            hesitate();
            scope.cancel(());
            assert!(waiter.join().unwrap());
            at_rest(&scope);
        });
    }
}

// The same of a call inside it, which has no registration of its own.
#[test]
fn a_task_hears_of_a_cancel_inside_it_beside_its_first_poll() {
    for asked_twice in [false, true] {
        check(move || {
            let scope = Scope::new();
            let mut handle = None;
            let call = with_timeout_handle(Deadline::never(), |timeout| {
                handle = Some(timeout);
                async { ok(pending::<()>().await) }
            });
            let waiter = {
                let scope = scope.clone();
                thread::spawn(move || block_on(task(scope, async { call.await.is_err() })))
            };
            let inside = handle.unwrap().scope();
            hesitate();
            if asked_twice {
                inside.cancel(());
                inside.uncancel();
            }
            inside.cancel(());
            assert!(waiter.join().unwrap());
        });
    }
}

// A future that moves below another scope while that is cancelled. (What stands in a `FuturesUnordered` moves
// when it is polled, which takes a wake-up of its own.)
#[test]
fn a_future_that_moves_beside_a_cancel_answers() {
    for timeouts in 0..3 {
        check(move || {
            let (first, second) = (Scope::new(), Scope::new());
            let mover = {
                let second = second.clone();
                thread::spawn(move || {
                    let mut wait: Pin<Box<dyn Future<Output = bool> + Send>> = match timeouts {
                        0 => Box::pin(answers()),
                        1 => Box::pin(timed(answers())),
                        _ => Box::pin(timed(timed(answers()))),
                    };
                    let begin = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx).is_pending()));
                    assert!(block_on(begin.in_scope(&first)));
                    block_on(wait.in_scope(&second))
                })
            };
            hesitate();
            second.cancel(());
            assert!(mover.join().unwrap());
        });
    }
}

// Who is entered from within another scope hears both.
#[test]
fn an_entry_hears_the_scope_around_it_too() {
    for around_is_asked in [false, true] {
        check(move || {
            let (around, entered) = (Scope::new(), Scope::new());
            let waiter = {
                let (around, entered) = (around.clone(), entered.clone());
                thread::spawn(move || {
                    let inner = async move { entered.run(answers()).await.unwrap_or(true) };
                    block_on(inner.in_scope(&around))
                })
            };
            hesitate();
            if around_is_asked {
                around.cancel(())
            } else {
                entered.cancel(())
            }
            assert!(waiter.join().unwrap());
        });
    }
}

// A stop beside its waiters.
#[test]
fn a_stop_reaches_who_waits_for_it() {
    check(|| {
        let scope = Scope::new();
        let waiters: Vec<_> = (0..2)
            .map(|n| {
                let scope = if n == 0 { scope.clone() } else { scope.child("below") };
                thread::spawn(move || block_on(scope.stopping()))
            })
            .collect();
        hesitate();
        scope.stop();
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}

/// Lets the others run between a decision to wake and the wake-up.
struct Slow(Waker);

impl Wake for Slow {
    fn wake(self: Arc<Self>) {
        thread::yield_now();
        self.0.wake_by_ref();
    }
}

// R2: "polled after every wait registered under another waker was woken": whoever was polled at all is asked
// before it is cut, also where the root is polled in the middle of the announcement.
#[test]
fn nobody_is_cut_before_it_was_asked() {
    for wrapper in 0..2 {
        check(move || {
            let scope = Scope::new();
            let (begun, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let waker = Arc::new(StdMutex::new(None::<Waker>));
            let waiter = {
                let (scope, begun, asked) = (scope.clone(), Arc::clone(&begun), Arc::clone(&asked));
                let waker = Arc::clone(&waker);
                thread::spawn(move || {
                    let inner = async move {
                        let mut set: FuturesUnordered<_> = (0..3)
                            .map(|_| async {
                                begun.fetch_add(1, Ordering::Relaxed);
                                let mut wait = pin!(pending::<()>().or_cancelled());
                                let _ = poll_fn(|cx| {
                                    let waker = Waker::from(Arc::new(Slow(cx.waker().clone())));
                                    wait.as_mut().poll(&mut Context::from_waker(&waker))
                                })
                                .await;
                                asked.fetch_add(1, Ordering::Relaxed);
                                pending::<()>().await;
                            })
                            .collect();
                        set.next().await
                    };
                    let noted = async move {
                        let mut inner = pin!(inner);
                        poll_fn(|cx| {
                            *waker.lock().unwrap() = Some(cx.waker().clone());
                            inner.as_mut().poll(cx)
                        })
                        .await
                    };
                    match wrapper {
                        0 => drop(block_on(scope.run(noted))),
                        _ => drop(block_on(noted.or_cancelled().in_scope(&scope))),
                    }
                })
            };
            let spurious = thread::spawn(move || {
                for _ in 0..25 {
                    let waker = waker.lock().unwrap().clone();
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                    thread::yield_now();
                }
            });
            hesitate();
            scope.cancel(());
            waiter.join().unwrap();
            spurious.join().unwrap();
            assert_eq!(begun.load(Ordering::Relaxed), asked.load(Ordering::Relaxed));
        });
    }
}
