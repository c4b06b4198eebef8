//! A group switch, prepared when its slice is drawn, so that the overflow interrupt needs no
//! look-ups or comparisons.

use tally_abi::session::MAX_SLICE;

use crate::{
    demand::{MAX_EXTRA, MAX_GENERAL, Selector},
    group::Group,
    order::Draw,
};

/// A slice as it was drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DrawnSlice {
    pub(crate) draw: Draw,
    /// The slice's length, in units of the session's slices.
    pub(crate) multiplier: u32,
}

/// A group switch: from the slice that ends to the one that begins.
///
/// The fields that the overflow interrupt reads for a full group of four counters are in the first
/// cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Switch {
    /// The general counters to read, as a mask: those of the slice that ends, and of the one that
    /// begins.
    pub general: u16,
    /// The general counters whose event changes, as a mask.
    pub changed: u16,
    /// The length of the slice that begins, in the slice timer's unit; at most [`MAX_SLICE`].
    pub length: u32,
    /// Whether to read the counter of reference cycles.
    pub reference: bool,
    /// The extra registers whose values the new slice's events need, as a mask.
    pub extra: u8,
    draw: Draw,
    multiplier: u32,
    /// The event selects after the switch, by hardware index; those of unchanged counters are
    /// meaningless.
    pub selectors: [Selector; MAX_GENERAL],
    /// The values of these registers; those of others are meaningless.
    pub extra_values: [u64; MAX_EXTRA],
}

const _: () = assert!(MAX_SLICE <= u32::MAX as u64);
const _: () = assert!(size_of::<Switch>() == 128);

impl Switch {
    /// Makes a switch from the group `before` to the group `after`, whose slice has this length.
    /// Groups use the counters in the mask `all`.
    pub fn new(before: &Group, after: &Group, all: u16, length: u64) -> Switch {
        let mut switch = Switch::default();
        switch.prepare([before, after], all, length);
        switch
    }

    /// Turns this into a switch from the first group to the second, as [`Self::new()`] does. The
    /// selects of counters that change are the only ones copied: copies of the whole table would be
    /// string instructions, which take longer than the rest.
    ///
    /// A counter that `after` does not use may continue to count, unless `after` must be alone. So
    /// the selects of counters that `before` does not use are unknown here and are written.
    pub(crate) fn prepare(&mut self, [before, after]: [&Group; 2], all: u16, length: u64) {
        let held = before.selected();
        let mut wanted = if after.alone { all } else { after.selected() };
        self.changed = 0;
        while wanted != 0 {
            let index = wanted.trailing_zeros() as usize;
            let select = after.selectors[index];
            if held >> index & 1 == 0 || before.selectors[index] != select {
                self.changed |= 1 << index;
                self.selectors[index] = select;
            }
            wanted &= wanted - 1;
        }
        self.general = before.used | after.used;
        self.length = length.min(MAX_SLICE) as u32;
        self.extra = after.extra.used;
        self.extra_values = after.extra.values;
    }

    /// Sets the slice that begins.
    pub(crate) fn set_slice(&mut self, slice: DrawnSlice) {
        (self.draw, self.multiplier) = (slice.draw, slice.multiplier);
    }

    /// The slice that begins.
    #[inline]
    pub(crate) fn slice(&self) -> DrawnSlice {
        DrawnSlice { draw: self.draw, multiplier: self.multiplier }
    }

    /// Sets the length of the slice that begins.
    pub(crate) fn set_length(&mut self, multiplier: u32, length: u64) {
        (self.multiplier, self.length) = (multiplier, length.min(MAX_SLICE) as u32);
    }

    /// The value to which the slice timer's counter is set, for a counter with the bits `width`.
    #[inline(always)]
    pub fn reload(&self, width: u64) -> u64 {
        u64::from(self.length).wrapping_neg() & width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(used: u16, codes: [u64; MAX_GENERAL]) -> Group {
        Group { used, selectors: codes.map(Selector), ..Group::NONE }
    }

    #[test]
    fn only_what_differs_is_written() {
        let a = group(0b1111, [1, 2, 3, 4, 0, 0, 0, 0, 0, 0]);
        let b = group(0b1111, [1, 5, 3, 6, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Switch::new(&a, &b, 0b1111, 7).changed, 0b1010);
        assert_eq!(Switch::new(&a, &a, 0b1111, 7).changed, 0);
    }

    #[test]
    fn what_an_unused_counter_holds_is_not_known() {
        let full = group(0b1111, [1, 2, 3, 4, 0, 0, 0, 0, 0, 0]);
        let part = group(0b0011, [1, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
        let there = Switch::new(&full, &part, 0b1111, 7);
        assert_eq!((there.changed, there.general), (0, 0b1111));
        assert_eq!(Switch::new(&part, &full, 0b1111, 7).changed, 0b1100);
        let alone = Group { alone: true, ..part };
        assert_eq!(Switch::new(&full, &alone, 0b1111, 7).changed, 0b1100);
    }

    #[test]
    fn the_timer_is_set_to_minus_the_length() {
        let switch = Switch::new(&Group::NONE, &Group::NONE, 0, 5_000);
        assert_eq!(switch.reload((1 << 48) - 1), (1 << 48) - 5_000);
    }
}
