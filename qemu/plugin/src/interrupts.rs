//! Overflow interrupts: when the PMU's interrupt is delivered, and to which handler.

use tally_vpmu::Delivery;

use crate::{apic::Source, totals::instructions, vcpu::Vcpu};

impl Vcpu {
    /// Delivers the PMU's interrupt at once, or as the machine's quirks require.
    pub(crate) fn deliver_interrupt(&mut self, source: Source) {
        match self.deliveries.of_next() {
            Delivery::After(0) => {
                self.raise_interrupt(source);
            }
            Delivery::After(late) => {
                self.injections.add(instructions(self.core.counts()) + late, source);
            }
            Delivery::Lost => {}
            Delivery::Masked => self.apic.mask(&mut self.registers),
        }
    }

    /// Raises an interrupt as the local vector table says; returns whether it is delivered.
    pub(crate) fn raise_interrupt(&mut self, source: Source) -> bool {
        let vendor = self.pmu.profile().vendor;
        let vector = self.apic.deliver(source, &mut self.registers, vendor);
        if let Some(vector) = vector {
            self.expected_handler = self.handler(vector);
        }
        vector.is_some()
    }

    /// The address of a vector's handler in the interrupt descriptor table (SDM vol. 3, "64-bit
    /// Mode IDT").
    fn handler(&mut self, vector: u8) -> Option<u64> {
        let gate = self.registers.read_virtual(self.idt? + 16 * u64::from(vector))?;
        let gate = u128::from_le_bytes(gate);
        let low = gate as u64 & 0xffff | (gate >> 32) as u64 & 0xffff_0000;
        Some(low | ((gate >> 64) as u64 & 0xffff_ffff) << 32)
    }
}
