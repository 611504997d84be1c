//! What else a scope has: mostly nothing or one child, so that takes no memory of its own.

use std::mem;
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

    /// Adds the children that are alive to `found`.
    pub(super) fn find_children(&self, found: &mut Vec<Arc<Node>>) {
        match self {
            Self::Nothing => {}
            Self::Child(child) => found.extend(child.upgrade()),
            Self::Cold(cold) => found.extend(cold.children.iter().filter_map(|(_, child)| child.upgrade())),
        }
    }
}
