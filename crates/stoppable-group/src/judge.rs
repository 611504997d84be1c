//! What the output of a task or a body means to its group.

use std::error::Error;
use std::sync::Arc;

use stoppable_scope::machinery::{Node, request_in};
use stoppable_scope::{Cancelled, Name};

use crate::core::Core;
use crate::group_error::GroupError;
use crate::handle_error::HandleError;
use crate::task_failure::TaskFailure;
use crate::task_output::TaskOutput;

pub(crate) enum Verdict<T> {
    Value(T),
    Cancelled(Cancelled),
    Failed(TaskFailure),
}

/// Judges `output` of the future whose scope is `node`. Runs code of users.
pub(crate) fn judge<O: TaskOutput<M>, M>(
    core: &Core,
    node: &Arc<Node>,
    name: &Name,
    output: O,
) -> Verdict<O::Value> {
    if let Some(error) = output.as_error() {
        if let Some(cancelled) = cancellation(core, node, error) {
            return Verdict::Cancelled(cancelled);
        }
        // The failure of another task of this group, passed on: it is one failure.
        if let Some(failure) = passed_on(error) {
            if core.knows(failure) || error.is::<HandleError>() {
                return Verdict::Failed(failure.clone());
            }
        }
    }
    match output.into_result() {
        Ok(value) => Verdict::Value(value),
        Err(error) => Verdict::Failed(TaskFailure::error_of(node.id(), name.clone(), node.site(), error)),
    }
}

/// An error is a cancellation only if it names this scope or one above.
fn cancellation(core: &Core, node: &Arc<Node>, error: &(dyn Error + 'static)) -> Option<Cancelled> {
    if let Some(request) = request_in(error).filter(|request| node.is_within(request.scope())) {
        return Some(Cancelled::new(request.clone()));
    }
    let told = core.cancelled_if.as_ref().is_some_and(|cancelled_if| cancelled_if(error));
    if told { node.effective_request().map(Cancelled::new) } else { None }
}

fn passed_on<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a TaskFailure> {
    let mut next = Some(error);
    while let Some(error) = next {
        // Its source is only the first of its failures.
        if error.downcast_ref::<GroupError>().is_some_and(|group| group.failures().len() > 1) {
            return None;
        }
        if let Some(failure) = error.downcast_ref::<TaskFailure>() {
            return Some(failure);
        }
        next = error.source();
    }
    None
}
