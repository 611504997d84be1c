use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::name::Name;
use crate::node::{Node, ScopeKind};
use crate::reason::Reason;
use crate::request::ScopeId;

/// A picture of a scope and all below it at one moment. It is a copy: looking at it holds nothing up.
///
/// Tasks and timed calls that have ended are not in it, also while somebody has a handle of theirs.
///
/// Prints as a tree, a line a scope.
///
/// # Examples
///
/// ```
/// use stoppable_scope::Scope;
///
/// let app = Scope::named("app");
/// let _import = app.child("import");
/// let tree = app.tree();
/// assert_eq!(tree.children[0].name, "import");
/// assert!(tree.to_string().starts_with("app (scope)"));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Tree {
    /// Which scope.
    pub id: ScopeId,
    /// What it is the scope of.
    pub kind: ScopeKind,
    /// Its name.
    pub name: Name,
    /// Where in the program it was made.
    pub site: &'static Location<'static>,
    /// What is left until its nearest deadline.
    pub remaining: Option<Duration>,
    /// Why it is cancelled, if it is.
    pub cancelled: Option<Reason>,
    /// Whether it was asked to stop.
    pub stopping: bool,
    /// The stoppable wait in which it was pending last, where it is a task.
    pub last_wait: Option<&'static Location<'static>>,
    /// How many wakers are registered with it. One for the root of a task; one for each wait that is
    /// polled under another waker than its task.
    pub registrations: usize,
    /// The scopes directly below.
    pub children: Vec<Tree>,
}

impl Tree {
    pub(crate) fn of(node: &Arc<Node>) -> Self {
        let mut root = Self::single(node);
        // By hand, for a tree may be deeper than the stack.
        let mut open = vec![(node.children(), Vec::new())];
        let mut above = vec![None];
        loop {
            let Some((rest, done)) = open.last_mut() else { return root };
            if let Some(child) = rest.pop() {
                open.push((child.children(), Vec::new()));
                above.push(Some(child));
                continue;
            }
            let mut children: Vec<Self> = std::mem::take(done);
            children.sort_by_key(|child| child.id);
            open.pop();
            match (above.pop().flatten(), open.last_mut()) {
                // It is there for its handle only.
                (Some(child), Some(_)) if child.has_ended() && children.is_empty() => {}
                (Some(child), Some((_, siblings))) => {
                    let mut tree = Self::single(&child);
                    tree.children = children;
                    siblings.push(tree);
                }
                _ => root.children = children,
            }
        }
    }

    fn single(node: &Arc<Node>) -> Self {
        Self {
            id: node.id(),
            kind: node.kind(),
            name: node.name().clone(),
            site: node.site(),
            remaining: node.effective_deadline().remaining(),
            cancelled: node.effective_request().map(|request| request.reason().clone()),
            stopping: node.is_stopping(),
            last_wait: node.last_wait(),
            registrations: node.registrations(),
            children: Vec::new(),
        }
    }

    fn print_line(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let kind = format!("{:?}", self.kind).to_lowercase();
        let indent = depth.min(MAX_INDENT) * 2;
        write!(f, "{:indent$}{} ({kind}), {}", "", self.name, self.site)?;
        if let Some(left) = self.remaining {
            write!(f, ", {left:?} left")?;
        }
        if let Some(reason) = &self.cancelled {
            write!(f, ", cancelled: {reason}")?;
        } else if self.stopping {
            write!(f, ", stopping")?;
        }
        if let Some(wait) = self.last_wait {
            write!(f, ", waiting at {wait}")?;
        }
        writeln!(f)
    }
}

/// Lines of scopes that lie deeper are not indented any further.
const MAX_INDENT: usize = 100;

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = vec![(0, self)];
        while let Some((depth, tree)) = rest.pop() {
            tree.print_line(f, depth)?;
            rest.extend(tree.children.iter().rev().map(|child| (depth + 1, child)));
        }
        Ok(())
    }
}

/// As it is printed by `Display`.
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// In a loop, for a tree may be deeper than the stack.
impl Drop for Tree {
    fn drop(&mut self) {
        let mut rest = std::mem::take(&mut self.children);
        while let Some(mut tree) = rest.pop() {
            rest.append(&mut tree.children);
        }
    }
}
