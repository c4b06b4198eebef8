//! The laboratory: what judges and measures Tally, and is no part of the tool.
//!
//! Studies compare estimates with the truth, benches measure speeds, and programs run under Linux
//! with perf beside Tally. The library of `cargo xtask`, which this crate uses, does not know it;
//! only its own program and boot tests use it.

// `println!` panics if standard output cannot be written.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod bench;
pub mod camera;
pub mod cli;
pub mod compare;
pub mod fuzz;
pub mod linux;
mod median;
pub mod study;
pub mod vpmu_check;
