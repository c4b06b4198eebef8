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
    /// Reference cycles; 0 where the PMU does not count them.
    pub reference: u64,
    /// General counters, by hardware index; one that was not asked for is 0.
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

    /// What was counted from `earlier` to `self` by counters that wrap at `widths`.
    pub fn since(&self, earlier: &Counts, widths: Widths) -> Counts {
        let always = |now: u64, then: u64| now.wrapping_sub(then) & widths.always;
        let mut general = self.general;
        for (now, then) in general.iter_mut().zip(earlier.general) {
            *now = now.wrapping_sub(then) & widths.general;
        }
        Counts {
            cycles: always(self.cycles, earlier.cycles),
            instructions: always(self.instructions, earlier.instructions),
            reference: always(self.reference, earlier.reference),
            general,
        }
    }

    /// Adds differences.
    pub fn add(&mut self, more: &Counts) {
        self.cycles = self.cycles.wrapping_add(more.cycles);
        self.instructions = self.instructions.wrapping_add(more.instructions);
        self.reference = self.reference.wrapping_add(more.reference);
        for (sum, more) in self.general.iter_mut().zip(more.general) {
            *sum = sum.wrapping_add(more);
        }
    }
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
pub trait Pmu {
    /// Begins to count `group`, from a state in which nothing counts. The slice timer overflows
    /// after `slice` more of its unit; all other counters go on from the values that they have.
    fn start(&mut self, group: &Group, setup: &Setup, slice: u64);

    /// Ends counting. Counters keep their values; an overflow that was pending is forgotten.
    fn stop(&mut self);

    /// In the overflow interrupt: whether the slice timer has overflowed. If so, nothing counts at
    /// the session's privilege from here to [`Pmu::switch`], as far as that is the driver's to say:
    /// in user mode the interrupt itself has seen to it.
    fn take_overflow(&mut self) -> bool;

    /// The values of the always-counted events and of the general counters in the mask `general`.
    fn read(&mut self, general: u8) -> Counts;

    /// In the overflow interrupt, after [`Pmu::take_overflow`] was true: changes to `next`, arms the
    /// slice timer with `slice`, acknowledges the overflow and counts again.
    fn switch(&mut self, next: &Group, slice: u64);

    /// The widths of the counters.
    fn widths(&self) -> Widths;

    /// Running totals of what the driver has done.
    fn accesses(&self) -> Accesses;
}

/// Where records of slices go. Called in the overflow path, so it has to keep to that path's rules.
pub trait Sink {
    /// Takes a record, or counts it as lost.
    fn record(&mut self, record: &SliceRecord);
}

/// The time-stamp counter.
pub trait Clock {
    /// Its value, in ticks.
    fn tsc(&self) -> u64;
}
