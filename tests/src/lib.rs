//! Tests of `stoppable` that cross crates; see the `tests` folder.
