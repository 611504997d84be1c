use std::panic::Location;
use std::time::Duration;

use stoppable_scope::{Name, ScopeId};

use crate::outcome::Outcome;

/// What became of the tasks of a group.
///
/// Every task that did not end `Ok` is listed once, those that did are counted, and listed too where the
/// group was built with [`keep_report`](crate::GroupBuilder::keep_report). Tasks are in the order in which
/// they ended.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct GroupReport {
    /// The tasks that are listed.
    pub tasks: Vec<TaskReport>,
    /// How many ended with a value.
    pub ok: usize,
    /// How many failed or panicked.
    pub failed: usize,
    /// How many were cancelled while they ran.
    pub cancelled: usize,
    /// How many were cancelled before they were polled once.
    pub not_started: usize,
    /// How many threads did not come back within their grace.
    pub abandoned: usize,
    /// How many are alive.
    pub live: usize,
    /// What groups left behind whose future was dropped; their tasks are not counted above.
    pub adopted: Vec<GroupReport>,
}

impl GroupReport {
    /// How many tasks have ended, however they did.
    pub fn ended(&self) -> usize {
        self.ok + self.failed + self.cancelled + self.not_started + self.abandoned
    }

    /// Those that are listed under a name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a TaskReport> {
        self.tasks.iter().filter(move |task| task.name == *name)
    }

    pub(crate) fn count(&mut self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Ok => &mut self.ok,
            Outcome::Failed(_) => &mut self.failed,
            Outcome::Cancelled(_) => &mut self.cancelled,
            Outcome::NotStarted(_) => &mut self.not_started,
            Outcome::Abandoned => &mut self.abandoned,
        };
        *count += 1;
    }
}

/// What became of one task.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskReport {
    /// The scope of the task.
    pub id: ScopeId,
    /// Its name.
    pub name: Name,
    /// Where it was spawned.
    pub site: &'static Location<'static>,
    /// How it ended.
    pub outcome: Outcome,
    /// From its first poll to its end, where the group keeps a full report.
    pub ran_for: Option<Duration>,
    /// The stoppable wait in which it was pending last.
    pub last_wait: Option<&'static Location<'static>>,
}
