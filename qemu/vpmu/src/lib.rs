//! The virtual PMU's registers: what RDMSR, WRMSR, RDPMC and CPUID answer and what then counts.
//!
//! Pure: no QEMU, no interrupt controller. One [`Pmu`] belongs to one virtual CPU. Every entry is
//! given what the machine has counted so far ([`tally_model::Counts`]); a counter is the difference
//! of that since it was started, so that a counter and the truth can never differ by the way that
//! they were summed.
//!
//! Registers and bits are written down here from the manuals once more, not taken from `kernel/pmu`: a
//! driver that is wrong about one must not have a witness that is wrong with it.
//!
//! Invariant: between two entries nothing that a guest could read changes but by the counts;
//! [`Pmu::sync`] folds overflows in and says whether an interrupt is due.

mod amd;
mod counter;
mod event;
mod events_amd;
mod events_intel;
mod intel;
mod metrics;
mod offcore;
mod pmu;
mod profile;

pub use self::{
    event::{Event, Unit},
    pmu::{Access, CpuidKind, Pmu, Unmodelled},
    profile::{Profile, Vendor},
};
