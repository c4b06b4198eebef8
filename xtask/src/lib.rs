//! The library of `cargo xtask`: one module per task, and modules that tasks share.
//!
//! Boot tests use [`machine`] to run a machine and examine its outcome. Every error that leaves
//! this crate is a [`Failure`]: a message and an exit status.

// `println!` panics if standard output cannot be written.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod bench;
pub mod boot_files;
pub mod build;
pub mod camera;
pub mod check;
pub mod cli;
pub mod compare;
mod compiler;
pub mod diff;
pub mod docs;
pub mod events;
pub mod explain;
pub mod export;
pub mod failure;
pub mod fuzz;
pub mod guest_files;
pub mod halts;
pub mod image;
pub mod import;
pub mod job;
pub mod lint;
pub mod linux;
mod live;
pub mod machine;
mod median;
mod new_folder;
pub mod output;
pub mod page;
pub mod phases;
mod picture;
pub mod process;
mod program_words;
pub mod progress;
pub mod project;
pub mod ramdisk;
pub mod readers;
mod recording;
pub mod repeat;
pub mod report;
pub mod run;
pub mod samples;
pub mod sdk;
pub mod setup;
mod shadows;
pub mod shell;
pub mod study;
pub mod symbols;
pub mod test;
pub mod trace;
pub mod trace_file;
pub mod visible;
pub mod vpmu_check;
pub mod workload;

pub use failure::{Failure, Result};
