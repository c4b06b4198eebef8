//! A check that every counter counts, before programs rely on it.
//!
//! Registers that take writes do not show it. KVM backs each counter of a guest by a perf event of
//! the host: when the host has no counter left, because its NMI watchdog has one, the guest's
//! registers still keep what is written to them, and one counter stands still (KVM: `Documentation/
//! virt/kvm/x86/pmu.rst`, `perf_event_create_kernel_counter`). All counters have to count at once
//! for that to show.

use core::hint::black_box;

use tally_abi::Mode;
use tally_engine::{CounterMask, Group, Pinned, Pmu, Selector, Setup};

use crate::{
    Bus, Driver,
    init::{CounterName, InitError, counters},
};

/// Instructions that are counted for the check, at least: some microseconds of them.
pub const CHECK_INSTRUCTIONS: u64 = 10_000;
/// Cycles that they take, at least: no processor retires that many in one.
const CHECK_CYCLES: u64 = CHECK_INSTRUCTIONS / 16;
/// The event select of retired instructions in ring 0, on Intel's and on AMD's processors: code
/// 0xc0 (architectural event 1; PMCx0C0), OS and EN.
const INSTRUCTIONS_IN_RING_0: Selector = Selector(1 << 22 | 1 << 17 | 0xc0);
/// No counter wraps within the check.
const SLICE: u64 = 1 << 30;

/// Retires at least [`CHECK_INSTRUCTIONS`] instructions.
pub fn work() {
    for done in 0..CHECK_INSTRUCTIONS {
        black_box(done);
    }
}

/// Counts what `work` does in ring 0 on all counters of `set` at once. It is to be [`work`], on the
/// driver's CPU. The driver is used up: the CPU's PMU has to be initialized again.
///
/// # Errors
/// [`InitError::StandsStill`]: a counter has counted less than there was.
pub fn check_counters<B: Bus>(
    mut driver: Driver<B>,
    set: CounterMask,
    work: impl FnOnce(&mut Driver<B>),
) -> Result<(), InitError> {
    let mut group = Group { used: set.general, ..Group::NONE };
    for index in counters(set.general) {
        group.selectors[usize::from(index)] = INSTRUCTIONS_IN_RING_0;
    }
    let setup = Setup { mode: Mode::Kernel, kernel: true, timer: Pinned::Cycles, max_slice: SLICE };
    driver.program(&group, &setup, SLICE);
    let before = driver.read(set);
    driver.enable();
    work(&mut driver);
    driver.stop();
    let after = driver.read(set);
    driver.scrub();
    let widths = driver.widths();
    let pinned = |event, least| {
        let counted = after[event].wrapping_sub(before[event]) & widths.pinned;
        (CounterName::Pinned(event), counted, least)
    };
    let general = counters(set.general).map(|index| {
        let at = usize::from(index);
        let counted = after.general[at].wrapping_sub(before.general[at]) & widths.general;
        (CounterName::General(index), counted, CHECK_INSTRUCTIONS)
    });
    let reference = set.reference.then(|| pinned(Pinned::Reference, 1));
    let mut all = general
        .chain([
            pinned(Pinned::Instructions, CHECK_INSTRUCTIONS),
            pinned(Pinned::Cycles, CHECK_CYCLES),
        ])
        .chain(reference);
    match all.find(|(_, counted, least)| counted < least) {
        Some((counter, counted, least)) => Err(InitError::StandsStill { counter, counted, least }),
        None => Ok(()),
    }
}
