//! Performance monitoring units: registers, drivers for Intel's and AMD's, and events.
//!
//! Only this crate accesses PMU MSRs, and only [`bus::Native`] executes instructions that need ring
//! 0: the rest runs on the host, where the drivers are tested against a model of the registers.
//! Vendor-specific code stays inside the vendor's driver; the engine sees each driver as a
//! [`tally_engine::Pmu`].
//!
//! [`detect()`] detects the processor's PMU once; [`DetectedPmu::init_cpu`] makes each CPU's
//! driver, and [`check_counters`] checks that its counters count. The interrupt controller's entry
//! for the overflow interrupt belongs to the kernel.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod amd;
mod branches;
pub mod bus;
pub mod catalogue;
mod detect;
mod driver;
mod halt_timer;
mod init;
mod intel;
pub mod registers;
mod selects;
mod self_check;
#[cfg(test)]
mod testing;
mod unit;
pub mod virtual_pmu;

pub use amd::Amd;
pub use bus::Bus;
pub use catalogue::{Catalogue, CostTable, Derived, ResolveError, Resolved};
pub use detect::{DetectedPmu, NoPmu, detect};
pub use driver::Driver;
pub use halt_timer::HaltTimer;
pub use init::{ControlValue, CounterName, InitError};
pub use intel::{DebugStore, Intel, RecordBuffer};
pub use self_check::{
    AccessCosts, CHECK_INSTRUCTIONS, access_costs, check_counters, check_interrupt, check_ring_3,
    recheck_counters, refuse_if_changed, settle, work,
};
pub use unit::{CounterUnit, UNIT_COUNTERS, UnitCounter, UnitError};
