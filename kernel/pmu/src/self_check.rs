//! Check that every counter counts, before programs rely on it.
//!
//! A register that accepts writes may still not count. KVM backs each counter of a guest by a perf
//! event of the host. If the host has no counter left, because its NMI watchdog has one, the
//! guest's registers still keep the values written to them, but one counter stands still (KVM:
//! `Documentation/virt/kvm/x86/pmu.rst`, `perf_event_create_kernel_counter`). All counters have to
//! count at once to show this.

use core::hint::black_box;

use tally_abi::{Mode, branches::BranchFilter};
use tally_engine::{CounterMask, Group, Pinned, Pmu, Selector, Setup};

use crate::{
    Bus, Driver,
    init::{CounterName, InitError, counters},
};

/// Minimum number of instructions counted for the check: some microseconds of them.
pub const CHECK_INSTRUCTIONS: u64 = 10_000;
/// Maximum number of instructions counted for the check, including those of interrupts of a
/// hypervisor or of firmware. A counter that wraps at a wrong width differs by more.
const MOST_INSTRUCTIONS: u64 = 1_000 * CHECK_INSTRUCTIONS;
/// Minimum number of cycles for these instructions: no processor retires more than 16 per cycle.
const CHECK_CYCLES: u64 = CHECK_INSTRUCTIONS / 16;
/// Event select of retired instructions in ring 0, on Intel's and on AMD's processors: code 0xc0
/// (architectural event 1; PMCx0C0), OS and EN.
const INSTRUCTIONS_IN_RING_0: Selector = Selector(1 << 22 | 1 << 17 | 0xc0);
/// Slice after which the timer overflows within the check.
const SLICE: u64 = CHECK_CYCLES / 2;
/// Loop iterations after which a missing overflow interrupt is declared lost.
const LATEST: u32 = 32;
/// Slice after which the timer does not overflow within the check.
const LONG: u64 = 1 << 30;

/// Retires at least [`CHECK_INSTRUCTIONS`] instructions.
pub fn work() {
    for done in 0..CHECK_INSTRUCTIONS {
        black_box(done);
    }
}

/// Waits until overflow interrupts of the checks have come, so that they do not disturb later code.
pub fn settle() {
    (0..LATEST).for_each(|_| work());
}

/// Fails if others have written a control of the driver's counters. To be called before
/// [`Pmu::stop`], which may write all of them.
///
/// # Errors
/// [`InitError::WrittenByOthers`].
pub fn refuse_if_changed<B: Bus>(driver: &mut Driver<B>) -> Result<(), InitError> {
    driver.changed_by_others().map_or(Ok(()), |control| Err(InitError::WrittenByOthers(control)))
}

/// Counts the events of `work` in ring 0: first on all counters of `set` at once, then on each
/// general counter alone, which has to wrap at the width that CPUID reports, and to stop. `work`
/// has to be [`work`], on the driver's CPU. Consumes the driver: the CPU's PMU has to be
/// initialized again.
///
/// # Errors
/// [`InitError::StandsStill`]: a counter has counted fewer events than happened.
/// [`InitError::WrongWidth`]: a counter has not wrapped, or has wrapped at another width.
/// [`InitError::DoesNotStop`]: a counter has continued to count after it was disabled.
/// [`InitError::WrittenByOthers`]: others have written a control.
pub fn check_counters<B: Bus>(
    mut driver: Driver<B>,
    set: CounterMask,
    mut work: impl FnMut(&mut Driver<B>),
) -> Result<(), InitError> {
    count_together(&mut driver, set, LONG, &mut work)?;
    counters(set.general).try_for_each(|index| count_alone(&mut driver, index, &mut work))
}

/// Lets the slice timer overflow while `work` runs, which is as in [`check_counters`]. `is_raised`
/// returns whether the overflow has raised an interrupt, which may be late.
///
/// # Errors
/// [`InitError::NoInterrupt`]: no interrupt was raised.
/// [`InitError::StandsStill`]: a counter has counted fewer events than happened.
/// [`InitError::WrittenByOthers`]: others have written a control.
pub fn check_interrupt<B: Bus>(
    mut driver: Driver<B>,
    set: CounterMask,
    mut work: impl FnMut(&mut Driver<B>),
    mut is_raised: impl FnMut() -> bool,
) -> Result<(), InitError> {
    count_together(&mut driver, set, SLICE, &mut work)?;
    for _ in 0..LATEST {
        if is_raised() {
            return Ok(());
        }
        work(&mut driver);
    }
    Err(InitError::NoInterrupt)
}

/// Repeats the part of [`check_counters`] that counts on all counters at once, for a CPU that has
/// passed it.
///
/// # Errors
/// [`InitError::StandsStill`]: a counter has counted fewer events than happened.
/// [`InitError::WrittenByOthers`]: others have written a control.
pub fn recheck_counters<B: Bus>(
    mut driver: Driver<B>,
    set: CounterMask,
    work: impl FnMut(&mut Driver<B>),
) -> Result<(), InitError> {
    count_together(&mut driver, set, LONG, work)
}

/// Configuration of a check, with slices of up to `max_slice` cycles.
fn setup(mode: Mode, max_slice: u64) -> Setup {
    let ([pairs, metrics], precise) = ([false; 2], None);
    let (kernel, branches, timer) = (mode.kernel(), BranchFilter::default(), Pinned::Cycles);
    Setup { mode, kernel, pairs, metrics, precise, branches, timer, max_slice }
}

/// Programs the counters of a mask to count instructions in ring 0.
fn program<B: Bus>(driver: &mut Driver<B>, general: u16, slice: u64) {
    let mut group = Group { used: general, ..Group::NONE };
    for index in counters(general) {
        group.selectors[usize::from(index)] = INSTRUCTIONS_IN_RING_0;
    }
    driver.program(&group, &setup(Mode::Kernel, slice), slice);
}

fn count_together<B: Bus>(
    driver: &mut Driver<B>,
    set: CounterMask,
    slice: u64,
    mut work: impl FnMut(&mut Driver<B>),
) -> Result<(), InitError> {
    program(driver, set.general, slice);
    let before = driver.read(set);
    driver.enable();
    work(driver);
    refuse_if_changed(driver)?;
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

fn count_alone<B: Bus>(
    driver: &mut Driver<B>,
    index: u8,
    work: &mut impl FnMut(&mut Driver<B>),
) -> Result<(), InitError> {
    let set = CounterMask { general: 1 << index, reference: false };
    let value = |driver: &mut Driver<B>| driver.read(set).general[usize::from(index)];
    program(driver, set.general, LONG);
    driver.preload(index.into(), CHECK_INSTRUCTIONS / 2);
    let before = value(driver);
    driver.enable();
    work(driver);
    refuse_if_changed(driver)?;
    driver.stop();
    let after = value(driver);
    work(driver);
    let later = value(driver);
    driver.disarm();
    driver.scrub();
    let width = driver.widths().general;
    let counted = after.wrapping_sub(before) & width;
    let (counter, least) = (CounterName::General(index), CHECK_INSTRUCTIONS);
    match counted {
        _ if later != after => Err(InitError::DoesNotStop { counter }),
        ..CHECK_INSTRUCTIONS => Err(InitError::StandsStill { counter, counted, least }),
        CHECK_INSTRUCTIONS..=MOST_INSTRUCTIONS if after < before && before <= width => Ok(()),
        _ => Err(InitError::WrongWidth { counter }),
    }
}

/// Costs of accesses to the PMU's registers, in hundredths of a core cycle; 0 if the counter of
/// cycles counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessCosts {
    /// Cost of an RDMSR.
    pub read_centicycles: u64,
    /// Cost of a WRMSR.
    pub write_centicycles: u64,
}

/// Measures the accesses to the registers, including the driver's few instructions around each.
/// Consumes the driver, as [`check_counters`] does.
pub fn access_costs<B: Bus>(mut driver: Driver<B>, general: u16) -> AccessCosts {
    let setup = setup(Mode::Kernel, LONG);
    driver.program(&Group::NONE, &setup, LONG);
    driver.enable();
    let read_centicycles = centicycles(&mut driver, |driver| {
        driver.is_counting();
    });
    // A counter without an event; its select is written only the first time.
    let slot = general.trailing_zeros() as usize;
    driver.preload(slot, LONG);
    driver.enable();
    let write_centicycles = centicycles(&mut driver, |driver| {
        driver.preload(slot, LONG);
    });
    driver.stop();
    driver.scrub();
    AccessCosts { read_centicycles, write_centicycles }
}

/// Returns the cost of each register access that `access` makes, in hundredths of a cycle.
fn centicycles<B: Bus>(driver: &mut Driver<B>, mut access: impl FnMut(&mut Driver<B>)) -> u64 {
    const TIMES: usize = 64;
    let cycles = |driver: &mut Driver<B>| driver.read(CounterMask::default())[Pinned::Cycles];
    let (start, before) = (cycles(driver), driver.msr_accesses());
    for _ in 0..TIMES {
        access(driver);
    }
    let passed = cycles(driver).wrapping_sub(start) & driver.widths().pinned;
    100 * passed / (driver.msr_accesses() - before).max(1)
}

/// Maximum number of instructions that may be counted in excess of those that retired, for each
/// interrupt and exception.
const MAX_OVERCOUNT: u64 = 16;

/// Counts instructions in ring 3. `run` runs some there, the first time until an exception, then
/// until an interrupt and an exception, and returns how many have retired. Returns the maximum
/// number of excess instructions that were counted for an interrupt or exception. Consumes the
/// driver, as [`check_counters`] does.
///
/// # Errors
/// [`InitError::Miscounts`]: fewer were counted than retired, or too many.
pub fn check_ring_3<B: Bus>(
    mut driver: Driver<B>,
    mut run: impl FnMut(&mut Driver<B>, bool) -> u64,
) -> Result<u64, InitError> {
    let setup = setup(Mode::User, LONG);
    let widths = driver.widths();
    let mut overcount = 0;
    for until_interrupt in [false, true, true] {
        driver.program(&Group::NONE, &setup, LONG);
        let before = driver.read(CounterMask::default());
        driver.enable();
        let retired = run(&mut driver, until_interrupt);
        driver.stop();
        let after = driver.read(CounterMask::default());
        driver.scrub();
        let [before, after] = [before, after].map(|counts| counts[Pinned::Instructions]);
        let counted = after.wrapping_sub(before) & widths.pinned;
        let interruptions = 1 + u64::from(until_interrupt);
        match counted.checked_sub(retired) {
            Some(more) if more <= MAX_OVERCOUNT * interruptions => {
                overcount = overcount.max(more.div_ceil(interruptions));
            }
            _ => return Err(InitError::Miscounts { counted, retired }),
        }
    }
    Ok(overcount)
}
