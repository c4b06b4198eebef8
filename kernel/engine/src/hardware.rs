//! The engine's interface to its machine.
//!
//! Invariant of [`Pmu`]: after [`Pmu::stop`], and before the first [`Pmu::enable`], nothing counts
//! and no overflow is pending in the PMU. An overflow interrupt that was already pending in the
//! interrupt controller then finds no session, or a slice that has just begun and whose timer has
//! not overflowed.

use core::{
    hint::cold_path,
    ops::{Index, IndexMut},
};

use tally_abi::{
    Mode,
    bank::PINNED_SLOT,
    branches::{Branch, BranchFilter, MAX_BRANCHES},
    session::MAX_SLICE,
    trace::{AccessRecord, PhaseRecord, SampleRecord, SliceRecord, ThresholdRecord},
};

use crate::{
    demand::{MAX_GENERAL, Pinned, Widths},
    group::Group,
    metrics::Metrics,
    precise::{PreciseRecords, Records},
    switch::Switch,
};

/// A session's settings of the PMU, independent of the group on its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The privilege at which the pinned events and the slice timer count; selectors carry their
    /// own.
    pub mode: Mode,
    /// Whether anything is counted in ring 0, by this mode or by an event's own selector. Then the
    /// overflow path must not be counted.
    pub kernel: bool,
    /// Whether an event takes a pair of counters.
    pub pairs: bool,
    /// Whether metrics are counted.
    pub metrics: bool,
    /// The records of precise samples, if an event has them: see [`Pmu::store_records`].
    pub precise: Option<Records>,
    /// Branches that are recorded, with the rings; the records are read with each sample.
    pub branches: BranchFilter,
    /// The slice timer's event: cycles or instructions.
    pub timer: Pinned,
    /// The longest slice, in the timer's unit, in which no counter can wrap.
    pub max_slice: u64,
}

/// Values of counters, or differences between two values. Indexing with [`Pinned`] accesses the
/// pinned events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    always: [u64; 3],
    /// General counters, by hardware index; values of counters that were not read are meaningless.
    pub general: [u64; MAX_GENERAL],
}

impl Index<Pinned> for Counts {
    type Output = u64;

    #[inline(always)]
    fn index(&self, event: Pinned) -> &u64 {
        &self.always[event as usize]
    }
}

impl IndexMut<Pinned> for Counts {
    #[inline(always)]
    fn index_mut(&mut self, event: Pinned) -> &mut u64 {
        &mut self.always[event as usize]
    }
}

impl Counts {
    /// Writes to `counted` the counts between `self` and `now`, for counters of these widths, and
    /// sets `self` to `now`. Treats the general counters in the mask `general`; the others' values
    /// are meaningless. Works counter by counter: copies of the whole would cost more.
    #[inline(always)]
    pub fn advance(&mut self, now: &Counts, general: u16, widths: Widths, counted: &mut Counts) {
        for event in Pinned::ALL {
            counted[event] = now[event].wrapping_sub(self[event]) & widths.pinned;
            self[event] = now[event];
        }
        for_each_counter_short(general, |counter| {
            let difference = now.general[counter].wrapping_sub(self.general[counter]);
            counted.general[counter] = difference & widths.general;
            self.general[counter] = now.general[counter];
        });
    }

    /// Counts of the pinned events since they had the values `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        let mut counted = Counts::default();
        for event in Pinned::ALL {
            counted[event] = self[event].wrapping_sub(before[event]);
        }
        counted
    }

    /// The value of the counter in a slot of [`tally_abi::bank`].
    pub(crate) fn slot(&self, slot: usize) -> u64 {
        let counter = match slot.checked_sub(PINNED_SLOT) {
            Some(event) => self.always.get(event),
            None => self.general.get(slot),
        };
        counter.copied().unwrap_or_default()
    }

    /// Mutable access to the counter in a slot.
    pub(crate) fn slot_mut(&mut self, slot: usize) -> Option<&mut u64> {
        match slot.checked_sub(PINNED_SLOT) {
            Some(event) => self.always.get_mut(event),
            None => self.general.get_mut(slot),
        }
    }

    /// Adds differences: of the pinned events, and of the general counters in the mask `general`.
    #[inline]
    pub fn add(&mut self, more: &Counts, general: u16) {
        for event in Pinned::ALL {
            self[event] = self[event].wrapping_add(more[event]);
        }
        for_each_counter(general, |counter| {
            let sum = self.general[counter].wrapping_add(more.general[counter]);
            self.general[counter] = sum;
        });
    }
}

/// Counters to read: always cycles and instructions, and these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterMask {
    /// General counters, as a mask.
    pub general: u16,
    /// Whether to read reference cycles, if the PMU counts them.
    pub reference: bool,
}

impl CounterMask {
    /// Number of counters to read.
    pub fn counters(&self) -> u64 {
        2 + u64::from(self.reference) + u64::from(self.general.count_ones())
    }
}

/// Calls `visit` with each counter in a mask, by its hardware index, from the lowest.
#[inline(always)]
pub fn for_each_counter(mask: impl Into<u32>, mut visit: impl FnMut(usize)) {
    // So the compiler knows that no index is out of range.
    let mut left = mask.into() & ((1 << MAX_GENERAL) - 1);
    while left != 0 {
        visit(left.trailing_zeros() as usize);
        left &= left - 1;
    }
}

/// Calls `visit` with each of these counters that is in the constant mask. An iterator over an
/// array would become a loop, and a separate function when the code is large.
macro_rules! visit {
    ($visit:ident, $mask:expr) => { visit!($visit, $mask, 0 1 2 3 4 5 6 7) };
    ($visit:ident, $mask:expr, $($counter:literal)*) => {{
        $(if $mask >> $counter & 1 == 1 { $visit($counter); })*
    }};
}

/// [`for_each_counter`] for the overflow path: the masks of full groups are unrolled, so that every
/// index is a constant and nothing is tested.
#[inline(always)]
pub(crate) fn for_each_counter_unrolled(mask: u16, mut visit: impl FnMut(usize)) {
    match mask {
        FOUR => visit!(visit, FOUR),
        LAST_FOUR_OF_SIX => visit!(visit, LAST_FOUR_OF_SIX),
        EIGHT => visit!(visit, EIGHT),
        _ => for_each_counter(mask, visit),
    }
}

/// [`for_each_counter_unrolled`] for a short `visit`: the first four of eight counters share the
/// code of four. The compiler would merge two copies into one, with variables as indices.
#[inline(always)]
fn for_each_counter_short(mask: u16, mut visit: impl FnMut(usize)) {
    if mask == LAST_FOUR_OF_SIX {
        visit!(visit, LAST_FOUR_OF_SIX);
    } else if mask & FOUR == FOUR {
        visit!(visit, FOUR);
        if mask != FOUR {
            cold_path();
            for_each_counter(mask & !FOUR, visit);
        }
    } else {
        cold_path();
        for_each_counter(mask, visit);
    }
}

/// [`for_each_counter`] for a driver whose full groups have the mask `LIKELY`; that mask is tested
/// first.
#[inline(always)]
pub fn for_each_counter_likely<const LIKELY: u16>(mask: u16, mut visit: impl FnMut(usize)) {
    if mask == LIKELY {
        visit!(visit, LIKELY);
    } else {
        cold_path();
        if mask == EIGHT { visit!(visit, EIGHT) } else { for_each_counter(mask, visit) }
    }
}

/// Masks of full groups: Intel's with and without hyperthreading, and AMD's four of six counters
/// that have no pinned events.
const FOUR: u16 = 0x0f;
const EIGHT: u16 = 0xff;
const LAST_FOUR_OF_SIX: u16 = 0x3c;
const _: () = assert!(MAX_GENERAL >= 8);

/// The performance monitoring unit of a CPU.
///
/// A group switch in the overflow interrupt is [`Pmu::switch`] followed by [`Pmu::ack_and_resume`].
/// Between the two nothing counts at the session's privilege: if ring 0 is counted, the driver
/// ensures it; otherwise the handler's ring 0 does.
pub trait Pmu {
    /// Programs the counters for `group`, while nothing counts. The slice timer will overflow after
    /// `slice` more of its unit. All other counters keep their values; counters that `group` does
    /// not use count nothing.
    fn program(&mut self, group: &Group, setup: &Setup, slice: u64);

    /// Enables the counters that [`Pmu::program`] set up.
    fn enable(&mut self);

    /// Returns whether [`Pmu::restore`] can set counters to any value.
    fn can_restore(&self) -> bool;

    /// Direct mode: programs the counters for `group` and the pinned events at the privileges of
    /// `mode`, restores their `values`, and enables them, without a slice timer. Nothing counts
    /// before. All other counters are set to 0.
    fn restore(&mut self, group: &Group, mode: Mode, values: &Counts);

    /// Stops counting. Counters keep their values; a pending overflow is dropped.
    fn stop(&mut self);

    /// Returns whether any counter that has an event is enabled, according to the hardware's
    /// registers. Only for checks, as it executes RDMSRs.
    fn is_counting(&mut self) -> bool;

    /// The values of the counters in `set`.
    fn read(&mut self, set: CounterMask) -> Counts;

    /// Switches groups in the overflow interrupt, between [`Pmu::enable`] and [`Pmu::stop`], if the
    /// slice timer has overflowed: reads the counters into `counts`, replaces the group on the
    /// counters by `next`, and sets the slice timer. Returns whether it has switched; if not,
    /// counting continues, and `counts` are meaningless.
    fn switch(&mut self, next: &Switch, counts: &mut Counts) -> bool;

    /// Acknowledges the overflow and resumes counting.
    fn ack_and_resume(&mut self);

    /// Returns whether an overflow since the last acknowledgement may have raised no interrupt:
    /// Intel's interrupt controllers mask overflow interrupts from one's delivery until software
    /// unmasks them, and ring 0 may count before that. AMD's do not.
    fn has_lost_overflow(&mut self) -> bool {
        false
    }

    /// Counts of the metrics since the last call or [`Pmu::program`], for a setup with metrics.
    /// What ring 0 counts during the call is lost.
    fn take_metrics(&mut self) -> Metrics {
        Metrics::default()
    }

    /// The records of precise samples since the last call, for a setup with precise events.
    fn take_precise(&mut self) -> PreciseRecords {
        PreciseRecords::default()
    }

    /// Reads the branches that were taken last, the last one first, for a setup with branches:
    /// those since [`Self::clear_branches`] and, in the overflow interrupt, before it. Returns
    /// their number.
    fn branches(&mut self, to: &mut [Branch; MAX_BRANCHES]) -> usize {
        let _ = to;
        0
    }

    /// Forgets the branches that were taken, for a setup with branches.
    fn clear_branches(&mut self) {}

    /// Sets every counter to 0, while nothing counts, so that the next program cannot read other
    /// programs' counts.
    fn scrub(&mut self);

    /// Arms the counter in a slot of [`tally_abi::bank`] and preloads it to overflow after
    /// `remaining` more counts, 1 to [`MAX_PRELOAD`]. It stays armed until [`Self::disarm`] or the
    /// next change of its event. The counter must not be counting: the call comes before
    /// [`Self::enable`], between [`Self::switch`] and [`Self::ack_and_resume`], or, if ring 0 is
    /// not counted, before another [`Self::ack_and_resume`]. Returns the counter's new value. The
    /// slice timer's overflow ends its slice.
    fn preload(&mut self, slot: usize, remaining: u64) -> u64;

    /// Sets the slots, as a mask, whose counters store a record when [`Self::preload`] arms them.
    fn store_records(&mut self, _slots: u16) {}

    /// Disarms all counters except the slice timer.
    fn disarm(&mut self);

    /// The widths of the counters.
    fn widths(&self) -> Widths;

    /// RDMSR and WRMSR instructions since the driver was made.
    fn msr_accesses(&self) -> u64;
}

/// Maximum preload of a counter: see [`tally_abi::session::MAX_SLICE`].
pub const MAX_PRELOAD: u64 = MAX_SLICE;

/// Receives records. Called in the overflow path, whose rules it must obey.
pub trait Sink {
    /// Takes the record that `record` makes, or counts it as lost; without a trace it does not call
    /// `record`.
    fn record(&mut self, record: impl FnOnce() -> SliceRecord);

    /// Requests that stored rows be folded soon ([`crate::Multiplexer::fold`]), but not in the
    /// overflow interrupt.
    fn fold_soon(&mut self) {}

    /// A threshold has fired.
    fn threshold(&mut self, record: ThresholdRecord);

    /// The address that the overflow interrupt interrupted, and whether the code was in ring 3;
    /// `None` outside of the interrupt.
    fn interrupted(&self) -> Option<(u64, bool)> {
        None
    }

    /// Takes the record of an evaluated interval, in a session whose phases are tracked; `changed`
    /// says that the program has entered another phase. Not called in the overflow interrupt.
    fn phase(&mut self, record: impl FnOnce() -> PhaseRecord, changed: bool) {
        let _ = (record, changed);
    }

    /// A sample was taken.
    fn sample(&mut self, record: SampleRecord) {
        let _ = record;
    }

    /// The sample that was taken last has a memory access.
    fn access(&mut self, record: AccessRecord) {
        let _ = record;
    }

    /// The branches before the samples of a session that were just taken, the last one first.
    fn branches(&mut self, session: u32, sample_tsc: u64, branches: &[Branch]) {
        let _ = (session, sample_tsc, branches);
    }
}

impl<S: Sink> Sink for &mut S {
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        (**self).record(record);
    }

    fn fold_soon(&mut self) {
        (**self).fold_soon();
    }

    fn threshold(&mut self, record: ThresholdRecord) {
        (**self).threshold(record);
    }

    fn interrupted(&self) -> Option<(u64, bool)> {
        (**self).interrupted()
    }

    fn phase(&mut self, record: impl FnOnce() -> PhaseRecord, changed: bool) {
        (**self).phase(record, changed);
    }

    fn sample(&mut self, record: SampleRecord) {
        (**self).sample(record);
    }

    fn access(&mut self, record: AccessRecord) {
        (**self).access(record);
    }

    fn branches(&mut self, session: u32, sample_tsc: u64, branches: &[Branch]) {
        (**self).branches(session, sample_tsc, branches);
    }
}

/// The processor's counts of time.
pub trait Clock {
    /// The time-stamp counter, in ticks.
    fn tsc(&self) -> u64;

    /// Core cycles for which this CPU was not halted, in every ring, also while the PMU's counters
    /// are frozen; modulo 2^64. `None` if the processor does not count them.
    fn core_cycles(&self) -> Option<u64>;
}
