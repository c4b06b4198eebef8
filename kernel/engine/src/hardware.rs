//! What the engine asks of the machine it runs on.
//!
//! Invariant of [`Pmu`]: after [`Pmu::stop`], and before the first [`Pmu::enable`], nothing counts
//! and no overflow is pending in the PMU. An overflow interrupt that was already under way then
//! finds nobody, or a slice that has just begun and whose timer has not overflowed.

use core::{
    hint::cold_path,
    ops::{Index, IndexMut},
};

use tally_abi::{
    Mode,
    bank::PINNED_SLOT,
    session::MAX_SLICE,
    trace::{SampleRecord, SliceRecord, ThresholdRecord},
};

use crate::{
    demand::{MAX_GENERAL, Pinned, Widths},
    group::Group,
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

/// Values of counters, or differences between two such. The always-counted are found by
/// indexing with [`Pinned`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    always: [u64; 3],
    /// General counters, by hardware index; one that was not asked for means nothing.
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
    /// What was counted from `self` to `now` by counters that wrap at `widths`; of the general
    /// counters, those in the mask `general`. It goes to `counted`, where the others' values mean
    /// nothing, and `self` becomes `now`. Counter by counter: copies of the whole would cost more.
    #[inline(always)]
    pub fn advance(&mut self, now: &Counts, general: u8, widths: Widths, counted: &mut Counts) {
        for event in Pinned::ALL {
            counted[event] = now[event].wrapping_sub(self[event]) & widths.pinned;
            self[event] = now[event];
        }
        for_each_counter_unrolled(general, |counter| {
            let difference = now.general[counter].wrapping_sub(self.general[counter]);
            counted.general[counter] = difference & widths.general;
            self.general[counter] = now.general[counter];
        });
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

/// Which counters to read: those of cycles and instructions, and these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterMask {
    /// General counters, as a mask.
    pub general: u8,
    /// That of reference cycles; wanted only where the PMU counts them.
    pub reference: bool,
}

impl CounterMask {
    /// How many counters there are in it.
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

/// Calls `visit` with each of these counters that is in a mask, which is a constant. An iterator over an
/// array would be a loop, and a function of its own, when the code is large.
macro_rules! visit {
    ($visit:ident, $mask:expr) => { visit!($visit, $mask, 0 1 2 3 4 5 6 7) };
    ($visit:ident, $mask:expr, $($counter:literal)*) => {{
        $(if $mask >> $counter & 1 == 1 { $visit($counter); })*
    }};
}

/// The same for the overflow path: the masks that full groups have are written out, so that every
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

/// The same for a driver, which knows what a full group of its own has: `LIKELY` is looked at first.
#[inline(always)]
pub fn for_each_counter_likely<const LIKELY: u8>(mask: u8, mut visit: impl FnMut(usize)) {
    if mask == LIKELY {
        visit!(visit, LIKELY);
    } else {
        cold_path();
        if mask == ALL { visit!(visit, ALL) } else { for_each_counter(mask, visit) }
    }
}

/// Full groups: of Intel's, with hyperthreading and without, and of AMD's six counters what the driver
/// leaves to groups.
const FOUR: u8 = 0x0f;
const ALL: u8 = u8::MAX;
const LAST_FOUR_OF_SIX: u8 = 0x3c;
const _: () = assert!(MAX_GENERAL == 8);

/// One CPU's performance monitoring unit.
///
/// A switch in the overflow interrupt is [`Pmu::switch`] and [`Pmu::ack_and_resume`], in this order;
/// nothing counts at the session's privilege from the one to the other, as far as that is the
/// driver's to say: in user mode the interrupt itself has seen to it.
pub trait Pmu {
    /// Gets ready to count `group`, in a state in which nothing counts. The slice timer will overflow
    /// after `slice` more of its unit; all other counters go on from the values that they have, and those
    /// that `group` does not use count nothing.
    fn program(&mut self, group: &Group, setup: &Setup, slice: u64);

    /// Counts what [`Pmu::program`] got ready for.
    fn enable(&mut self);

    /// Whether counters can be set to any value, as [`Pmu::restore`] needs.
    fn can_restore(&self) -> bool;

    /// Counts `group` and the always-counted events, at the privileges of `mode`, from `values` on and
    /// without a slice timer, from a state in which nothing counts. All other counters show 0.
    fn restore(&mut self, group: &Group, mode: Mode, values: &Counts);

    /// Ends counting. Counters keep their values; an overflow that was pending is forgotten.
    fn stop(&mut self);

    /// Whether any counter that has an event is let count. The hardware's own word, for checks: it takes
    /// RDMSRs.
    fn is_counting(&mut self) -> bool;

    /// The values of the counters in `set`.
    fn read(&mut self, set: CounterMask) -> Counts;

    /// Says beforehand what [`Pmu::switch`] will do: read the counters in `set`, change to `next`,
    /// whose counters are in `set`, and arm the slice timer with `slice`. Counters that `next` does not
    /// use may go on, unless it is to be alone. Any other call but [`Pmu::read`] and [`Pmu::ack_and_resume`]
    /// forgets it.
    fn prepare(&mut self, set: CounterMask, next: &Group, slice: u64);

    /// In the overflow interrupt, between [`Pmu::enable`] and [`Pmu::stop`]: if the slice timer has
    /// overflowed, reads the counters into `counts` and changes to the group that was prepared. If it
    /// has not, says so, counting goes on, and `counts` mean nothing.
    fn switch(&mut self, counts: &mut Counts) -> bool;

    /// Acknowledges the overflow and counts again.
    fn ack_and_resume(&mut self);

    /// Sets every counter to 0, from a state in which nothing counts: what others counted is not
    /// the next program's to see.
    fn scrub(&mut self);

    /// Lets the counter in a slot of [`tally_abi::bank`] overflow, and interrupt, when `remaining`, 1 to
    /// [`MAX_PRELOAD`], have been counted, up to [`Self::disarm`] or the next change of its event. It
    /// must not count here: before [`Self::enable`], between [`Self::switch`] and [`Self::ack_and_resume`], or, where
    /// ring 0 is not counted, with a [`Self::ack_and_resume`] to come. Gives what the counter shows then. The
    /// slice timer's overflow ends its slice.
    fn preload(&mut self, slot: usize, remaining: u64) -> u64;

    /// Lets no counter interrupt but the slice timer.
    fn disarm(&mut self);

    /// The widths of the counters.
    fn widths(&self) -> Widths;

    /// RDMSR and WRMSR instructions since the driver was made.
    fn msr_accesses(&self) -> u64;
}

/// The most that a counter can be preloaded with: see [`tally_abi::session::MAX_SLICE`].
pub const MAX_PRELOAD: u64 = MAX_SLICE;

/// Where records go. Called in the overflow path, so it has to keep to that path's rules.
pub trait Sink {
    /// Takes the record that `record` makes, or counts it as lost, or wants none and leaves it
    /// unmade.
    fn record(&mut self, record: impl FnOnce() -> SliceRecord);

    /// A threshold has fired.
    fn threshold(&mut self, record: ThresholdRecord);

    /// The address at which the overflow interrupt found the CPU, and whether that was in ring 3; none
    /// outside of it.
    fn interrupted(&self) -> Option<(u64, bool)> {
        None
    }

    /// A sample was taken.
    fn sample(&mut self, record: SampleRecord) {
        let _ = record;
    }
}

/// The time-stamp counter.
pub trait Clock {
    /// Its value, in ticks.
    fn tsc(&self) -> u64;
}
