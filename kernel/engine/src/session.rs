//! A session: the HPC context of one address space (paper 000, section 2).
//!
//! A session holds the plan, the logical counters, the random order and the statistics: all state
//! that outlives a context switch. State of a CPU is in [`crate::Multiplexer`]. A slice that a
//! context switch cuts short stays current and continues with its remainder, so that groups get
//! equal shares of the program's time however often it is switched out.
//!
//! [`Session::open`] allocates and is called once. The `pub(crate)` methods of this file run in the
//! overflow path and do not. [`Session::reading`] uses floating point: never in the overflow path.

mod adapt;
mod adaptive;
mod draw;
mod lengths;
mod neighbours;
mod phases;
mod publish;
mod readings;
mod sampling;
mod schedule;
pub(crate) mod skew;
mod slice;
mod snapshot;
mod state;
mod thresholds;
mod tracked;

pub(crate) use self::state::{SliceStart, Timestamp};
pub use self::{
    neighbours::Passed,
    snapshot::Snapshot,
    state::{Neighbours, Session},
};
