//! Tests of `stoppable` that cross crates; see the `tests` folder. The snippets of the guides in `docs` are tests too.

/// `docs/from-asyncio.md`.
#[cfg(doctest)]
#[doc = include_str!("../../docs/from-asyncio.md")]
#[allow(missing_docs, missing_debug_implementations)]
pub struct FromAsyncio;
