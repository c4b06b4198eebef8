//! The random order of the groups: a new one in every round, one step at a time. A group is in it as
//! often as it has slices in a round.
//!
//! A forward Fisher–Yates shuffle does not need the whole permutation before its first element is
//! used, so each slice draws its own: the overflow path does the same small work every time, at the
//! end of a round too. Integers only.
//!
//! Other shares are dealt outside of that path ([`Order::deal`]) and laid out there; the next round
//! takes them by exchanging two lists.

use alloc::{boxed::Box, vec::Vec};
use core::{iter::repeat_n, mem};

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

/// Draws each group as often as its share says in every round.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    random: Xoshiro256PlusPlus,
    round: Round,
    /// What a later round is to be.
    coming: Round,
    is_coming: bool,
    drawn: usize,
    /// Rounds that were drawn whole.
    rounds: u64,
}

#[derive(Clone, Debug)]
struct Round {
    /// Group numbers, each as often as its share says, in the order of this round.
    slices: Vec<u16>,
    /// By group.
    shares: Box<[u16]>,
}

impl Round {
    fn lay_out(&mut self) {
        self.slices.clear();
        let groups = (0..).zip(&self.shares);
        let slices = groups.flat_map(|(group, share)| repeat_n(group, usize::from(*share)));
        self.slices.extend(slices);
    }
}

/// A slice that was drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draw {
    pub(crate) group: u16,
    /// The group's slices in its round.
    pub(crate) share: u16,
    /// Rounds before its own, modulo 2³².
    pub(crate) round: u32,
}

impl Order {
    /// An order of groups with these shares, the same for the same `seed` and `stream`.
    pub(crate) fn new(shares: Box<[u16]>, seed: u64, stream: u32) -> Order {
        // SplitMix's golden ratio spreads neighbouring streams over the seed's whole range.
        let seed = seed ^ u64::from(stream).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut round = Round { slices: Vec::new(), shares };
        round.lay_out();
        Order { random, coming: round.clone(), round, is_coming: false, drawn: 0, rounds: 0 }
    }

    /// The shares of the latest deal.
    pub(crate) fn shares(&self) -> &[u16] {
        if self.is_coming { &self.coming.shares } else { &self.round.shares }
    }

    /// Rounds that were drawn whole.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// From the next round on the groups have these shares, of a round of the same length. May
    /// allocate: not in the overflow path.
    pub(crate) fn deal(&mut self, shares: &[u16]) {
        self.is_coming = false;
        self.coming.shares.copy_from_slice(shares);
        self.coming.lay_out();
        self.is_coming = true;
    }

    /// The next slice.
    pub(crate) fn draw(&mut self) -> Draw {
        if self.drawn >= self.round.slices.len() {
            self.drawn = 0;
            self.rounds += 1;
            if mem::take(&mut self.is_coming) {
                mem::swap(&mut self.round, &mut self.coming);
            }
        }
        let left = (self.round.slices.len() - self.drawn) as u64;
        // The high half of a product instead of a rejection loop keeps the work bounded; the bias
        // is at most left / 2^64.
        let offset = (u128::from(self.random.next_u64()) * u128::from(left)) >> 64;
        let pick = self.drawn + offset as usize;
        let here = self.drawn;
        self.drawn += 1;
        let Some(&group) = self.round.slices.get(pick) else { return Draw::default() };
        self.round.slices.swap(here, pick);
        let share = self.round.shares.get(usize::from(group)).copied().unwrap_or_default();
        Draw { group, share, round: self.rounds as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn order(groups: usize, seed: u64, stream: u32) -> Order {
        Order::new(vec![1; groups].into(), seed, stream)
    }

    #[test]
    fn each_round_draws_each_group_as_often_as_its_share_says() {
        let mut order = Order::new([1, 3, 2].into(), 5, 0);
        let mut rounds = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let round: Vec<u16> = (0..6).map(|_| order.draw().group).collect();
            let mut seen = round.clone();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 1, 1, 2, 2]);
            rounds.insert(round);
        }
        assert!(rounds.len() > 20);
    }

    #[test]
    fn other_shares_begin_with_a_round_and_keep_its_length() {
        let mut order = Order::new([2, 2, 2].into(), 8, 0);
        let round = |order: &mut Order| {
            let draws: Vec<Draw> = (0..6).map(|_| order.draw()).collect();
            let times = |group| draws.iter().filter(|draw| draw.group == group).count();
            for draw in &draws {
                assert_eq!(times(draw.group), usize::from(draw.share));
                assert_eq!(draw.round, draws[0].round);
            }
            [times(0), times(1), times(2)]
        };
        assert_eq!(round(&mut order), [2, 2, 2]);
        order.draw();
        order.deal(&[1, 4, 1]);
        assert_eq!(order.shares(), [1, 4, 1]);
        let rest: Vec<Draw> = (0..5).map(|_| order.draw()).collect();
        assert!(rest.iter().all(|draw| (draw.share, draw.round) == (2, 1)));
        assert_eq!(round(&mut order), [1, 4, 1]);
        assert_eq!(round(&mut order), [1, 4, 1]);
        assert_eq!(order.rounds(), 3);
    }

    #[test]
    fn each_round_draws_each_group_once() {
        let mut order = order(7, 1, 0);
        for _ in 0..50 {
            let mut seen: Vec<u16> = (0..7).map(|_| order.draw().group).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..7).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_permutation_is_as_likely() {
        let mut order = order(3, 42, 9);
        let mut times = vec![0_u32; 27];
        for _ in 0..6000 {
            let code = (0..3).fold(0, |code, _| code * 3 + usize::from(order.draw().group));
            times[code] += 1;
        }
        let drawn: Vec<u32> = times.into_iter().filter(|n| *n > 0).collect();
        assert_eq!(drawn.len(), 6);
        // Five standard deviations of a binomial with p = 1/6.
        assert!(drawn.iter().all(|n| n.abs_diff(1000) < 145), "{drawn:?}");
    }

    #[test]
    fn seed_and_stream_decide() {
        let draws = |seed, stream| {
            let mut order = order(100, seed, stream);
            (0..100).map(|_| order.draw().group).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, 2), draws(1, 2));
        assert_ne!(draws(1, 2), draws(1, 3));
        assert_ne!(draws(1, 2), draws(2, 2));
    }
}
