//! The registers of the x2APIC that the plugin has: the performance entry, and AMD's extended
//! space. QEMU faults at the latter, and accesses another register in their place.

use crate::{apic, pending::Fixup, registers::Reg, vcpu::Vcpu};

/// An MSR that QEMU does not have, whose accesses have no effect.
const MSR_IGNORED: u32 = 0xc001_1033;

impl Vcpu {
    /// Handles a read of one of these registers; returns whether it is one.
    pub(crate) fn read_x2apic(&mut self, msr: u32) -> bool {
        let Some(entry) = self.apic.entry() else { return msr == apic::MSR_LVT_PERFORMANCE };
        if msr == apic::MSR_LVT_PERFORMANCE {
            self.request_fixup(Fixup::Set([Some(entry.into()), None, None, Some(0)]));
            return true;
        }
        if !self.pmu.has_ibs() {
            return false;
        }
        if msr == apic::MSR_VERSION {
            self.request_fixup(Fixup::ExtendedVersion);
            return true;
        }
        let is_extended = self.apic.is_extended(msr);
        if is_extended {
            let value = self.apic.read_extended(msr);
            self.replace_access([Some(value.into()), None, None, Some(0)]);
        }
        is_extended
    }

    /// Handles a write of a register of the extended space; returns whether it is one.
    pub(crate) fn write_extended(&mut self, msr: u32, value: u64) -> bool {
        let is_extended = self.pmu.has_ibs() && self.apic.is_extended(msr);
        if is_extended {
            self.apic.write_extended(msr, value);
            self.replace_access([None; 4]);
        }
        is_extended
    }

    /// Lets the instruction access the register that QEMU does not have; afterwards the guest has
    /// its RCX again, and these results.
    fn replace_access(&mut self, [rax, rbx, _, rdx]: [Option<u64>; 4]) {
        let rcx = self.registers.read(Reg::Rcx);
        self.request_fixup(Fixup::Set([rax, rbx, Some(rcx), rdx]));
        self.registers.write(Reg::Rcx, MSR_IGNORED.into());
    }
}
