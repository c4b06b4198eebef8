//! Logical performance counters for programs that run under Tally.
//!
//! ```no_run
//! use tally::{Session, SessionConfig};
//!
//! let session = Session::open("INST_RETIRED.ANY,BR_INST_RETIRED.ALL_BRANCHES",
//!     SessionConfig::default())?;
//! session.start()?;
//! // … the region of interest …
//! session.stop()?;
//! for reading in session.read()? {
//!     // exact, estimated with its error, or not measured: see `Value`
//! }
//! # Ok::<(), tally::OpenError>(())
//! ```
//!
//! A program with Rust's standard library uses the crate as it is. With the feature `runtime` the
//! crate is also a runtime for `no_std` programs: entry point, arguments, heap, panic handler,
//! output and files. The runtime replaces a standard library, so the two cannot be linked together.
//!
//! On kernels other than Tally every call returns [`Error::NotTally`], and the program can
//! continue.

#![no_std]

extern crate alloc;

mod bank;
mod counting;
mod cycles;
pub mod derived;
mod direct;
mod error;
#[cfg(feature = "heap")]
pub mod heap;
pub mod io;
#[doc(hidden)]
pub mod lock;
mod part;
mod phases;
mod preload;
mod program;
mod rdpmc;
pub mod region;
pub mod regions;
#[cfg(feature = "runtime")]
pub mod runtime;
pub mod samples;
mod sampling;
#[doc(hidden)]
pub mod sequences;
mod sums;
mod switch;
pub mod sys;
mod threshold;
pub mod trace;

pub use bank::{Bank, Details, LogicalCounter};
pub use counting::Session;
pub use cycles::Cycles;
pub use direct::Direct;
pub use error::OpenError;
pub use part::Part;
pub use preload::PreloadedCounter;
pub use program::{Program, children_usage};
pub use tally_abi::events::words as event_words;
pub use tally_abi::{
    CpuSet, CpuSetWords, Error, ExitStatus, Instance, Mode, PhaseConfig, PhaseState, Reading,
    Scope, SessionConfig, SessionStats, Shares, Slice, Value, events, phase, reading::Reason,
    session, usage::Usage,
};
pub use tally_breakdown::CyclePart;
pub use threshold::{Handler, handler_words};
