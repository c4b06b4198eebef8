//! What the overflow path remembers of a group's slices: sums of integers, from which
//! [`crate::estimate`] computes estimates and errors later.
//!
//! The slices of one group are at random places in each round. Their spread about a common mean
//! would blame the program's slow changes on sampling, so the spread between slices that are close is
//! kept instead, as sums of products of differences: of each slice to the first of its group in its
//! round, and of that one to the first of the round before. So two slices of one round are as far
//! apart as any two of it on average, however many there are. As slices that are far apart differ
//! more, pairs closer than a round and pairs further apart are kept separately.
//!
//! A sum of squares says little of a tail that few slices have reached yet; the largest slices of
//! each event say more, and so are kept as they are.
//!
//! Where a group's share of a round changes, all sums are restated as if it had always been the new
//! one (decision 11): the share then is one, and whoever reads the sums need not know of others.
//!
//! [`GroupMoments::add`] runs in the overflow path: no allocation, no floating point, no panic, at
//! most eight counters. The sums cannot overflow: a slice is at most 2³⁰ cycles, so a difference is
//! below 2³⁴ at sixteen events a cycle, and 2⁵⁸ slices fit, or 2³⁹ restated from the smallest share
//! to the largest.

use crate::{Always, Counts, MAX_GENERAL, hardware::for_each_counter_unrolled};

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

/// Sums over pairs of slices: of pairs closer than a round, then of the others.
pub type ByDistance<T> = [T; 2];

/// A slice, or a pair of them, at the share of now: the unit of sums that count them. Slices at
/// another share count by the square of the ratio of the shares.
pub const ONE: u64 = 1 << 16;

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
    /// How many, in units of [`ONE`].
    pub pairs: u64,
    /// Σ of the distances, in slices, in units of [`ONE`].
    pub distance: u64,
    /// Σ Δx², for each base x.
    pub squares: PerBase<i128>,
}

/// The slices of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventMoments {
    /// Σ y: events in all slices.
    pub events: u64,
    /// What restating left of it below one event, in 2⁻³².
    pub fraction: u32,
    /// Pairs of slices.
    pub pairs: ByDistance<EventPairs>,
    /// The slices with the most events, from the first: the tail of their distribution.
    pub peaks: [Peak; PEAKS],
    first: u64,
}

/// How many of the largest slices of an event are remembered.
pub const PEAKS: usize = 4;

/// One slice of one event, as it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Events in it; 0 if there was no such slice.
    pub events: u64,
    /// Each base in it.
    pub bases: PerBase<u64>,
}

/// The slices of one group: its bases, and the event on each of its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupMoments {
    /// Slices in which anything was counted, as they were.
    pub slices: u64,
    share: u16,
    /// Σ x, for each base.
    pub sums: PerBase<u64>,
    /// Pairs of slices.
    pub pairs: ByDistance<GroupPairs>,
    /// By counter.
    pub events: [EventMoments; MAX_GENERAL],
    /// What restating took from the cycles, and added to the slices in units of [`ONE`].
    restated: Restated,
    first: PerBase<u64>,
    first_number: u64,
    first_round: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Restated {
    cycles: u64,
    weight: u64,
}

/// When a group has a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Slices of the session before it.
    pub number: u64,
    /// Rounds before that for which it was drawn, modulo 2³².
    pub round: u32,
}

impl GroupMoments {
    /// Of a group that has this share of a round's slices, and no slice yet.
    pub fn of(share: u16) -> GroupMoments {
        GroupMoments { share, ..GroupMoments::default() }
    }

    /// The group's share, by which all sums are stated: its slices in a round.
    pub fn share(&self) -> u16 {
        self.share
    }

    /// Cycles in its slices, as they were.
    pub fn counted_cycles(&self) -> u64 {
        self.sums[Base::Cycles as usize].wrapping_add(self.restated.cycles)
    }

    /// Its slices at the share of now, in units of [`ONE`].
    pub fn weight(&self) -> u64 {
        self.slices.wrapping_mul(ONE).wrapping_add(self.restated.weight)
    }

    /// Takes in one slice of the counters in the mask `used`, of a session whose rounds have
    /// `round` slices.
    pub fn add(&mut self, slice: &Counts, used: u8, turn: Turn, round: u64) {
        let x = [slice[Always::Cycles], slice[Always::Instructions]];
        if x == [0; 2] {
            // It ended before it began: events need instructions or cycles.
            return;
        }
        let paired = self.slices > 0;
        let distance = turn.number.wrapping_sub(self.first_number);
        let near = distance < round;
        let is_first = !paired || turn.round != self.first_round;
        let dx = [difference(x[0], self.first[0]), difference(x[1], self.first[1])];
        if paired {
            let pairs = choose(&mut self.pairs, near);
            pairs.pairs = pairs.pairs.wrapping_add(ONE);
            pairs.distance = pairs.distance.wrapping_add(distance.wrapping_mul(ONE));
            for (square, dx) in pairs.squares.iter_mut().zip(dx) {
                *square += product(dx, dx);
            }
        }
        for_each_counter_unrolled(used, |counter| {
            let (event, y) = (&mut self.events[counter], slice.general[counter]);
            if paired {
                let dy = difference(y, event.first);
                let pairs = choose(&mut event.pairs, near);
                pairs.squares += product(dy, dy);
                for (sum, dx) in pairs.products.iter_mut().zip(dx) {
                    *sum += product(dy, dx);
                }
            }
            if y > event.peaks[PEAKS - 1].events {
                keep(&mut event.peaks, Peak { events: y, bases: x });
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

    /// States all sums as if the group had always had `share` of a round's slices: those that say
    /// what was counted by the ratio of the shares, and those that say what the error is by as much
    /// as makes the same error of it (decision 11). In the overflow path, between two slices of the
    /// group, once in a change of shares; some six hundred instructions.
    #[cold]
    #[inline(never)]
    pub fn restate(&mut self, share: u16, round: u64) {
        let (old, new) = (u64::from(self.share).max(1), u64::from(share));
        self.share = share;
        if self.slices == 0 {
            return;
        }
        let ratio = (new << 32) / old;
        let left = |share: u64| u128::from(round.saturating_sub(share).max(1));
        let squared = (u128::from(ratio) * u128::from(ratio)) >> 32;
        let squared = (squared * left(old) / left(new)) as u64;
        let (cycles, weight) = (self.counted_cycles(), self.weight());
        self.sums = self.sums.map(|sum| ((u128::from(sum) * u128::from(ratio)) >> 32) as u64);
        self.restated.cycles = cycles.wrapping_sub(self.sums[Base::Cycles as usize]);
        let weight = times(weight.into(), squared) as u64;
        self.restated.weight = weight.wrapping_sub(self.slices.wrapping_mul(ONE));
        for pairs in &mut self.pairs {
            pairs.pairs = times(pairs.pairs.into(), squared) as u64;
            pairs.distance = times(pairs.distance.into(), squared) as u64;
            pairs.squares = pairs.squares.map(|sum| times(sum, squared));
        }
        for event in &mut self.events {
            let whole = u128::from(event.events) * u128::from(ratio)
                + ((u128::from(event.fraction) * u128::from(ratio)) >> 32);
            (event.events, event.fraction) = ((whole >> 32) as u64, whole as u32);
            for pairs in &mut event.pairs {
                pairs.squares = times(pairs.squares, squared);
                pairs.products = pairs.products.map(|sum| times(sum, squared));
            }
        }
    }
}

/// `sum` times `factor`, which is in 2⁻³², rounded to the nearest: of a rare event it may be small.
fn times(sum: i128, factor: u64) -> i128 {
    let factor = i128::from(factor);
    let low = (i128::from(sum as u32) * factor + (1 << 31)) >> 32;
    (sum >> 32).wrapping_mul(factor).wrapping_add(low)
}

/// Puts `peak` where it belongs, and the least of them out. The longer a session runs, the rarer.
#[cold]
#[inline(never)]
fn keep(peaks: &mut [Peak; PEAKS], peak: Peak) {
    peaks[PEAKS - 1] = peak;
    for place in (1..PEAKS).rev() {
        if peaks[place].events <= peaks[place - 1].events {
            return;
        }
        peaks.swap(place, place - 1);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(cycles: u64, events: u64) -> Counts {
        let mut counts = Counts::default();
        counts[Always::Cycles] = cycles;
        counts[Always::Instructions] = 2 * cycles;
        counts.general[0] = events;
        counts
    }

    #[test]
    fn restating_there_and_back_changes_next_to_nothing() {
        let mut moments = GroupMoments::of(2);
        for (round, number) in (0..).zip(0..40) {
            let turn = Turn { number: 5 * number, round };
            moments.add(&slice(1000 + number, 100 * (1 + number % 3)), 1, turn, 20);
        }
        let before = moments;
        for share in [7, 1, 19, 2] {
            moments.restate(share, 20);
        }
        let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-4 * b.abs() + 1e-4, "{a} {b}");
        let (now, then) = (&moments.events[0], &before.events[0]);
        let events =
            |event: &EventMoments| event.events as f64 + f64::from(event.fraction) / 2_f64.powi(32);
        near(events(now), events(then));
        near(moments.weight() as f64, before.weight() as f64);
        for distance in [0, 1] {
            near(now.pairs[distance].squares as f64, then.pairs[distance].squares as f64);
            near(moments.pairs[distance].pairs as f64, before.pairs[distance].pairs as f64);
        }
        assert_eq!(moments.counted_cycles(), before.counted_cycles());
    }

    #[test]
    fn a_share_twice_as_large_makes_twice_the_count_of_what_was() {
        let mut moments = GroupMoments::of(2);
        moments.add(&slice(1000, 10), 1, Turn { number: 0, round: 0 }, 10);
        moments.restate(4, 10);
        moments.add(&slice(1000, 10), 1, Turn { number: 12, round: 1 }, 10);
        assert_eq!((moments.sums, moments.events[0].events), ([3000, 6000], 30));
        // (4/2)² · (10 − 2)/(10 − 4), and one.
        let expected = (4.0 * 8.0 / 6.0 + 1.0) * ONE as f64;
        assert!((moments.weight() as f64 - expected).abs() < 2.0);
        assert_eq!((moments.slices, moments.counted_cycles()), (2, 2000));
    }

    #[test]
    fn the_largest_slices_are_kept_in_order() {
        let mut moments = GroupMoments::of(1);
        for (round, events) in (0..).zip([3, 9, 1, 4, 8, 8, 2]) {
            let turn = Turn { number: u64::from(round), round };
            moments.add(&slice(100, events), 1, turn, 2);
        }
        assert_eq!(moments.events[0].peaks.map(|peak| peak.events), [9, 8, 8, 4]);
    }
}
