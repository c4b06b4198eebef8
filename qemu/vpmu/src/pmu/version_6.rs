//! Version 6 of Intel's architecture: rows of registers from 1900H, which alias the legacy ones and
//! reach more counters, selects of 64 bits, and CPUID leaf 23H (SDM vol. 2, CPUID; vol. 4,
//! "Architectural MSRs"; Linux, arch/x86/include/asm/msr-index.h, `MSR_IA32_PMC_V6_GP0_CTR`).

use crate::pmu::state::VirtualPmu;

/// CPUID leaf of the counters.
pub(super) const LEAF: u32 = 0x23;
/// Event-select bits that version 6 has: the equal flag, and the second unit mask.
pub(super) const SELECT: u64 = 1 << 36 | 0xff << 40;

/// Leaf 7, EDX: architectural branch records.
const LBR: u32 = 1 << 19;

/// The first of the rows: four registers for each general counter, then for each fixed one.
const GENERAL: u32 = 0x1900;
const FIXED: u32 = 0x1980;
const END: u32 = 0x1a00;
/// Registers of a counter.
const STRIDE: u32 = 4;
/// General counters that legacy registers reach.
const LEGACY: usize = 8;
/// Slots in a cycle that the leaf reports.
const SLOTS: u32 = 8;

/// A counter's register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A general counter, written in 32 bits.
    Counter(usize),
    /// A general counter, written in full width.
    FullCounter(usize),
    /// A general counter's event select.
    Select(usize),
    /// A fixed counter.
    Fixed(usize),
}

/// The index of `msr` in a bank of `count` registers that begins at `first`.
pub(super) fn bank(msr: u32, first: u32, count: usize) -> Option<usize> {
    let index = msr.checked_sub(first)? as usize;
    (index < count).then_some(index)
}

/// Returns whether the rows contain the address.
pub(super) fn is_row(msr: u32) -> bool {
    (GENERAL..END).contains(&msr)
}

impl VirtualPmu {
    /// The counter's register at an address, if there is one.
    pub(super) fn place(&self, msr: u32) -> Option<Place> {
        let (general, fixed) = (self.counters.len(), self.fixed.len());
        if is_row(msr) && self.profile.version >= 6 {
            let (first, count) = if msr < FIXED { (GENERAL, general) } else { (FIXED, fixed) };
            let index = ((msr - first) / STRIDE) as usize;
            return match (first, msr % STRIDE) {
                _ if index >= count => None,
                (GENERAL, 0) => Some(Place::FullCounter(index)),
                (GENERAL, 1) => Some(Place::Select(index)),
                (FIXED, 0) => Some(Place::Fixed(index)),
                // Records have a file of their own, and reloading by other counters is not there.
                _ => None,
            };
        }
        let legacy = general.min(LEGACY);
        bank(msr, 0xc1, legacy)
            .map(Place::Counter)
            .or_else(|| bank(msr, 0x4c1, legacy).map(Place::FullCounter))
            .or_else(|| bank(msr, 0x186, legacy).map(Place::Select))
            .or_else(|| bank(msr, 0x309, fixed).map(Place::Fixed))
    }

    /// The numbers of general and fixed counters in leaf 0AH: of a hybrid processor those that all
    /// of its cores have, eight and three.
    pub(super) fn leaf_a_counters(&self) -> [u32; 2] {
        let (general, fixed) = (self.counters.len(), self.fixed.len());
        let is_hybrid = self.profile.version >= 6 && self.profile.kind != 0;
        [general.min(LEGACY) as u32, if is_hybrid { fixed.min(3) } else { fixed } as u32]
    }

    /// Leaf 23H: sub-leaf 0 has the mask of the sub-leaves, the fields of selects and the slots in
    /// a cycle, sub-leaf 1 the masks of the counters.
    pub(super) fn leaf_23(&self, subleaf: u32) -> [u32; 4] {
        let mask = |count: usize| (1_u32 << count) - 1;
        match subleaf {
            0 if self.has_record_buffer() => [0b11_0011, 0b11, SLOTS, 0],
            0 => [0b11, 0b11, SLOTS, 0],
            4 | 5 if self.has_record_buffer() => self.record_leaf(subleaf),
            1 => [mask(self.counters.len()), mask(self.fixed.len()), 0, 0],
            _ => [0; 4],
        }
    }

    /// Leaf 7: sub-leaf 0 reports sub-leaf 1 and, in EDX, a hybrid processor (bit 15) and branch
    /// records; sub-leaf 1 in EAX bit 8 leaf 23H.
    pub(super) fn leaf_7(&self, subleaf: u32, registers: [u32; 4]) -> [u32; 4] {
        let [eax, ebx, ecx, edx] = registers;
        let is_6 = self.profile.version >= 6;
        let lbr = if self.has_architectural_lbr() { LBR } else { 0 };
        let hybrid = u32::from(is_6 && self.profile.kind != 0) << 15;
        match subleaf {
            0 => [eax.max(is_6.into()), ebx, ecx, edx | lbr | hybrid],
            1 if is_6 => [eax | 1 << 8, ebx, ecx, edx],
            _ => registers,
        }
    }
}
