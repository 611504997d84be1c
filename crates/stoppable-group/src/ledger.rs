//! The books of a group.

use std::sync::Arc;
use std::task::Waker;

use stoppable_scope::ScopeId;
use stoppable_scope::machinery::Node;

use crate::closers::Lanes;
use crate::core::Core;
use crate::group_report::{GroupReport, TaskReport};
use crate::policy::Policy;
use crate::task_failure::TaskFailure;

#[derive(Default)]
pub(crate) struct Ledger {
    /// A task answered a cancel, was cut or never ran.
    pub(crate) disturbed: bool,
    /// The first success that the policy asked for is there.
    pub(crate) decided: bool,
    /// Tasks that outlive the body and are then stopped.
    pub(crate) services: Vec<Arc<Node>>,
    /// Failures of shielded tasks whose waiters have not read them yet.
    pub(crate) unread: Vec<TaskFailure>,
    /// In the order in which the tasks ended.
    pub(crate) failures: Vec<TaskFailure>,
    pub(crate) report: GroupReport,
    /// Who waits for the last one to leave.
    pub(crate) joiners: Vec<Waker>,
    /// Groups whose future was dropped before their tasks had ended.
    pub(crate) adopted: Vec<Arc<Core>>,
    /// With how many of them those that have ended are let go.
    pub(crate) sweep_at: usize,
    /// This group was adopted itself: its failures are nobody's error.
    pub(crate) orphan: bool,
    pub(crate) lanes: Lanes,
}

/// What the failure of a task does to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It is in the group's error, and cancels the siblings where the policy says so.
    Cancel,
    /// It is in the group's error.
    Keep,
    /// It is in the report.
    None,
}

/// What the end of a task does to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consequence {
    None,
    /// The body and all tasks are cancelled.
    CancelGroup,
    /// The other tasks are cancelled.
    CancelTasks,
}

impl Ledger {
    /// Lists and counts a task that has ended, and says what that means for the others.
    pub(crate) fn record(
        &mut self,
        task: TaskReport,
        effect: Effect,
        policy: Policy,
        keep_report: bool,
        live: usize,
    ) -> Consequence {
        let (ok, failed) = (task.outcome.is_ok(), task.outcome.is_failed());
        self.report.count(&task.outcome);
        if keep_report || !ok {
            let tasks = &mut self.report.tasks;
            // One that is cancelled is seldom alone.
            if task.outcome.is_cancelled() && tasks.len() == tasks.capacity() {
                tasks.reserve(live);
            }
            tasks.push(task);
        }
        match policy {
            _ if effect != Effect::Cancel => Consequence::None,
            Policy::FailFast if failed && !self.orphan => Consequence::CancelGroup,
            Policy::FirstSuccess if ok && !self.decided => {
                self.decided = true;
                Consequence::CancelTasks
            }
            _ => Consequence::None,
        }
    }

    /// Adds a failure to the error of this group, once.
    pub(crate) fn keep(&mut self, failure: &TaskFailure, group: ScopeId) {
        if !self.knows(failure, group) {
            failure.set_kept_by(group);
            self.failures.push(failure.clone());
        }
    }

    /// Whether it is in the error of this group. Only one that another group has kept first is looked for.
    pub(crate) fn knows(&self, failure: &TaskFailure, group: ScopeId) -> bool {
        match failure.kept_by() {
            None => false,
            Some(first) if first == group => true,
            Some(_) => self.failures.iter().any(|known| known.is(failure)),
        }
    }

    pub(crate) fn take_unread(&mut self, task: ScopeId) -> Option<TaskFailure> {
        let at = self.unread.iter().position(|failure| failure.id() == task)?;
        Some(self.unread.swap_remove(at))
    }

    /// Gives the waker back where it is registered already.
    pub(crate) fn add_joiner(&mut self, waker: Waker) -> Option<Waker> {
        if self.joiners.iter().any(|known| known.will_wake(&waker)) {
            return Some(waker);
        }
        self.joiners.push(waker);
        None
    }
}
