//! Programs: what a process and its threads are, how one is loaded, its signals and faults.
//!
//! Nothing here schedules: which process is on which CPU is `sched`'s.

pub mod fault;
mod fpu;
pub mod handler;
mod loader;
pub mod process;
mod send;
pub mod signal;
pub mod signal_frame;
pub mod thread;

pub use self::{
    loader::{MAX_ARGUMENT_BYTES, STACK_BYTES},
    process::Process,
};
