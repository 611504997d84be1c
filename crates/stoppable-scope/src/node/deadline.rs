//! The deadline of a scope, as one number.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

use super::{Node, RESCHEDULED, ScopeKind, Step};
use crate::deadline::Deadline;
use crate::sync::Ordering;

/// An instant as nanoseconds since 146 years before the first use; it lasts as long again.
pub(crate) struct Ticks;

impl Ticks {
    pub(crate) const NEVER: u64 = u64::MAX;

    fn epoch() -> std::time::Instant {
        static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
        *EPOCH.get_or_init(|| {
            let now = std::time::Instant::now();
            now.checked_sub(Duration::from_nanos(1 << 62)).unwrap_or(now)
        })
    }

    pub(crate) fn of(deadline: Deadline) -> u64 {
        deadline.instant().map_or(Self::NEVER, |at| {
            let since = at.into_std().saturating_duration_since(Self::epoch());
            u64::try_from(since.as_nanos()).unwrap_or(Self::NEVER)
        })
    }

    /// For a timer; what is out of range nobody lives to see.
    pub(crate) fn to_instant(ticks: u64) -> Instant {
        Self::to_deadline(ticks).instant().unwrap_or_else(far_future)
    }

    pub(crate) fn to_deadline(ticks: u64) -> Deadline {
        if ticks == Self::NEVER {
            return Deadline::never();
        }
        let at = Self::epoch().checked_add(Duration::from_nanos(ticks));
        at.map_or(Deadline::never(), Deadline::from)
    }
}

/// An instant that a timer takes and nobody lives to see.
fn far_future() -> Instant {
    Instant::now() + Duration::from_secs(86_400 * 365 * 30)
}

impl Node {
    #[inline]
    pub(crate) fn own_ticks(&self) -> u64 {
        self.deadline.load(Ordering::Acquire)
    }

    /// The deadline of this scope alone.
    pub fn own_deadline(&self) -> Deadline {
        Ticks::to_deadline(self.own_ticks())
    }

    /// Sets the deadline of this scope alone. Its frame looks at it again when it is polled next.
    pub fn set_deadline(&self, deadline: Deadline) {
        self.deadline.store(Ticks::of(deadline), Ordering::Release);
    }

    /// Sets the deadline on behalf of the user.
    pub(crate) fn reschedule(&self, deadline: Deadline) {
        self.set(RESCHEDULED);
        self.set_deadline(deadline);
    }

    pub(crate) fn is_rescheduled(&self) -> bool {
        self.bits() & RESCHEDULED != 0
    }

    pub(super) fn hides_deadlines(&self) -> bool {
        matches!(self.kind(), ScopeKind::Cleanup | ScopeKind::WithoutDeadline)
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        let ticks = self.own_ticks();
        ticks != Ticks::NEVER && ticks <= Ticks::of(Deadline::at(now))
    }

    /// The end of the cleanup section around this scope.
    pub(crate) fn enclosing_section(self: &Arc<Self>) -> Deadline {
        let section = self.above().and_then(|above| {
            above.ascend(&mut |node| {
                let section = node.kind() == ScopeKind::Cleanup;
                if section { Step::Found(node.own_deadline()) } else { Step::Up }
            })
        });
        section.unwrap_or(Deadline::never())
    }

    pub(super) fn earliest_ticks(self: &Arc<Self>) -> u64 {
        let mut earliest = Ticks::NEVER;
        self.ascend::<()>(&mut |node| {
            earliest = earliest.min(node.own_ticks());
            if node.hides_deadlines() { Step::Stop } else { Step::Up }
        });
        earliest
    }

    /// Makes the request of the outermost deadline that is overdue by the clock, if one is.
    pub fn expire_overdue(self: &Arc<Self>) {
        if self.earliest_ticks() == Ticks::NEVER {
            return;
        }
        let now = Instant::now();
        let mut overdue = None;
        self.ascend::<()>(&mut |node| {
            if node.is_due(now) {
                overdue = Some(Arc::clone(node));
            }
            if node.hides_deadlines() { Step::Stop } else { Step::Up }
        });
        if let Some(node) = overdue {
            node.expire();
        }
    }
}
