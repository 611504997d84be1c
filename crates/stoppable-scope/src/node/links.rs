//! How nodes hold one another. A child holds its parent; the parent knows its children weakly.

use std::mem;
use std::ops::RangeFrom;
use std::sync::Arc;

use super::{ENDED, HINT_CANCEL, HINT_STOP, Node, OWN_CANCEL, RELINKED};
use crate::sync::Ordering;

/// What has changed about the parents of a node since it was made.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The future moved to another scope, which now takes the place of `parent`.
    moved: Option<Link>,
    /// A second scope above: a future that was entered into a scope from within another is in both.
    also: Option<Link>,
}

#[derive(Debug)]
struct Link {
    parent: Arc<Node>,
    slot: u32,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.parent.remove_child(self.slot);
    }
}

/// Where a walk up goes next.
pub(crate) enum Step<T> {
    Up,
    /// Not beyond this node.
    Stop,
    Found(T),
}

impl Node {
    pub(super) fn add_child(&self, child: &Arc<Self>) -> u32 {
        self.state.lock().rest.insert_child(Arc::downgrade(child))
    }

    fn slot(&self) -> u32 {
        self.slot.load(Ordering::Relaxed) & !ENDED
    }

    fn remove_child(&self, slot: u32) {
        let weak = self.state.lock().rest.remove_child(slot);
        drop(weak);
    }

    /// Takes over what `parent` may have been asked.
    pub(super) fn inherit(&self, parent: &Self) {
        let above = parent.bits();
        let cancel = if parent.masks() { above & OWN_CANCEL != 0 } else { above & HINT_CANCEL != 0 };
        let mut hints = above & HINT_STOP;
        if cancel || self.masks() && above & HINT_CANCEL != 0 {
            hints |= HINT_CANCEL;
        }
        if hints != 0 {
            self.set(hints);
        }
    }

    /// Whether `scope` is what stands directly above.
    #[inline]
    pub fn is_child_of(&self, scope: &Arc<Self>) -> bool {
        if self.bits() & RELINKED == 0 {
            return self.parent.as_ref().is_some_and(|parent| Arc::ptr_eq(parent, scope));
        }
        let state = self.state.lock();
        let links = state.rest.cold().map(|cold| &cold.links);
        match links.and_then(|links| links.moved.as_ref()) {
            Some(link) => Arc::ptr_eq(&link.parent, scope),
            None => self.parent.as_ref().is_some_and(|parent| Arc::ptr_eq(parent, scope)),
        }
    }

    /// From now on below `scope`: a future belongs to the scope that polls it.
    pub fn move_below(self: &Arc<Self>, scope: &Arc<Self>) {
        self.relink(Some(scope), |links| &mut links.moved);
    }

    /// From now on below `scope` too, and no longer below the one that was named here before.
    pub(crate) fn also_below(self: &Arc<Self>, scope: Option<&Arc<Self>>) {
        self.relink(scope, |links| &mut links.also);
    }

    fn relink(self: &Arc<Self>, scope: Option<&Arc<Self>>, which: fn(&mut Links) -> &mut Option<Link>) {
        // A future that is entered into a scope inside itself would close a ring; it is below already.
        if scope.is_some_and(|scope| scope.is_within(self.id)) {
            return;
        }
        let link = scope.map(|scope| Link { parent: Arc::clone(scope), slot: scope.add_child(self) });
        let old = {
            let mut state = self.state.lock();
            let old = mem::replace(which(&mut state.rest.make_cold().links), link);
            self.set(RELINKED);
            old
        };
        drop(old);
        if let Some(scope) = scope {
            self.inherit(scope);
            // What was entered below this node meanwhile has to hear of it too.
            self.push_hints();
        }
    }

    /// The scope directly above.
    pub fn above(&self) -> Option<Arc<Self>> {
        let moved = if self.bits() & RELINKED == 0 { None } else { self.links().0 };
        moved.or_else(|| self.parent.clone())
    }

    /// Visits this node and those above it, nearest first.
    pub(crate) fn ascend<T>(self: &Arc<Self>, visit: &mut impl FnMut(&Arc<Self>) -> Step<T>) -> Option<T> {
        let mut node = self;
        loop {
            match visit(node) {
                Step::Up => {}
                Step::Stop => return None,
                Step::Found(found) => return Some(found),
            }
            if node.bits() & RELINKED != 0 {
                let (moved, also) = node.links();
                if let Some(found) = also.and_then(|also| also.ascend(visit)) {
                    return Some(found);
                }
                if let Some(moved) = moved {
                    return moved.ascend(visit);
                }
            }
            node = node.parent.as_ref()?;
        }
    }

    fn links(&self) -> (Option<Arc<Self>>, Option<Arc<Self>>) {
        let state = self.state.lock();
        let Some(cold) = state.rest.cold() else { return (None, None) };
        let parent = |link: &Option<Link>| link.as_ref().map(|link| Arc::clone(&link.parent));
        (parent(&cold.links.moved), parent(&cold.links.also))
    }

    /// Those below that are alive.
    pub fn children(&self) -> Vec<Arc<Self>> {
        let (mut slots, mut all) = (0.., Vec::new());
        while self.some_children(&mut slots, &mut all) {}
        all
    }

    /// Adds some of those below that are alive, of the first of these slots, which are taken off. `false` once none are
    /// left. Who comes meanwhile looks at the hints itself.
    pub(super) fn some_children(&self, slots: &mut RangeFrom<usize>, into: &mut Vec<Arc<Self>>) -> bool {
        const SOME: usize = 64;
        self.state.lock().rest.find_children(slots, SOME, into)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut slot = self.slot();
        let mut parent = self.parent.take();
        // A chain of thousands of scopes is taken apart in a loop, not by recursion.
        while let Some(node) = parent {
            node.remove_child(slot);
            parent = Arc::into_inner(node).and_then(|mut node| {
                slot = node.slot();
                mem::take(&mut node.parent)
            });
        }
    }
}
