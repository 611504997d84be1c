//! What else a scope has: mostly nothing or one child, so that takes no memory of its own.

use std::mem;
use std::ops::RangeFrom;
use std::sync::{Arc, Weak};

use super::{Cold, Node};

#[derive(Debug, Default)]
pub(super) enum Rest {
    #[default]
    Nothing,
    /// The one child, in the first slot.
    Child(Weak<Node>),
    Cold(Box<Cold>),
}

const FIRST: u32 = 0;

impl Rest {
    pub(super) fn cold(&self) -> Option<&Cold> {
        match self {
            Self::Cold(cold) => Some(cold),
            _ => None,
        }
    }

    pub(super) fn cold_mut(&mut self) -> Option<&mut Cold> {
        match self {
            Self::Cold(cold) => Some(cold),
            _ => None,
        }
    }

    pub(super) fn make_cold(&mut self) -> &mut Cold {
        if self.cold().is_none() {
            let mut cold = Box::<Cold>::default();
            if let Self::Child(child) = mem::take(self) {
                cold.children.insert(child);
            }
            *self = Self::Cold(cold);
        }
        let Some(cold) = self.cold_mut() else { unreachable!("made above") };
        cold
    }

    /// Adds a child, and tells its slot, which it keeps.
    pub(super) fn insert_child(&mut self, child: Weak<Node>) -> u32 {
        if matches!(self, Self::Nothing) {
            *self = Self::Child(child);
            return FIRST;
        }
        let slot = self.make_cold().children.insert(child);
        u32::try_from(slot).expect("memory ends before 4 G scopes")
    }

    pub(super) fn remove_child(&mut self, slot: u32) -> Option<Weak<Node>> {
        match self {
            Self::Cold(cold) => cold.children.try_remove(slot as usize),
            Self::Child(_) if slot == FIRST => match mem::take(self) {
                Self::Child(child) => Some(child),
                _ => unreachable!("matched above"),
            },
            _ => None,
        }
    }

    pub(super) fn has_children(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Child(_) => true,
            Self::Cold(cold) => !cold.children.is_empty(),
        }
    }

    /// Adds the children in the first `many` of these slots that are alive to `found`, and takes the slots off. `false`
    /// if there are no such slots.
    pub(super) fn find_children(
        &self,
        slots: &mut RangeFrom<usize>,
        many: usize,
        found: &mut Vec<Arc<Node>>,
    ) -> bool {
        let (begin, end) = match self {
            Self::Nothing => (slots.start, 0),
            Self::Child(_) => (slots.start, 1),
            Self::Cold(cold) => (slots.start, cold.children.capacity()),
        };
        slots.start = end.min(begin + many).max(begin);
        let child = |slot| match self {
            Self::Nothing => None,
            Self::Child(child) => Some(child),
            Self::Cold(cold) => cold.children.get(slot),
        };
        found.extend((begin..slots.start).filter_map(child).filter_map(Weak::upgrade));
        begin < end
    }
}
