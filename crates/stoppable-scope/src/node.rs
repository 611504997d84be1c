//! The state of one scope, and the tree they form.
//!
//! Truth is in each node alone: the requests made *on it*. Whether a scope is cancelled is found by
//! walking up. Two bits, `HINT_CANCEL` and `HINT_STOP`, say that the walk may find something; they are
//! pushed down the tree by whoever makes a request, before anybody is woken, and never taken away: after
//! an `uncancel` the waits below walk in vain, which costs them a few loads.

mod announce;
mod deadline;
mod links;
mod requests;
mod rest;
mod wakers;

use std::panic::Location;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crossbeam_utils::atomic::AtomicCell;
use slab::Slab;

use crate::deadline::Deadline;
use crate::name::Name;
use crate::request::{Request, ScopeId};
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};

pub(crate) use deadline::Ticks;
use links::Links;
pub(crate) use links::Step;
use rest::Rest;
use wakers::Listener;
pub(crate) use wakers::Registration;

/// What a scope is the scope of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScopeKind {
    /// Made by hand, with [`Scope::new`](crate::Scope::new) or from a token.
    Scope,
    /// A future that is polled in a scope which is not the one around it.
    Entry,
    /// A group and its body.
    Group,
    /// One task of a group.
    Task,
    /// A task of a group that runs on a blocking thread.
    Blocking,
    /// A timed call.
    Timeout,
    /// A cleanup section: nothing above it cancels what is inside.
    Cleanup,
    /// Work that has left the deadlines above it.
    WithoutDeadline,
}

/// A request on this scope or above may stand.
const HINT_CANCEL: u32 = 1;
/// This scope or one above may have been asked to stop.
const HINT_STOP: u32 = 1 << 1;
/// A request was made on this scope. Changed under the lock.
const OWN_CANCEL: u32 = 1 << 2;
/// This scope was asked to stop.
const OWN_STOP: u32 = 1 << 3;
/// `root` is set: a frame is polled under that waker. Changed under the lock.
const REGISTERED: u32 = 1 << 4;
/// `links` has more to say than `parent`. Changed under the lock.
const RELINKED: u32 = 1 << 5;
/// The deadline of this scope has been delivered as a request.
const EXPIRED: u32 = 1 << 6;
/// The root was to be woken and had not registered yet. Changed under the lock.
const MISSED: u32 = 1 << 7;
/// A user has moved the deadline.
const RESCHEDULED: u32 = 1 << 8;
/// A wait of this future has answered a request that was made here or above.
const ANSWERED: u32 = 1 << 9;
/// Somebody has given a grace.
const HAS_GRACE: u32 = 1 << 10;
/// Waits of this task have answered, and are counted.
const HAS_ANSWERS: u32 = 1 << 11;
/// Nobody will ask for the result of this task.
const UNWANTED: u32 = 1 << 12;

/// In `slot`: the future of this scope has ended.
const ENDED: u32 = 1 << 31;

const KIND_SHIFT: u32 = 24;

/// By their numbers.
const KINDS: [ScopeKind; 8] = [
    ScopeKind::Scope,
    ScopeKind::Entry,
    ScopeKind::Group,
    ScopeKind::Task,
    ScopeKind::Blocking,
    ScopeKind::Timeout,
    ScopeKind::Cleanup,
    ScopeKind::WithoutDeadline,
];

/// One scope. Public for the crates of this workspace only.
#[derive(Debug)]
#[doc(hidden)]
pub struct Node {
    id: ScopeId,
    /// What may change, and above it the kind.
    bits: AtomicU32,
    name: Name,
    site: &'static Location<'static>,
    last_wait: AtomicCell<Option<&'static Location<'static>>>,
    deadline: AtomicU64,
    /// The scope around this one when it was made. Cleared only by `Drop`.
    parent: Option<Arc<Node>>,
    /// Where `parent` has this node among its children, and above it [`ENDED`]. Only whoever has made the node, and
    /// then the frame, writes here, so a store will do.
    slot: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The one registration of the frame whose scope this is, where it is polled under a waker of its own.
    root: Option<Waker>,
    rest: Rest,
}

/// What few scopes ever have.
#[derive(Debug, Default)]
struct Cold {
    children: Slab<std::sync::Weak<Node>>,
    requests: Vec<Request>,
    /// Single waits that are polled under another waker than the frame around them.
    waits: Slab<Listener>,
    links: Links,
    /// The token that this scope has handed out, and cancels.
    token: Option<crate::token::TokenLink>,
    /// The token that this scope was made from, and leaves alone.
    outside: Option<crate::token::TokenLink>,
    /// How often waits of this task have answered which request.
    answers: Option<(Request, u32)>,
    grace: Option<Duration>,
    cleanup_limit: Option<Duration>,
    /// The group whose scope this is.
    owner: Option<std::sync::Weak<dyn std::any::Any + Send + Sync>>,
    /// What became of the task, where its runtime took the result along.
    word: Option<Box<dyn std::any::Any + Send + Sync>>,
}

impl Node {
    /// A new scope below `parent`, already aware of what was asked above.
    pub fn new(
        kind: ScopeKind,
        name: Name,
        site: &'static Location<'static>,
        parent: Option<Arc<Node>>,
    ) -> Arc<Self> {
        let node = Arc::new(Self {
            id: ScopeId::next(),
            bits: AtomicU32::new((kind as u32) << KIND_SHIFT),
            name,
            site,
            last_wait: AtomicCell::new(None),
            deadline: AtomicU64::new(Ticks::NEVER),
            parent,
            slot: AtomicU32::new(0),
            state: Mutex::default(),
        });
        if let Some(parent) = &node.parent {
            // First the entry, then the look at the hint: a request made in between finds one or
            // the other.
            node.slot.store(parent.add_child(&node), Ordering::Relaxed);
            node.inherit(parent);
        }
        node
    }

    /// Which scope this is.
    pub fn id(&self) -> ScopeId {
        self.id
    }

    /// What it is the scope of.
    #[inline]
    pub fn kind(&self) -> ScopeKind {
        KINDS[(self.bits() >> KIND_SHIFT) as usize]
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Where in the user's code it was made.
    pub fn site(&self) -> &'static Location<'static> {
        self.site
    }

    /// The stoppable wait in which this task was pending last.
    pub fn last_wait(&self) -> Option<&'static Location<'static>> {
        self.last_wait.load()
    }

    #[inline]
    pub(crate) fn set_last_wait(&self, site: &'static Location<'static>) {
        self.last_wait.store(Some(site));
    }

    /// How long this scope goes on after it was asked, where somebody has said so.
    pub fn grace(&self) -> Option<Duration> {
        if self.bits() & HAS_GRACE == 0 {
            return None;
        }
        self.state.lock().rest.cold().and_then(|cold| cold.grace)
    }

    /// Gives this scope a grace.
    pub fn set_grace(&self, grace: Duration) {
        self.state.lock().rest.make_cold().grace = Some(grace);
        self.set(HAS_GRACE);
    }

    /// How long all cleanup sections together may take after a request, here and below.
    pub fn set_cleanup_limit(&self, limit: Duration) {
        self.state.lock().rest.make_cold().cleanup_limit = Some(limit);
    }

    /// The nearest such limit; 60 s where nobody has given one.
    pub(crate) fn cleanup_limit(self: &Arc<Self>) -> Duration {
        self.ascend(&mut |node| match node.state.lock().rest.cold().and_then(|c| c.cleanup_limit) {
            Some(limit) => Step::Found(limit),
            None => Step::Up,
        })
        .unwrap_or(Duration::from_secs(60))
    }

    /// Says whose scope this is.
    pub fn set_owner(&self, owner: std::sync::Weak<dyn std::any::Any + Send + Sync>) {
        self.state.lock().rest.make_cold().owner = Some(owner);
    }

    /// The owners from here up for which `wanted` gives something, nearest first.
    pub fn find_owner<T>(
        self: &Arc<Self>,
        mut wanted: impl FnMut(Arc<dyn std::any::Any + Send + Sync>) -> Option<T>,
    ) -> Option<T> {
        self.ascend(&mut |node| {
            let owner = node.state.lock().rest.cold().and_then(|cold| cold.owner.clone());
            match owner.and_then(|owner| owner.upgrade()).and_then(&mut wanted) {
                Some(found) => Step::Found(found),
                None => Step::Up,
            }
        })
    }

    /// Leaves word of what became of the task for its handle, where the runtime takes the result along.
    pub fn leave_word(&self, word: Box<dyn std::any::Any + Send + Sync>) {
        self.state.lock().rest.make_cold().word = Some(word);
    }

    /// Takes the word that was left.
    pub fn take_word(&self) -> Option<Box<dyn std::any::Any + Send + Sync>> {
        self.state.lock().rest.cold_mut().and_then(|cold| cold.word.take())
    }

    /// Notes that a wait in this scope has answered `request`: for this scope and those of the same task
    /// above it, down from where the request was made.
    pub(crate) fn mark_answered(self: &Arc<Self>, request: &Request) {
        self.ascend::<()>(&mut |node| {
            node.set(ANSWERED);
            if node.is_root() || node.id == request.scope() { Step::Stop } else { Step::Up }
        });
    }

    /// Whether a wait of this future has answered a request that was made on this scope or above.
    pub fn has_answered(&self) -> bool {
        self.bits() & ANSWERED != 0
    }

    /// Marks the end of the future that this scope belongs to.
    pub fn end(&self) {
        self.slot.store(self.slot.load(Ordering::Relaxed) | ENDED, Ordering::Release);
    }

    /// Whether that future has ended.
    pub fn has_ended(&self) -> bool {
        self.slot.load(Ordering::Acquire) & ENDED != 0
    }

    /// Notes that nobody will ask for the result of this task.
    pub fn set_unwanted(&self) {
        self.set(UNWANTED);
    }

    /// Whether nobody will.
    pub fn is_unwanted(&self) -> bool {
        self.bits() & UNWANTED != 0
    }

    #[inline]
    fn bits(&self) -> u32 {
        self.bits.load(Ordering::Acquire)
    }

    fn set(&self, bits: u32) {
        self.bits.fetch_or(bits, Ordering::AcqRel);
    }

    /// Whether the frame of this scope is the root of a task.
    #[inline]
    pub fn is_root(&self) -> bool {
        let kind = self.bits() >> KIND_SHIFT;
        kind == ScopeKind::Task as u32 || kind == ScopeKind::Blocking as u32
    }

    fn masks(&self) -> bool {
        self.kind() == ScopeKind::Cleanup
    }

    /// Counts one more answer of this task to `request`. Tells how many it has given before.
    pub(crate) fn answer(&self, request: &Request) -> u32 {
        let mut state = self.state.lock();
        let answers = &mut state.rest.make_cold().answers;
        match answers {
            Some((known, count)) if known.is(request) => {
                *count = count.saturating_add(1);
                *count - 1
            }
            _ => {
                let old = answers.replace((request.clone(), 1));
                self.set(HAS_ANSWERS);
                drop(state);
                drop(old);
                0
            }
        }
    }

    /// How often waits of this task have answered `request`.
    pub(crate) fn answers_to(&self, request: &Request) -> u32 {
        if self.bits() & HAS_ANSWERS == 0 {
            return 0;
        }
        let state = self.state.lock();
        let answers = state.rest.cold().and_then(|cold| cold.answers.as_ref());
        answers.map_or(0, |(known, count)| if known.is(request) { *count } else { 0 })
    }

    /// The effective deadline: the earliest from here up to where one was left.
    pub fn effective_deadline(self: &Arc<Self>) -> Deadline {
        Ticks::to_deadline(self.earliest_ticks())
    }
}

impl State {
    fn requests(&self) -> &[Request] {
        self.rest.cold().map_or(&[], |cold| &cold.requests)
    }
}
