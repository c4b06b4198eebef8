//! IA32_MPERF and IA32_APERF, which both vendors have: the processor's reference and core cycles in
//! every ring, counted while it is not halted (SDM volume 3, "Hardware Coordination Feedback"; APM
//! volume 2, "MPERF and APERF"). They neither stop nor freeze with the PMU's counters.

use tally_model::{Counts, Geometry, Signal};

use crate::event::Conversion;

/// The addresses of the two registers.
const MPERF: u32 = 0xe7;
const APERF: u32 = 0xe8;
/// The CPUID leaf that announces the registers, in bit 0 of ECX.
pub(crate) const CPUID_LEAF: u32 = 6;
pub(crate) const CPUID_ECX: u32 = 1;

/// The two registers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CycleRegisters {
    /// Offset of each register from the processor's count, modulo 2^64.
    bases: [u64; 2],
}

/// The index of the register at an address, and the processor's count for it.
fn register(msr: u32, counts: &[Counts; 2], geometry: &Geometry) -> Option<(usize, u64)> {
    let (register, conversion) = match msr {
        MPERF => (0, Conversion::SlotsAsReference),
        APERF => (1, Conversion::SlotsAsCycles),
        _ => return None,
    };
    let slots = counts.iter().map(|ring| ring[Signal::Slots]).sum();
    Some((register, conversion.convert(slots, geometry)))
}

impl CycleRegisters {
    /// The value of a register, if `msr` is one of the two.
    pub(crate) fn read(&self, msr: u32, counts: &[Counts; 2], geometry: &Geometry) -> Option<u64> {
        let (register, counted) = register(msr, counts, geometry)?;
        Some(self.bases[register].wrapping_add(counted))
    }

    /// Writes a register, if `msr` is one of the two; returns whether it is.
    pub(crate) fn write(
        &mut self,
        msr: u32,
        value: u64,
        counts: &[Counts; 2],
        geometry: &Geometry,
    ) -> bool {
        let Some((register, counted)) = register(msr, counts, geometry) else { return false };
        self.bases[register] = value.wrapping_sub(counted);
        true
    }
}
