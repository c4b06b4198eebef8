//! Reads and writes of a group switch, in the same way for every vendor.

use tally_engine::{
    Counts, MAX_GENERAL, Pinned, Selector, Switch, for_each_counter, for_each_counter_likely,
};

use crate::bus::{Bus, CountingBus};

/// Event selects, and the slice timer. Most groups have the counters in the mask `FULL`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Selects<const FULL: u16> {
    /// Slice timer.
    timer: Pinned,
    /// Mask of the timer's counter bits; `top` is the highest of them.
    width: u64,
    top: u64,
    /// Selectors in the event selects.
    held: [Selector; MAX_GENERAL],
}

impl<const FULL: u16> Selects<FULL> {
    /// Makes counters without events.
    pub(crate) fn new() -> Self {
        Selects { timer: Pinned::Cycles, width: 0, top: 0, held: [Selector(0); MAX_GENERAL] }
    }

    /// Makes the counter of `event` the slice timer; `width` is the mask of its bits.
    pub(crate) fn time_by(&mut self, event: Pinned, width: u64) {
        (self.timer, self.width, self.top) = (event, width, width ^ width >> 1);
    }

    /// Returns the reload value of the slice timer for the slice that `switch` begins.
    #[inline(always)]
    pub(crate) fn reload(&self, switch: &Switch) -> u64 {
        switch.reload(self.width)
    }

    /// Reads the counters that `switch` names, if the slice timer has overflowed. Returns whether
    /// it has. `pinned` returns RDPMC's ECX for a pinned event.
    ///
    /// `REFERENCE` tells whether there is a counter of reference cycles.
    #[inline(always)]
    pub(crate) fn read<const REFERENCE: bool, B: Bus>(
        &self,
        bus: &mut CountingBus<B>,
        pinned: impl Fn(Pinned) -> u32,
        switch: &Switch,
        counts: &mut Counts,
    ) -> bool {
        for event in [Pinned::Cycles, Pinned::Instructions] {
            bus.count_into(pinned(event), &mut counts[event]);
        }
        // The highest bit is set until the overflow.
        if counts[self.timer] & self.top != 0 {
            return false;
        }
        if REFERENCE && switch.reference {
            bus.count_into(pinned(Pinned::Reference), &mut counts[Pinned::Reference]);
        }
        if switch.general == FULL {
            read_general::<FULL, _>(FULL, bus, counts);
        } else {
            read_some::<FULL, _>(switch.general, bus, counts);
        }
        true
    }

    /// Returns the selectors in the event selects.
    pub(crate) fn held(&self) -> &[Selector; MAX_GENERAL] {
        &self.held
    }

    /// Notes a selector that was written outside of a switch.
    pub(crate) fn set_held(&mut self, index: usize, selector: Selector) {
        self.held[index] = selector;
    }

    /// Makes the switch: calls `change` for each event select whose selector changes. Returns their
    /// number.
    #[inline(always)]
    pub(crate) fn change(&mut self, switch: &Switch, change: impl FnMut(usize, &Selector)) -> u64 {
        if switch.changed == FULL {
            change_each::<FULL>(FULL, switch, &mut self.held, change);
            FULL.count_ones().into()
        } else {
            change_some::<FULL>(switch, &mut self.held, change)
        }
    }
}

#[inline(always)]
fn read_general<const FULL: u16, B: Bus>(set: u16, bus: &mut CountingBus<B>, counts: &mut Counts) {
    for_each_counter_likely::<FULL>(set, |index| {
        bus.count_into(index as u32, &mut counts.general[index]);
    });
}

/// Handles sets other than `FULL` for [`read_general`]. A separate function, because its loop takes
/// registers that the overflow path would have to save.
#[cold]
#[inline(never)]
fn read_some<const FULL: u16, B: Bus>(set: u16, bus: &mut CountingBus<B>, counts: &mut Counts) {
    read_general::<FULL, B>(set, bus, counts);
}

#[inline(always)]
fn change_each<const FULL: u16>(
    changed: u16,
    switch: &Switch,
    held: &mut [Selector; MAX_GENERAL],
    mut change: impl FnMut(usize, &Selector),
) {
    for_each_counter_likely::<FULL>(changed, |index| {
        change(index, &switch.selectors[index]);
        held[index] = switch.selectors[index];
    });
}

/// Handles sets other than `FULL` for [`change_each`]; separate for the reason of [`read_some`].
#[cold]
#[inline(never)]
fn change_some<const FULL: u16>(
    switch: &Switch,
    held: &mut [Selector; MAX_GENERAL],
    mut change: impl FnMut(usize, &Selector),
) -> u64 {
    let mut changes = 0;
    for_each_counter(switch.changed, |index| {
        change(index, &switch.selectors[index]);
        held[index] = switch.selectors[index];
        changes += 1;
    });
    changes
}
