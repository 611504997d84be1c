use std::fmt;

/// So many items are named in the text; all are in [`Unfinished::items`].
const NAMED: usize = 8;

/// What a queue still has to do: how many items, and which.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use stoppable_sync::{JoinByError, ShutdownQueue};
///
/// let jobs = ShutdownQueue::bounded(8);
/// jobs.send("slow").await.unwrap();
/// jobs.send("never taken").await.unwrap();
/// let slow = jobs.recv().await.unwrap().unwrap();
///
/// let Err(JoinByError::Elapsed(unfinished)) = jobs.join_by(Duration::from_secs(1)).await else {
///     panic!()
/// };
/// assert_eq!((unfinished.queued(), unfinished.in_flight()), (1, 1));
/// assert_eq!(unfinished.to_string(), "2 items unfinished: 1 queued (#2), 1 in flight (#1)");
/// slow.done();
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    items: Vec<UnfinishedItem>,
}

/// One item of [`Unfinished`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct UnfinishedItem {
    /// The item's number: values are numbered from 1 in the order in which they were accepted.
    pub ticket: u64,
    /// How often it was received.
    pub attempt: u32,
    /// Received and not settled. If false, it is queued.
    pub in_flight: bool,
}

impl Unfinished {
    pub(crate) fn new(mut items: Vec<UnfinishedItem>) -> Self {
        items.sort_unstable_by_key(|item| (item.in_flight, item.ticket));
        Self { items }
    }

    /// How many items are neither settled nor given back.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many of them are queued.
    pub fn queued(&self) -> usize {
        self.len() - self.in_flight()
    }

    /// How many of them were received and are not settled.
    pub fn in_flight(&self) -> usize {
        self.items.iter().filter(|item| item.in_flight).count()
    }

    /// The items: first those queued, then those in flight, each by ticket.
    pub fn items(&self) -> &[UnfinishedItem] {
        &self.items
    }

    fn list(&self, f: &mut fmt::Formatter<'_>, in_flight: bool) -> fmt::Result {
        let mut of_this_kind = self.items.iter().filter(|item| item.in_flight == in_flight);
        let mut separator = " (";
        for item in of_this_kind.by_ref().take(NAMED) {
            write!(f, "{separator}#{}", item.ticket)?;
            if item.attempt > 1 {
                write!(f, ", attempt {}", item.attempt)?;
            }
            separator = "; ";
        }
        match (separator, of_this_kind.count()) {
            (" (", _) => Ok(()),
            (_, 0) => f.write_str(")"),
            (_, more) => write!(f, " and {more} more)"),
        }
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.len() == 1 { "" } else { "s" };
        write!(f, "{} item{plural} unfinished: {} queued", self.len(), self.queued())?;
        self.list(f, false)?;
        write!(f, ", {} in flight", self.in_flight())?;
        self.list(f, true)
    }
}
