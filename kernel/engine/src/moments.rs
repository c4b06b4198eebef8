//! What the overflow path remembers of a group's slices: sums of integers, from which
//! [`crate::estimate`] computes estimates and errors later.
//!
//! The slices of one group are one at a random place in each round. Their spread about a common
//! mean would blame the program's slow changes on sampling, so the spread between *successive*
//! slices is kept instead, as sums of products of differences; and as slices that are far apart
//! differ more, pairs closer than a round and pairs further apart are kept separately.
//!
//! [`GroupMoments::add`] runs in the overflow path: no allocation, no floating point, no panic, at
//! most eight counters. The sums cannot overflow: a slice is at most 2³⁰ cycles, so a difference is
//! below 2³⁴ at sixteen events a cycle, and 2⁵⁸ slices fit.

use crate::{Always, Counts, MAX_GENERAL, for_each_counter};

/// What rates can be taken by: known exactly in total, and counted in every slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Events per core cycle.
    Cycles,
    /// Events per instruction.
    Instructions,
}

impl Base {
    /// Both.
    pub const ALL: [Base; 2] = [Base::Cycles, Base::Instructions];

    /// The event that it is.
    pub fn event(self) -> Always {
        match self {
            Base::Cycles => Always::Cycles,
            Base::Instructions => Always::Instructions,
        }
    }
}

/// One number for each [`Base`].
pub type PerBase<T> = [T; 2];

/// Sums over pairs of successive slices: of pairs closer than a round, then of the others.
pub type ByDistance<T> = [T; 2];

/// Pairs of slices of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventPairs {
    /// Σ Δy².
    pub squares: i128,
    /// Σ Δy·Δx, for each base x.
    pub products: PerBase<i128>,
}

/// Pairs of slices of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupPairs {
    /// How many.
    pub pairs: u64,
    /// Σ of the distances, in slices.
    pub distance: u64,
    /// Σ Δx², for each base x.
    pub squares: PerBase<i128>,
}

/// The slices of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventMoments {
    /// Σ y: events in all slices.
    pub events: u64,
    /// Pairs of successive slices.
    pub pairs: ByDistance<EventPairs>,
    last: u64,
}

/// The slices of one group: its bases, and the event on each of its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupMoments {
    /// Slices in which anything was counted.
    pub slices: u64,
    /// Σ x, for each base.
    pub sums: PerBase<u64>,
    /// Pairs of successive slices.
    pub pairs: ByDistance<GroupPairs>,
    /// By counter.
    pub events: [EventMoments; MAX_GENERAL],
    last: PerBase<u64>,
    last_turn: u64,
}

impl GroupMoments {
    /// Takes in one slice of the counters in the mask `used`, the `turn`-th of its session, whose
    /// rounds have `round` slices.
    pub fn add(&mut self, slice: &Counts, used: u8, turn: u64, round: u64) {
        let x = [slice[Always::Cycles], slice[Always::Instructions]];
        if x == [0; 2] {
            // It ended before it began: events need instructions or cycles.
            return;
        }
        let near = turn.wrapping_sub(self.last_turn) < round;
        let dx = [difference(x[0], self.last[0]), difference(x[1], self.last[1])];
        let paired = self.slices > 0;
        if paired {
            let pairs = choose(&mut self.pairs, near);
            pairs.pairs += 1;
            pairs.distance = pairs.distance.wrapping_add(turn.wrapping_sub(self.last_turn));
            for (square, dx) in pairs.squares.iter_mut().zip(dx) {
                *square += product(dx, dx);
            }
        }
        for_each_counter(used, |counter| {
            let (event, y) = (&mut self.events[counter], slice.general[counter]);
            if paired {
                let dy = difference(y, event.last);
                let pairs = choose(&mut event.pairs, near);
                pairs.squares += product(dy, dy);
                for (sum, dx) in pairs.products.iter_mut().zip(dx) {
                    *sum += product(dy, dx);
                }
            }
            event.events = event.events.wrapping_add(y);
            event.last = y;
        });
        for (sum, x) in self.sums.iter_mut().zip(x) {
            *sum = sum.wrapping_add(x);
        }
        self.last = x;
        self.last_turn = turn;
        self.slices += 1;
    }
}

fn choose<T>([near, far]: &mut ByDistance<T>, is_near: bool) -> &mut T {
    if is_near { near } else { far }
}

/// Counts are 48 bits at most, so their difference fits.
fn difference(now: u64, then: u64) -> i64 {
    now.wrapping_sub(then) as i64
}

/// One multiplication, 64 by 64 bits.
fn product(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}
