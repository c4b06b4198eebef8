//! Intel's last branch records.
//!
//! Intel SDM volume 3, chapter "Last Branch Records" (architectural), and section "Last Branch,
//! Interrupt, and Exception Recording"; addresses from volume 4.

use bitflags::bitflags;

use super::{register, word};

bitflags! {
    /// IA32_LBR_CTL: records of branches, where they are architectural. Exists if
    /// CPUID.07H:EDX[19] is set. (Chapter "Last Branch Records".)
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LbrCtl: u64 {
        /// Records branches.
        const ENABLE = 1 << 0;
        /// Records those that lead to ring 0.
        const RING_0 = 1 << 1;
        /// Records those that lead to rings 1 to 3.
        const RING_3 = 1 << 2;
        /// Removes the last call at a return.
        const CALL_STACK = 1 << 3;
        /// Records conditional branches.
        const CONDITIONAL = 1 << 16;
        /// Records direct jumps.
        const JUMP = 1 << 17;
        /// Records indirect jumps.
        const INDIRECT_JUMP = 1 << 18;
        /// Records direct calls.
        const CALL = 1 << 19;
        /// Records indirect calls.
        const INDIRECT_CALL = 1 << 20;
        /// Records near returns.
        const RETURN = 1 << 21;
        /// Records every type.
        const TYPES = 0x7f << 16;
    }

    /// MSR_LBR_SELECT: branches that the older records leave out. Exists from Nehalem on.
    /// ("Filtering of Last Branch Records".)
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
        /// Removes the last call at a return. Reserved on AMD.
        const CALL_STACK = 1 << 9;
        /// Leaves out every type.
        const TYPES = 0x1ff & !0b11;
    }
}

register!(LbrCtl, "IA32_LBR_CTL", 0x14ce);
register!(LbrSelect, "MSR_LBR_SELECT", 0x1c8);

word!(
    /// IA32_LBR_DEPTH: number of architectural records, one that CPUID leaf 1CH has. A write clears
    /// the records.
    LbrDepth, "IA32_LBR_DEPTH", 0x14cf
);
word!(
    /// IA32_LBR_x_FROM_IP: address of a branch, the last one in register 0; 0 without a record.
    LbrFrom, "IA32_LBR_FROM_IP_", 0x1500
);
word!(
    /// IA32_LBR_x_TO_IP: address at which execution continued.
    LbrTo, "IA32_LBR_TO_IP_", 0x1600
);
word!(
    /// IA32_LBR_x_INFO: bit 63 mispredicted, bit 60 the cycles are valid, bits 59:56 the type, bits
    /// 15:0 cycles since the record before.
    LbrInfo, "IA32_LBR_INFO_", 0x1200
);
word!(
    /// MSR_LASTBRANCH_TOS: number of the last of the older records.
    LbrTos, "MSR_LASTBRANCH_TOS", 0x1c9
);
word!(
    /// MSR_LASTBRANCH_x_FROM_IP: address of a branch; 0 without a record.
    LegacyLbrFrom, "MSR_LASTBRANCH_FROM_IP_", 0x680
);
word!(
    /// MSR_LASTBRANCH_x_TO_IP: address at which execution continued.
    LegacyLbrTo, "MSR_LASTBRANCH_TO_IP_", 0x6c0
);
word!(
    /// MSR_LBR_INFO_x: bit 63 mispredicted, bits 15:0 cycles since the record before. Exists from
    /// Skylake on.
    LegacyLbrInfo, "MSR_LBR_INFO_", 0xdc0
);
