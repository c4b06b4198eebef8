//! What the engine asks of the machine it runs on.
//!
//! Invariant of [`Pmu`]: after [`Pmu::stop`], and before the first [`Pmu::start`], nothing counts
//! and no overflow is pending in the PMU. An overflow interrupt that was already under way then
//! finds [`Pmu::take_overflow`] false.

use tally_abi::{Mode, SessionConfig, Slice, trace::SliceRecord};

use crate::{MAX_GENERAL, plan::Group};

/// What the slice timer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Core cycles.
    Cycles,
    /// Instructions retired.
    Instructions,
}

/// How a session wants the PMU set up, whichever group is on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The privilege at which the always-counted events and the slice timer count; selectors carry
    /// their own.
    pub mode: Mode,
    /// What the slice timer counts.
    pub unit: Unit,
}

impl From<SessionConfig> for Setup {
    fn from(config: SessionConfig) -> Setup {
        let unit = match config.slice {
            Slice::Cycles(_) => Unit::Cycles,
            Slice::Instructions(_) => Unit::Instructions,
        };
        Setup { mode: config.mode, unit }
    }
}

/// Values of counters, or differences between two such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Core cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Reference cycles; 0 where the PMU does not count them or nobody wants them.
    pub reference: u64,
    /// General counters, by hardware index; one that was not asked for means nothing.
    pub general: [u64; MAX_GENERAL],
}

impl Counts {
    /// What the slice timer shows.
    pub fn timer(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Cycles => self.cycles,
            Unit::Instructions => self.instructions,
        }
    }

    /// The same, to change.
    pub fn timer_mut(&mut self, unit: Unit) -> &mut u64 {
        match unit {
            Unit::Cycles => &mut self.cycles,
            Unit::Instructions => &mut self.instructions,
        }
    }

    /// What was counted from `earlier` to `self` by counters that wrap at `widths`; of the general
    /// counters, only those in the mask `general` mean anything.
    #[inline]
    pub fn since(&self, earlier: &Counts, general: u8, widths: Widths) -> Counts {
        let always = |now: u64, then: u64| now.wrapping_sub(then) & widths.always;
        let mut counts = Counts {
            cycles: always(self.cycles, earlier.cycles),
            instructions: always(self.instructions, earlier.instructions),
            reference: always(self.reference, earlier.reference),
            ..Counts::default()
        };
        for counter in counters(general) {
            let difference = self.general[counter].wrapping_sub(earlier.general[counter]);
            counts.general[counter] = difference & widths.general;
        }
        counts
    }

    /// Adds differences; of the general counters, those in the mask `general`.
    #[inline]
    pub fn add(&mut self, more: &Counts, general: u8) {
        self.cycles = self.cycles.wrapping_add(more.cycles);
        self.instructions = self.instructions.wrapping_add(more.instructions);
        self.reference = self.reference.wrapping_add(more.reference);
        for counter in counters(general) {
            let sum = self.general[counter].wrapping_add(more.general[counter]);
            self.general[counter] = sum;
        }
    }
}

/// Which counters to read: those of cycles and instructions, and these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// General counters, as a mask.
    pub general: u8,
    /// That of reference cycles; wanted only where the PMU counts them.
    pub reference: bool,
}

/// The counters in a mask, by their hardware indices, from the lowest. A step is four instructions.
#[inline]
pub fn counters(mut mask: u8) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let counter = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (counter < MAX_GENERAL).then_some(counter)
    })
}

/// The widths of counters, as masks of the bits that they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Of the counters behind [`crate::Always`], the slice timer among them.
    pub always: u64,
    /// Of the general counters.
    pub general: u64,
}

/// How often the driver touched the PMU since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// RDMSR and WRMSR instructions.
    pub msr: u64,
    /// RDPMC instructions.
    pub rdpmc: u64,
}

/// One CPU's performance monitoring unit.
///
/// A switch in the overflow interrupt is [`Pmu::take_overflow`], [`Pmu::read_others`],
/// [`Pmu::switch`] and [`Pmu::release`], in this order; nothing counts at the session's privilege
/// from the first to the last, as far as that is the driver's to say: in user mode the interrupt
/// itself has seen to it.
pub trait Pmu {
    /// Begins to count `group`, from a state in which nothing counts. The slice timer overflows
    /// after `slice` more of its unit; all other counters go on from the values that they have.
    fn start(&mut self, group: &Group, setup: &Setup, slice: u64);

    /// Ends counting. Counters keep their values; an overflow that was pending is forgotten.
    fn stop(&mut self);

    /// In the overflow interrupt: whether the slice timer has overflowed. If so, its value is put
    /// into `counts`; if not, counting goes on.
    fn take_overflow(&mut self, counts: &mut Counts) -> bool;

    /// The values of the counters in `set`.
    fn read(&mut self, set: Set) -> Counts;

    /// The same without the slice timer's, which [`Pmu::take_overflow`] has read.
    fn read_others(&mut self, set: Set, counts: &mut Counts);

    /// Changes to `next` and arms the slice timer with `slice`.
    fn switch(&mut self, next: &Group, slice: u64);

    /// Acknowledges the overflow and counts again.
    fn release(&mut self);

    /// The widths of the counters.
    fn widths(&self) -> Widths;

    /// Running totals of what the driver has done.
    fn accesses(&self) -> Accesses;
}

/// Where records of slices go. Called in the overflow path, so it has to keep to that path's rules.
pub trait Sink {
    /// Takes the record that `record` makes, or counts it as lost, or wants none and leaves it
    /// unmade.
    fn record(&mut self, record: impl FnOnce() -> SliceRecord);
}

/// The time-stamp counter.
pub trait Clock {
    /// Its value, in ticks.
    fn tsc(&self) -> u64;
}
