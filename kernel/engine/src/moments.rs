//! The moments of a group's slices: sums of integers that the overflow path keeps, from which
//! [`crate::estimate`] computes estimates and errors.
//!
//! The slices of one group are at random places in each round. Their spread about a common mean
//! would attribute the program's slow changes to sampling. So the sums are of the spread between
//! close slices: products of the differences between each slice and the first slice of its group in
//! its round, and between that one and the first of the round before. On average two slices paired
//! within a round are as far apart as any two slices of it, whatever their number. As distant
//! slices differ more, pairs closer than a round (near) and pairs further apart (far) have separate
//! sums. If a group has one slice in a round, near pairs are weighted so that each distance has the
//! same part in the sums as it has within a round. If a program is in step with the rounds, slices
//! at different places of a round differ too, but that evens out over a block of rounds
//! (`crate::order`): so there are also sums of the differences between successive blocks.
//!
//! A sum of squares shows little of a tail that few slices have reached; so the largest slices of
//! each event are kept individually.
//!
//! If a group's share of a round changes, all sums are restated as if it had always been the new
//! one (decision 11): then there is only one share, and readers of the sums need not know of
//! others.
//!
//! [`GroupMoments::add`] runs in the overflow path: no allocation, no floating point, no panic, at
//! most ten counters. The sums cannot overflow: a slice is at most 2³⁰ cycles, so a difference is
//! below 2³⁴ at sixteen events per cycle, and 2⁵⁸ slices fit, or 2³⁹ if restated from the smallest
//! share to the largest. A block of 2¹⁴ or more rounds is longer than any session.

mod base;
mod largest;
mod peaks;
mod restate;

pub use self::{
    base::{Base, PerBase},
    largest::Difference,
    peaks::{PEAKS, Peak},
};
use self::{largest::Inverses, peaks::insert};
use crate::{
    Counts, MAX_GENERAL, Pinned, for_each_counter, hardware::for_each_counter_unrolled,
    order::block_rounds,
};

/// Sums over pairs: of slices closer than a round, of the other slices, and of whole blocks.
pub type ByKind<T> = [T; 3];

/// Index in [`ByKind`]: slices closer than a round.
pub const NEAR: usize = 0;
/// Index in [`ByKind`]: other slices.
pub const FAR: usize = 1;
/// Index in [`ByKind`]: whole blocks.
pub const BLOCKS: usize = 2;

/// A slice, or a pair of slices, at the present share: the unit of sums that count them. A slice at
/// another share counts as the square of the ratio of the shares.
pub const ONE: u64 = 1 << 16;

/// The unit of the weights of pairs.
pub const WEIGHT: i64 = 16;
/// Maximum weight: pairs closer than this fraction of a round weigh no more than pairs at this
/// distance.
const MOST_WEIGHT: u64 = 256 * WEIGHT as u64;

/// The weight of a pair of slices at this distance, in units of 1 / [`WEIGHT`]. Among pairs of
/// slices at random places of one round of N slices, N − d are at distance d; among those in
/// successive rounds and less than a round apart, d.
fn weight(distance: u64, round: u64) -> u64 {
    let left = round.wrapping_sub(distance).wrapping_mul(WEIGHT as u64);
    left.checked_div(distance).unwrap_or_default().min(MOST_WEIGHT)
}

/// Sums over pairs of slices of one event, with their weights w.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventPairs {
    /// Σ w·Δy², in units of 1 / [`WEIGHT`].
    pub squares: i128,
    /// Σ w·Δy·Δx, for each base x, in the same units.
    pub products: PerBase<i128>,
    /// For each base the pair with the largest w·(Δy − r·Δx)², at the rate r of that time.
    pub largest: PerBase<Difference>,
}

/// Sums over pairs of slices of one group, with their weights w: 1 for slices that are far apart or
/// in one round, the number of slices for blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupPairs {
    /// Σ w, in units of [`ONE`].
    pub weight: u64,
    /// Σ w², in units of [`ONE`].
    pub squared_weight: u64,
    /// Σ w·Δx², for each base x, in units of 1 / [`WEIGHT`]; for blocks without w.
    pub squares: PerBase<i128>,
}

impl GroupPairs {
    /// Adds a pair; `weight` is in units of 1 / [`WEIGHT`].
    fn add(&mut self, weight: u64, dx: PerBase<i64>, weighed: PerBase<i64>) {
        const UNIT: u64 = ONE / WEIGHT as u64;
        self.weight = self.weight.wrapping_add(weight.wrapping_mul(UNIT));
        let square = weight.wrapping_mul(weight).wrapping_mul(UNIT / WEIGHT as u64);
        self.squared_weight = self.squared_weight.wrapping_add(square);
        for (square, (dx, weighed)) in self.squares.iter_mut().zip(dx.into_iter().zip(weighed)) {
            *square += product(dx, weighed);
        }
    }
}

impl EventPairs {
    /// Adds a pair; `events` is Σ y.
    fn add(&mut self, dy: i64, weight: i64, dx: PerBase<i64>, events: u64, inverses: &Inverses) {
        let weighed = dy.wrapping_mul(weight);
        self.squares += product(dy, weighed);
        for (sum, dx) in self.products.iter_mut().zip(dx) {
            *sum += product(weighed, dx);
        }
        for (largest, (base, dx)) in self.largest.iter_mut().zip(Base::ALL.into_iter().zip(dx)) {
            let pair = Difference { events: dy, base: dx, weight };
            largest.keep_larger(pair, inverses.rate(events, base));
        }
    }
}

/// Moments of the slices of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventMoments {
    /// Σ y: events in all slices.
    pub events: u64,
    /// Fraction of an event left by restating, in units of 2⁻³².
    pub fraction: u32,
    /// Pairs of slices, and of blocks.
    pub pairs: ByKind<EventPairs>,
    /// Slices with the most events, the largest first: the tail of their distribution.
    pub peaks: [Peak; PEAKS],
    /// Events removed by restating.
    restated: u64,
    first: u64,
    /// Σ y before the current block.
    before_block: u64,
    /// Σ y of the block before the current one.
    last_block: u64,
}

impl EventMoments {
    /// Events in the event's slices, not restated.
    pub fn counted(&self) -> u64 {
        self.events.wrapping_add(self.restated)
    }
}

/// Moments of the slices of one group: its bases, and the event on each of its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupMoments {
    /// Slices in which anything was counted, not restated.
    pub slices: u64,
    share: u16,
    /// Σ x, for each base.
    pub sums: PerBase<u64>,
    /// Pairs of slices, and of blocks.
    pub pairs: ByKind<GroupPairs>,
    /// Moments of events, by counter.
    pub events: [EventMoments; MAX_GENERAL],
    /// Cycles removed by restating, and slices added by it in units of [`ONE`].
    restated: Restated,
    first: PerBase<u64>,
    first_number: u64,
    first_round: u16,
    block: Block,
}

/// The current block, and the complete one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Block {
    number: u16,
    /// Whether the sums of the previous block are known.
    follows: bool,
    /// Slices before the block.
    slices: u64,
    /// Σ x before the block.
    before: PerBase<u64>,
    /// Σ x of the block before it.
    last: PerBase<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Restated {
    cycles: u64,
    weight: u64,
}

/// The position of a slice in the session's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Slices of the session before it.
    pub number: u64,
    /// Rounds before the one for which it was drawn, modulo 2¹⁶.
    pub round: u16,
    /// Blocks of rounds before its own, modulo 2¹⁶.
    pub block: u16,
}

impl GroupMoments {
    /// The moments of a group with this share of a round's slices, and no slice yet.
    pub fn of(share: u16) -> GroupMoments {
        GroupMoments { share, ..GroupMoments::default() }
    }

    /// The group's share, its slices in a round, for which all sums are stated.
    pub fn share(&self) -> u16 {
        self.share
    }

    /// Cycles in its slices, not restated.
    pub fn counted_cycles(&self) -> u64 {
        self.sums[Base::Cycles as usize].wrapping_add(self.restated.cycles)
    }

    /// The number of slices of the session up to its last one, or, of a group with several slices
    /// in a round, up to the first of its last round.
    pub fn last_number(&self) -> u64 {
        self.first_number + u64::from(self.slices > 0)
    }

    /// The group's slices at the present share, in units of [`ONE`].
    pub fn weight(&self) -> u64 {
        self.slices.wrapping_mul(ONE).wrapping_add(self.restated.weight)
    }

    /// Adds one slice of the counters in the mask `used`, for a session whose rounds have `round`
    /// slices.
    pub fn add(&mut self, slice: &Counts, used: u16, turn: Turn, round: u64) {
        let x = [slice[Pinned::Cycles], slice[Pinned::Instructions]];
        if x == [0; 2] {
            // The slice ended before it began: there are no events without instructions or cycles.
            return;
        }
        if turn.block != self.block.number {
            self.end_block(used, turn.block, round);
        }
        let paired = self.slices > 0;
        let is_first = !paired || turn.round != self.first_round;
        let (near, weight) = self.pair(turn, is_first, round);
        let dx = [difference(x[0], self.first[0]), difference(x[1], self.first[1])];
        let weigh = |difference: i64| difference.wrapping_mul(weight as i64);
        if paired {
            choose(&mut self.pairs, near).add(weight, dx, dx.map(weigh));
        }
        let inverses = Inverses::of(self.sums);
        for_each_counter_unrolled(used, |counter| {
            let (event, y) = (&mut self.events[counter], slice.general[counter]);
            if paired {
                let dy = difference(y, event.first);
                let pairs = choose(&mut event.pairs, near);
                pairs.add(dy, weight as i64, dx, event.events, &inverses);
            }
            if y > event.peaks[PEAKS - 1].events {
                insert(&mut event.peaks, Peak { events: y, bases: x });
            }
            event.events = event.events.wrapping_add(y);
            if is_first {
                event.first = y;
            }
        });
        for (sum, x) in self.sums.iter_mut().zip(x) {
            *sum = sum.wrapping_add(x);
        }
        if is_first {
            self.first = x;
            self.first_number = turn.number;
            self.first_round = turn.round;
        }
        self.slices += 1;
    }

    /// Returns whether a slice is near the slice that it is paired with, and the weight of the
    /// pair.
    fn pair(&self, turn: Turn, is_first: bool, round: u64) -> (bool, u64) {
        let distance = turn.number.wrapping_sub(self.first_number);
        match self.share {
            1 if distance < round => (true, weight(distance, round)),
            _ => (!is_first, WEIGHT as u64),
        }
    }

    /// Ends the current block: pairs its sums with those of the previous block, if both are
    /// complete. Runs in the overflow path, once in a block.
    #[cold]
    #[inline(never)]
    fn end_block(&mut self, used: u16, next: u16, round: u64) {
        let slices = self.slices.wrapping_sub(self.block.slices);
        let is_whole = slices == block_rounds(round).wrapping_mul(u64::from(self.share));
        let before = self.block.before;
        let sums = [0, 1].map(|base| self.sums[base].wrapping_sub(before[base]));
        let last = self.block.last;
        let dx = [difference(sums[0], last[0]), difference(sums[1], last[1])];
        let is_paired = is_whole && self.block.follows;
        let inverses = Inverses::of(self.sums);
        let weigh = |difference: i64| difference.wrapping_mul(WEIGHT);
        if is_paired {
            let weight = slices.wrapping_mul(WEIGHT as u64);
            self.pairs[BLOCKS].add(weight, dx, dx.map(weigh));
        }
        for_each_counter(used, |counter| {
            let event = &mut self.events[counter];
            let sum = event.events.wrapping_sub(event.before_block);
            if is_paired {
                let dy = difference(sum, event.last_block);
                event.pairs[BLOCKS].add(dy, WEIGHT, dx, event.events, &inverses);
            }
            (event.before_block, event.last_block) = (event.events, sum);
        });
        self.block = Block {
            number: next,
            follows: is_whole,
            slices: self.slices,
            before: self.sums,
            last: sums,
        };
    }

    /// Marks the current block as incomplete.
    fn break_block(&mut self) {
        self.block.follows = false;
        // No block has this number of slices.
        self.block.slices = u64::MAX / 2;
    }
}

/// Selects near or far.
fn choose<T>([near, far, _]: &mut ByKind<T>, is_near: bool) -> &mut T {
    if is_near { near } else { far }
}

/// Difference of two counts, which have at most 48 bits, so that it fits.
fn difference(now: u64, then: u64) -> i64 {
    now.wrapping_sub(then) as i64
}

/// Product of two numbers: one multiplication, 64 by 64 bits.
fn product(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

#[cfg(test)]
mod tests;
