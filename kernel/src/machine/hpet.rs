//! The high-precision event timer (Intel, "IA-PC HPET Specification 1.0a"): its counter, which
//! needs no interrupt.

use crate::memory::frames;

/// Bytes of the registers in use.
const BYTES: u64 = 0x100;
const CAPABILITIES: usize = 0;
const CONFIGURATION: usize = 0x10;
const COUNTER: usize = 0xf0;
const ENABLE: u64 = 1;
/// Maximum period of a tick, in femtoseconds.
const MAX_PERIOD_FS: u64 = 100_000_000;
const MICROSECOND_FS: u64 = 1_000_000_000;

/// A timer whose counter runs.
#[derive(Clone, Copy, Debug)]
pub struct Hpet {
    registers: *mut u8,
    period_fs: u64,
}

impl Hpet {
    /// Finds the timer at a physical address; `None` if there is none.
    pub fn find(address: u64) -> Option<Hpet> {
        let registers = frames::viewed(address, BYTES)?.as_mut_ptr();
        let timer = Hpet { registers, period_fs: 0 };
        let period_fs = timer.read(CAPABILITIES) >> 32;
        (1..=MAX_PERIOD_FS).contains(&period_fs).then_some(())?;
        let configuration = timer.read(CONFIGURATION);
        if configuration & ENABLE == 0 {
            // SAFETY: the register is the timer's; without a comparator that is set up, a counter
            // that runs does nothing.
            unsafe {
                timer
                    .registers
                    .add(CONFIGURATION)
                    .cast::<u64>()
                    .write_volatile(configuration | ENABLE);
            }
        }
        Some(Hpet { registers, period_fs })
    }

    /// The counter's lower half, which every timer has.
    pub fn now(&self) -> u32 {
        // SAFETY: reading the counter changes nothing.
        unsafe { self.registers.add(COUNTER).cast::<u32>().read_volatile() }
    }

    /// Converts microseconds to ticks.
    pub fn ticks(&self, microseconds: u64) -> u64 {
        microseconds * MICROSECOND_FS / self.period_fs
    }

    fn read(&self, register: usize) -> u64 {
        // SAFETY: the firmware's tables have the timer there, and the kernel's view has the
        // address; reading its registers changes nothing.
        unsafe { self.registers.add(register).cast::<u64>().read_volatile() }
    }
}
