//! The sampling engine: hundreds of logical counters on the handful that a processor has.
//!
//! Pure logic. What it needs of the machine it asks for through three small traits: a [`Pmu`] that
//! counts, a [`Clock`], and a [`Sink`] for records; so it runs on the host under test, and in any
//! kernel that can provide them. [`plan()`] turns a list of events into groups that the PMU can
//! count together; a [`Session`] holds the logical counters of one address space; a
//! [`Multiplexer`], one per CPU, gives each group its slice in the overflow interrupt; a session's
//! [`Session::reading`] says how many events there were and how sure that is. `examples/host.rs` is the smallest
//! host there can be.
//!
//! # Invariants
//! - The overflow path ([`Multiplexer::overflow`]) neither allocates, locks, panics nor uses
//!   floating point, and its work is bounded by the number of counters, not of events.
//! - Whoever calls a `&mut` method of a multiplexer or session has the CPU's overflow interrupt
//!   held off; the borrow checker does the rest.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bank;
pub mod bounds;
mod budget;
mod demand;
mod direct;
pub mod estimate;
mod hardware;
pub mod histogram;
pub mod moments;
mod multiplex;
mod order;
pub mod plan;
mod session;
mod sync;

pub use demand::{Demand, Extra, Layout, MAX_EXTRA, MAX_GENERAL, MAX_SHARE, Pinned, Selector};
pub use direct::Direct;
pub use hardware::{
    Clock, CounterMask, Counts, MAX_PRELOAD, Pmu, Setup, Sink, Widths, for_each_counter,
    for_each_counter_likely,
};
pub use multiplex::Multiplexer;
pub use plan::{Extras, Group, Plan, PlanError, plan};
pub use session::{Session, exposed::ThresholdError};
