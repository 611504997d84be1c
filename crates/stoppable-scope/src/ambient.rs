//! Whose scope is being polled on this thread.
//!
//! The frame that polls moves its scope in and takes it out again; nothing is cloned or locked. No code
//! of a user runs while the cell is borrowed.

use std::cell::{Cell, RefCell};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::deadline::Deadline;
use crate::node::Node;
use crate::sync::thread_local;

/// The scope that is being polled, and the registration that all waits in it share.
#[derive(Debug)]
pub(crate) struct Ambient {
    pub(crate) node: Arc<Node>,
    /// The task, or the outermost frame: whose record the waits write to.
    pub(crate) root: Arc<Node>,
    /// The waker that a request on `node` wakes. A wait polled with it needs none of its own.
    pub(crate) waker: Waker,
}

thread_local! {
    static AMBIENT: RefCell<Option<Ambient>> = const { RefCell::new(None) };
    /// Cleanup sections begun less those ended, ever, on this thread. A frame compares before and after.
    static SECTIONS: Cell<isize> = const { Cell::new(0) };
    /// Waits that could not answer because the coop budget was spent, ever.
    static STALLS: Cell<usize> = const { Cell::new(0) };
}

/// Lets `look` see the ambient scope; `None` outside of any, and while the thread ends.
pub(crate) fn with<T>(look: impl FnOnce(Option<&Ambient>) -> T) -> T {
    let mut look = Some(look);
    let seen = AMBIENT.try_with(|cell| look.take().map(|look| look(cell.borrow().as_ref())));
    match (seen, look) {
        (Ok(Some(seen)), _) => seen,
        (_, Some(look)) => look(None),
        _ => unreachable!("the look was taken, so it was run"),
    }
}

/// Exchanges the whole ambient scope with `other`.
pub(crate) fn swap(other: &mut Option<Ambient>) {
    let _ = AMBIENT.try_with(|cell| mem::swap(&mut *cell.borrow_mut(), other));
}

/// Puts `node` in the place of the ambient one, if that is where it belongs: directly below, and polled with the
/// same waker.
pub(crate) fn nest(node: &mut Arc<Node>, cx: &Context<'_>) -> bool {
    let nested = AMBIENT.try_with(|cell| match cell.borrow_mut().as_mut() {
        Some(around) if node.is_child_of(&around.node) && around.waker.will_wake(cx.waker()) => {
            mem::swap(&mut around.node, node);
            true
        }
        _ => false,
    });
    nested.unwrap_or(false)
}

/// Exchanges only the node, where there is an ambient scope.
pub(crate) fn swap_node(other: &mut Arc<Node>) {
    let _ = AMBIENT.try_with(|cell| {
        if let Some(ambient) = cell.borrow_mut().as_mut() {
            mem::swap(&mut ambient.node, other);
        }
    });
}

/// The ambient scope.
pub fn node() -> Option<Arc<Node>> {
    with(|ambient| ambient.map(|ambient| Arc::clone(&ambient.node)))
}

/// The task whose waits are being polled.
pub fn root() -> Option<Arc<Node>> {
    with(|ambient| ambient.map(|ambient| Arc::clone(&ambient.root)))
}

/// The ambient scope, if the ambient registration is that of `cx`.
pub(crate) fn node_polled_with(cx: &Context<'_>) -> Option<Arc<Node>> {
    with(|ambient| {
        let same = ambient.filter(|ambient| ambient.waker.will_wake(cx.waker()));
        same.map(|ambient| Arc::clone(&ambient.node))
    })
}

pub(crate) fn deadline() -> Deadline {
    with(|ambient| ambient.map_or(Deadline::never(), |ambient| ambient.node.effective_deadline()))
}

pub(crate) fn sections() -> isize {
    SECTIONS.try_with(Cell::get).unwrap_or(0)
}

/// Begins (`1`) or ends (`-1`) a section.
pub(crate) fn count_section(by: isize) {
    let _ = SECTIONS.try_with(|cell| cell.set(cell.get().wrapping_add(by)));
}

pub(crate) fn stalls() -> usize {
    STALLS.try_with(Cell::get).unwrap_or(0)
}

pub(crate) fn count_stall() {
    let _ = STALLS.try_with(|cell| cell.set(cell.get().wrapping_add(1)));
}

/// A scope is the ambient one until this is dropped. For synchronous code: it must not be held over an
/// await, so it stays in the crate.
pub(crate) struct Within {
    outer: Option<Ambient>,
}

impl Within {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        let root = root().unwrap_or_else(|| Arc::clone(&node));
        // Nobody registers for code that does not wait; a runtime that it blocks on registers its own.
        let mut outer = Some(Ambient { node, root, waker: Waker::noop().clone() });
        swap(&mut outer);
        Self { outer }
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        swap(&mut self.outer);
    }
}
