//! What the engine asks of its machine.
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
    session::MAX_SLICE,
    trace::{PhaseRecord, SampleRecord, SliceRecord, ThresholdRecord},
};

use crate::{
    demand::{MAX_GENERAL, Pinned, Widths},
    group::Group,
    switch::Switch,
};

/// How a session sets the PMU up, whichever group is on its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The privilege at which the pinned events and the slice timer count; selectors carry their
    /// own.
    pub mode: Mode,
    /// Whether anything is counted in ring 0, by this mode or by a selector of its own: then the
    /// overflow path must not be part of it.
    pub kernel: bool,
    /// The slice timer's event: cycles or instructions.
    pub timer: Pinned,
    /// The longest slice, in the timer's unit, in which no counter can wrap.
    pub max_slice: u64,
}

/// Values of counters, or differences between two such. Those of the pinned events are found by
/// indexing with [`Pinned`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    always: [u64; 3],
    /// General counters, by hardware index; the value of one that was not read means nothing.
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
    /// Writes to `counted` what was counted from `self` to `now` by counters of these widths, and
    /// makes `self` `now`. Of the general counters, those in the mask `general`; the others' values
    /// mean nothing. Counter by counter: copies of the whole would cost more.
    #[inline(always)]
    pub fn advance(&mut self, now: &Counts, general: u8, widths: Widths, counted: &mut Counts) {
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

    /// What was counted of the pinned events since they had the values `before`.
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

    /// The same, to change it.
    pub(crate) fn slot_mut(&mut self, slot: usize) -> Option<&mut u64> {
        match slot.checked_sub(PINNED_SLOT) {
            Some(event) => self.always.get_mut(event),
            None => self.general.get_mut(slot),
        }
    }

    /// Adds differences; of the general counters, those in the mask `general`.
    #[inline]
    pub fn add(&mut self, more: &Counts, general: u8) {
        for event in Pinned::ALL {
            self[event] = self[event].wrapping_add(more[event]);
        }
        for_each_counter(general, |counter| {
            let sum = self.general[counter].wrapping_add(more.general[counter]);
            self.general[counter] = sum;
        });
    }
}

/// Counters to read: those of cycles and instructions, and these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterMask {
    /// General counters, as a mask.
    pub general: u8,
    /// That of reference cycles, where the PMU counts them.
    pub reference: bool,
}

impl CounterMask {
    /// The number of counters in it.
    pub fn counters(&self) -> u64 {
        2 + u64::from(self.reference) + u64::from(self.general.count_ones())
    }
}

/// Calls `visit` with each counter in a mask, by its hardware index, from the lowest.
#[inline(always)]
pub fn for_each_counter(mask: u8, mut visit: impl FnMut(usize)) {
    let mut left = u32::from(mask);
    while left != 0 {
        visit(left.trailing_zeros() as usize % MAX_GENERAL);
        left &= left - 1;
    }
}

/// Calls `visit` with each of these counters that is in a mask, which is a constant. The compiler
/// would make an iterator over an array a loop, and a separate function, when the code is large.
macro_rules! visit {
    ($visit:ident, $mask:expr) => { visit!($visit, $mask, 0 1 2 3 4 5 6 7) };
    ($visit:ident, $mask:expr, $($counter:literal)*) => {{
        $(if $mask >> $counter & 1 == 1 { $visit($counter); })*
    }};
}

/// [`for_each_counter`] for the overflow path: the masks of full groups are unrolled, so that every
/// index is a constant and nothing is tested.
#[inline(always)]
pub(crate) fn for_each_counter_unrolled(mask: u8, mut visit: impl FnMut(usize)) {
    match mask {
        FOUR => visit!(visit, FOUR),
        LAST_FOUR_OF_SIX => visit!(visit, LAST_FOUR_OF_SIX),
        ALL => visit!(visit, ALL),
        _ => for_each_counter(mask, visit),
    }
}

/// The same for a short `visit`: the first four of eight counters share the code of four. Of two
/// copies the compiler would make one, with variables for the indices.
#[inline(always)]
fn for_each_counter_short(mask: u8, mut visit: impl FnMut(usize)) {
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

/// [`for_each_counter`] for a driver, whose full groups have the mask `LIKELY`, which is tested
/// first.
#[inline(always)]
pub fn for_each_counter_likely<const LIKELY: u8>(mask: u8, mut visit: impl FnMut(usize)) {
    if mask == LIKELY {
        visit!(visit, LIKELY);
    } else {
        cold_path();
        if mask == ALL { visit!(visit, ALL) } else { for_each_counter(mask, visit) }
    }
}

/// Full groups: Intel's with hyperthreading and without, and, of AMD's six counters, those that are
/// not pinned.
const FOUR: u8 = 0x0f;
const ALL: u8 = u8::MAX;
const LAST_FOUR_OF_SIX: u8 = 0x3c;
const _: () = assert!(MAX_GENERAL == 8);

/// One CPU's performance monitoring unit.
///
/// A group switch in the overflow interrupt is [`Pmu::switch`] and [`Pmu::ack_and_resume`], in this
/// order. From the one to the other nothing counts at the session's privilege: the driver ensures
/// that where ring 0 is counted; where it is not, ring 0 itself does.
pub trait Pmu {
    /// Programs the counters for `group`, while nothing counts. The slice timer will overflow after
    /// `slice` more of its unit; all other counters keep their values, and those that `group` does
    /// not use count nothing.
    fn program(&mut self, group: &Group, setup: &Setup, slice: u64);

    /// Enables the counters that [`Pmu::program`] set up.
    fn enable(&mut self);

    /// Returns whether counters can be set to any value, as [`Pmu::restore`] needs.
    fn can_restore(&self) -> bool;

    /// Direct mode: programs the counters for `group` and the pinned events at the privileges of
    /// `mode`, restores their `values`, and enables them, without a slice timer. Nothing counts
    /// before. All other counters are set to 0.
    fn restore(&mut self, group: &Group, mode: Mode, values: &Counts);

    /// Stops counting. Counters keep their values; a pending overflow is dropped.
    fn stop(&mut self);

    /// Returns whether any counter that has an event is enabled, by the hardware's registers: for
    /// checks, as it takes RDMSRs.
    fn is_counting(&mut self) -> bool;

    /// The values of the counters in `set`.
    fn read(&mut self, set: CounterMask) -> Counts;

    /// In the overflow interrupt, between [`Pmu::enable`] and [`Pmu::stop`]: if the slice timer has
    /// overflowed, reads the counters into `counts`, makes the switch to `next`, from the group
    /// that is on the counters, and sets the slice timer. Returns whether it has; if not, counting
    /// continues, and `counts` mean nothing.
    fn switch(&mut self, next: &Switch, counts: &mut Counts) -> bool;

    /// Acknowledges the overflow and resumes counting.
    fn ack_and_resume(&mut self);

    /// Returns whether an overflow was recorded since the last acknowledgement that may have raised
    /// no interrupt: Intel's interrupt controllers mask overflow interrupts from the delivery of
    /// one until software unmasks them, and ring 0 may count before that. AMD's do not.
    fn has_lost_overflow(&mut self) -> bool {
        false
    }

    /// Sets every counter to 0, while nothing counts, so that the next program cannot read other
    /// programs' counts.
    fn scrub(&mut self);

    /// Arms the counter in a slot of [`tally_abi::bank`] and preloads it so that it overflows when
    /// `remaining`, 1 to [`MAX_PRELOAD`], have been counted. It stays armed until [`Self::disarm`]
    /// or the next change of its event. It must not count now: before [`Self::enable`], between
    /// [`Self::switch`] and [`Self::ack_and_resume`], or, where ring 0 is not counted, with a
    /// [`Self::ack_and_resume`] to come. Returns the counter's new value. The slice timer's
    /// overflow ends its slice.
    fn preload(&mut self, slot: usize, remaining: u64) -> u64;

    /// Disarms all counters but the slice timer.
    fn disarm(&mut self);

    /// The widths of the counters.
    fn widths(&self) -> Widths;

    /// RDMSR and WRMSR instructions since the driver was made.
    fn msr_accesses(&self) -> u64;
}

/// The most that a counter can be preloaded with: see [`tally_abi::session::MAX_SLICE`].
pub const MAX_PRELOAD: u64 = MAX_SLICE;

/// Receives records. It is called in the overflow path, and obeys that path's rules.
pub trait Sink {
    /// Takes the record that `record` makes, or counts it as lost, or, where there is no trace,
    /// does not make it.
    fn record(&mut self, record: impl FnOnce() -> SliceRecord);

    /// Rows have been stored that are to be folded soon ([`crate::Multiplexer::fold`]), but not in
    /// the overflow interrupt.
    fn fold_soon(&mut self) {}

    /// A threshold has fired.
    fn threshold(&mut self, record: ThresholdRecord);

    /// The address that the overflow interrupt interrupted, and whether that was in ring 3; none
    /// outside of the interrupt.
    fn interrupted(&self) -> Option<(u64, bool)> {
        None
    }

    /// An interval of a session whose phases are tracked was evaluated; `changed`: the program is
    /// in another phase. Not in the overflow interrupt.
    fn phase(&mut self, record: impl FnOnce() -> PhaseRecord, changed: bool) {
        let _ = (record, changed);
    }

    /// A sample was taken.
    fn sample(&mut self, record: SampleRecord) {
        let _ = record;
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
}

/// The processor's counts of time.
pub trait Clock {
    /// The time-stamp counter, in ticks.
    fn tsc(&self) -> u64;

    /// Core cycles for which this CPU was not halted, in every ring, also while the PMU's counters
    /// are frozen; modulo 2^64. None if the processor does not count them.
    fn core_cycles(&self) -> Option<u64>;
}
