//! The library of `cargo xtask`: one module per task, and modules that tasks share.
//!
//! Boot tests use [`machine`] to run a machine and examine its outcome. Every error that leaves
//! this crate is a [`Failure`]: a message and an exit status.

// `println!` panics if standard output cannot be written.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod boot_files;
pub mod build;
pub mod check;
pub mod cli;
pub mod code_files;
pub mod compiler;
pub mod diff;
pub mod docs;
pub mod events;
pub mod explain;
pub mod export;
pub mod failure;
pub mod guest_files;
pub mod halts;
pub mod image;
pub mod import;
pub mod job;
pub mod libraries;
pub mod lint;
mod live;
pub mod machine;
mod new_folder;
pub mod output;
pub mod page;
pub mod perf;
pub mod phases;
pub mod picture;
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
pub mod shadows;
mod shared_library;
pub mod shell;
pub mod stat_files;
pub mod symbols;
pub mod test;
pub mod trace;
pub mod trace_file;
pub mod visible;
pub mod workload;

pub use failure::{Failure, Result};
