//! Conformance to the behaviour of asyncio, trio and anyio, and to what users of others ran into: groups,
//! timeouts, scopes and waits. The rows are in `tests/conformance`; each test is named after its row.

// `ok(wait.await)` says what it waits for, also where that is nothing.
#![allow(clippy::unit_arg)]

mod bugs;
mod groups;
mod kit;
mod overruled;
mod scopes;
#[path = "../support/tables.rs"]
#[allow(dead_code)]
mod support;
mod tables;
mod timeouts;
mod waits;
