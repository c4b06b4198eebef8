//! Halt timer: a general counter of core cycles in ring 3 that overflows after a given number of
//! them. Groups do not use it, and drivers never disable it.
//!
//! Each CPU has one, besides the driver, which is made first. They use separate registers except
//! for the overflow status, in which each clears only its own bits.

use crate::{
    bus::{Bus, CountingBus},
    intel::Addresses,
    registers::{
        amd::{CYCLES_NOT_IN_HALT, PerfCntrGlobalStatusClr, PerfCtl, PerfCtr},
        architectural::CORE_CYCLES,
        intel::{PerfEvtSel, PerfGlobalOvfCtrl},
    },
};

/// Registers of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registers {
    /// On Intel; `width` is the mask of a counter's bits.
    Intel { width: u64, addresses: Addresses },
    /// On AMD, with or without global registers.
    Amd { global: bool },
}

/// Halt timer of one CPU.
#[derive(Debug)]
pub struct HaltTimer<B: Bus> {
    bus: CountingBus<B>,
    registers: Registers,
    counter: u8,
}

impl<B: Bus> HaltTimer<B> {
    pub(crate) fn new(bus: B, registers: Registers, counter: u8) -> Self {
        HaltTimer { bus: CountingBus::new(bus), registers, counter }
    }

    /// Starts the counter; it overflows after `cycles`, 1 to 2³⁰.
    pub fn start(&mut self, cycles: u64) {
        self.arm(cycles);
        match self.registers {
            Registers::Intel { addresses, .. } => {
                let event = PerfEvtSel::event(CORE_CYCLES as u8, 0);
                let enabled = PerfEvtSel::USR | PerfEvtSel::INT | PerfEvtSel::EN;
                self.bus.put_at(addresses.select(self.counter), (event | enabled).bits());
            }
            Registers::Amd { .. } => {
                // The event first: a counter must not be enabled while its event changes.
                let event = PerfCtl::event(CYCLES_NOT_IN_HALT, 0) | PerfCtl::USR | PerfCtl::INT;
                self.bus.put(self.counter, event);
                self.bus.put(self.counter, event | PerfCtl::EN);
            }
        }
    }

    /// Returns whether the counter has overflowed since it was armed.
    pub fn has_overflowed(&mut self) -> bool {
        let width = self.width();
        // The top bit of an armed counter is set until the counter overflows.
        self.bus.count(self.counter.into()) & (width ^ width >> 1) == 0
    }

    /// Sets the counter to overflow after `cycles` more, 1 to 2³⁰. To be called in ring 0, where it
    /// does not count.
    pub fn arm(&mut self, cycles: u64) {
        let value = cycles.wrapping_neg() & self.width();
        let bit = 1 << self.counter;
        match self.registers {
            Registers::Intel { addresses, .. } => {
                self.bus.put_at(addresses.counter(self.counter), value);
                self.bus.put(0, PerfGlobalOvfCtrl::from_bits_retain(bit));
            }
            Registers::Amd { global } => {
                self.bus.put(self.counter, PerfCtr(value));
                if global {
                    self.bus.put(0, PerfCntrGlobalStatusClr::from_bits_retain(bit));
                }
            }
        }
    }

    /// Returns the mask of the counter's bits.
    fn width(&self) -> u64 {
        match self.registers {
            Registers::Intel { width, .. } => width,
            Registers::Amd { .. } => (1 << crate::amd::WIDTH_BITS) - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Model, Vendor};

    const WIDTH: u64 = (1 << 48) - 1;

    /// Makes a timer on a counter that is enabled by the CPU's driver.
    fn timer(vendor: Vendor) -> HaltTimer<Model> {
        let is_intel = matches!(vendor, Vendor::Intel { .. });
        let counters = if is_intel { 4 } else { 6 };
        let mut model = Model::new(vendor, counters);
        let (registers, control) = match vendor {
            Vendor::Intel { .. } => {
                (Registers::Intel { width: WIDTH, addresses: Addresses::Legacy }, 0x38f)
            }
            Vendor::Amd { global } => (Registers::Amd { global }, 0xc000_0301),
        };
        if model.msrs.contains_key(&control) {
            model.write(control, 1 << (counters - 1));
        }
        HaltTimer::new(model, registers, counters - 1)
    }

    fn run(timer: &mut HaltTimer<Model>, kernel: bool, cycles: u64) {
        timer.bus.inner().run(
            kernel,
            |code, _| {
                if matches!(code, 0x3c | 0x76) { cycles } else { 0 }
            },
        );
    }

    #[test]
    fn it_overflows_after_cycles_of_ring_3_and_is_armed_again() {
        for vendor in [
            Vendor::Intel { freeze: true },
            Vendor::Intel { freeze: false },
            Vendor::Amd { global: true },
            Vendor::Amd { global: false },
        ] {
            let mut timer = timer(vendor);
            timer.start(1_000);
            run(&mut timer, true, 5_000);
            run(&mut timer, false, 999);
            assert!(!timer.has_overflowed(), "{vendor:?}");
            run(&mut timer, false, 1);
            assert!(timer.has_overflowed() && timer.bus.inner().interrupts == 1, "{vendor:?}");
            timer.arm(1 << 30);
            run(&mut timer, false, (1 << 30) - 1);
            assert!(!timer.has_overflowed() && timer.bus.inner().interrupts == 1, "{vendor:?}");
            run(&mut timer, false, 7);
            assert!(timer.has_overflowed() && timer.bus.inner().interrupts == 2, "{vendor:?}");
        }
    }
}
