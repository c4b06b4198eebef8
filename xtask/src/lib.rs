//! What `cargo xtask` is made of: one module a task, and what the tasks share.
//!
//! Tests that boot use [`machine`] to start a machine and to look at how it ended. Every error that
//! leaves this crate is a [`Failure`]: a line for people and the status to exit with.

// They panic where nobody can write.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod bench;
pub mod build;
pub mod cli;
mod compiler;
pub mod docs;
pub mod explain;
pub mod failure;
pub mod fuzz;
pub mod image;
pub mod job;
pub mod lint;
pub mod linux;
pub mod machine;
mod output;
pub mod process;
pub mod progress;
pub mod project;
pub mod ramdisk;
pub mod report;
pub mod run;
pub mod setup;
pub mod study;
pub mod test;
pub mod trace;
pub mod vpmu_check;
mod vpmu_events;

pub use failure::{Failure, Result};
