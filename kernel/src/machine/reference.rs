//! Clocks of known speed, which calibrate the others once at boot: the time-stamp counter itself if
//! the processor reports its speed, the programmable interval timer (PIT), the high-precision event
//! timer (HPET), and ACPI's power-management timer.
//!
//! Each may be missing: on many machines firmware stops the PIT's clock to save power, so that a
//! wait for it would never end, and the firmware's tables may have neither HPET nor ACPI timer.

use core::{arch::asm, iter};

use raw_cpuid::CpuId;
use x86_64::instructions::port::Port;

use super::{acpi, clock::tsc, hpet::Hpet};

/// Frequency of ACPI's timer (ACPI 6.5, 4.8.2.1 "Power Management Timer").
const ACPI_HZ: u64 = 3_579_545;
/// Bits of ACPI's timer that every machine has.
const ACPI_BITS: u32 = 0xff_ffff;
const PIT_HZ: u64 = 1_193_182;
const CHANNEL_2: u16 = 0x42;
const COMMAND: u16 = 0x43;
const GATE: u16 = 0x61;
/// Channel 2, both bytes, mode 0 (output rises at the end), binary.
const ONE_SHOT: u8 = 0b1011_0000;
const GATE_ON: u8 = 1;
const SPEAKER_ON: u8 = 2;
const OUTPUT: u8 = 1 << 5;
/// Iterations of an empty loop between two reads of a clock.
const POLL_DELAY: u32 = 500;
/// Ticks of the time-stamp counter after which a clock is considered stopped: longer than any wait
/// here on any processor.
const MAX_TICKS: u64 = 1 << 30;

/// A clock of known speed.
#[derive(Clone, Copy, Debug)]
pub enum Reference {
    /// Channel 2 of the programmable interval timer.
    Pit,
    /// The high-precision event timer.
    Hpet(Hpet),
    /// ACPI's timer, at this port.
    Acpi(u16),
    /// The time-stamp counter, with this frequency in Hz.
    Tsc(u64),
}

impl Reference {
    /// The clocks that this machine may have, in the order in which to try them. First the counter,
    /// whose reported speed is exact: a system-management interrupt lengthens every wait.
    pub fn all(rsdp: Option<u64>) -> impl Iterator<Item = Reference> {
        // The tables are only read when a clock is needed.
        let hpet = move || acpi::hpet_address(rsdp).and_then(Hpet::find).map(Reference::Hpet);
        let acpi = move || acpi::timer_port(rsdp).map(Reference::Acpi);
        let tsc = || {
            // Intel SDM volume 2, CPUID leaf 15H.
            CpuId::new().get_tsc_info().and_then(|info| info.tsc_frequency()).map(Reference::Tsc)
        };
        iter::once_with(tsc)
            .flatten()
            .chain(iter::once(Reference::Pit))
            .chain(iter::once_with(hpet).flatten())
            .chain(iter::once_with(acpi).flatten())
    }

    /// Waits, at most 54 ms, as the PIT is 16 bits wide; `None` if the clock does not tick.
    pub fn wait_us(self, microseconds: u64) -> Option<()> {
        match self {
            Reference::Acpi(port) => {
                let mut timer = Port::<u32>::new(port);
                // SAFETY: the firmware's tables have the timer at this port; reading it changes
                // nothing.
                let mut now = || unsafe { timer.read() };
                let (start, ticks) = (now(), ACPI_HZ * microseconds / 1_000_000);
                until(|| u64::from(now().wrapping_sub(start) & ACPI_BITS) >= ticks)
            }
            Reference::Hpet(hpet) => {
                let (start, ticks) = (hpet.now(), hpet.ticks(microseconds));
                until(|| u64::from(hpet.now().wrapping_sub(start)) >= ticks)
            }
            Reference::Tsc(hz) => {
                let (start, ticks) = (tsc(), hz * microseconds / 1_000_000);
                until(|| tsc().wrapping_sub(start) >= ticks)
            }
            Reference::Pit => wait_pit((PIT_HZ * microseconds / 1_000_000).min(0xffff) as u16),
        }
    }
}

/// Waits for `count` ticks of the PIT; `None` if it does not tick.
fn wait_pit(count: u16) -> Option<()> {
    let mut gate = Port::<u8>::new(GATE);
    let mut command = Port::<u8>::new(COMMAND);
    let mut channel = Port::<u8>::new(CHANNEL_2);
    // SAFETY: (1) these ports are the PIT's, or no device's; (2) nothing else uses channel 2 or the
    // speaker; (3) no memory is touched.
    unsafe {
        let rest = gate.read() & !SPEAKER_ON;
        gate.write(rest | GATE_ON);
        command.write(ONE_SHOT);
        channel.write(count as u8);
        channel.write((count >> 8) as u8);
    }
    // SAFETY: as above.
    let mut is_over = || unsafe { gate.read() } & OUTPUT != 0;
    // Without a PIT, the port reads as all ones, so the output seems high already.
    (!is_over()).then_some(())?;
    until(is_over)
}

/// Waits for a condition; `None` if it does not hold within [`MAX_TICKS`].
fn until(mut condition: impl FnMut() -> bool) -> Option<()> {
    let start = tsc();
    while !condition() {
        (tsc().wrapping_sub(start) < MAX_TICKS).then_some(())?;
        // Each read of the clock exits a virtual machine. The delay of a microsecond is a ten
        // thousandth of the measured time.
        // SAFETY: works on one register.
        unsafe {
            asm!("2:", "dec {0:e}", "jnz 2b", inout(reg) POLL_DELAY => _, options(nostack, nomem));
        }
    }
    Some(())
}
