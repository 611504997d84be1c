//! The three programs of the `examples` folder, run as a user runs them.
#![cfg(target_os = "linux")]

mod batch;
mod hash_tree;
mod interrupted;
mod pool;
mod support;
