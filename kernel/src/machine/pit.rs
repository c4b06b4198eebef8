//! The programmable interval timer, as a clock of known speed: channel 2, polled.
//!
//! Every PC has it, and its frequency is the same everywhere, so the interrupt controller's timer
//! is measured by it once.

use core::arch::asm;

use x86_64::instructions::port::Port;

const FREQUENCY_HZ: u64 = 1_193_182;
const CHANNEL_2: u16 = 0x42;
const COMMAND: u16 = 0x43;
const GATE: u16 = 0x61;
/// Channel 2, both bytes, mode 0 (output rises at the end), binary.
const ONE_SHOT: u8 = 0b1011_0000;
const GATE_ON: u8 = 1;
const SPEAKER_ON: u8 = 2;
const OUTPUT: u8 = 1 << 5;
/// Turns of an empty loop from one look at it to the next.
const PATIENCE: u32 = 500;

/// Waits. At most 54 ms, the counter being 16 bits wide.
pub fn wait_us(microseconds: u64) {
    let count = (FREQUENCY_HZ * microseconds / 1_000_000).min(0xffff) as u16;
    let mut gate = Port::<u8>::new(GATE);
    let mut command = Port::<u8>::new(COMMAND);
    let mut channel = Port::<u8>::new(CHANNEL_2);
    // SAFETY: (1) these ports are the PIT's on every PC; (2) nothing else uses channel 2 or the
    // speaker; (3) no memory is touched.
    unsafe {
        let rest = gate.read() & !SPEAKER_ON;
        gate.write(rest | GATE_ON);
        command.write(ONE_SHOT);
        channel.write(count as u8);
        channel.write((count >> 8) as u8);
        while gate.read() & OUTPUT == 0 {
            // Each look leaves a virtual machine: a microsecond more is a ten thousandth of what is measured.
            asm!("2:", "dec {0:e}", "jnz 2b", inout(reg) PATIENCE => _, options(nostack, nomem));
        }
    }
}

/// Silences the two legacy interrupt controllers, which this kernel does not use.
pub fn mask_legacy_interrupts() {
    for port in [0x21, 0xa1] {
        // SAFETY: the mask registers of the two 8259s; all ones lets nothing through.
        unsafe { Port::<u8>::new(port).write(0xff) };
    }
}
