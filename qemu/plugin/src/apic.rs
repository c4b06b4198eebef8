//! Delivery of overflow interrupts and of the op sampler's: the local APIC's entries, and the
//! command that delivers the interrupt.
//!
//! QEMU's APIC stores the entry and never raises an interrupt from it, so the plugin reads it and
//! commands the APIC to interrupt its own CPU (SDM vol. 3, "Interrupt Command Register"), whatever
//! its identifier is. In x2APIC mode the plugin cannot read the entry, so it records the guest's
//! writes of MSR 834H.
//!
//! QEMU's APIC has no extended local vector table, whose first entry is the op sampler's (APM
//! vol. 2, "Extended Interrupts"). In x2APIC mode the plugin has it; in xAPIC mode the performance
//! entry delivers this interrupt too.

use tally_vpmu::Vendor;

use crate::{
    log::{self, Once},
    registers::GuestRegisters,
};

/// The performance entry's MSR in x2APIC mode.
pub(crate) const MSR_LVT_PERFORMANCE: u32 = 0x834;
/// AMD's extended space in x2APIC mode: the version, whose bit 31 says that it is there, its
/// features, and the entries of its table.
pub(crate) const MSR_VERSION: u32 = 0x803;
const MSR_EXTENDED_FEATURES: u32 = 0x840;
const MSR_EXTENDED_ENTRY: u32 = 0x850;
const MSR_EXTENDED_LAST: u32 = MSR_EXTENDED_ENTRY + EXTENDED_ENTRIES as u32 - 1;
/// Bit of the version.
pub(crate) const HAS_EXTENDED: u64 = 1 << 31;
/// Entries of the extended table.
const EXTENDED_ENTRIES: usize = 4;
/// Bits of an entry that can be set: mask, delivery mode, vector.
const EXTENDED_VALID: u32 = LVT_MASKED | LVT_COMMAND;
/// IA32_APIC_BASE, whose bit 10 enables x2APIC mode.
pub(crate) const MSR_APIC_BASE: u32 = 0x1b;

const APIC_BASE_X2APIC: u64 = 1 << 10;
const APIC_PAGE: u64 = 0xfee0_0000;
const APIC_COMMAND: u64 = APIC_PAGE + 0x300;
const APIC_LVT_PERFORMANCE: u64 = APIC_PAGE + 0x340;

/// Mask bit of a local vector table entry.
const LVT_MASKED: u32 = 1 << 16;
/// Vector and delivery mode, in the same bits as in a command.
const LVT_COMMAND: u32 = 0x7ff;
/// The command's destination: the CPU itself.
const TO_SELF: u32 = 1 << 18;
const DELIVERY_FIXED: u32 = 0;
const DELIVERY_NMI: u32 = 4;
/// Interrupt vector of an NMI.
const NMI_VECTOR: u8 = 2;

/// Source of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The counters.
    Counters,
    /// The op sampler.
    Sampler,
}

/// A vCPU's view of its local APIC.
#[derive(Clone, Debug)]
pub(crate) struct Apic {
    /// The entry in x2APIC mode.
    x2apic_entry: Option<u32>,
    /// Entries of the extended table, which exist in x2APIC mode.
    extended: [u32; EXTENDED_ENTRIES],
}

impl Apic {
    /// The state after reset.
    pub(crate) fn new() -> Apic {
        Apic { x2apic_entry: None, extended: [LVT_MASKED; EXTENDED_ENTRIES] }
    }

    /// Returns whether an MSR is one of the extended space, in x2APIC mode.
    pub(crate) fn is_extended(&self, msr: u32) -> bool {
        let is_one = matches!(msr, MSR_EXTENDED_FEATURES | MSR_EXTENDED_ENTRY..=MSR_EXTENDED_LAST);
        self.x2apic_entry.is_some() && is_one
    }

    /// Reads an MSR of the extended space.
    pub(crate) fn read_extended(&self, msr: u32) -> u32 {
        let entry = self.extended.get(msr.wrapping_sub(MSR_EXTENDED_ENTRY) as usize);
        entry.copied().unwrap_or((EXTENDED_ENTRIES as u32) << 16)
    }

    /// Writes an MSR of the extended space, of which the features are read-only.
    pub(crate) fn write_extended(&mut self, msr: u32, value: u64) {
        let index = msr.wrapping_sub(MSR_EXTENDED_ENTRY) as usize;
        if let Some(entry) = self.extended.get_mut(index) {
            *entry = value as u32 & EXTENDED_VALID;
        }
    }

    /// Records the guest's write of IA32_APIC_BASE.
    pub(crate) fn write_base(&mut self, value: u64) {
        let on = value & APIC_BASE_X2APIC != 0;
        // The entry keeps its value, which is masked after reset.
        self.x2apic_entry = on.then(|| self.x2apic_entry.unwrap_or(LVT_MASKED));
    }

    /// Records the guest's write of the entry in x2APIC mode.
    pub(crate) fn write_entry(&mut self, value: u64) {
        self.x2apic_entry = Some(value as u32);
    }

    /// The entry in x2APIC mode.
    pub(crate) fn entry(&self) -> Option<u32> {
        self.x2apic_entry
    }

    /// Raises the interrupt as its entry says. Returns its vector, or `None` if the entry
    /// is masked or has a delivery mode that is not supported.
    pub(crate) fn deliver(
        &mut self,
        source: Source,
        registers: &mut GuestRegisters,
        vendor: Vendor,
    ) -> Option<u8> {
        let entry = match (source, self.x2apic_entry) {
            (Source::Sampler, Some(_)) => self.extended[0],
            _ => self.current_entry(registers)?,
        };
        if entry & LVT_MASKED != 0 {
            return None;
        }
        let vector = match entry >> 8 & 7 {
            DELIVERY_FIXED => entry as u8,
            DELIVERY_NMI => NMI_VECTOR,
            other => {
                log::once(Once::Delivery(other), || {
                    format!(
                        "performance entry has delivery mode {other}: interrupt not delivered; use \
                         fixed (0) or NMI (4)"
                    )
                });
                return None;
            }
        };
        // Intel's APIC masks the entry at delivery (SDM vol. 3, "Local Vector Table"); AMD's does
        // not.
        if vendor == Vendor::Intel {
            self.set_entry(registers, entry | LVT_MASKED);
        }
        let command = entry & LVT_COMMAND | TO_SELF;
        registers.write_physical(APIC_COMMAND, &command.to_le_bytes()).then_some(vector)
    }

    /// Masks the entry.
    pub(crate) fn mask(&mut self, registers: &mut GuestRegisters) {
        if let Some(entry) = self.current_entry(registers) {
            self.set_entry(registers, entry | LVT_MASKED);
        }
    }

    fn current_entry(&self, registers: &mut GuestRegisters) -> Option<u32> {
        self.x2apic_entry.or_else(|| registers.read_physical(APIC_LVT_PERFORMANCE))
    }

    fn set_entry(&mut self, registers: &mut GuestRegisters, entry: u32) {
        match &mut self.x2apic_entry {
            Some(own) => *own = entry,
            None => {
                registers.write_physical(APIC_LVT_PERFORMANCE, &entry.to_le_bytes());
            }
        }
    }
}
