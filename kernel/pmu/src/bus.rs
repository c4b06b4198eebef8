//! The way to MSRs and counters: real, counted, or a test's model.

use core::arch::asm;

use crate::registers::Register;

/// One CPU's MSRs and performance counters.
pub trait Bus {
    /// RDMSR.
    fn read(&mut self, msr: u32) -> u64;
    /// WRMSR.
    fn write(&mut self, msr: u32, value: u64);
    /// RDPMC.
    fn rdpmc(&mut self, index: u32) -> u64;
}

/// The processor that runs this.
#[derive(Debug)]
pub struct Native(());

impl Native {
    /// The way to the MSRs of the CPU that runs this.
    ///
    /// # Safety
    /// For as long as the value lives:
    /// 1. it is used in ring 0 only;
    /// 2. it is used on the CPU on which it was made, and nobody else uses that CPU's PMU;
    /// 3. the registers that it is used on exist: [`crate::detect()`] has found the PMU that the
    ///    driver holding it drives, and the driver sets no reserved bits.
    pub const unsafe fn new() -> Native {
        Native(())
    }
}

// No `nomem` on any of these: counting begins and ends with them, and the compiler must not move
// memory accesses from the measured side to the other.
impl Bus for Native {
    fn read(&mut self, msr: u32) -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: by the contract of `new`, 1. RDMSR is allowed and 3. the register exists, so it
        // does not fault; reading a PMU register changes nothing else.
        unsafe {
            asm!("rdmsr", in("ecx") msr, out("eax") low, out("edx") high,
                 options(nostack, preserves_flags));
        }
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline(always)]
    fn write(&mut self, msr: u32, value: u64) {
        // SAFETY: by the contract of `new`, 1. WRMSR is allowed, 2. nobody else relies on the PMU's
        // state and 3. the register exists and the value has no reserved bits, so it does not
        // fault. A PMU register has no influence on memory.
        unsafe {
            asm!("wrmsr", in("ecx") msr, in("eax") value as u32, in("edx") (value >> 32) as u32,
                 options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    fn rdpmc(&mut self, index: u32) -> u64 {
        // In 64-bit mode both registers are cleared above 32 bits.
        let (low, high): (u64, u64);
        // SAFETY: by the contract of `new`, 1. RDPMC is allowed whatever CR4.PCE says, and 3. the
        // counter exists, so it does not fault.
        unsafe {
            asm!("rdpmc", in("ecx") index, out("rax") low, out("rdx") high,
                 options(nostack, preserves_flags));
        }
        high << 32 | low
    }
}

/// A bus that speaks in registers and counts the accesses to them.
#[derive(Debug)]
pub(crate) struct Counted<B> {
    bus: B,
    /// RDMSR and WRMSR instructions so far.
    pub(crate) msr_accesses: u64,
}

impl<B: Bus> Counted<B> {
    pub(crate) fn new(bus: B) -> Self {
        Counted { bus, msr_accesses: 0 }
    }

    pub(crate) fn get<R: Register>(&mut self, index: u8) -> R {
        self.msr_accesses += 1;
        R::from_raw(self.bus.read(R::address(index)))
    }

    #[inline(always)]
    pub(crate) fn put<R: Register>(&mut self, index: u8, value: R) {
        self.msr_accesses += 1;
        self.bus.write(R::address(index), value.raw());
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, index: u32) -> u64 {
        self.bus.rdpmc(index)
    }

    #[cfg(test)]
    pub(crate) fn inner(&mut self) -> &mut B {
        &mut self.bus
    }
}
