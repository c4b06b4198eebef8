//! Access to MSRs and counters: those of the processor, with a count of accesses, or a test's
//! model.

mod attempt;

use core::{arch::asm, ptr};

use crate::{init::InitError, registers::Register};

use attempt::try_wrmsr;
pub use attempt::{after_fault, try_rdmsr};

/// MSRs and performance counters of one CPU.
pub trait Bus {
    /// Executes RDMSR.
    fn read(&mut self, msr: u32) -> u64;
    /// Executes WRMSR.
    fn write(&mut self, msr: u32, value: u64);
    /// Executes RDPMC.
    fn rdpmc(&mut self, index: u32) -> u64;
    /// Executes RDMSR of an MSR that may not exist; `None` if it faults.
    fn try_read(&mut self, msr: u32) -> Option<u64>;
    /// Executes WRMSR of an MSR that may not exist; returns whether it does not fault.
    fn try_write(&mut self, msr: u32, value: u64) -> bool;

    /// Executes WRMSR with a value in memory.
    #[inline(always)]
    fn write_from(&mut self, msr: u32, value: &u64) {
        self.write(msr, *value);
    }

    /// Executes RDPMC and stores the count in memory.
    #[inline(always)]
    fn rdpmc_into(&mut self, index: u32, value: &mut u64) {
        *value = self.rdpmc(index);
    }
}

/// The processor that executes this code.
#[derive(Debug)]
pub struct Native(());

impl Native {
    /// Returns access to the MSRs of the CPU that executes this code.
    ///
    /// # Safety
    /// While the value lives:
    /// 1. it is used in ring 0 only;
    /// 2. it is used only on the CPU on which it was made, and nothing else uses that CPU's PMU;
    /// 3. the registers that are accessed exist: [`crate::detect()`] has found the PMU that the
    ///    driver holding the value drives, the driver has tried each as it was made, and it sets no
    ///    reserved bits;
    /// 4. the handler of #GP continues at the address that [`after_fault`] names.
    pub const unsafe fn new() -> Native {
        Native(())
    }
}

// No `asm!` here has `nomem`: counting begins and ends with them, so the compiler must not move
// memory accesses across them.
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
        // SAFETY: by the contract of `new`, 1. WRMSR is allowed, 2. nothing else relies on the
        // PMU's state and 3. the register exists and the value has no reserved bits, so it does not
        // fault. A PMU register has no influence on memory.
        unsafe {
            // WRMSR ignores RAX above EAX.
            asm!("wrmsr", in("ecx") msr, in("rax") value, in("edx") (value >> 32) as u32,
                 options(nostack, preserves_flags));
        }
    }

    /// Loads both halves from memory: splitting the value would take two instructions for each
    /// register of a switch.
    #[inline(always)]
    fn write_from(&mut self, msr: u32, value: &u64) {
        let halves = ptr::from_ref(value).cast::<u32>();
        // SAFETY: (1) the value is these two halves, and this processor has the low one first; (2)
        // as in `write`.
        unsafe {
            let (low, high) = (halves.read(), halves.add(1).read());
            asm!("wrmsr", in("ecx") msr, in("eax") low, in("edx") high,
                 options(nostack, preserves_flags));
        }
    }

    fn try_read(&mut self, msr: u32) -> Option<u64> {
        // SAFETY: by the contract of `new`, 1. this is ring 0 and 4. the fault is handled; the
        // driver reads registers whose reading has no effect.
        unsafe { try_rdmsr(msr) }
    }

    fn try_write(&mut self, msr: u32, value: u64) -> bool {
        // SAFETY: by the contract of `new`, 1. this is ring 0, 4. the fault is handled and 2.
        // nothing else relies on the PMU's state.
        unsafe { try_wrmsr(msr, value) }
    }

    #[inline(always)]
    fn rdpmc(&mut self, index: u32) -> u64 {
        let (low, high) = rdpmc(index);
        u64::from(high) << 32 | u64::from(low)
    }

    /// Stores both halves: joining them would take two instructions for each counter of a switch. A
    /// 64-bit load right after has to wait for both stores, but the WRMSRs of a switch wait for
    /// them in any case.
    #[inline(always)]
    fn rdpmc_into(&mut self, index: u32, value: &mut u64) {
        let (low, high) = rdpmc(index);
        let halves = ptr::from_mut(value).cast::<u32>();
        // SAFETY: the value is these two halves, and this processor has the low one first.
        unsafe {
            halves.write(low);
            halves.add(1).write(high);
        }
    }
}

/// Returns the low and the high half of a counter. For [`Native`] only, whose contract it needs.
#[inline(always)]
fn rdpmc(index: u32) -> (u32, u32) {
    let (low, high): (u32, u32);
    // SAFETY: by the contract of `Native::new`, 1. RDPMC is allowed whatever CR4.PCE says, and 3.
    // the counter exists, so it does not fault.
    unsafe {
        asm!("rdpmc", in("ecx") index, out("eax") low, out("edx") high,
             options(nostack, preserves_flags));
    }
    (low, high)
}

/// Bus for typed registers that counts the accesses.
#[derive(Debug)]
pub(crate) struct CountingBus<B> {
    bus: B,
    /// Number of RDMSR and WRMSR instructions so far.
    pub(crate) msr_accesses: u64,
}

impl<B: Bus> CountingBus<B> {
    pub(crate) fn new(bus: B) -> Self {
        CountingBus { bus, msr_accesses: 0 }
    }

    #[inline(always)]
    pub(crate) fn get<R: Register>(&mut self, index: u8) -> R {
        R::from_raw(self.get_at(R::address(index)))
    }

    #[inline(always)]
    pub(crate) fn put<R: Register>(&mut self, index: u8, value: R) {
        self.put_at(R::address(index), value.raw());
    }

    /// Reads the register at an address.
    pub(crate) fn get_at(&mut self, msr: u32) -> u64 {
        self.msr_accesses += 1;
        self.bus.read(msr)
    }

    /// Writes the register at an address.
    #[inline(always)]
    pub(crate) fn put_at(&mut self, msr: u32, value: u64) {
        self.msr_accesses += 1;
        self.bus.write(msr, value);
    }

    /// Reads the register at an address, which may not exist.
    pub(crate) fn try_get_at(&mut self, msr: u32) -> Option<u64> {
        self.msr_accesses += 1;
        self.bus.try_read(msr)
    }

    /// Writes the register at an address, which the driver needs, for the first time. `register` is
    /// its name.
    pub(crate) fn first_put_at(
        &mut self,
        msr: u32,
        value: u64,
        register: &'static str,
    ) -> Result<(), InitError> {
        self.msr_accesses += 1;
        self.bus.try_write(msr, value).then_some(()).ok_or(InitError::Missing { register })
    }

    /// Reads a register that may not exist.
    pub(crate) fn try_get<R: Register>(&mut self, index: u8) -> Option<R> {
        self.try_get_at(R::address(index)).map(R::from_raw)
    }

    /// Writes a register that may not exist; returns whether it does.
    pub(crate) fn try_put<R: Register>(&mut self, index: u8, value: R) -> bool {
        self.msr_accesses += 1;
        self.bus.try_write(R::address(index), value.raw())
    }

    /// Reads a register that the driver needs, for the first time.
    pub(crate) fn first_get<R: Register>(&mut self, index: u8) -> Result<R, InitError> {
        self.try_get(index).ok_or(InitError::Missing { register: R::NAME })
    }

    /// Writes a register that the driver needs, for the first time.
    pub(crate) fn first_put<R: Register>(&mut self, index: u8, value: R) -> Result<(), InitError> {
        self.first_put_at(R::address(index), value.raw(), R::NAME)
    }

    /// Writes the register at an address, with a value in memory.
    #[inline(always)]
    pub(crate) fn put_from_at(&mut self, msr: u32, value: &u64) {
        self.msr_accesses += 1;
        self.bus.write_from(msr, value);
    }

    /// Writes like [`Self::put_from_at`]; the caller counts the access.
    #[inline(always)]
    pub(crate) fn put_uncounted_from_at(&mut self, msr: u32, value: &u64) {
        self.bus.write_from(msr, value);
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, index: u32) -> u64 {
        self.bus.rdpmc(index)
    }

    #[inline(always)]
    pub(crate) fn count_into(&mut self, index: u32, value: &mut u64) {
        self.bus.rdpmc_into(index, value);
    }

    #[cfg(test)]
    pub(crate) fn inner(&mut self) -> &mut B {
        &mut self.bus
    }
}
