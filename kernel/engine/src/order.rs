//! The random order of the groups: a new one in every round, one step at a time. A group is in it as
//! often as it has slices in a round.
//!
//! A forward Fisher–Yates shuffle does not need the whole permutation before its first element is
//! used, so each slice draws its own: the overflow path does the same small work every time, at the
//! end of a round too. Integers only.

use alloc::vec::Vec;
use core::iter::repeat_n;

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

/// Draws each group as often as its share says in every round.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    random: Xoshiro256PlusPlus,
    /// Group numbers, each as often as its share says, in the order of this round.
    groups: Vec<u16>,
    drawn: usize,
}

impl Order {
    /// An order of groups with these shares, the same for the same `seed` and `stream`.
    pub(crate) fn new(shares: impl Iterator<Item = u16>, seed: u64, stream: u32) -> Order {
        // SplitMix's golden ratio spreads neighbouring streams over the seed's whole range.
        let seed = seed ^ u64::from(stream).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let slices = (0..).zip(shares).flat_map(|(group, share)| repeat_n(group, share.into()));
        Order { random, groups: slices.collect(), drawn: 0 }
    }

    /// The next group.
    pub(crate) fn draw(&mut self) -> u16 {
        if self.drawn >= self.groups.len() {
            self.drawn = 0;
        }
        let left = (self.groups.len() - self.drawn) as u64;
        // The high half of a product instead of a rejection loop keeps the work bounded; the bias
        // is at most left / 2^64.
        let offset = (u128::from(self.random.next_u64()) * u128::from(left)) >> 64;
        let pick = self.drawn + offset as usize;
        let here = self.drawn;
        self.drawn += 1;
        let Some(&group) = self.groups.get(pick) else { return 0 };
        self.groups.swap(here, pick);
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn order(groups: usize, seed: u64, stream: u32) -> Order {
        Order::new(repeat_n(1, groups), seed, stream)
    }

    #[test]
    fn each_round_draws_each_group_as_often_as_its_share_says() {
        let mut order = Order::new([1, 3, 2].into_iter(), 5, 0);
        let mut rounds = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let round: Vec<u16> = (0..6).map(|_| order.draw()).collect();
            let mut seen = round.clone();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 1, 1, 2, 2]);
            rounds.insert(round);
        }
        assert!(rounds.len() > 20);
    }

    #[test]
    fn each_round_draws_each_group_once() {
        let mut order = order(7, 1, 0);
        for _ in 0..50 {
            let mut seen: Vec<u16> = (0..7).map(|_| order.draw()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..7).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_permutation_is_as_likely() {
        let mut order = order(3, 42, 9);
        let mut times = vec![0_u32; 27];
        for _ in 0..6000 {
            let code = (0..3).fold(0, |code, _| code * 3 + usize::from(order.draw()));
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
            (0..100).map(|_| order.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, 2), draws(1, 2));
        assert_ne!(draws(1, 2), draws(1, 3));
        assert_ne!(draws(1, 2), draws(2, 2));
    }
}
