//! Intel's architectural performance monitoring, versions 2 to 6.
//!
//! Intel SDM volume 3, chapter "Performance Monitoring", section "Architectural Performance
//! Monitoring"; addresses from volume 4, table "IA-32 Architectural MSRs".

use bitflags::bitflags;

use super::{Register, counter, register};

bitflags! {
    /// IA32_PERFEVTSELx: event select of general counter x. ("Architectural Performance Monitoring
    /// Version 1 Facilities", figure "Layout of IA32_PERFEVTSELx MSRs".)
    ///
    /// Bit 19 (pin control) and bit 21 (AnyThread) are omitted: the former is obsolete, the latter
    /// is reserved if CPUID.0AH:EDX[15] is set, and otherwise counts other threads' events.
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
        /// Enables the counter; IA32_PERF_GLOBAL_CTRL must enable it too.
        const EN = 1 << 22;
        /// Inverts the comparison with the counter mask.
        const INV = 1 << 23;
        /// Counter mask: if not 0, counts cycles with at least this many events.
        const CMASK = 0xff << 24;
        /// Stores the groups of [`PebsDataCfg`] in the counter's precise records, if [`PebsEnable`]
        /// enables them. Exists if [`PerfCapabilities::PEBS_BASELINE`] is set. ("Adaptive PEBS".)
        const ADAPTIVE = 1 << 34;
        /// Compares the counter mask for equality: counts cycles with exactly this many events.
        /// Exists if CPUID.(EAX=23H,ECX=0):EBX[1] is set.
        const EQUAL = 1 << 36;
        /// Second unit mask. Exists if CPUID.(EAX=23H,ECX=0):EBX[0] is set.
        const SECOND_UMASK = 0xff << 40;
    }

    /// IA32_FIXED_CTR_CTRL: control of the fixed counters, four bits each. ("Architectural
    /// Performance Monitoring Version 2".) The third of the four, AnyThread, is omitted; see
    /// [`PerfEvtSel`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FixedCtrCtrl: u64 {
        /// Fixed counter 0 (instructions) counts in ring 0.
        const OS0 = 1;
        /// Fixed counter 0 counts in rings 1 to 3.
        const USR0 = 1 << 1;
        /// Fixed counter 0 raises an interrupt on overflow.
        const PMI0 = 1 << 3;
        /// Fixed counter 1 (core cycles) counts in ring 0.
        const OS1 = 1 << 4;
        /// Fixed counter 1 counts in rings 1 to 3.
        const USR1 = 1 << 5;
        /// Fixed counter 1 raises an interrupt on overflow.
        const PMI1 = 1 << 7;
        /// Fixed counter 2 (reference cycles) counts in ring 0.
        const OS2 = 1 << 8;
        /// Fixed counter 2 counts in rings 1 to 3.
        const USR2 = 1 << 9;
        /// Fixed counter 2 raises an interrupt on overflow.
        const PMI2 = 1 << 11;
        /// Fixed counter 3 (slots) counts in ring 0, and PERF_METRICS with it.
        const OS3 = 1 << 12;
        /// Fixed counter 3 counts in rings 1 to 3, and PERF_METRICS with it.
        const USR3 = 1 << 13;
    }

    /// IA32_PERF_GLOBAL_CTRL: counters that are enabled. ("Architectural Performance Monitoring
    /// Version 2".) The bit of a counter that does not exist is reserved.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfGlobalCtrl: u64 {
        /// General counters, by index.
        const GENERAL = 0x3ff;
        /// Fixed counter 0.
        const FIXED0 = 1 << 32;
        /// Fixed counter 1.
        const FIXED1 = 1 << 33;
        /// Fixed counter 2.
        const FIXED2 = 1 << 34;
        /// Fixed counter 3.
        const FIXED3 = 1 << 35;
        /// [`PerfMetrics`]. ("Performance Metrics".)
        const METRICS = 1 << 48;
    }

    /// IA32_PERF_GLOBAL_STATUS: counters that have overflowed. Read only. Every bit that the SDM
    /// defines can be set; only those that concern the engine are listed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfGlobalStatus: u64 {
        /// General counters, by index.
        const GENERAL = 0x3ff;
        /// Fixed counter 0.
        const FIXED0 = 1 << 32;
        /// Fixed counter 1.
        const FIXED1 = 1 << 33;
        /// Fixed counter 2.
        const FIXED2 = 1 << 34;
        /// From version 4 on: counters are frozen.
        const CTR_FRZ = 1 << 59;
        /// The buffer of architectural PEBS has as many records as its threshold says.
        const RECORDS = 1 << 54;
        /// The debug store has as many records as its threshold says.
        const DS_BUFFER = 1 << 62;
    }

    /// IA32_PERF_GLOBAL_OVF_CTRL, from version 4 on called IA32_PERF_GLOBAL_STATUS_RESET: a one
    /// clears the same bit in [`PerfGlobalStatus`]. Reads as zero.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfGlobalOvfCtrl: u64 {
        /// General counters, by index.
        const GENERAL = 0x3ff;
        /// Fixed counter 0.
        const FIXED0 = 1 << 32;
        /// Fixed counter 1.
        const FIXED1 = 1 << 33;
        /// Fixed counter 2.
        const FIXED2 = 1 << 34;
        /// Fixed counter 3.
        const FIXED3 = 1 << 35;
        /// [`PerfMetrics`].
        const METRICS = 1 << 48;
        /// From version 4 on: records of branches are frozen.
        const LBR_FRZ = 1 << 58;
        /// From version 4 on: counters are frozen.
        const CTR_FRZ = 1 << 59;
        /// The debug store has as many records as its threshold says.
        const DS_BUFFER = 1 << 62;
    }

    /// IA32_DEBUGCTL: only bits that concern counters are listed; the others are preserved.
    /// ("Streamlined Freeze PMI".)
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DebugCtl: u64 {
        /// Records branches, sends and stores trace messages of branches, interrupts when their
        /// buffer is full, and freezes the records on an overflow interrupt: LBR, TR, BTS, BTINT,
        /// FREEZE_LBRS_ON_PMI.
        const BRANCHES = 1 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 11;
        /// Records branches, where the records are not architectural.
        const LBR = 1;
        /// Freezes the records of branches on an overflow interrupt, and sets LBR_FRZ in the
        /// status; before version 4 the interrupt clears the bit that records them instead.
        const FREEZE_LBRS_ON_PMI = 1 << 11;
        /// Freezes all counters on an overflow interrupt, and sets CTR_FRZ in the status; before
        /// version 4 the interrupt clears IA32_PERF_GLOBAL_CTRL instead. Exists if
        /// CPUID.01H:ECX[15] is set.
        const FREEZE_PERFMON_ON_PMI = 1 << 12;
        /// Stops the counters in system-management mode. Exists if IA32_PERF_CAPABILITIES reports
        /// it.
        const FREEZE_WHILE_SMM = 1 << 14;
    }

    /// IA32_PERF_CAPABILITIES: read only; exists if CPUID.01H:ECX[15] is set. Only bits that the
    /// virtual PMU and the drivers use are listed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfCapabilities: u64 {
        /// Format of the records of branches.
        const LBR_FORMAT = 0x3f;
        /// Format of the records of precise samples.
        const PEBS_FORMAT = 0xf << 8;
        /// Reports that [`DebugCtl::FREEZE_WHILE_SMM`] exists.
        const FREEZE_WHILE_SMM = 1 << 12;
        /// Reports that [`FullPmc`] exists: general counters can be written in full width.
        const FW_WRITE = 1 << 13;
        /// Reports that records are adaptive and every counter can store them.
        const PEBS_BASELINE = 1 << 14;
        /// Reports that [`PerfMetrics`] exists.
        const METRICS = 1 << 15;
    }
}

bitflags! {
    /// IA32_PEBS_ENABLE: counters that write records. Exists if CPUID.01H:EDX[21] is set. (Section
    /// "Processor Event Based Sampling".)
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PebsEnable: u64 {
        /// General counters, by index.
        const GENERAL = 0x3ff;
        /// General counter 0.
        const GENERAL0 = 1;
        /// Fixed counter 0.
        const FIXED0 = 1 << 32;
    }

    /// MSR_PEBS_DATA_CFG: groups of adaptive records besides the basic one. Exists if
    /// [`PerfCapabilities::PEBS_BASELINE`] is set. ("Adaptive PEBS".)
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PebsDataCfg: u64 {
        /// Address, source and latency of the instruction's memory access: four words.
        const MEMORY = 1 << 0;
    }

    /// MSR_PEBS_LD_LAT_THRESHOLD: latency of slow loads. ("Load Latency Performance Monitoring".)
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PebsLdLat: u64 {
        /// The cycles.
        const CYCLES = 0xffff;
    }

    /// IA32_PERF_GLOBAL_INUSE: counters that have an event, and bit 63, that one interrupts. Exists
    /// from version 4 on. Read only.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfGlobalInuse: u64 {}
}

/// IA32_DS_AREA: linear address of the debug store. Exists if CPUID.01H:EDX[21] is set. (Section
/// "DS Save Area".)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DsArea(pub u64);

/// MSR_OFFCORE_RSP_x: off-core responses that are counted by the events that use this register.
/// (Chapter "Performance Monitoring", section "Off-core Response Performance Monitoring".) The
/// valid bits depend on the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffcoreRsp(pub u64);

/// MSR_PEBS_FRONTEND: front-end events that are counted, with or without PEBS. (Section "Processor
/// Event Based Sampling", "Front End Retired Facility".)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PebsFrontend(pub u64);

register!(PerfEvtSel, "IA32_PERFEVTSEL", 0x186);
register!(DebugCtl, "IA32_DEBUGCTL", 0x1d9);
register!(FixedCtrCtrl, "IA32_FIXED_CTR_CTRL", 0x38d);
register!(PerfGlobalStatus, "IA32_PERF_GLOBAL_STATUS", 0x38e);
register!(PerfGlobalCtrl, "IA32_PERF_GLOBAL_CTRL", 0x38f);
register!(PebsEnable, "IA32_PEBS_ENABLE", 0x3f1);
register!(PebsDataCfg, "MSR_PEBS_DATA_CFG", 0x3f2);
register!(PebsLdLat, "MSR_PEBS_LD_LAT_THRESHOLD", 0x3f6);
register!(PerfGlobalInuse, "IA32_PERF_GLOBAL_INUSE", 0x392);
/// PERF_METRICS: fractions of the slots that fixed counter 3 counted, in eight bits each, 255 for
/// all: from the lowest, retiring, bad speculation, bound by the front end, bound by the back end;
/// then, from Golden Cove on, heavy operations, mispredicted branches, fetch latency, bound by
/// memory. Software sets the counter and then this register to 0. (Section "Performance Metrics".)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfMetrics(pub u64);

impl Register for PerfMetrics {
    const NAME: &'static str = "PERF_METRICS";
    const FIRST: u32 = 0x329;
    const VALID: u64 = u64::MAX;

    fn raw(self) -> u64 {
        self.0
    }

    fn from_raw(bits: u64) -> Self {
        PerfMetrics(bits)
    }
}

register!(PerfGlobalOvfCtrl, "IA32_PERF_GLOBAL_OVF_CTRL", 0x390);
register!(PerfCapabilities, "IA32_PERF_CAPABILITIES", 0x345);

counter!(
    /// IA32_PMCx: general counter x. A write takes the low 32 bits and sign-extends them.
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

counter!(
    /// IA32_PMC_GPx_CTR: general counter x, written in full width. Exists from version 6 on. (SDM
    /// volume 4; Linux, msr-index.h, `MSR_IA32_PMC_V6_GP0_CTR`.)
    PmcGpCtr, "IA32_PMC_GP_CTR", 0x1900, stride 4
);
counter!(
    /// IA32_PMC_FXx_CTR: fixed counter x. Exists from version 6 on. (Linux,
    /// `MSR_IA32_PMC_V6_FX0_CTR`.)
    PmcFxCtr, "IA32_PMC_FX_CTR", 0x1980, stride 4
);

/// IA32_PMC_GPx_CFG_A: event select of general counter x, with the bits of [`PerfEvtSel`]. Exists
/// from version 6 on. (Linux, `MSR_IA32_PMC_V6_GP0_CFG_A`.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmcGpCfgA(pub u64);

impl Register for PmcGpCfgA {
    const NAME: &'static str = "IA32_PMC_GP_CFG_A";
    const FIRST: u32 = 0x1901;
    const STRIDE: u32 = 4;
    const VALID: u64 = PerfEvtSel::all().bits();

    fn raw(self) -> u64 {
        self.0
    }

    fn from_raw(bits: u64) -> Self {
        PmcGpCfgA(bits)
    }
}

impl Register for DsArea {
    const NAME: &'static str = "IA32_DS_AREA";
    const FIRST: u32 = 0x600;
    const VALID: u64 = u64::MAX;

    fn raw(self) -> u64 {
        self.0
    }

    fn from_raw(bits: u64) -> Self {
        DsArea(bits)
    }
}

impl Register for OffcoreRsp {
    const NAME: &'static str = "MSR_OFFCORE_RSP_";
    const FIRST: u32 = 0x1a6;
    const VALID: u64 = 0x800f_ffff_ffff_ffff;

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

/// Bit of RDPMC's ECX that selects fixed counters.
pub const RDPMC_FIXED: u32 = 1 << 30;
/// RDPMC's ECX for [`PerfMetrics`].
pub const RDPMC_METRICS: u32 = 1 << 29;

impl PerfCapabilities {
    /// Returns the format of the records of branches.
    pub const fn lbr_format(self) -> u8 {
        (self.bits() & 0x3f) as u8
    }

    /// Returns the format of the records of precise samples.
    pub const fn pebs_format(self) -> u8 {
        (self.bits() >> 8 & 0xf) as u8
    }
}

impl PerfEvtSel {
    /// Makes the select of an event by its code and unit mask, not enabled, at no privilege.
    pub const fn event(code: u8, umask: u8) -> PerfEvtSel {
        PerfEvtSel::from_bits_retain(code as u64 | (umask as u64) << 8)
    }

    /// Returns the select with a counter mask.
    pub const fn with_cmask(self, cmask: u8) -> PerfEvtSel {
        PerfEvtSel::from_bits_retain(self.bits() & !(0xff << 24) | (cmask as u64) << 24)
    }

    /// Returns the select with a second unit mask.
    pub const fn with_second_umask(self, umask: u8) -> PerfEvtSel {
        PerfEvtSel::from_bits_retain(self.bits() & !(0xff << 40) | (umask as u64) << 40)
    }
}
