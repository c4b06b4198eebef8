//! The unit's registers: their addresses and bits.
//!
//! The addresses are above 4F00_0000H, where neither vendor has registers. RDPMC's index of a
//! counter is the address of its `COUNT`. `qemu/README.md` has the table.

use super::hybrid::{COUNTERS, LOW_BITS, MOST_EVENTS, ROUND_CYCLES};

/// `CONFIG` of counter 0; those of the other counters follow.
const CONFIG: u32 = 0x4f00_0000;
/// `COUNT` of counter 0.
pub(crate) const COUNT: u32 = 0x4f00_0100;
/// `THRESHOLD` of counter 0.
const THRESHOLD: u32 = 0x4f00_0200;
const CONTROL: u32 = 0x4f00_0300;
const CAPABILITIES: u32 = 0x4f00_0301;
/// The first of the words of `STATUS`, with 64 counters each.
const STATUS: u32 = 0x4f00_0304;
/// The end of the `STATUS` words, and the end of the block.
const STATUS_END: u32 = 0x4f00_0308;
const END: u32 = 0x4f00_0400;

/// A register of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitRegister {
    /// Configuration of a counter.
    Config(usize),
    /// Value of a counter, 64 bits.
    Count(usize),
    /// Threshold of a counter: a carry out of this word raises the interrupt.
    Threshold(usize),
    /// Start and stop of all counters.
    Control,
    /// Properties of the unit.
    Capabilities,
    /// Status: the thresholds that have fired, 64 counters in a word.
    Status(usize),
    /// No register, but inside the block.
    Reserved,
}

impl UnitRegister {
    /// The register at an address, if the address is in the block.
    pub(crate) fn at(msr: u32) -> Option<UnitRegister> {
        let index = |first: u32| (msr - first) as usize;
        Some(match msr {
            CONFIG..COUNT => UnitRegister::Config(index(CONFIG)),
            COUNT..THRESHOLD => UnitRegister::Count(index(COUNT)),
            THRESHOLD..CONTROL => UnitRegister::Threshold(index(THRESHOLD)),
            CONTROL => UnitRegister::Control,
            CAPABILITIES => UnitRegister::Capabilities,
            STATUS..STATUS_END => UnitRegister::Status(index(STATUS)),
            0x4f00_0302..STATUS | STATUS_END..END => UnitRegister::Reserved,
            _ => return None,
        })
    }
}

/// Bits of `CONFIG`. Event and rings use the bits of the vendor's event select.
pub(crate) mod config {
    /// Interrupt enable: the threshold raises an interrupt.
    pub(crate) const INT: u64 = 1 << 20;
    /// Enable: the counter counts while the unit is started.
    pub(crate) const EN: u64 = 1 << 22;
    /// Bits 42:40: the signal mode.
    pub(crate) const MODE_SHIFT: u32 = 40;
    pub(crate) const MODE: u64 = 7 << MODE_SHIFT;
    /// Read only: the model has this event in this mode.
    pub(crate) const SUPPORTED: u64 = 1 << 63;
}

/// Bit of `CONTROL`: the counters count.
pub(crate) const CONTROL_RUN: u64 = 1;

/// The value of `CAPABILITIES`: the number of counters, the bits of their fast registers, the most
/// events of a counter in a cycle, the cycles of a round.
pub(crate) const CAPABILITIES_VALUE: u64 =
    COUNTERS as u64 | (LOW_BITS as u64) << 16 | MOST_EVENTS << 24 | ROUND_CYCLES << 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_registers_and_the_rest_is_reserved() {
        assert_eq!(UnitRegister::at(0x4f00_00ff), Some(UnitRegister::Config(255)));
        assert_eq!(UnitRegister::at(0x4f00_0100), Some(UnitRegister::Count(0)));
        assert_eq!(UnitRegister::at(0x4f00_02ff), Some(UnitRegister::Threshold(255)));
        assert_eq!(UnitRegister::at(0x4f00_0307), Some(UnitRegister::Status(3)));
        for msr in [0x4f00_0302, 0x4f00_0303, 0x4f00_0308, 0x4f00_03ff] {
            assert_eq!(UnitRegister::at(msr), Some(UnitRegister::Reserved), "{msr:#x}");
        }
        assert_eq!(UnitRegister::at(0x4eff_ffff), None);
        assert_eq!(UnitRegister::at(0x4f00_0400), None);
        assert_eq!(CAPABILITIES_VALUE, 0x0000_0100_100c_0100);
    }
}
