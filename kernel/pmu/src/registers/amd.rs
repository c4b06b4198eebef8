//! AMD's core performance counters: the core extension (six counters) and PerfMonV2.
//!
//! AMD64 Architecture Programmer's Manual volume 2, chapter "Debug and Performance Resources",
//! section "Performance Monitoring Counters"; PerfMonV2: CPUID Fn8000_0022 and the processor
//! programming reference of family 19h, model 11h, "Performance Monitor Counters".

use bitflags::bitflags;

use super::{counter, register, word};

bitflags! {
    /// PERF_CTLx: event select of counter x. Bits 40 and 41 (count in guests or hosts only) are
    /// omitted: they need SVM to be enabled.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfCtl: u64 {
        /// Event code, low eight bits.
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
        /// Enables the counter; with PerfMonV2 [`PerfCntrGlobalCtl`] must enable it too.
        const EN = 1 << 22;
        /// Inverts the comparison with the counter mask.
        const INV = 1 << 23;
        /// Counter mask: if not 0, counts cycles with at least this many events.
        const CMASK = 0xff << 24;
        /// Event code, high four bits.
        const CODE_HIGH = 0xf << 32;
    }

    /// PerfCntrGlobalStatus: counters that have overflowed. Read only.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfCntrGlobalStatus: u64 {
        /// Core counters, by index.
        const COUNTERS = 0x3f;
        /// Records of branches are frozen.
        const LBR_FROZEN = 1 << 58;
        /// Counters are frozen.
        const PMC_FROZEN = 1 << 59;
    }

    /// PerfCntrGlobalCtl: counters that are enabled.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfCntrGlobalCtl: u64 {
        /// Core counters, by index.
        const COUNTERS = 0x3f;
    }

    /// PerfCntrGlobalStatusClr: a one clears the same bit in [`PerfCntrGlobalStatus`]. Write only.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PerfCntrGlobalStatusClr: u64 {
        /// Core counters, by index.
        const COUNTERS = 0x3f;
        /// Records of branches are frozen.
        const LBR_FROZEN = 1 << 58;
        /// Counters are frozen.
        const PMC_FROZEN = 1 << 59;
    }

    /// DebugExtnCfg: records of branches. Exists if CPUID Fn8000_0022_EAX[1] is set.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DebugExtnCfg: u64 {
        /// Records branches.
        const LBRV2 = 1 << 6;
    }

    /// LbrSelect: branches that are left out. Exists if CPUID Fn8000_0022_EAX[1] is set. (Volume 2,
    /// "Last Branch Stack Registers".)
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LbrSelect: u64 {
        /// Leaves out those in ring 0.
        const NOT_RING_0 = 1 << 0;
        /// Leaves out those in rings 1 to 3.
        const NOT_RING_3 = 1 << 1;
        /// Leaves out conditional branches.
        const CONDITIONAL = 1 << 2;
        /// Leaves out direct calls.
        const CALL = 1 << 3;
        /// Leaves out indirect calls.
        const INDIRECT_CALL = 1 << 4;
        /// Leaves out near returns.
        const RETURN = 1 << 5;
        /// Leaves out indirect jumps.
        const INDIRECT_JUMP = 1 << 6;
        /// Leaves out direct jumps.
        const JUMP = 1 << 7;
        /// Leaves out every type.
        const TYPES = 0x1ff & !0b11;
    }

    /// DebugCtl: only bits that concern counters are listed; the others are preserved. (Volume 2,
    /// "Debug-Control MSR".)
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DebugCtl: u64 {
        /// Records the last branch.
        const LBR = 1;
        /// Freezes the records of branches on an overflow interrupt. Exists likewise.
        const FREEZE_LBR_ON_PMI = 1 << 11;
        /// Freezes all counters on an overflow interrupt. Exists if CPUID Fn8000_0022_EAX[2] is
        /// set.
        const FREEZE_PMC_ON_PMI = 1 << 12;
    }

    /// IbsOpCtl: sampling of ops. Exists, as the others of IBS, if CPUID Fn8000_0001_ECX[10] is
    /// set. The maximum count is in units of 16 in bits 15:0; its bits 26:20 are in their place.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct IbsOpCtl: u64 {
        /// Bits 19:4 of the maximum count.
        const MAXIMUM = 0xffff;
        /// Samples ops.
        const ENABLE = 1 << 17;
        /// A sample is there; nothing is sampled until software clears the bit.
        const VALID = 1 << 18;
        /// Counts dispatched ops in place of cycles.
        const COUNTS_OPS = 1 << 19;
        /// Bits 26:20 of the maximum count.
        const MAXIMUM_HIGH = 0x7f << 20;
        /// The part of the current count that a sample leaves random.
        const RANDOM = 0x7f << 32;
    }

    /// IbsCtl: the interrupt of IBS. Read only.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct IbsCtl: u64 {
        /// Number of the entry in the extended local vector table.
        const ENTRY = 0xf;
        /// The number is valid.
        const VALID = 1 << 8;
    }

    /// IbsOpData: times and branch of the sampled op.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct IbsOpData: u64 {
        /// The address is not known.
        const RIP_INVALID = 1 << 38;
    }

    /// IbsOpData3: memory access of the sampled op.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct IbsOpData3: u64 {
        /// A load.
        const LOAD = 1 << 0;
        /// A store.
        const STORE = 1 << 1;
        /// The linear address is there.
        const LINEAR_VALID = 1 << 17;
    }
}

register!(IbsOpCtl, "IbsOpCtl", 0xc001_1033);
register!(IbsOpData, "IbsOpData", 0xc001_1035);
register!(IbsOpData3, "IbsOpData3", 0xc001_1037);
register!(IbsCtl, "IbsCtl", 0xc001_103a);
register!(DebugExtnCfg, "DebugExtnCfg", 0xc000_010f);
register!(LbrSelect, "LbrSelect", 0xc000_010e);
register!(DebugCtl, "DebugCtl", 0x1d9);
register!(PerfCtl, "PERF_CTL", 0xc001_0200, stride 2);
register!(PerfCntrGlobalStatus, "PerfCntrGlobalStatus", 0xc000_0300);
register!(PerfCntrGlobalCtl, "PerfCntrGlobalCtl", 0xc000_0301);
register!(PerfCntrGlobalStatusClr, "PerfCntrGlobalStatusClr", 0xc000_0302);

word!(
    /// IbsOpRip: linear address of the sampled op's instruction.
    IbsOpRip, "IbsOpRip", 0xc001_1034
);
word!(
    /// IbsOpData2: source of the sampled op's load.
    IbsOpData2, "IbsOpData2", 0xc001_1036
);
word!(
    /// IbsDcLinAd: linear address of the sampled op's data.
    IbsDcLinAd, "IbsDcLinAd", 0xc001_1038
);
word!(
    /// SampBranchFrom_x: address of a branch, the last one in register 0; bit 63: mispredicted.
    SampledFrom, "SampBranchFrom", 0xc001_0300, stride 2
);
word!(
    /// SampBranchTo_x: address at which execution continued; bit 63: valid; bit 62: speculative.
    SampledTo, "SampBranchTo", 0xc001_0301, stride 2
);

counter!(
    /// PERF_CTRx: counter x, 48 bits.
    PerfCtr, "PERF_CTR", 0xc001_0201, stride 2
);

impl PerfCtl {
    /// Makes the select of an event by its code (12 bits) and unit mask, not enabled, at no
    /// privilege.
    pub const fn event(code: u16, umask: u8) -> PerfCtl {
        let high = (code as u64 >> 8 & 0xf) << 32;
        PerfCtl::from_bits_retain(code as u64 & 0xff | (umask as u64) << 8 | high)
    }

    /// Returns the select with a counter mask.
    pub const fn with_cmask(self, cmask: u8) -> PerfCtl {
        PerfCtl::from_bits_retain(self.bits() & !(0xff << 24) | (cmask as u64) << 24)
    }
}

/// Event code of cycles not in halt.
pub const CYCLES_NOT_IN_HALT: u16 = 0x76;
/// Event code of retired ops.
pub const RETIRED_OPS: u16 = 0xc1;
/// Event code of retired instructions.
pub const RETIRED_INSTRUCTIONS: u16 = 0xc0;
/// Event codes of retired instructions, branches, taken branches and far control
/// transfers. Interrupts and exceptions are branches by definition (PPR, PMCx0C2).
pub const RETIRED: [u16; 4] = [RETIRED_INSTRUCTIONS, 0xc2, 0xc4, 0xc6];
/// Event code of retired floating-point operations, up to 64 per cycle. A counter adds at most 15,
/// so this event needs an even counter, with [`MERGE`] on the odd one after it (processor
/// programming reference of family 19h, "Large Increment per Cycle Events").
pub const RETIRED_SSE_AVX_FLOPS: u16 = 0x003;
/// Mask of the counters that can count it.
pub const EVEN_COUNTERS: u16 = 0x15;
/// Event code that makes an odd counter the upper part of the even one before it. Reads of the even
/// counter return 64 bits, whose upper 16 are the odd one's low 16; a write of the pair writes
/// these first, and the even counter after them.
pub const MERGE: u16 = 0xfff;
/// Select of [`MERGE`]: enabled, and nothing else. It is written before the even counter's.
pub const MERGED: PerfCtl = PerfCtl::event(MERGE, 0).union(PerfCtl::EN);
