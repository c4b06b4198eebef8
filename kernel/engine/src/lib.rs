//! The sampling engine: hundreds of logical counters on the few hardware counters of a processor.
//!
//! The engine is pure logic. Three small traits connect it to the machine: a [`Pmu`] that counts, a
//! [`Clock`], and a [`Sink`] for records. So it runs on the host under test, and in any kernel that
//! implements them. [`plan()`] divides a list of events into groups that the PMU can count
//! together; a [`Session`] holds the logical counters of one address space; a [`Multiplexer`], one
//! per CPU, gives each group its slice in the overflow interrupt; [`Session::reading`] returns an
//! event's count with its error. `examples/host.rs` is the smallest possible host.
//!
//! # Invariants
//! - The overflow path ([`Multiplexer::overflow`]) does not allocate, lock, panic or use floating
//!   point, and its work is bounded by the number of counters, not of events.
//! - The caller of a `&mut` method of a multiplexer or session has masked the CPU's overflow
//!   interrupt; the borrow checker excludes other concurrent access.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bank;
pub mod bounds;
mod budget;
mod core_time;
mod demand;
mod direct;
pub mod estimate;
mod exchange;
mod group;
mod hardware;
pub mod histogram;
mod metrics;
pub mod moments;
mod multiplex;
mod order;
pub mod phase;
pub mod plan;
mod precise;
mod rows;
mod session;
mod setup;
mod strata;
mod switch;
mod sync;
mod turns;

pub use bank::ThresholdError;
pub use core_time::{Began, KernelEntries};
pub use demand::{
    Demand, Extra, Layout, MAX_EXTRA, MAX_GENERAL, MAX_SHARE, Pinned, Selector, Widths,
};
pub use direct::Direct;
pub use exchange::{Exchange, Ticket};
pub use group::{Extras, Group, Plan};
pub use hardware::{
    Clock, CounterMask, Counts, MAX_PRELOAD, Pmu, Setup, Sink, for_each_counter,
    for_each_counter_likely,
};
pub use metrics::{Metric, Metrics};
pub use multiplex::Multiplexer;
pub use plan::{Lack, PlanError, plan};
pub use precise::{Access, PreciseRecord, PreciseRecords, Precision, Records};
pub use session::{Neighbours, Passed, Session, Snapshot, skew::SKEW_CYCLES};
pub use switch::Switch;
pub use turns::{DrawnTurn, Turns};
