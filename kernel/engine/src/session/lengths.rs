//! Lengths of the slices of each round: short in a session's first rounds (decision 25), and in one
//! round of each pair if the session has paired shares (decision 34).
//!
//! A drawn slice has the length of its round. An entry is redrawn when its round is folded, for the
//! round [`ROUNDS`] later: slices are drawn fewer rounds ahead.

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};
use tally_abi::{SessionConfig, Shares, session::MIN_SLICE};

use crate::setup::{PAIR_HALVINGS, first_multiplier};

/// Maximum number of halvings of a session's first slices. A program's start has events that never
/// recur, such as the first use of each page. In rounds of short slices each group counts some.
const MAX_HALVINGS: u16 = 5;
/// Rounds whose lengths are drawn in advance: twice the number of slices drawn in advance.
const ROUNDS: usize = 128;

/// Number of halvings of the slices of each round.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Lengths {
    halvings: [u8; ROUNDS],
    /// Number of rounds with first slices.
    first: u16,
    /// Whether the first rounds are over.
    has_begun: bool,
    /// Rounds whose entries have been redrawn, modulo 2¹⁶.
    renewed: u16,
    /// Generator of the order in each pair; `None` if all rounds are alike.
    random: Option<Xoshiro256PlusPlus>,
}

impl Lengths {
    /// Makes the lengths for a session with this configuration. Equal seeds give equal lengths.
    pub(super) fn new(config: SessionConfig, seed: u64) -> Lengths {
        let length = config.slice.length() * u64::from(first_multiplier(config.slice));
        let shortest = (length / MIN_SLICE).checked_ilog2().unwrap_or(0);
        let halvings = MAX_HALVINGS.min(shortest as u16);
        let is_paired = config.shares == Shares::Paired;
        let random = is_paired.then(|| Xoshiro256PlusPlus::seed_from_u64(!seed));
        let step = 1 + u16::from(is_paired);
        let mut lengths = Lengths {
            halvings: [0; ROUNDS],
            first: step * halvings,
            has_begun: false,
            renewed: 0,
            random,
        };
        (0..ROUNDS as u16).step_by(2).for_each(|round| lengths.draw(round));
        let rounds = lengths.halvings.iter_mut().zip(0_u16..);
        rounds.for_each(|(entry, round)| *entry += halvings.saturating_sub(round / step) as u8);
        lengths
    }

    /// Number of halvings of the slices of a round.
    #[inline(always)]
    pub(super) fn halvings(&self, round: u16) -> u8 {
        self.halvings[usize::from(round) % ROUNDS]
    }

    /// Returns whether the session is still in its first rounds.
    pub(super) fn is_starting(&self) -> bool {
        !self.has_begun
    }

    /// Redraws the entries of rounds before `round`, whose slices are all folded.
    #[inline]
    pub(super) fn renew(&mut self, round: u16) {
        while round.wrapping_sub(self.renewed) >= 2 {
            self.draw(self.renewed);
            self.renewed = self.renewed.wrapping_add(2);
        }
        self.has_begun |= round >= self.first;
    }

    /// Draws the lengths of the pair of rounds that starts at `round`.
    fn draw(&mut self, round: u16) {
        let place = usize::from(round) % ROUNDS;
        let short = self.random.as_mut().map(|random| random.next_u64() >> 63);
        let entries = self.halvings[place..].iter_mut().zip(0..2);
        entries.for_each(|(entry, of_pair)| {
            *entry = if short == Some(of_pair) { PAIR_HALVINGS } else { 0 };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;
    use tally_abi::Slice;

    fn of(length: u64, shares: Shares, seed: u64) -> Lengths {
        let slice = Slice::Cycles(length);
        Lengths::new(SessionConfig { slice, shares, ..SessionConfig::default() }, seed)
    }

    #[test]
    fn slices_double_from_round_to_round_at_the_start() {
        let lengths = of(200_000, Shares::Planned, 1);
        let halvings: Vec<u8> = (0..8).map(|round| lengths.halvings(round)).collect();
        assert_eq!(halvings, [5, 4, 3, 2, 1, 0, 0, 0]);
        assert_eq!(of(2 * MIN_SLICE, Shares::Planned, 1).halvings(0), 1);
    }

    #[test]
    fn the_start_does_not_come_again() {
        let mut lengths = of(200_000, Shares::Adaptive, 1);
        for round in 0..=u16::MAX {
            lengths.renew(round);
            assert_eq!(lengths.is_starting(), round < 5, "{round}");
            assert!(round < 5 || lengths.halvings(round) == 0, "{round}");
        }
        lengths.renew(0);
        assert!(!lengths.is_starting());
        assert_eq!(lengths.halvings(0), 0);
    }

    #[test]
    fn one_round_of_each_pair_is_short_and_which_is_drawn_anew() {
        let mut lengths = of(20_000, Shares::Paired, 7);
        let pair = |lengths: &Lengths, round| [round, round + 1].map(|r| lengths.halvings(r));
        assert!([[3, 5], [5, 3]].contains(&pair(&lengths, 0)));
        let mut firsts = Vec::new();
        for round in (6..6 + 40 * ROUNDS as u16).step_by(2) {
            lengths.renew(round);
            let pair = pair(&lengths, round);
            assert!([[0, 2], [2, 0]].contains(&pair), "{round}: {pair:?}");
            firsts.push(pair[0] == 2);
        }
        let short = firsts.iter().filter(|short| **short).count();
        assert!(short.abs_diff(firsts.len() / 2) < firsts.len() / 12, "{short}");
        assert_ne!(firsts[..64], firsts[64..128]);
    }

    #[test]
    fn seeds_decide_the_order() {
        let seeded = |seed| of(20_000, Shares::Paired, seed).halvings;
        assert_eq!(seeded(1), seeded(1));
        assert_ne!(seeded(1), seeded(2));
    }
}
