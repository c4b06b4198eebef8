//! Adaptive shares: the groups with the least certain events get more slices.
//!
//! Neyman's allocation (decision 11): slices in proportion to the spread of a group's slices
//! relative to the count, because relative errors matter; never fewer than the plan's. It is
//! computed outside of the overflow path, some groups at a time, and takes effect with a round.
//!
//! Uses floating point: never in the overflow path.

use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;

use libm::floor;
use tally_abi::Shares;

use crate::group::Plan;

/// Maximum number of slices added to a round; up to it, as many as planned are added.
const MOST_EXTRA: u64 = 1 << 14;
/// Rounds for which shares stay unchanged: the spreads must be known better first, and a change has
/// a cost.
const REST_ROUNDS: u64 = 16;

/// Shares change if that lowers the sum of the squared errors below this fraction of it: a smaller
/// gain is mostly chance, and every change starts a new block of rounds.
const WORTH_IT: f64 = 0.95;

/// Planned shares, and the spreads of the groups.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    /// The plan's share of each group.
    planned: Box<[u16]>,
    /// Slices in a round.
    round: u64,
    /// Spreads of the groups computed so far.
    spreads: Vec<f64>,
    /// Rounds after which the shares may change again.
    not_before: u64,
}

impl Adaptive {
    /// Makes the state; `None` if shares do not adapt, or there is one group.
    pub(super) fn new(shares: Shares, plan: &Plan) -> Option<Adaptive> {
        if shares != Shares::Adaptive || plan.groups.len() < 2 {
            return None;
        }
        Some(Adaptive {
            planned: plan.groups.iter().map(|group| group.share).collect(),
            round: plan.round() + plan.round().min(MOST_EXTRA),
            spreads: Vec::with_capacity(plan.groups.len()),
            not_before: REST_ROUNDS,
        })
    }

    /// Slices in a round.
    pub(super) fn round(&self) -> u64 {
        self.round
    }

    /// The shares before any spread is known: in proportion to the plan's.
    pub(super) fn first_shares(&self) -> Vec<u16> {
        let planned: Vec<f64> = self.planned.iter().map(|share| f64::from(*share)).collect();
        self.allocate(&planned)
    }

    /// Returns whether shares may change after this many rounds.
    pub(super) fn is_due(&self, rounds: u64) -> bool {
        rounds >= self.not_before
    }

    /// The next groups whose spreads are needed, at most `count`.
    pub(super) fn next_groups(&self, count: usize) -> Range<usize> {
        let first = self.spreads.len();
        first..(first + count).min(self.planned.len())
    }

    /// Takes the spreads of [`Self::next_groups`]. When all are known, after `rounds` rounds,
    /// returns new shares if they are better than `shares`.
    pub(super) fn update(
        &mut self,
        spreads: Vec<f64>,
        shares: &[u16],
        rounds: u64,
    ) -> Option<Vec<u16>> {
        self.spreads.extend(spreads);
        if self.spreads.len() < self.planned.len() {
            return None;
        }
        let new = self.allocate(&self.spreads);
        let is_better = self.squared_error(&new) < WORTH_IT * self.squared_error(shares);
        self.spreads.clear();
        self.not_before = rounds + REST_ROUNDS;
        is_better.then_some(new)
    }

    /// The sum of the groups' squared relative errors with these shares.
    fn squared_error(&self, shares: &[u16]) -> f64 {
        let groups = self.spreads.iter().zip(shares);
        groups.map(|(spread, share)| spread * spread / f64::from(*share)).sum()
    }

    /// Shares of a whole round in proportion to `spreads`, at least the plan's.
    fn allocate(&self, spreads: &[f64]) -> Vec<u16> {
        let groups = || self.planned.iter().map(|share| f64::from(*share)).zip(spreads);
        let round = self.round as f64;
        let all: f64 = spreads.iter().sum();
        if all <= 0.0 {
            return self.first_shares();
        }
        // A group that would get less than its minimum gets the minimum, which leaves less for the
        // others: repeated until no further group is affected.
        let (mut scale, mut before) = (round / all, f64::INFINITY);
        while scale < before {
            before = scale;
            let (mut left, mut free) = (round, 0.0);
            for (planned, spread) in groups() {
                let is_free = scale * spread > planned;
                left -= if is_free { 0.0 } else { planned };
                free += if is_free { *spread } else { 0.0 };
            }
            scale = if free > 0.0 { scale.min(left / free) } else { scale };
        }
        // Rounding the running sum rounds each share up or down and keeps the total a round.
        let (mut sum, mut given) = (0.0, 0.0);
        let last = spreads.len() - 1;
        let rounded = groups().enumerate().map(|(group, (planned, spread))| {
            sum += planned.max(scale * spread);
            let until = if group == last { round } else { floor(sum + 0.5) };
            let share = until - given;
            given = until;
            share as u16
        });
        rounded.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adaptive(planned: &[u16], round: u64) -> Adaptive {
        let planned = planned.into();
        Adaptive { planned, round, spreads: Vec::new(), not_before: 0 }
    }

    #[test]
    fn shares_follow_the_spreads_above_the_minimum() {
        let adaptive = adaptive(&[1, 1, 1, 1, 1], 10);
        assert_eq!(adaptive.first_shares(), [2; 5]);
        assert_eq!(adaptive.allocate(&[0.0, 0.1, 0.1, 4.0, 3.0]), [1, 1, 1, 4, 3]);
        assert_eq!(adaptive.allocate(&[0.0, 0.0, 0.0, 0.0, 2.0]), [1, 1, 1, 1, 6]);
        assert_eq!(adaptive.allocate(&[0.0; 5]), [2; 5]);
    }

    #[test]
    fn every_group_keeps_its_minimum_and_all_make_a_round() {
        for seed in 1..500_u64 {
            let number = |index: u64, below: u64| (seed * 7919 + index * 104_729) % 1013 % below;
            let groups = 2 + seed as usize % 40;
            let planned: Vec<u16> = (0..groups).map(|g| 1 + number(g as u64, 9) as u16).collect();
            let spreads: Vec<f64> = (0..groups).map(|g| number(g as u64 + 7, 900) as f64).collect();
            let round = 2 * planned.iter().map(|share| u64::from(*share)).sum::<u64>();
            let shares = adaptive(&planned, round).allocate(&spreads);
            assert_eq!(shares.iter().map(|share| u64::from(*share)).sum::<u64>(), round);
            assert!(shares.iter().zip(&planned).all(|(share, planned)| share >= planned));
        }
    }
}
