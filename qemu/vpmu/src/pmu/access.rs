//! The results of register accesses, and the register bits that both vendors share.

use std::fmt;

/// The result of a register access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessResult {
    /// Done, with the value of a read.
    Done(u64),
    /// A general-protection fault.
    Fault,
    /// Register is not the PMU's.
    Foreign,
}

/// The PMU's part of the answer to a CPUID leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuidKind {
    /// The whole answer.
    Whole,
    /// Some bits of it.
    Patched,
    /// No part of it.
    Foreign,
}

/// A selection or register write by the guest that the profile does not model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unmodelled {
    /// An event select whose event is not modelled: it counts nothing.
    Select(u64),
    /// An event select with unit-mask bits that are not modelled: they count nothing.
    UnitMask(u64),
    /// An event select of AMD's that needs the event Merge on the counter after it.
    Unmerged(u64),
    /// An off-core response filter for requests that the model does not have.
    Offcore(u64),
    /// A counter of the unit whose event, level or edges are not modelled: it counts nothing.
    Unit(u64),
    /// A register of precise sampling, branch records or other counters.
    Register(u32),
    /// Groups of a precise record that are not modelled.
    Groups(u64),
    /// A linear address of the debug store, or a physical one of the buffer, without memory.
    DebugStore(u64),
}

impl fmt::Display for Unmodelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmodelled::Select(value) => {
                write!(f, "event select {value:#x} is not modelled: it counts nothing")
            }
            Unmodelled::UnitMask(value) => {
                write!(
                    f,
                    "event select {value:#x}: unit-mask bits that are not modelled count nothing"
                )
            }
            Unmodelled::Unmerged(value) => {
                write!(
                    f,
                    "event select {value:#x} without Merge (event FFFH) on the odd counter after an \
                     even one: operations in a cycle are not modelled, and it counts nothing"
                )
            }
            Unmodelled::Offcore(value) => {
                write!(
                    f,
                    "off-core filter {value:#x}: requests that are not modelled count nothing"
                )
            }
            Unmodelled::Unit(value) => {
                write!(
                    f,
                    "counter unit: {value:#x} is no event in a mode that is modelled: it counts \
                     nothing"
                )
            }
            Unmodelled::Register(msr) => {
                write!(f, "MSR {msr:#x}: its feature is not modelled, and the write has no effect")
            }
            Unmodelled::Groups(value) => write_groups(f, *value),
            Unmodelled::DebugStore(address) => {
                write!(f, "memory for records at {address:#x} is not there: no record is written")
            }
        }
    }
}

/// Writes that the groups of a precise record are not modelled.
fn write_groups(f: &mut fmt::Formatter<'_>, value: u64) -> fmt::Result {
    write!(
        f,
        "MSR_PEBS_DATA_CFG {value:#x}: general registers (bit 1), XMM registers (2) and metrics (5) \
         are not modelled: no record is written"
    )
}

/// Event-select bits that both vendors share (SDM vol. 3, "IA32_PERFEVTSELx MSRs"; APM vol. 2,
/// 13.2.1 "Performance Event-Select Registers").
pub(crate) mod select {
    pub(crate) const USR: u64 = 1 << 16;
    pub(crate) const OS: u64 = 1 << 17;
    pub(crate) const EDGE: u64 = 1 << 18;
    pub(crate) const INT: u64 = 1 << 20;
    pub(crate) const EN: u64 = 1 << 22;
    pub(crate) const INV: u64 = 1 << 23;
    pub(crate) const CMASK_SHIFT: u32 = 24;
    /// Intel's version 6: the comparison with the counter mask is for equality.
    pub(crate) const EQUAL: u64 = 1 << 36;
    /// Intel's PEBS: the counter's records have the configured groups.
    pub(crate) const ADAPTIVE: u64 = 1 << 34;
    /// Adaptive bit of fixed counter 0, in the fixed counters' control.
    pub(crate) const FIXED_ADAPTIVE: u64 = 1 << 32;
}

/// Debug control bit of both vendors: freeze the counters at a PMI.
pub(crate) const DEBUGCTL_FREEZE_ON_PMI: u64 = 1 << 12;
/// Debug control bit of Intel: freeze the counters in system-management mode.
pub(crate) const DEBUGCTL_FREEZE_WHILE_SMM: u64 = 1 << 14;
/// Global status of both vendors: an interrupt has frozen the branch records (SDM, "LBR_FRZ"; APM
/// vol. 2, "PerfCntrGlobalStatus").
pub(crate) const STATUS_BRANCHES_FROZEN: u64 = 1 << 58;
/// Global status: an interrupt has frozen the counters (SDM, "CTR_FRZ").
pub(crate) const STATUS_FROZEN: u64 = 1 << 59;
/// Global status: the buffer of architectural PEBS has reached its threshold (Linux,
/// `GLOBAL_STATUS_ARCH_PEBS_THRESHOLD`).
pub(crate) const STATUS_RECORDS: u64 = 1 << 54;
/// Global status: the buffer of the debug store has reached its threshold (SDM, "OvfDSBuffer").
pub(crate) const STATUS_BUFFER: u64 = 1 << 62;
/// Global status and control: PERF_METRICS (SDM, "PERF_METRICS_OVF", "PERF_METRICS_EN").
pub(crate) const STATUS_METRICS: u64 = 1 << 48;
