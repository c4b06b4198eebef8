//! Whose turn it is on the counters, of several sessions of one program (decision 30).

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

use crate::Session;

/// Draws the session of each turn at random: in proportion to the slices of a round, so that the
/// events of all sessions are counted for the same share of the time. At random, as the slices of a
/// session are then no sample of the same places of a program that is in step with the turns.
#[derive(Clone, Debug)]
pub struct Turns(Xoshiro256PlusPlus);

impl Turns {
    /// Turns that are the same for the same `seed` and `stream`.
    pub fn new(seed: u64, stream: u64) -> Turns {
        Turns(Xoshiro256PlusPlus::seed_from_u64(seed ^ stream.rotate_right(16)))
    }

    /// The index of the session whose turn is next. `None` without sessions.
    pub fn draw<'a>(
        &mut self,
        sessions: impl Iterator<Item = &'a Session> + Clone,
    ) -> Option<usize> {
        let slices = || sessions.clone().map(|session| session.round());
        let all: u64 = slices().sum();
        let mut left = ((u128::from(self.0.next_u64()) * u128::from(all)) >> 64) as u64;
        slices().position(|slices| {
            let is_drawn = left < slices;
            left = left.wrapping_sub(slices);
            is_drawn
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use tally_abi::SessionConfig;

    use super::*;
    use crate::{Counts, Demand, Layout, Pinned, Selector, Widths};

    /// A session of `events` events that exclude each other.
    fn session(id: u32, events: u32) -> Session {
        let layout = Layout { general: 1, reference: false, extra: 0, widths: Widths::of(48) };
        let demands: Vec<_> =
            (0..events).map(|e| Demand::general(Selector(u64::from(e)), 1)).collect();
        Session::open(id, 1, SessionConfig::default(), 1, demands, &layout).unwrap()
    }

    #[test]
    fn turns_are_in_proportion_to_the_groups_and_at_random() {
        let sessions = [session(1, 6), session(2, 1), session(3, 3)];
        let mut turns = Turns::new(1, 0);
        let drawn: Vec<_> =
            (0..10_000).map(|_| turns.draw(sessions.iter()).expect("there are sessions")).collect();
        let count = |index| drawn.iter().filter(|other| **other == index).count();
        for (index, groups) in [6, 1, 3].into_iter().enumerate() {
            assert!(count(index).abs_diff(1000 * groups) < 200, "{index}: {}", count(index));
        }
        assert!(drawn.windows(2).any(|pair| pair[0] == pair[1]));
        assert_eq!(turns.draw([].iter()), None);
    }

    #[test]
    fn a_session_of_one_group_is_exact_until_another_has_a_turn() {
        let mut session = session(1, 1);
        let mut counted = Counts::default();
        (counted[Pinned::Cycles], counted.general[0]) = (1000, 10);
        session.switch_in(0);
        session.credit(&counted, 1, 1000);
        let kind = |session: &Session| session.reading(0).value;
        assert_eq!(kind(&session), tally_abi::Value::Exact { count: 10 });
        session.pass(&counted, 1000, 2000);
        assert!(matches!(kind(&session), tally_abi::Value::NotMeasured { .. }));
        assert_eq!((session.passed()[Pinned::Cycles], session.cycles()), (2000, 2000));
    }
}
