//! First-come lists of waiters, with removal from the middle in constant time.

/// Names one waiter. Belongs to one future, which gives it up when it removes the waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key(usize);

/// The line a waiter stands in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// Nothing for it yet.
    Waiting,
    /// Got what it waits for (a promise, a slot), but was not polled since.
    Served,
    /// In no line: the waiter's own state says how it ended.
    Out,
}

const NIL: usize = usize::MAX;

struct Node<W> {
    /// `None` while the node is on the list of vacant ones.
    waiter: Option<W>,
    line: Line,
    prev: usize,
    next: usize,
}

#[derive(Clone, Copy)]
struct Ends {
    head: usize,
    tail: usize,
    len: usize,
}

/// All waiters of one kind.
///
/// Invariant: a node is linked exactly into the list that its `line` names; a vacant one, and one that
/// is `Out`, into none. Vacant nodes are chained through `next` from `vacant`.
pub(crate) struct Waiters<W> {
    nodes: Vec<Node<W>>,
    vacant: usize,
    waiting: Ends,
    served: Ends,
}

impl<W> Waiters<W> {
    pub(crate) fn new() -> Self {
        let empty = Ends { head: NIL, tail: NIL, len: 0 };
        Self { nodes: Vec::new(), vacant: NIL, waiting: empty, served: empty }
    }

    /// Adds a waiter at the end of [`Line::Waiting`].
    #[inline(always)]
    pub(crate) fn insert(&mut self, waiter: W) -> Key {
        if self.vacant == NIL {
            self.add_node();
        }
        let at = self.vacant;
        let node = &mut self.nodes[at];
        self.vacant = node.next;
        node.next = NIL;
        node.waiter = Some(waiter);
        self.link(at, Line::Waiting);
        Key(at)
    }

    #[cold]
    fn add_node(&mut self) {
        self.vacant = self.nodes.len();
        self.nodes.push(Node { waiter: None, line: Line::Out, prev: NIL, next: NIL });
    }

    /// Takes the waiter out of its line and of the slab. `None` if that was done before.
    #[inline(always)]
    pub(crate) fn remove(&mut self, key: Key) -> Option<W> {
        let waiter = self.nodes.get_mut(key.0)?.waiter.take()?;
        self.unlink(key.0);
        self.nodes[key.0].next = self.vacant;
        self.vacant = key.0;
        Some(waiter)
    }

    /// Moves the waiter to the end of `line`.
    #[inline]
    pub(crate) fn shift(&mut self, key: Key, line: Line) {
        self.unlink(key.0);
        self.link(key.0, line);
    }

    /// A node that is in no line becomes the last of `line`.
    #[inline]
    fn link(&mut self, at: usize, line: Line) {
        let Some(ends) = self.ends(line) else { return };
        let tail = std::mem::replace(&mut ends.tail, at);
        ends.len += 1;
        if tail == NIL {
            ends.head = at;
        } else {
            self.nodes[tail].next = at;
        }
        let node = &mut self.nodes[at];
        (node.line, node.prev) = (line, tail);
    }

    /// Moves the waiter to the head of those that wait: what it was served was taken back.
    pub(crate) fn shift_back(&mut self, key: Key) {
        self.unlink(key.0);
        let head = std::mem::replace(&mut self.waiting.head, key.0);
        let node = &mut self.nodes[key.0];
        node.line = Line::Waiting;
        node.next = head;
        match head {
            NIL => self.waiting.tail = key.0,
            head => self.nodes[head].prev = key.0,
        }
        self.waiting.len += 1;
    }

    /// Does nothing to a node that is in no line, so that leaving twice is harmless.
    #[inline]
    fn unlink(&mut self, at: usize) {
        let Node { line, prev, next, .. } = self.nodes[at];
        let Some(ends) = self.ends(line) else { return };
        ends.len -= 1;
        if prev == NIL {
            ends.head = next;
        }
        if next == NIL {
            ends.tail = prev;
        }
        if prev != NIL {
            self.nodes[prev].next = next;
        }
        if next != NIL {
            self.nodes[next].prev = prev;
        }
        let node = &mut self.nodes[at];
        (node.line, node.prev, node.next) = (Line::Out, NIL, NIL);
    }

    #[inline]
    fn ends(&mut self, line: Line) -> Option<&mut Ends> {
        match line {
            Line::Waiting => Some(&mut self.waiting),
            Line::Served => Some(&mut self.served),
            Line::Out => None,
        }
    }

    /// The waiter and its line. `None` after its removal.
    #[inline]
    pub(crate) fn get(&mut self, key: Key) -> Option<(Line, &mut W)> {
        let node = self.nodes.get_mut(key.0)?;
        let line = node.line;
        node.waiter.as_mut().map(|waiter| (line, waiter))
    }

    /// Who has been waiting longest.
    #[inline]
    pub(crate) fn first_waiting(&self) -> Option<Key> {
        (self.waiting.head != NIL).then_some(Key(self.waiting.head))
    }

    /// Who waits behind it.
    pub(crate) fn next(&self, key: Key) -> Option<Key> {
        let next = self.nodes[key.0].next;
        (next != NIL).then_some(Key(next))
    }

    /// Who was served first among those not polled since.
    #[inline]
    pub(crate) fn first_served(&self) -> Option<Key> {
        (self.served.head != NIL).then_some(Key(self.served.head))
    }

    /// Who was served last among those not polled since.
    pub(crate) fn last_served(&self) -> Option<Key> {
        (self.served.tail != NIL).then_some(Key(self.served.tail))
    }

    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len
    }

    #[inline]
    pub(crate) fn served(&self) -> usize {
        self.served.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served_also_after_a_removal_from_the_middle() {
        let mut waiters = Waiters::new();
        let keys: Vec<_> = (0..4).map(|n| waiters.insert(n)).collect();
        assert_eq!(waiters.remove(keys[1]), Some(1));
        let mut order = Vec::new();
        while let Some(key) = waiters.first_waiting() {
            order.extend(waiters.remove(key));
        }
        assert_eq!(order, [0, 2, 3]);
        assert_eq!(waiters.waiting(), 0);
    }

    #[test]
    fn who_is_shifted_back_is_first_again() {
        let mut waiters = Waiters::new();
        let keys: Vec<_> = (0..3).map(|n| waiters.insert(n)).collect();
        waiters.shift(keys[0], Line::Served);
        waiters.shift(keys[1], Line::Served);
        while let Some(last) = waiters.last_served() {
            waiters.shift_back(last);
        }
        assert_eq!((waiters.waiting(), waiters.served()), (3, 0));
        let mut order = Vec::new();
        while let Some(key) = waiters.first_waiting() {
            order.extend(waiters.remove(key));
        }
        assert_eq!(order, [0, 1, 2]);
    }

    #[test]
    fn removal_is_idempotent() {
        let mut waiters = Waiters::new();
        let key = waiters.insert('a');
        waiters.shift(key, Line::Served);
        waiters.shift(key, Line::Out);
        waiters.shift(key, Line::Out);
        assert_eq!(waiters.remove(key), Some('a'));
        assert_eq!(waiters.remove(key), None);
        assert_eq!((waiters.waiting(), waiters.served()), (0, 0));
    }

    #[test]
    fn vacant_nodes_are_used_again() {
        let mut waiters = Waiters::new();
        for n in 0..100 {
            let a = waiters.insert(n);
            let b = waiters.insert(n);
            waiters.shift(a, Line::Served);
            assert_eq!(waiters.first_served(), Some(a));
            assert_eq!(waiters.first_waiting(), Some(b));
            waiters.remove(a);
            waiters.remove(b);
        }
        assert_eq!(waiters.nodes.len(), 2);
    }
}
