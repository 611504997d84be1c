use std::fmt;
use std::future::Future;
use std::ops::Add;
use std::time::Duration;

use tokio::time::Instant;

use crate::elapsed::Elapsed;

/// One absolute point in time, shared by every call below it.
///
/// A timeout is a duration and adds up: three layers that each wait 5 s wait 15 s. A deadline is
/// an instant and does not: it is made once, passed down (it is `Copy`), and what is left shrinks by
/// itself. The clock is tokio's, so a paused clock works in tests.
///
/// `Deadline::never()` is later than every instant. No arithmetic here overflows or panics: what
/// would lie beyond the clock is `never`, what would lie before it is already expired.
///
/// Go's `context.WithDeadline` and gRPC's deadline are the models; asyncio's `timeout_at` takes the
/// same kind of value, but does not hand it on.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use stoppable_scope::Deadline;
///
/// let whole = Deadline::after(Duration::from_secs(5));
/// // One step may take a second, but never longer than the whole has left.
/// let step = whole.within(Duration::from_secs(1));
/// assert!(step < whole);
///
/// tokio::time::advance(Duration::from_millis(4500)).await;
/// assert_eq!(whole.within(Duration::from_secs(1)), whole);
/// assert_eq!(whole.remaining(), Some(Duration::from_millis(500)));
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// The deadline that does not come.
    pub const fn never() -> Self {
        Self(None)
    }

    /// `timeout` from now. `Duration::ZERO` is now; what the clock cannot hold is [`never`].
    ///
    /// [`never`]: Self::never
    pub fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    /// At `instant`, which may be in the past.
    pub const fn at(instant: Instant) -> Self {
        Self(Some(instant))
    }

    /// The nearest deadline of the code that is running: the earliest of all timeouts and groups
    /// around it, up to a cleanup section or [`without_deadline`](crate::without_deadline).
    /// [`never`](Self::never) where there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_scope::{Deadline, TaskError, with_timeout};
    ///
    /// assert!(Deadline::current().is_never());
    /// with_timeout(Duration::from_secs(3), async {
    ///     assert_eq!(Deadline::current().remaining(), Some(Duration::from_secs(3)));
    ///     Ok::<_, TaskError>(())
    /// })
    /// .await
    /// .unwrap();
    /// # }
    /// ```
    pub fn current() -> Self {
        crate::ambient::deadline()
    }

    /// The instant, or `None` for [`never`](Self::never).
    pub const fn instant(self) -> Option<Instant> {
        self.0
    }

    /// Whether this is [`never`](Self::never).
    pub const fn is_never(self) -> bool {
        self.0.is_none()
    }

    /// What is left: zero once expired, `None` for [`never`](Self::never).
    pub fn remaining(self) -> Option<Duration> {
        self.0.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether the clock has reached it. A deadline that is this very instant has expired.
    pub fn is_expired(self) -> bool {
        self.0.is_some_and(|at| at <= Instant::now())
    }

    /// The earlier of the two.
    #[must_use]
    pub fn earliest(self, other: Self) -> Self {
        self.min(other)
    }

    /// The earlier of this deadline and `timeout` from now.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        self.min(Self::after(timeout))
    }

    /// This deadline, earlier by `room`, so that something is left for the cleanup.
    ///
    /// `never` stays `never`. Where less than `room` is left the result has expired.
    #[must_use]
    pub fn reserve(self, room: Duration) -> Self {
        // Before the clock's own start there is no instant; one that has passed says the same.
        Self(self.0.map(|at| at.checked_sub(room).unwrap_or_else(|| at.min(Instant::now()))))
    }

    /// A plain hard timeout for any future: at the deadline `future` is dropped where it is.
    ///
    /// Nothing is asked and nothing is honoured, neither cleanup sections nor grace, so this never
    /// returns late. Use [`with_timeout`](crate::with_timeout) for code that has something to clean up.
    /// A result wins over an expiry; a deadline that has expired already does not poll `future`.
    ///
    /// # Cancel safety
    ///
    /// As much as `future` itself.
    ///
    /// # Errors
    ///
    /// [`Elapsed`] when the deadline came first.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// use stoppable_scope::Deadline;
    ///
    /// let deadline = Deadline::after(Duration::from_millis(10));
    /// assert!(deadline.cut(std::future::pending::<()>()).await.is_err());
    /// # }
    /// ```
    pub async fn cut<F: Future>(self, future: F) -> Result<F::Output, Elapsed> {
        let Some(at) = self.0 else { return Ok(future.await) };
        if self.is_expired() {
            return Err(Elapsed::new(self));
        }
        tokio::time::timeout_at(at, future).await.map_err(|_| Elapsed::new(self))
    }
}

impl Ord for Deadline {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        use std::cmp::Ordering::{Equal, Greater, Less};
        match (self.0, other.0) {
            (Some(a), Some(b)) => a.cmp(&b),
            (Some(_), None) => Less,
            (None, Some(_)) => Greater,
            (None, None) => Equal,
        }
    }
}

impl PartialOrd for Deadline {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Later by a duration; beyond the clock it is [`Deadline::never`].
impl Add<Duration> for Deadline {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.and_then(|at| at.checked_add(by)))
    }
}

/// From now. The limit of a timeout may be written as a duration.
impl From<Duration> for Deadline {
    fn from(timeout: Duration) -> Self {
        Self::after(timeout)
    }
}

impl From<Instant> for Deadline {
    fn from(instant: Instant) -> Self {
        Self::at(instant)
    }
}

impl From<std::time::Instant> for Deadline {
    fn from(instant: std::time::Instant) -> Self {
        Self::at(Instant::from_std(instant))
    }
}

/// `None` for [`Deadline::never`].
impl From<Deadline> for Option<Instant> {
    fn from(deadline: Deadline) -> Self {
        deadline.0
    }
}

/// `None` for [`Deadline::never`].
impl From<Deadline> for Option<std::time::Instant> {
    fn from(deadline: Deadline) -> Self {
        deadline.0.map(Instant::into_std)
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remaining() {
            None => f.write_str("Deadline(never)"),
            Some(left) if left.is_zero() => f.write_str("Deadline(expired)"),
            Some(left) => write!(f, "Deadline(in {left:?})"),
        }
    }
}
