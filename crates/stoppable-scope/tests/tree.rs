//! The tree: deep ones, wide ones, and the picture of it.
// A body may end with the value of its last wait, also where that is `()`.
#![allow(clippy::unit_arg)]

mod support;

use std::future::pending;

use stoppable_scope::{OrCancelledExt, Scope, ScopeKind, cleanup, ok, with_timeout};
use support::{Hand, ends, secs};
use tokio::time::Instant;

fn chain(depth: usize) -> (Scope, Scope) {
    let root = Scope::named("root");
    let mut leaf = root.clone();
    for _ in 0..depth {
        leaf = leaf.child("nested");
    }
    (root, leaf)
}

// S-45: thousands of nested scopes are cancelled, asked, printed, taken back and dropped without recursion.
#[test]
fn deep_trees_do_not_overflow_the_stack() {
    let (root, leaf) = chain(5_000);
    let mut run = Hand::new(leaf.run(pending::<()>().or_cancelled()));
    run.pending();
    root.cancel("all");
    assert!(leaf.is_cancelled());
    assert_eq!(run.wakes(), 1);
    assert!(run.ready().is_ok());
    drop(run);
    let tree = root.tree();
    assert_eq!(tree.to_string().lines().count(), 5_001);
    assert_eq!(format!("{tree:?}").lines().count(), 5_001);
    drop(tree);
    root.uncancel();
    assert!(!leaf.is_cancelled());
    root.stop();
    assert!(leaf.is_stopping());
    drop(root);
    drop(leaf);
}

// The same where the leaf goes last, and on a thread with a small stack.
#[test]
fn a_deep_tree_is_dropped_from_the_leaf() {
    let small = std::thread::Builder::new().stack_size(128 * 1024);
    let drop_there = || {
        let (root, leaf) = chain(20_000);
        drop(root);
        drop(leaf);
    };
    small.spawn(drop_there).unwrap().join().unwrap();
}

// Futures nested so deep that each has its own timeout: boxed, so it is the library's part that counts.
#[test]
fn deep_timeouts_expire_from_the_outermost() {
    let deep = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            type Boxed =
                std::pin::Pin<Box<dyn Future<Output = Result<(), stoppable_scope::TaskError>> + Send>>;
            let mut body: Boxed = Box::pin(async { ok(pending::<()>().or_cancelled().await?) });
            for n in 0..200 {
                let inner = body;
                body = Box::pin(async move { ok(with_timeout(secs(1000 - n), inner).await?) });
            }
            let started = Instant::now();
            let call = with_timeout(secs(1), body);
            assert!(ends(call).await.unwrap_err().is_elapsed());
            assert_eq!(started.elapsed(), secs(1));
        });
    };
    std::thread::Builder::new().stack_size(16 << 20).spawn(deep).unwrap().join().unwrap();
}

// A scope that is gone is gone from the tree; wide trees keep their order.
#[test]
fn scopes_leave_the_tree_when_they_are_dropped() {
    let root = Scope::named("root");
    let mut children: Vec<_> = (0..100).map(|n| root.child(format!("child {n}"))).collect();
    children.retain(|child| child.name().ends_with('7'));
    let names: Vec<_> = root.tree().children.iter().map(|child| child.name.to_string()).collect();
    assert_eq!(names, (0..10).map(|n| format!("child {n}7").replace(" 07", " 7")).collect::<Vec<_>>());
    drop(children);
    assert!(root.tree().children.is_empty());
}

// R9: "the tree of scope, task, deadline left, wait place".
#[tokio::test(start_paused = true)]
async fn the_picture_tells_kind_deadline_reason_and_wait() {
    let scope = Scope::named("import");
    let mut run = Hand::new(scope.run(async {
        let call = with_timeout(secs(7), async {
            cleanup(secs(3), pending::<()>().or_cancelled()).await??;
            ok(())
        });
        call.await
    }));
    run.pending();
    scope.cancel("enough");
    let tree = scope.tree();
    assert_eq!((tree.kind, tree.name.as_str()), (ScopeKind::Scope, "import"));
    let entry = &tree.children[0];
    assert!(entry.last_wait.unwrap().file().ends_with("tree.rs"));
    let timeout = &entry.children[0];
    assert_eq!((timeout.kind, timeout.remaining), (ScopeKind::Timeout, Some(secs(7))));
    assert!(timeout.cancelled.is_some() && !timeout.children[0].stopping);
    let section = &timeout.children[0];
    assert_eq!((section.kind, section.remaining), (ScopeKind::Cleanup, Some(secs(3))));
    assert!(section.cancelled.is_none());
    let text = tree.to_string();
    assert!(text.starts_with("import (scope)"), "{text}");
    assert!(text.contains("cancelled: enough") && text.contains("7s left"), "{text}");
}

#[test]
fn scopes_print() {
    let scope = Scope::named("import");
    let text = format!("{scope:?}");
    assert!(text.contains("import") && text.contains("None"), "{text}");
    scope.cancel("enough");
    assert!(format!("{scope:?}").contains("enough"));
}

// The last of a scope's handles may be dropped while it is being told.
#[test]
fn a_scope_may_be_dropped_by_whom_it_wakes() {
    struct DropsOnWake(std::sync::Mutex<Option<Scope>>);
    impl std::task::Wake for DropsOnWake {
        fn wake(self: std::sync::Arc<Self>) {
            drop(self.0.lock().unwrap().take());
        }
    }
    let root = Scope::new();
    let child = root.child("child");
    let mut wait = Box::pin(child.cancelled());
    let waker = std::sync::Arc::new(DropsOnWake(std::sync::Mutex::new(Some(child)))).into();
    assert!(wait.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    root.cancel(());
    drop(wait);
    assert!(root.tree().children.is_empty());
}

// A waker may call back into the scope that wakes it.
#[test]
fn a_waker_may_use_the_scope_that_wakes_it() {
    struct Calls(Scope, std::sync::atomic::AtomicUsize);
    impl std::task::Wake for Calls {
        fn wake(self: std::sync::Arc<Self>) {
            self.1.store(self.0.cancelling(), std::sync::atomic::Ordering::SeqCst);
            self.0.uncancel();
            let _new = self.0.child("made by the waker");
            let _tree = self.0.tree();
        }
    }
    let scope = Scope::new();
    let calls = std::sync::Arc::new(Calls(scope.clone(), 0.into()));
    let mut wait = Box::pin(scope.cancelled());
    let waker = calls.clone().into();
    assert!(wait.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    scope.cancel(());
    assert_eq!(calls.1.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(!scope.is_cancelled());
}
