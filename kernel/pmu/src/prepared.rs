//! What the next switch will do, worked out while there is time: after the one before it.
//!
//! When a slice begins, the group after it is known. So the overflow interrupt compares nothing: it
//! reads these counters and changes those selectors, in the same way for every vendor.

use core::mem::replace;

use tally_engine::{
    CounterMask, Counts, Group, MAX_GENERAL, Pinned, Selector, for_each_counter,
    for_each_counter_likely,
};

use crate::{Bus, bus::CountingBus};

/// What a switch reads and writes. A group most often has the counters in the mask `FULL`.
#[derive(Debug)]
pub(crate) struct Prepared<const FULL: u8> {
    set: CounterMask,
    /// RDPMC's ECX for the always-counted events.
    always: [u32; 3],
    /// The slice timer.
    timer: Pinned,
    /// The bits of its counter, and the highest of them.
    width: u64,
    top: u64,
    /// What its counter is set to.
    pub(crate) reload: u64,
    /// The counters whose events change, as a mask.
    pub(crate) changed: u8,
    /// Every counter's selector before the switch.
    before: [Selector; MAX_GENERAL],
    /// And after it.
    after: [Selector; MAX_GENERAL],
    /// Whether it has been made.
    made: bool,
}

impl<const FULL: u8> Prepared<FULL> {
    /// For counters that have no event yet; `always` are the operands by which RDPMC reads those of the
    /// always-counted events.
    pub(crate) fn new(always: impl Fn(Pinned) -> u32) -> Self {
        Prepared {
            set: CounterMask::default(),
            always: Pinned::ALL.map(always),
            timer: Pinned::Cycles,
            width: 0,
            top: 0,
            reload: 0,
            changed: 0,
            before: [Selector(0); MAX_GENERAL],
            after: [Selector(0); MAX_GENERAL],
            made: false,
        }
    }

    /// The slice timer from here on is the counter of `event`, whose bits are `width`.
    pub(crate) fn time_by(&mut self, event: Pinned, width: u64) {
        (self.timer, self.width, self.top) = (event, width, width ^ width >> 1);
    }

    /// The switch will read the counters in `set`, of which those in the mask `general` are for groups,
    /// change to `next` and arm the timer with `slice`.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, general: u8, set: CounterMask, next: &Group, slice: u64) {
        self.set = set;
        self.reload = slice.wrapping_neg() & self.width;
        let made = replace(&mut self.made, false);
        let Prepared { before, after, .. } = self;
        let mut changed = 0;
        let mut visit = |index: usize, wanted: Option<Selector>| {
            let held = if made { after[index] } else { before[index] };
            let wanted = wanted.unwrap_or(held);
            (before[index], after[index]) = (held, wanted);
            changed |= u8::from(wanted != held) << index;
        };
        if next.used == general {
            for_each_counter_likely::<FULL>(general, |index| {
                visit(index, Some(next.selectors[index]));
            });
        } else {
            // A counter that `next` does not use goes on, as nobody reads what it counts, unless it would
            // disturb.
            for_each_counter(general, |index| {
                let changes = next.used >> index & 1 == 1 || next.alone;
                visit(index, changes.then_some(next.selectors[index]));
            });
        }
        self.changed = changed;
    }

    /// If the slice timer has overflowed, reads the counters.
    ///
    /// `REFERENCE`: whether there is a counter of reference cycles.
    #[inline(always)]
    pub(crate) fn read<const REFERENCE: bool, B: Bus>(
        &self,
        bus: &mut CountingBus<B>,
        counts: &mut Counts,
    ) -> bool {
        for event in [Pinned::Cycles, Pinned::Instructions] {
            bus.count_into(self.always[event as usize], &mut counts[event]);
        }
        // The highest bit is set until then.
        if counts[self.timer] & self.top != 0 {
            return false;
        }
        if REFERENCE && self.set.reference {
            let event = Pinned::Reference;
            bus.count_into(self.always[event as usize], &mut counts[event]);
        }
        for_each_counter_likely::<FULL>(self.set.general, |index| {
            bus.count_into(index as u32, &mut counts.general[index]);
        });
        true
    }

    /// What the counters' event selects hold.
    pub(crate) fn selectors(&self) -> &[Selector; MAX_GENERAL] {
        if self.made { &self.after } else { &self.before }
    }

    /// An event select holds this from here on. What was prepared is void.
    pub(crate) fn set_selector(&mut self, index: usize, selector: Selector) {
        (self.before[index], self.after[index]) = (selector, selector);
    }

    /// The switch is made: calls `change` for each event select that then holds another selector.
    #[inline(always)]
    pub(crate) fn change(&mut self, mut change: impl FnMut(usize, &Selector)) {
        self.made = true;
        for_each_counter_likely::<FULL>(self.changed, |index| change(index, &self.after[index]));
    }
}
