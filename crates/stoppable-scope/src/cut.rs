//! How the future in a frame comes to its end.

use crate::ambient;
use crate::node::Node;
use crate::request::Request;

/// What became of the future in a frame.
#[derive(Debug)]
#[doc(hidden)]
pub enum Ended<T> {
    /// It has finished.
    Finished(T),
    /// It has to be dropped now.
    Cut(Cut),
}

/// Why and how a future is cut.
#[derive(Debug)]
#[doc(hidden)]
pub struct Cut {
    /// The request it did not answer in time.
    pub request: Request,
    /// A wait of it did answer, and it went on to another wait.
    pub answered: bool,
    /// It had a grace.
    pub after_grace: bool,
}

impl Cut {
    /// Says who is cut where nobody may have expected it: in the middle of a cleanup that no section
    /// protects, or at the end of a grace.
    pub fn log(&self, node: &Node) {
        if !self.answered && !self.after_grace {
            return;
        }
        let root = ambient::root();
        let last_wait = root.as_deref().unwrap_or(node).last_wait().map(tracing::field::display);
        let (name, spawned) = (node.name(), node.site());
        let reason = self.request.reason();
        if self.after_grace {
            tracing::warn!(%name, at = %spawned, last_wait, %reason, "cut at the end of its grace");
        } else {
            tracing::warn!(
                %name, at = %spawned, last_wait, %reason,
                "cut while it was waiting again after it had answered a cancel; after an answer only \
                 what is ready at once is sure to run: put the rest into `cleanup` or `defer`"
            );
        }
    }
}
