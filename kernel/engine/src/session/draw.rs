//! Drawing of slices and their lengths, as other slices are folded.

use super::{schedule::SWITCHES, state::Session};
use crate::switch::{DrawnSlice, Switch};

impl Session {
    /// Draws the first slices.
    pub(super) fn draw_first(&mut self) {
        for _ in 0..SWITCHES {
            self.advance();
            self.draw_one();
        }
        self.current.drawn = self.live.schedule.live().slice();
    }

    /// Draws the slice after the newest one, in the place of the oldest, which is folded.
    pub(super) fn draw_one(&mut self) {
        let before = self.live.schedule.newest().slice().draw.group;
        let draw = self.order.draw();
        let slice = DrawnSlice { draw, multiplier: self.budget.slice_multiplier() };
        let length = self.length_of(slice);
        let groups = [before, draw.group].map(|group| self.plan.group(group));
        let switch = self.live.schedule.renew();
        switch.prepare(groups, self.counters, length);
        switch.set_slice(slice);
        switch.reference = self.live.reference;
    }

    /// The length of a slice, in the slice timer's unit.
    fn length_of(&self, slice: DrawnSlice) -> u64 {
        (self.longest * u64::from(slice.multiplier)) >> self.lengths.halvings(slice.draw.round)
    }

    /// Applies the budget's present length to the slices to come.
    pub(super) fn restate_lengths(&mut self) {
        let multiplier = self.budget.slice_multiplier();
        if self.live.schedule.newest().slice().multiplier == multiplier {
            return;
        }
        let length = self.longest * u64::from(multiplier);
        let lengths = &self.lengths;
        self.live.schedule.for_each_to_come(|switch| {
            let round = switch.slice().draw.round;
            switch.set_length(multiplier, length >> lengths.halvings(round));
        });
    }

    /// Advances to the next slice, which is on the counters. Runs in the overflow path.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.live.schedule.advance();
    }

    /// The switch that ends the slice on the counters.
    #[inline(always)]
    pub(crate) fn next_switch(&self) -> &Switch {
        self.live.schedule.next()
    }

    /// The switch that ended the first slice that is not folded.
    pub(crate) fn following(&self) -> &Switch {
        self.live.schedule.following()
    }
}
