//! Intel's architectural performance monitoring, versions 2 to 5.
//!
//! Intel SDM volume 3, chapter "Performance Monitoring", section "Architectural Performance
//! Monitoring"; addresses from volume 4, table "IA-32 Architectural MSRs".

use bitflags::bitflags;

use super::{Register, counter, register};

bitflags! {
    /// IA32_PERFEVTSELx: what general counter x counts. ("Architectural Performance Monitoring
    /// Version 1 Facilities", figure "Layout of IA32_PERFEVTSELx MSRs".)
    ///
    /// Bit 19 (pin control) and bit 21 (AnyThread) are not here: the former is gone, the latter is
    /// reserved where CPUID.0AH:EDX[15] is set, and sees other threads' events where it is not.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfEvtSel: u64 {
        /// Event code.
        const CODE = 0xff;
        /// Unit mask.
        const UMASK = 0xff << 8;
        /// Counts in rings 1 to 3.
        const USR = 1 << 16;
        /// Counts in ring 0.
        const OS = 1 << 17;
        /// Counts rising edges of the condition.
        const EDGE = 1 << 18;
        /// Raises an interrupt on overflow.
        const INT = 1 << 20;
        /// Counts at all, if IA32_PERF_GLOBAL_CTRL agrees.
        const EN = 1 << 22;
        /// Inverts the comparison with the counter mask.
        const INV = 1 << 23;
        /// Counter mask: counts cycles with at least so many events, if not 0.
        const CMASK = 0xff << 24;
    }

    /// IA32_FIXED_CTR_CTRL: how the fixed counters count, four bits each. ("Architectural
    /// Performance Monitoring Version 2".) The third of the four, AnyThread, is not here; see
    /// [`PerfEvtSel`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FixedCtrCtrl: u64 {
        /// Fixed counter 0 (instructions) counts in ring 0.
        const OS0 = 1;
        /// … in rings 1 to 3.
        const USR0 = 1 << 1;
        /// … and raises an interrupt on overflow.
        const PMI0 = 1 << 3;
        /// Fixed counter 1 (core cycles) counts in ring 0.
        const OS1 = 1 << 4;
        /// … in rings 1 to 3.
        const USR1 = 1 << 5;
        /// … and raises an interrupt on overflow.
        const PMI1 = 1 << 7;
        /// Fixed counter 2 (reference cycles) counts in ring 0.
        const OS2 = 1 << 8;
        /// … in rings 1 to 3.
        const USR2 = 1 << 9;
        /// … and raises an interrupt on overflow.
        const PMI2 = 1 << 11;
    }

    /// IA32_PERF_GLOBAL_CTRL: which counters are let count. ("Architectural Performance Monitoring
    /// Version 2".) A bit of a counter that is not there is reserved.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfGlobalCtrl: u64 {
        /// General counters, by index.
        const GENERAL = 0xff;
        /// Fixed counter 0.
        const FIXED0 = 1 << 32;
        /// Fixed counter 1.
        const FIXED1 = 1 << 33;
        /// Fixed counter 2.
        const FIXED2 = 1 << 34;
    }

    /// IA32_PERF_GLOBAL_STATUS: which counters have overflowed. Read only; every bit that the SDM
    /// defines can be set, only those that concern the engine are here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfGlobalStatus: u64 {
        /// General counters, by index.
        const GENERAL = 0xff;
        /// Fixed counter 0.
        const FIXED0 = 1 << 32;
        /// Fixed counter 1.
        const FIXED1 = 1 << 33;
        /// Fixed counter 2.
        const FIXED2 = 1 << 34;
        /// From version 4 on: counters are frozen.
        const CTR_FRZ = 1 << 59;
    }

    /// IA32_PERF_GLOBAL_OVF_CTRL, from version 4 on called IA32_PERF_GLOBAL_STATUS_RESET: a one
    /// clears the bit of the same place in [`PerfGlobalStatus`]. Reads as zero.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfGlobalOvfCtrl: u64 {
        /// General counters, by index.
        const GENERAL = 0xff;
        /// Fixed counter 0.
        const FIXED0 = 1 << 32;
        /// Fixed counter 1.
        const FIXED1 = 1 << 33;
        /// Fixed counter 2.
        const FIXED2 = 1 << 34;
        /// From version 4 on: counters are frozen.
        const CTR_FRZ = 1 << 59;
    }

    /// IA32_DEBUGCTL: only what concerns counters is here; the rest is kept. ("Streamlined Freeze
    /// PMI".)
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DebugCtl: u64 {
        /// An overflow interrupt freezes all counters, and sets CTR_FRZ in the status; before
        /// version 4 it clears IA32_PERF_GLOBAL_CTRL. There if CPUID.01H:ECX[15] is set.
        const FREEZE_PERFMON_ON_PMI = 1 << 12;
        /// Counters do not count in system-management mode. There if IA32_PERF_CAPABILITIES says
        /// so.
        const FREEZE_WHILE_SMM = 1 << 14;
    }

    /// IA32_PERF_CAPABILITIES: read only; there if CPUID.01H:ECX[15] is set. Only what the virtual
    /// PMU and the drivers speak of is here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfCapabilities: u64 {
        /// [`DebugCtl::FREEZE_WHILE_SMM`] exists.
        const FREEZE_WHILE_SMM = 1 << 12;
        /// [`FullPmc`] exists: general counters can be written in full width.
        const FW_WRITE = 1 << 13;
    }
}

/// MSR_OFFCORE_RSP_x: which off-core responses the events that name it count. (Chapter "Performance
/// Monitoring", section "Off-core Response Performance Monitoring".) Which bits there are depends
/// on the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffcoreRsp(pub u64);

/// MSR_PEBS_FRONTEND: which front-end events are counted, with PEBS or without. (Section "Processor
/// Event Based Sampling", "Front End Retired Facility".)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PebsFrontend(pub u64);

register!(PerfEvtSel, "IA32_PERFEVTSEL", 0x186);
register!(DebugCtl, "IA32_DEBUGCTL", 0x1d9);
register!(FixedCtrCtrl, "IA32_FIXED_CTR_CTRL", 0x38d);
register!(PerfGlobalStatus, "IA32_PERF_GLOBAL_STATUS", 0x38e);
register!(PerfGlobalCtrl, "IA32_PERF_GLOBAL_CTRL", 0x38f);
register!(PerfGlobalOvfCtrl, "IA32_PERF_GLOBAL_OVF_CTRL", 0x390);
register!(PerfCapabilities, "IA32_PERF_CAPABILITIES", 0x345);

counter!(
    /// IA32_PMCx: general counter x. A write takes the low 32 bits and extends their sign.
    Pmc, "IA32_PMC", 0xc1
);
counter!(
    /// IA32_A_PMCx: the same counter, written in full width. ("Full-Width Writes to Performance
    /// Counter Registers".)
    FullPmc, "IA32_A_PMC", 0x4c1
);
counter!(
    /// IA32_FIXED_CTRx: fixed counter x. 0 counts instructions, 1 core cycles, 2 reference cycles.
    FixedCtr, "IA32_FIXED_CTR", 0x309
);

impl Register for OffcoreRsp {
    const NAME: &'static str = "MSR_OFFCORE_RSP_";
    const FIRST: u32 = 0x1a6;
    const VALID: u64 = (1 << 38) - 1;

    fn raw(self) -> u64 {
        self.0
    }

    fn from_raw(bits: u64) -> Self {
        OffcoreRsp(bits)
    }
}

impl Register for PebsFrontend {
    const NAME: &'static str = "MSR_PEBS_FRONTEND";
    const FIRST: u32 = 0x3f7;
    const VALID: u64 = 0x7f_ff1f;

    fn raw(self) -> u64 {
        self.0
    }

    fn from_raw(bits: u64) -> Self {
        PebsFrontend(bits)
    }
}

/// Event code of core cycles on a general counter.
pub const CORE_CYCLES: u16 = 0x3c;
/// Event code of retired instructions on a general counter.
pub const INSTRUCTIONS_RETIRED: u16 = 0xc0;
/// Event code of retired branches of all kinds.
pub const BRANCHES_RETIRED: u16 = 0xc4;

/// Code and unit mask of the architectural events, by their bits in CPUID leaf 0AH's EBX
/// ("Pre-defined Architectural Performance Events").
pub const ARCHITECTURAL_EVENTS: [(u16, u8); 13] = [
    (CORE_CYCLES, 0x00),
    (INSTRUCTIONS_RETIRED, 0x00),
    // Reference cycles.
    (0x3c, 0x01),
    // References to the last-level cache, and misses.
    (0x2e, 0x4f),
    (0x2e, 0x41),
    // Branches retired, and those mispredicted.
    (0xc4, 0x00),
    (0xc5, 0x00),
    // Top-down: slots, bound by the back end, bad speculation, bound by the front end, retiring.
    (0xa4, 0x01),
    (0xa4, 0x02),
    (0x73, 0x00),
    (0x9c, 0x01),
    (0xc2, 0x02),
    // Branch records inserted.
    (0xe4, 0x01),
];

/// RDPMC's ECX selects fixed counters with this bit.
pub const RDPMC_FIXED: u32 = 1 << 30;

impl PerfEvtSel {
    /// The event of this code and unit mask, not enabled, at no privilege.
    pub const fn event(code: u8, umask: u8) -> PerfEvtSel {
        PerfEvtSel::from_bits_retain(code as u64 | (umask as u64) << 8)
    }

    /// The same with a counter mask.
    pub const fn with_cmask(self, cmask: u8) -> PerfEvtSel {
        PerfEvtSel::from_bits_retain(self.bits() & !(0xff << 24) | (cmask as u64) << 24)
    }
}
