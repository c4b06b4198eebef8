//! Performance monitoring units: their registers, the drivers for Intel's and AMD's, their events.
//!
//! Only this crate touches PMU MSRs, and only [`bus::Native`] touches anything that needs a kernel:
//! all else runs on the host, where the drivers are tested against a model of the registers. A
//! vendor's ways stay inside its driver; to the engine each is a [`tally_engine::Pmu`].
//!
//! [`detect()`] says once what PMU the processor has; [`DetectedPmu::init_cpu`] makes each CPU's driver.
//! The interrupt controller's entry for the overflow interrupt is the kernel's, not this crate's.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod amd;
pub mod bus;
pub mod catalogue;
mod detect;
mod driver;
mod intel;
mod prepared;
pub mod registers;
#[cfg(test)]
mod testing;

pub use amd::Amd;
pub use bus::Bus;
pub use catalogue::{Catalogue, ResolveError, Resolved};
pub use detect::{DetectedPmu, NoPmu, detect};
pub use driver::{Driver, InitError};
pub use intel::Intel;
