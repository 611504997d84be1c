//! Whose scope is being polled on this thread.
//!
//! The frame that polls moves its scope in and takes it out again; nothing is cloned or locked. No code
//! of a user runs while the cell is borrowed.

use std::cell::{Cell, RefCell};
use std::mem;
use std::sync::Arc;
use std::task::{Context, RawWakerVTable, Waker};

use crate::deadline::Deadline;
use crate::node::{Node, Ticks};
use crate::request::Request;
use crate::sync::thread_local;

/// The scope that is being polled, and the registration that all waits in it share.
#[derive(Debug)]
pub(crate) struct Ambient {
    /// The task, or the outermost frame: whose record the waits write to. None where nothing is polled.
    root: Option<Arc<Node>>,
    /// The innermost scope, where that is not the root.
    node: Option<Arc<Node>>,
    /// The waker that a request on `node` wakes. A wait polled with it needs none of its own.
    waker: Option<WakerId>,
}

impl Ambient {
    #[inline]
    pub(crate) fn node(&self) -> &Arc<Node> {
        self.node.as_ref().unwrap_or_else(|| self.root())
    }

    #[inline]
    pub(crate) fn root(&self) -> &Arc<Node> {
        self.root.as_ref().expect("it is shown only where there is one")
    }

    #[inline]
    pub(crate) fn is_polled_with(&self, cx: &Context<'_>) -> bool {
        self.waker == Some(WakerId::of(cx.waker()))
    }
}

/// Tells wakers apart, as [`Waker::will_wake`] does. It says something only while the waker lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WakerId {
    data: usize,
    vtable: &'static RawWakerVTable,
}

impl WakerId {
    #[inline]
    pub(crate) fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), vtable: waker.vtable() }
    }
}

impl PartialEq for WakerId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data && std::ptr::eq(self.vtable, other.vtable)
    }
}

/// What a thread is at. One look finds all of it.
struct Here {
    ambient: RefCell<Ambient>,
    /// What frames that are not nested have taken the place of, the innermost last.
    outer: RefCell<Vec<Outer>>,
    /// Cleanup sections begun less those ended, ever, on this thread. A frame compares before and after.
    sections: Cell<i32>,
    /// Waits that could not answer because the coop budget was spent, ever.
    stalls: Cell<u32>,
    timer: Timer,
}

/// What is known of the timer that wakes the ambient waker.
#[derive(Debug)]
struct Timer {
    /// For which instant it has fired.
    fired: Cell<u64>,
    /// When one of the frames that were polled with that waker has to be polled again.
    wanted: Cell<u64>,
}

impl Timer {
    /// Begins with one that has fired for `fired`. Gives what was known before.
    #[inline]
    fn exchange(&self, fired: u64, wanted: u64) -> Self {
        Self { fired: Cell::new(self.fired.replace(fired)), wanted: Cell::new(self.wanted.replace(wanted)) }
    }
}

struct Outer {
    ambient: Ambient,
    timer: Timer,
}

thread_local! {
    static HERE: Here = const {
        Here {
            ambient: RefCell::new(Ambient { root: None, node: None, waker: None }),
            outer: RefCell::new(Vec::new()),
            sections: Cell::new(0),
            stalls: Cell::new(0),
            timer: Timer { fired: Cell::new(0), wanted: Cell::new(Ticks::NEVER) },
        }
    };
}

/// Lets `look` see the ambient scope; `None` outside of any, and while the thread ends.
#[inline]
pub(crate) fn with<T>(look: impl FnOnce(Option<&Ambient>) -> T) -> T {
    let mut look = Some(look);
    let seen = HERE.try_with(|here| {
        let ambient = here.ambient.borrow();
        look.take().map(|look| look(ambient.root.is_some().then_some(&*ambient)))
    });
    match (seen, look) {
        (Ok(Some(seen)), _) => seen,
        (_, Some(look)) => look(None),
        _ => unreachable!("the look was taken, so it was run"),
    }
}

/// How a scope has become the ambient one.
#[derive(Debug)]
pub(crate) struct Stay {
    place: Place,
    /// The count of sections then.
    sections: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is not, or no longer.
    Gone,
    /// Below the scope around, polled with the same waker. They have changed places.
    Nested,
    /// Nothing was around.
    Outermost,
    /// Below the scope around, which has changed places with it.
    Below,
    /// The root of another task than the one around.
    Root,
}

impl Stay {
    const GONE: Self = Self { place: Place::Gone, sections: 0 };

    pub(crate) fn is_over(&self) -> bool {
        self.place == Place::Gone
    }
}

/// Puts `node` in the place of the ambient one, if that is where it belongs: directly below, and polled with the
/// same waker.
#[inline]
pub(crate) fn nest(node: &mut Option<Arc<Node>>, cx: &Context<'_>) -> Option<Stay> {
    let nested = HERE.try_with(|here| {
        let mut around = here.ambient.borrow_mut();
        let (root, new) = (around.root.as_ref()?, node.as_ref()?);
        if !new.is_child_of(around.node.as_ref().unwrap_or(root)) || !around.is_polled_with(cx) {
            return None;
        }
        mem::swap(&mut around.node, node);
        Some(Stay { place: Place::Nested, sections: here.sections.get() })
    });
    nested.ok().flatten()
}

/// Makes `node` the ambient scope, polled with `waker`, whose timer has fired for `fired`. `as_root` also where the
/// waits write to, as it is where there is none around.
#[inline]
pub(crate) fn enter(node: &mut Option<Arc<Node>>, waker: Option<WakerId>, fired: u64, as_root: bool) -> Stay {
    let entered = HERE.try_with(|here| {
        let around = &mut *here.ambient.borrow_mut();
        let place = if around.root.is_some() {
            here.put_away(around, node, fired, as_root)
        } else {
            mem::swap(&mut around.root, node);
            here.timer.fired.set(fired);
            Place::Outermost
        };
        around.waker = waker;
        Stay { place, sections: here.sections.get() }
    });
    entered.unwrap_or(Stay::GONE)
}

impl Here {
    fn put_away(
        &self,
        around: &mut Ambient,
        node: &mut Option<Arc<Node>>,
        fired: u64,
        as_root: bool,
    ) -> Place {
        let timer = self.timer.exchange(fired, Ticks::NEVER);
        let mut ambient = Ambient { root: None, node: None, waker: around.waker };
        if as_root {
            ambient.node = around.node.take();
            ambient.root = mem::replace(&mut around.root, node.take());
        } else {
            mem::swap(&mut around.node, node);
        }
        self.outer.borrow_mut().push(Outer { ambient, timer });
        if as_root { Place::Root } else { Place::Below }
    }

    fn bring_back(&self, around: &mut Ambient, node: &mut Option<Arc<Node>>, as_root: bool) -> u64 {
        let Some(outer) = self.outer.borrow_mut().pop() else { unreachable!("each is put away before") };
        let timer = self.timer.exchange(outer.timer.fired.get(), outer.timer.wanted.get());
        if as_root {
            around.node = outer.ambient.node;
            *node = mem::replace(&mut around.root, outer.ambient.root);
        } else {
            mem::swap(&mut around.node, node);
        }
        around.waker = outer.ambient.waker;
        timer.wanted.get()
    }
}

/// What has changed while a scope was the ambient one.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Sections begun, less those that were ended.
    pub(crate) opened: i32,
    /// When those inside have to be polled again, where it is this frame that has to see to it.
    pub(crate) wanted: Option<u64>,
}

/// Takes `node` out again.
#[inline]
pub(crate) fn leave(node: &mut Option<Arc<Node>>, stay: &mut Stay) -> Left {
    let left = HERE.try_with(|here| {
        let around = &mut *here.ambient.borrow_mut();
        let opened = here.sections.get().wrapping_sub(stay.sections);
        let wanted = match mem::replace(&mut stay.place, Place::Gone) {
            Place::Gone => return Left::default(),
            Place::Nested => {
                mem::swap(&mut around.node, node);
                None
            }
            Place::Outermost => {
                mem::swap(&mut around.root, node);
                here.timer.fired.set(0);
                Some(here.timer.wanted.replace(Ticks::NEVER))
            }
            Place::Below => Some(here.bring_back(around, node, false)),
            Place::Root => Some(here.bring_back(around, node, true)),
        };
        Left { opened, wanted }
    });
    left.unwrap_or_default()
}

/// Has whoever holds the timer polled again at `ticks`, and so all that it polls.
#[inline]
pub(crate) fn want(ticks: u64) {
    let _ = HERE.try_with(|here| here.timer.wanted.set(here.timer.wanted.get().min(ticks)));
}

/// For which instant the timer around has fired.
#[inline]
pub(crate) fn fired() -> u64 {
    HERE.try_with(|here| here.timer.fired.get()).unwrap_or(0)
}

/// The ambient scope.
pub fn node() -> Option<Arc<Node>> {
    with(|ambient| ambient.map(|ambient| Arc::clone(ambient.node())))
}

/// The task whose waits are being polled.
pub fn root() -> Option<Arc<Node>> {
    with(|ambient| ambient.map(|ambient| Arc::clone(ambient.root())))
}

pub(crate) fn deadline() -> Deadline {
    with(|ambient| ambient.map_or(Deadline::never(), |ambient| ambient.node().effective_deadline()))
}

/// What a wait sees of the ambient scope.
#[derive(Default)]
pub(crate) struct View {
    /// What it would answer with.
    pub(crate) request: Option<Request>,
    /// The count of sections.
    pub(crate) sections: i32,
}

#[inline]
pub(crate) fn view() -> View {
    let view = HERE.try_with(|here| {
        let ambient = here.ambient.borrow();
        let node = ambient.root.is_some().then(|| ambient.node());
        View { request: node.and_then(Node::effective_request), sections: here.sections.get() }
    });
    view.unwrap_or_default()
}

/// Begins (`1`) or ends (`-1`) a section.
pub(crate) fn count_section(by: i32) {
    let _ = HERE.try_with(|here| here.sections.set(here.sections.get().wrapping_add(by)));
}

pub(crate) fn stalls() -> u32 {
    HERE.try_with(|here| here.stalls.get()).unwrap_or(0)
}

pub(crate) fn count_stall() {
    let _ = HERE.try_with(|here| here.stalls.set(here.stalls.get().wrapping_add(1)));
}

/// A scope is the ambient one until this is dropped. For synchronous code: it must not be held over an
/// await, so it stays in the crate.
pub(crate) struct Within {
    node: Option<Arc<Node>>,
    stay: Stay,
}

impl Within {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        let mut node = Some(node);
        // Nobody registers for code that does not wait; what it polls nevertheless registers by itself.
        let stay = enter(&mut node, None, 0, false);
        Self { node, stay }
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        leave(&mut self.node, &mut self.stay);
    }
}
