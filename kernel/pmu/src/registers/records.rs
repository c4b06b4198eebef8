//! Registers of Intel's architectural PEBS: where records are, and which counters store them.
//!
//! Linux, arch/x86/include/asm/msr-index.h (`MSR_IA32_PEBS_BASE` to `ARCH_PEBS_EN`) and
//! perf_event.h (`union arch_pebs_index`). They exist if CPUID leaf 23H has the sub-leaves 4 and 5.

use bitflags::bitflags;

use super::{register, word};

bitflags! {
    /// IA32_PEBS_INDEX: state of the buffer. Positions are in units of 16 bytes, which the fields'
    /// places multiply by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PebsIndex: u64 {
        /// The end of the records.
        const WRITTEN = 0x7f_ffff << 4;
        /// A record had no room.
        const FULL = 1 << 31;
        /// Records are stored.
        const ENABLE = 1 << 32;
        /// The end of the records from which on they interrupt.
        const THRESHOLD = 0x7f_ffff << 36;
        /// Records are stored, and each interrupts: the threshold is 16 bytes.
        const EACH = 1 << 32 | 1 << 36;
    }

    /// IA32_PMC_GPx_CFG_C and IA32_PMC_FXx_CFG_C: records of a counter.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PmcCfgC: u64 {
        /// Value that the counter gets with a record. That its 32 bits are extended by their sign
        /// no text says; the driver writes 0 and 1.
        const RELOAD = 0xffff_ffff;
        /// The counter's value may be in records.
        const ALLOW = 1 << 35;
        /// Values of general counters.
        const GENERAL = 1 << 36;
        /// Values of fixed counters.
        const FIXED = 1 << 37;
        /// Branches.
        const BRANCHES = 0b11 << 40;
        /// The memory access.
        const ACCESS = 1 << 62;
        /// The counter stores records.
        const ENABLE = 1 << 63;
    }
}

register!(PebsIndex, "IA32_PEBS_INDEX", 0x3f5);
register!(PmcCfgC, "IA32_PMC_GP_CFG_C", 0x1903, stride 4);

word!(
    /// IA32_PEBS_BASE: physical address of the buffer, a multiple of 4 KiB, and in the low bits the
    /// size, 4 KiB shifted by them.
    PebsBase, "IA32_PEBS_BASE", 0x3f4
);
word!(
    /// IA32_PMC_FXx_CFG_C: records of a fixed counter, with the bits of [`PmcCfgC`].
    PmcFxCfgC, "IA32_PMC_FX_CFG_C", 0x1983, stride 4
);

impl PebsIndex {
    /// Returns the bytes of the records.
    pub const fn written_bytes(self) -> u64 {
        self.intersection(PebsIndex::WRITTEN).bits()
    }
}

impl PebsBase {
    /// Makes the base of a buffer of one frame.
    pub const fn of_frame(physical: u64) -> PebsBase {
        PebsBase(physical)
    }
}
