//! The virtual PMU's registers: the results of RDMSR, WRMSR, RDPMC and CPUID, and the inputs of the
//! counters.
//!
//! The crate is pure: no QEMU, no interrupt controller. One [`VirtualPmu`] belongs to one vCPU.
//! Every operation gets the model's counts up to now ([`tally_model::Counts`]). A counter's value
//! is the difference of these since it was started, so that counters and truth are sums of the same
//! numbers.
//!
//! Registers and bits are written here from the manuals independently of `kernel/pmu`: a wrong bit
//! in the driver must not be confirmed by the same wrong bit here.
//!
//! Invariant: between two operations only the counts change what a guest can read.
//! [`VirtualPmu::sync`] handles overflows; [`VirtualPmu::take_interrupt`] returns whether an
//! interrupt is pending.

mod arch_pebs;
mod counter;
mod event;
mod ibs;
mod ibs_fetch;
mod lbr;
mod metrics;
mod mode;
mod offcore;
mod options;
mod pebs;
mod pmu;
mod processor;
mod profile;
mod profiles;
mod quirks;
mod unit;

pub use self::{
    event::{Conversion, Event, Need},
    ibs::{RetiredBranch, RetiredOp},
    lbr::{TakenBranch, TakenKind},
    options::{Columns, Interval, PluginOptions, SeriesOptions, Shadow},
    pebs::{GuestMemory, RetiredInsn},
    pmu::{AccessResult, CpuidKind, Unmodelled, VirtualPmu},
    profile::{Profile, QemuMachine, Vendor},
    quirks::{Deliveries, Delivery, Left, Quirks},
};
