//! What the next switch will do, worked out while there is time: after the one before it.
//!
//! When a slice begins, the group after it is known. So the overflow interrupt compares nothing: it
//! reads these counters and changes those selectors, in the same way for every vendor.

use tally_engine::{Always, Counts, Group, MAX_GENERAL, Selector, Set, for_each_counter_unrolled};

use crate::{Bus, bus::Counted, driver::change_over};

/// What a switch reads and writes.
#[derive(Debug)]
pub(crate) struct Prepared {
    set: Set,
    /// RDPMC's ECX for the always-counted events.
    always: [u32; 3],
    /// The slice timer.
    timer: Always,
    /// The bits of its counter.
    width: u64,
    /// What its counter is set to.
    pub(crate) reload: u64,
    /// The counters whose events change, as a mask.
    pub(crate) changed: u8,
    /// Every counter's selector: as they are, and as they will be. They take turns.
    selectors: [[Selector; MAX_GENERAL]; 2],
    now: usize,
}

impl Prepared {
    /// For counters that have no event yet; `always` are the operands by which RDPMC reads those of the
    /// always-counted events.
    pub(crate) fn new(always: impl Fn(Always) -> u32) -> Prepared {
        Prepared {
            set: Set::default(),
            always: Always::ALL.map(always),
            timer: Always::Cycles,
            width: 0,
            reload: 0,
            changed: 0,
            selectors: [[Selector(0); MAX_GENERAL]; 2],
            now: 0,
        }
    }

    /// The slice timer from here on is the counter of `event`, whose bits are `width`.
    pub(crate) fn time_by(&mut self, event: Always, width: u64) {
        (self.timer, self.width) = (event, width);
    }

    /// The switch will read the counters in `set`, of which those in the mask `general` are for groups,
    /// change to `next` and arm the timer with `slice`.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, general: u8, set: Set, next: &Group, slice: u64) {
        self.set = set;
        self.reload = slice.wrapping_neg() & self.width;
        let [even, odd] = &mut self.selectors;
        let (now, then) = if self.now & 1 == 0 { (even, odd) } else { (odd, even) };
        let mut changed = 0;
        change_over(general, next, |index, wanted| {
            let wanted = wanted.unwrap_or(now[index]);
            then[index] = wanted;
            changed |= u8::from(wanted != now[index]) << index;
        });
        self.changed = changed;
    }

    /// If the slice timer has overflowed, reads the counters.
    #[inline(always)]
    pub(crate) fn read<B: Bus>(&self, bus: &mut Counted<B>, counts: &mut Counts) -> bool {
        counts[Always::Cycles] = bus.count(self.always[Always::Cycles as usize]);
        counts[Always::Instructions] = bus.count(self.always[Always::Instructions as usize]);
        // The highest bit is set until then.
        if counts[self.timer] & !(self.width >> 1) != 0 {
            return false;
        }
        if self.set.reference {
            counts[Always::Reference] = bus.count(self.always[Always::Reference as usize]);
        }
        for_each_counter_unrolled(self.set.general, |index| {
            counts.general[index] = bus.count(index as u32);
        });
        true
    }

    /// What the counters' event selects hold.
    #[inline(always)]
    pub(crate) fn selectors(&self) -> &[Selector; MAX_GENERAL] {
        &self.selectors[self.now & 1]
    }

    /// An event select holds this from here on. What was prepared is void.
    pub(crate) fn set_selector(&mut self, index: usize, selector: Selector) {
        self.selectors.iter_mut().for_each(|selectors| selectors[index] = selector);
    }

    /// The switch is made: calls `change` for each event select that then holds another selector.
    #[inline(always)]
    pub(crate) fn change(&mut self, mut change: impl FnMut(usize, Selector)) {
        self.now ^= 1;
        let selectors = &self.selectors[self.now & 1];
        for_each_counter_unrolled(self.changed, |index| change(index, selectors[index]));
    }
}
