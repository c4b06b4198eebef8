//! The I/O APICs, which this kernel does not use: every line is masked, as firmware may leave one
//! on whose device interrupts for ever. (Intel, "82093AA I/O Advanced Programmable Interrupt
//! Controller"; ACPI 6.5, 5.2.12.3 "I/O APIC Structure".)

use super::acpi;
use crate::memory::frames;

/// Bytes of the registers in use.
const BYTES: u64 = 0x14;
/// Offset of the register whose number the first one has.
const WINDOW: usize = 0x10;
const VERSION: u32 = 1;
/// Number of the first line's lower half; each line has two registers.
const FIRST_LINE: u32 = 0x10;
const MASKED: u32 = 1 << 16;
/// A register that is not there reads as all ones.
const NOTHING: u32 = u32::MAX;

/// Masks every line of every I/O APIC. At boot, once.
pub fn mask_all(rsdp: Option<u64>) {
    for address in acpi::io_apics(rsdp) {
        if let Some(registers) = frames::viewed(address.into(), BYTES) {
            IoApic { registers: registers.as_mut_ptr() }.mask();
        }
    }
}

/// The registers of an I/O APIC.
struct IoApic {
    registers: *mut u32,
}

impl IoApic {
    fn mask(&self) {
        let version = self.read(VERSION);
        if version == NOTHING {
            return;
        }
        let last = version >> 16 & 0xff;
        for line in (0..=last).map(|line| FIRST_LINE + 2 * line) {
            let entry = self.read(line);
            if entry & MASKED == 0 {
                self.write(line, entry | MASKED);
            }
        }
    }

    fn read(&self, number: u32) -> u32 {
        self.select(number);
        // SAFETY: as in `select`.
        unsafe { self.registers.byte_add(WINDOW).read_volatile() }
    }

    fn write(&self, number: u32, value: u32) {
        self.select(number);
        // SAFETY: as in `select`.
        unsafe { self.registers.byte_add(WINDOW).write_volatile(value) };
    }

    fn select(&self, number: u32) {
        // SAFETY: (1) the firmware's tables have the controller there, and the kernel's view has
        // the address; (2) nothing else uses it, and its registers do not touch memory.
        unsafe { self.registers.write_volatile(number) };
    }
}
