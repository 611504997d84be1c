//! Test helpers for stoppable code: drop, cancel or expire a future at every point where it waits.
//!
//! Code that can be stopped can be stopped at each of its awaits, and the one that leaves a half-state
//! behind is seldom the one a test happens to hit. [`Sweep`] hits them all: it runs a future again and
//! again, each time intervening one wait later, and lets you check what is left.
//!
//! ```
//! use std::cell::Cell;
//! use std::rc::Rc;
//! use std::time::Duration;
//!
//! use stoppable_scope::{OrCancelledExt, TaskError, cleanup};
//! use stoppable_test::{Intervention, Sweep};
//! use tokio::time::sleep;
//!
//! /// Takes from one account, waits for the bank, and gives to the other.
//! async fn transfer(from: &Cell<i64>, to: &Cell<i64>) -> Result<(), TaskError> {
//!     sleep(Duration::from_millis(5)).or_cancelled().await?; // the rate limit
//!     from.set(from.get() - 10);
//!     // Half-way there is no way back: not to be cut, and bounded.
//!     cleanup(Duration::from_secs(5), sleep(Duration::from_millis(20))).await?;
//!     to.set(to.get() + 10);
//!     sleep(Duration::from_millis(5)).or_cancelled().await?; // the receipt
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! let swept = Sweep::with_state(|| {
//!     let accounts = Rc::new((Cell::new(100), Cell::new(0)));
//!     let mine = Rc::clone(&accounts);
//!     (accounts, async move { transfer(&mine.0, &mine.1).await })
//! })
//! // A transfer that is dropped from outside is another matter: that is what `defer` is for.
//! .only([Intervention::Cancel, Intervention::Expire])
//! .run(|round| {
//!     let (from, to) = &*round.state;
//!     assert_eq!(from.get() + to.get(), 100, "money was lost: {round:?}");
//!     assert_eq!(round.live_scopes, 0);
//! })
//! .await;
//! assert!(swept.points() > 0);
//! # }
//! ```

mod counted;
mod end;
mod intervention;
mod live_scopes;
mod round;
mod sweep;
mod swept;

pub use end::End;
pub use intervention::Intervention;
pub use live_scopes::live_scopes;
pub use round::Round;
pub use sweep::Sweep;
pub use swept::Swept;
