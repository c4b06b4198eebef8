//! The random order of the groups: a new order in every round, drawn one slice at a time. A round
//! contains each group as often as its share.
//!
//! A block has as many rounds as a round has slices. It is a random Latin square: each group has
//! each place in the round equally often. So events of a program that is in step with the rounds
//! are not counted more often in one group than in another (decision 18).
//!
//! The square is cyclic, with its rows and columns permuted: the slice at place c of round r is the
//! one laid out at (column c + shift r), modulo their number. A forward Fisher–Yates shuffle does
//! not need the whole permutation before its first element is used, so each slice of a block's
//! first round draws its column and each round its shift: if rows are folded in the overflow path,
//! drawing is the same bounded work every time. Integers only.
//!
//! New shares are dealt and laid out outside of that path ([`Order::deal`]); the next round adopts
//! them by exchanging two lists, and begins a block.

use alloc::{boxed::Box, vec::Vec};
use core::{iter::repeat_n, mem};

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

/// Minimum number of rounds of a block.
const LEAST_BLOCK: u64 = 10;

/// Rounds of a block, for rounds of `round` slices: several squares if they are small. In a square
/// of few rounds each round's order determines much of the others', which makes estimates less
/// certain for events whose period differs from the rounds'.
pub(crate) fn block_rounds(round: u64) -> u64 {
    round * LEAST_BLOCK.div_ceil(round.max(1)).max(1)
}

/// Draws each group as often as its share in every round.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    random: Xoshiro256PlusPlus,
    round: Round,
    /// The next round with new shares.
    coming: Round,
    is_coming: bool,
    /// The square's columns, by place in the round.
    columns: Shuffle,
    /// The square's rows, by round of the block.
    shifts: Shuffle,
    /// The current round's shift.
    shift: usize,
    /// Slices of the round drawn so far.
    drawn: usize,
    /// Rounds of the block drawn as a whole.
    block_rounds: usize,
    /// Blocks before this one, modulo 2¹⁶.
    block: u16,
    /// Rounds drawn as a whole.
    rounds: u64,
}

#[derive(Clone, Debug)]
struct Round {
    /// Group numbers, each as often as its share.
    slices: Vec<u16>,
    /// Shares by group.
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

/// A permutation that is drawn one element after the other, repeatedly.
#[derive(Clone, Debug)]
struct Shuffle(Box<[u32]>);

impl Shuffle {
    /// Makes a permutation of `elements` elements: the numbers below `below`, each equally often.
    fn of(elements: usize, below: usize) -> Shuffle {
        Shuffle((0..below as u32).cycle().take(elements).collect())
    }

    /// Draws the element at `index`; the elements before it are drawn already.
    fn draw(&mut self, index: usize, random: &mut Xoshiro256PlusPlus) -> usize {
        let left = self.0.len().saturating_sub(index) as u64;
        // The high half of a product instead of a rejection loop keeps the work bounded; the bias
        // is at most left / 2^64.
        let offset = (u128::from(random.next_u64()) * u128::from(left)) >> 64;
        let pick = index + offset as usize;
        if pick < self.0.len() {
            self.0.swap(index, pick);
        }
        self.at(index)
    }

    fn at(&self, index: usize) -> usize {
        self.0.get(index).copied().unwrap_or_default() as usize
    }
}

/// A drawn slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draw {
    pub(crate) group: u16,
    /// The group's slices in its round.
    pub(crate) share: u16,
    /// Rounds before its own, modulo 2¹⁶: 16 bits, so that a switch's first cache line has room.
    pub(crate) round: u16,
    /// Blocks before its own, modulo 2¹⁶.
    pub(crate) block: u16,
}

impl Order {
    /// Makes an order of groups with these shares; equal `seed` and `stream` give equal orders.
    pub(crate) fn new(shares: Box<[u16]>, seed: u64, stream: u32) -> Order {
        // SplitMix's golden ratio spreads neighbouring streams over the seed's whole range.
        let seed = seed ^ u64::from(stream).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut round = Round { slices: Vec::new(), shares };
        round.lay_out();
        let length = round.slices.len();
        let mut shifts = Shuffle::of(block_rounds(length as u64) as usize, length);
        Order {
            shift: shifts.draw(0, &mut random),
            columns: Shuffle::of(length, length),
            shifts,
            random,
            coming: round.clone(),
            round,
            is_coming: false,
            drawn: 0,
            block_rounds: 0,
            block: 0,
            rounds: 0,
        }
    }

    /// The shares dealt last.
    pub(crate) fn shares(&self) -> &[u16] {
        if self.is_coming { &self.coming.shares } else { &self.round.shares }
    }

    /// Rounds drawn as a whole.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Deals new shares, of a round of the same length, from the next round on. May allocate: not
    /// in the overflow path.
    pub(crate) fn deal(&mut self, shares: &[u16]) {
        self.is_coming = false;
        self.coming.shares.copy_from_slice(shares);
        self.coming.lay_out();
        self.is_coming = true;
    }

    /// Draws the next slice.
    #[inline]
    pub(crate) fn draw(&mut self) -> Draw {
        let length = self.round.slices.len();
        if self.drawn >= length {
            self.begin_round();
        }
        if self.block_rounds == 0 {
            self.draw_column();
        }
        let column = self.columns.at(self.drawn);
        self.drawn += 1;
        let place = column + self.shift;
        let place = if place >= length { place - length } else { place };
        let Some(&group) = self.round.slices.get(place) else { return Draw::default() };
        let share = self.round.shares.get(usize::from(group)).copied().unwrap_or_default();
        Draw { group, share, round: self.rounds as u16, block: self.block }
    }

    /// Begins a round, and a block if it is time for one.
    #[cold]
    #[inline(never)]
    fn begin_round(&mut self) {
        self.drawn = 0;
        self.rounds += 1;
        self.block_rounds += 1;
        let is_dealt = mem::take(&mut self.is_coming);
        if is_dealt {
            mem::swap(&mut self.round, &mut self.coming);
        }
        if is_dealt || self.block_rounds >= self.shifts.0.len() {
            self.block_rounds = 0;
            self.block = self.block.wrapping_add(1);
        }
        self.shift = self.shifts.draw(self.block_rounds, &mut self.random);
    }

    /// Draws the next slice's column, in a block's first round.
    #[cold]
    #[inline(never)]
    fn draw_column(&mut self) {
        self.columns.draw(self.drawn, &mut self.random);
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
    fn each_block_gives_each_group_each_place_as_often_as_its_share_says() {
        let shares = [1, 3, 2];
        let mut order = Order::new(shares.into(), 11, 0);
        let mut squares = std::collections::BTreeSet::new();
        for block in 0..50 {
            let mut times = [[0; 6]; 3];
            let mut square = Vec::new();
            for _ in 0..block_rounds(6) {
                let round: Vec<Draw> = (0..6).map(|_| order.draw()).collect();
                for (place, draw) in round.iter().enumerate() {
                    assert_eq!(draw.block, block);
                    times[usize::from(draw.group)][place] += 1;
                }
                square.extend(round.iter().map(|draw| draw.group));
            }
            assert_eq!(times, shares.map(|share| [2 * share; 6]));
            squares.insert(square);
        }
        assert_eq!(squares.len(), 50);
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
