//! The interface between the Tally kernel, its programs, the host tools and the virtual PMU.
//!
//! The crate contains what at least two of them share: numbers of system calls and errors, the
//! words that cross the system-call boundary, trace records, the messages that the kernel sends to
//! the host, the truth file. It contains no unsafe code, and logic only for these formats: encoders
//! and decoders, the parsers of the command lines and of event lists, the value and half width of a
//! bank's counter. The data that crosses a boundary is an array of 64-bit words or a stream of
//! bytes, and decoding it can fail.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(feature = "alloc", test))]
extern crate alloc;

pub mod access;
pub mod bank;
pub mod boot;
pub mod branches;
#[cfg(feature = "alloc")]
pub mod check;
#[cfg(feature = "alloc")]
pub mod command;
mod cpu_set;
pub mod error;
pub mod events;
pub mod exit;
mod failure;
pub mod halt;
pub mod instance;
mod jobs;
pub mod loader;
#[cfg(feature = "alloc")]
pub mod nearest;
mod opened;
pub mod phase;
pub mod program;
pub mod reading;
pub mod record;
pub mod registers;
pub mod ring;
pub mod session;
pub mod signal;
pub mod syscall;
pub mod text;
pub mod thread;
pub mod trace;
#[cfg(feature = "alloc")]
pub mod truth;
pub mod uname;
pub mod usage;
pub mod vpmu;
pub mod wire;
#[cfg(feature = "alloc")]
pub mod words;

pub use cpu_set::{CpuSet, CpuSetWords};
pub use error::Error;
pub use exit::ExitStatus;
pub use instance::{Instance, Scope};
pub use phase::{PhaseConfig, PhaseState};
pub use reading::{Reading, Value};
pub use session::{Mode, Opened, SessionConfig, SessionStats, Shares, Slice};

/// Decoding failed: this version does not define the form of the bytes or words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;
