//! The guest's time-stamp counter, for records: the plugin interface does not have it.
//!
//! The plugin notes the results of the guest's own RDTSC and RDTSCP, and adds the time since. With
//! `-icount shift=N` QEMU's counter advances by 2^N for each instruction; otherwise it advances as
//! the host's does.

use std::sync::OnceLock;

/// How the counter advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// By two to this power for each instruction.
    Instructions(u32),
    /// With the host's counter.
    Host,
}

impl Clock {
    /// The clock with this logarithm of the nanoseconds of an instruction, if QEMU counts them.
    pub(crate) fn of(shift: Option<u32>) -> Clock {
        shift.map_or(Clock::Host, Clock::Instructions)
    }
}

static CLOCK: OnceLock<Clock> = OnceLock::new();

/// Stores how the counter advances.
pub(crate) fn store(clock: Clock) {
    let _ = CLOCK.set(clock);
}

/// A value of the guest's counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timestamp {
    value: u64,
    /// The count of instructions, or the host's counter, at that time.
    since: u64,
}

impl Timestamp {
    /// Notes that the guest's counter has this value after a number of instructions.
    pub(crate) fn note(&mut self, value: u64, instructions: u64) {
        *self = Timestamp { value, since: ticks(instructions) };
    }

    /// The counter's value after a number of instructions.
    pub(crate) fn at(self, instructions: u64) -> u64 {
        self.value.wrapping_add(ticks(instructions).wrapping_sub(self.since))
    }
}

fn ticks(instructions: u64) -> u64 {
    match CLOCK.get() {
        Some(Clock::Host) => host_ticks(),
        Some(Clock::Instructions(shift)) => instructions << shift,
        None => instructions,
    }
}

#[cfg(target_arch = "x86_64")]
fn host_ticks() -> u64 {
    // SAFETY: reads the host's counter, and accesses no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// QEMU's counter is one of nanoseconds where the host has none that it can read.
#[cfg(not(target_arch = "x86_64"))]
fn host_ticks() -> u64 {
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_advances_from_the_value_that_the_guest_read() {
        let mut timestamp = Timestamp::default();
        timestamp.note(1_000_000, 500);
        assert_eq!(timestamp.at(500), 1_000_000);
        assert_eq!(timestamp.at(507), 1_000_007);
    }
}
