//! The PMU of one virtual CPU.
//!
//! [`VirtualPmu`] is defined in `state`; the other files are its operations, each importing only
//! from those before it: `access`, `prefetch`, `cycles`, `selection`, `counting`,
//! `version_6`, `lbr`, `arch_pebs`, `pebs`, `ibs`, `intel` and `amd`, `unit`, `dispatch`.

mod access;
mod amd;
mod arch_pebs;
#[cfg(test)]
mod arch_pebs_tests;
mod counting;
mod cycles;
#[cfg(test)]
mod cycles_tests;
mod dispatch;
mod ibs;
#[cfg(test)]
mod ibs_tests;
mod intel;
mod lbr;
#[cfg(test)]
mod lbr_tests;
#[cfg(test)]
mod linux_tests;
mod load_latency;
mod merge;
mod pebs;
#[cfg(test)]
mod pebs_6_tests;
#[cfg(test)]
mod pebs_tests;
mod prefetch;
#[cfg(test)]
mod quirk_tests;
#[cfg(test)]
mod sampled;
mod selection;
#[cfg(test)]
mod selection_tests;
mod state;
#[cfg(test)]
mod tests;
mod unit;
#[cfg(test)]
mod unit_tests;
mod version_6;
#[cfg(test)]
mod version_6_tests;

pub use self::{
    access::{AccessResult, CpuidKind, Unmodelled},
    state::VirtualPmu,
};
