//! Programs: a process and its threads, the loader, signals and faults.
//!
//! This module does not schedule: `sched` assigns processes to CPUs.

pub mod call;
mod extended_frame;
pub mod fault;
mod fpu;
mod frequency;
pub mod handler;
pub mod limits;
mod loader;
mod missing;
pub mod mutex;
pub mod process;
mod refused;
mod robust;
pub mod scheduling;
pub mod send;
mod settings;
pub mod signal;
pub mod signal_frame;
pub mod thread;
pub mod timers;
mod times;
pub mod vdso;
mod wait;

pub use self::{
    loader::CLOCK_TICKS,
    process::{Process, Surroundings},
};
