//! The next group switch, prepared after the one before it.
//!
//! When a slice begins, the group after it is known. So the overflow interrupt compares nothing: it
//! reads the prepared counters and writes the prepared selectors, in the same way for every vendor.

use core::mem::replace;

use tally_engine::{
    CounterMask, Counts, Group, MAX_GENERAL, Pinned, Selector, for_each_counter,
    for_each_counter_likely,
};

use crate::bus::{Bus, CountingBus};

/// The counters that a group switch reads and the registers that it writes. Most groups have the
/// counters in the mask `FULL`.
#[derive(Debug)]
pub(crate) struct Prepared<const FULL: u8> {
    set: CounterMask,
    /// RDPMC's ECX for the pinned events.
    pinned: [u32; 3],
    /// The slice timer.
    timer: Pinned,
    /// The bits of its counter, and the highest of them.
    width: u64,
    top: u64,
    /// The value that its counter is set to.
    pub(crate) reload: u64,
    /// The counters whose events change, as a mask.
    pub(crate) changed: u8,
    /// How many they are.
    changes: u64,
    /// Every counter's selector before the switch.
    before: [Selector; MAX_GENERAL],
    /// And after it.
    after: [Selector; MAX_GENERAL],
    /// The row of selectors that is in the event selects.
    held: Held,
}

/// A row of selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// That before the switch: it is still to come.
    Before,
    /// That after the switch: it was made.
    After,
}

impl<const FULL: u8> Prepared<FULL> {
    /// For counters that have no event yet; `pinned` returns RDPMC's ECX for a pinned event.
    pub(crate) fn new(pinned: impl Fn(Pinned) -> u32) -> Self {
        Prepared {
            set: CounterMask::default(),
            pinned: Pinned::ALL.map(pinned),
            timer: Pinned::Cycles,
            width: 0,
            top: 0,
            reload: 0,
            changed: 0,
            changes: 0,
            before: [Selector(0); MAX_GENERAL],
            after: [Selector(0); MAX_GENERAL],
            held: Held::Before,
        }
    }

    /// Makes the counter of `event` the slice timer; its bits are `width`.
    pub(crate) fn time_by(&mut self, event: Pinned, width: u64) {
        (self.timer, self.width, self.top) = (event, width, width ^ width >> 1);
    }

    /// Prepares a switch that reads the counters in `set`, changes to `next` and arms the timer
    /// with `slice`. Groups use the counters in the mask `general`.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, general: u8, set: CounterMask, next: &Group, slice: u64) {
        self.set = set;
        self.reload = slice.wrapping_neg() & self.width;
        let row = replace(&mut self.held, Held::Before);
        let Prepared { before, after, .. } = self;
        let mut changed = 0;
        let mut visit = |index: usize, wanted: Option<Selector>| {
            let held = if row == Held::After { after[index] } else { before[index] };
            let wanted = wanted.unwrap_or(held);
            (before[index], after[index]) = (held, wanted);
            changed |= u8::from(wanted != held) << index;
        };
        if next.used == general {
            for_each_counter_likely::<FULL>(general, |index| {
                visit(index, Some(next.selectors[index]));
            });
        } else {
            // A counter that `next` does not use counts on, unless `next` is to be alone: its count
            // is not read.
            for_each_counter(general, |index| {
                let changes = next.used >> index & 1 == 1 || next.alone;
                visit(index, changes.then_some(next.selectors[index]));
            });
        }
        self.changed = changed;
        // Counting bits takes some instructions.
        let changes = if changed == FULL { FULL.count_ones() } else { changed.count_ones() };
        self.changes = changes.into();
    }

    /// Reads the counters, if the slice timer has overflowed. Returns whether it has.
    ///
    /// `REFERENCE`: whether there is a counter of reference cycles.
    #[inline(always)]
    pub(crate) fn read<const REFERENCE: bool, B: Bus>(
        &self,
        bus: &mut CountingBus<B>,
        counts: &mut Counts,
    ) -> bool {
        for event in [Pinned::Cycles, Pinned::Instructions] {
            bus.count_into(self.pinned[event as usize], &mut counts[event]);
        }
        // The highest bit is set until then.
        if counts[self.timer] & self.top != 0 {
            return false;
        }
        if REFERENCE && self.set.reference {
            let event = Pinned::Reference;
            bus.count_into(self.pinned[event as usize], &mut counts[event]);
        }
        if self.set.general == FULL {
            read_general::<FULL, _>(FULL, bus, counts);
        } else {
            read_some::<FULL, _>(self.set.general, bus, counts);
        }
        true
    }

    /// The selectors in the event selects.
    pub(crate) fn selectors(&self) -> &[Selector; MAX_GENERAL] {
        match self.held {
            Held::Before => &self.before,
            Held::After => &self.after,
        }
    }

    /// Notes a selector that was written outside of a switch. A prepared switch becomes void.
    pub(crate) fn set_selector(&mut self, index: usize, selector: Selector) {
        (self.before[index], self.after[index]) = (selector, selector);
    }

    /// Makes the switch: calls `change` for each event select whose selector changes. Returns how
    /// many they are.
    #[inline(always)]
    pub(crate) fn change(&mut self, change: impl FnMut(usize, &Selector)) -> u64 {
        self.held = Held::After;
        if self.changed == FULL {
            change_each::<FULL>(FULL, &self.after, change);
        } else {
            change_some::<FULL>(self.changed, &self.after, change);
        }
        self.changes
    }
}

#[inline(always)]
fn read_general<const FULL: u8, B: Bus>(set: u8, bus: &mut CountingBus<B>, counts: &mut Counts) {
    for_each_counter_likely::<FULL>(set, |index| {
        bus.count_into(index as u32, &mut counts.general[index]);
    });
}

/// [`read_general`] of other sets than `FULL`, apart: its loop takes registers, which the overflow
/// path would have to save.
#[cold]
#[inline(never)]
fn read_some<const FULL: u8, B: Bus>(set: u8, bus: &mut CountingBus<B>, counts: &mut Counts) {
    read_general::<FULL, B>(set, bus, counts);
}

#[inline(always)]
fn change_each<const FULL: u8>(
    changed: u8,
    after: &[Selector; MAX_GENERAL],
    mut change: impl FnMut(usize, &Selector),
) {
    for_each_counter_likely::<FULL>(changed, |index| change(index, &after[index]));
}

/// [`change_each`] of other sets than `FULL`, apart as [`read_some`].
#[cold]
#[inline(never)]
fn change_some<const FULL: u8>(
    changed: u8,
    after: &[Selector; MAX_GENERAL],
    change: impl FnMut(usize, &Selector),
) {
    change_each::<FULL>(changed, after, change);
}
