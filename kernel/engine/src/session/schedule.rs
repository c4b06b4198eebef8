//! The slices to come: drawn, with their switches prepared, some dozens ahead of the counters.
//!
//! The overflow interrupt takes the next switch and advances by one. Each folded slice makes room
//! for one more, which is drawn then: outside of the interrupt, unless rows are folded at once.

use alloc::boxed::Box;

use crate::{rows::ROWS, switch::Switch};

/// Switches in the ring: for the slice on the counters, the slices whose rows wait, and the next.
pub(super) const SWITCHES: usize = 64;
const _: () = assert!(ROWS + 2 <= SWITCHES && SWITCHES.is_power_of_two());

/// A ring of switches. It is always full.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    switches: Box<[Switch; SWITCHES]>,
    /// Position of the first slice that is not folded.
    oldest: usize,
    /// Position of the slice on the counters, or last on them if its program is switched out.
    live: usize,
}

impl Schedule {
    /// Makes a schedule of slices that are not drawn yet.
    pub(super) fn empty() -> Schedule {
        let switches = Box::new([Switch::default(); SWITCHES]);
        Schedule { switches, oldest: 0, live: 0 }
    }

    #[inline(always)]
    fn at(&self, place: usize) -> &Switch {
        &self.switches[place % SWITCHES]
    }

    /// The switch to the first slice that is not folded.
    pub(super) fn oldest(&self) -> &Switch {
        self.at(self.oldest)
    }

    /// The switch to the slice after [`Self::oldest()`].
    pub(super) fn following(&self) -> &Switch {
        self.at(self.oldest.wrapping_add(1))
    }

    /// The switch to the slice on the counters.
    pub(super) fn live(&self) -> &Switch {
        self.at(self.live)
    }

    /// The switch that the next overflow interrupt makes.
    #[inline(always)]
    pub(super) fn next(&self) -> &Switch {
        self.at(self.live.wrapping_add(1))
    }

    /// The switch to the slice drawn last.
    pub(super) fn newest(&self) -> &Switch {
        self.at(self.oldest.wrapping_sub(1))
    }

    /// Advances after the next switch was made.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        self.live = self.live.wrapping_add(1);
    }

    /// Gives the place of the oldest slice, which is folded, to the last switch to come, and
    /// returns it.
    pub(super) fn renew(&mut self) -> &mut Switch {
        debug_assert!(self.oldest != self.live, "the slice on the counters is not over");
        let place = self.oldest % SWITCHES;
        self.oldest = self.oldest.wrapping_add(1);
        &mut self.switches[place]
    }

    /// Visits the switches that are not made yet.
    pub(super) fn for_each_to_come(&mut self, mut visit: impl FnMut(&mut Switch)) {
        let last = self.oldest.wrapping_add(SWITCHES);
        let mut place = self.live.wrapping_add(1);
        while place != last {
            visit(&mut self.switches[place % SWITCHES]);
            place = place.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Group;
    use std::vec::Vec;

    /// A schedule whose slices have the lengths 1, 2, 3 and so on.
    fn counting() -> (Schedule, impl FnMut() -> Switch) {
        let mut drawn = 0;
        let mut draw = move || {
            drawn += 1;
            Switch::new(&Group::NONE, &Group::NONE, 0, drawn)
        };
        let mut schedule = Schedule::empty();
        for _ in 0..SWITCHES {
            schedule.advance();
            *schedule.renew() = draw();
        }
        (schedule, draw)
    }

    #[test]
    fn slices_come_in_the_order_in_which_they_were_drawn() {
        let (mut schedule, mut draw) = counting();
        for turn in 1..500 {
            assert_eq!(schedule.live().length, turn);
            assert_eq!(schedule.next().length, turn + 1);
            schedule.advance();
            assert_eq!((schedule.oldest().length, schedule.following().length), (turn, turn + 1));
            *schedule.renew() = draw();
            assert_eq!(schedule.newest().length, turn + SWITCHES as u32);
        }
    }

    #[test]
    fn rows_that_wait_keep_their_slices() {
        let (mut schedule, mut draw) = counting();
        (0..ROWS).for_each(|_| schedule.advance());
        assert_eq!(schedule.oldest().length, 1);
        assert_eq!(schedule.next().length, ROWS as u32 + 2);
        (0..ROWS).for_each(|_| *schedule.renew() = draw());
        assert_eq!(schedule.oldest().length, schedule.live().length);
    }

    #[test]
    fn only_switches_to_come_are_visited() {
        let (mut schedule, mut draw) = counting();
        (0..5).for_each(|_| schedule.advance());
        (0..3).for_each(|_| *schedule.renew() = draw());
        let mut visited = Vec::new();
        schedule.for_each_to_come(|switch| visited.push(switch.length));
        assert_eq!(visited, (7..=SWITCHES as u32 + 3).collect::<Vec<_>>());
    }
}
