//! Turns on the counters of several sessions of one program (decision 30).

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

use crate::{Counts, Session};

/// A drawn turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnTurn {
    /// Index of the turn's session.
    pub index: usize,
    /// Whether the turn is the first of a cycle: the last cycle is over, or a session is new.
    pub begins_cycle: bool,
}

/// Draws the session of each turn at random from those of a cycle, in which each session has as
/// many turns as its round has slices. So the events of all sessions are counted for the same share
/// of each cycle, and a session's round takes about one cycle: its slices are at random places of
/// the cycle, as the slices of a single session are of its rounds ([`crate::estimate`]). The order
/// is random so that the slices of a session do not always sample the same places of a program that
/// is in step with the turns.
#[derive(Clone, Debug)]
pub struct Turns(Xoshiro256PlusPlus);

impl Turns {
    /// Makes the generator; equal `seed` and `stream` give equal turns.
    pub fn new(seed: u64, stream: u64) -> Turns {
        Turns(Xoshiro256PlusPlus::seed_from_u64(seed ^ stream.rotate_right(16)))
    }

    /// Draws the session that has the next turn. `None` without sessions. [`Session::note_draw`] of
    /// each session has to follow. A session that is near a threshold of a pinned event has its
    /// turn out of order, so that its counter is preloaded; `ahead` returns what a session counted
    /// in others' turns and was not passed yet.
    pub fn draw<'a>(
        &mut self,
        sessions: impl Iterator<Item = &'a Session> + Clone,
        ahead: impl Fn(&Session) -> Counts,
    ) -> Option<DrawnTurn> {
        let left = |session: &Session| session.turns_left().unwrap_or_default();
        let is_new = sessions.clone().any(|session| session.turns_left().is_none());
        let begins_cycle = is_new || sessions.clone().map(left).sum::<u64>() == 0;
        let turns = || {
            let of = |session| if begins_cycle { Session::round(session) } else { left(session) };
            sessions.clone().map(of)
        };
        let all: u64 = turns().sum();
        let mut at = ((u128::from(self.0.next_u64()) * u128::from(all)) >> 64) as u64;
        let index = turns().position(|turns| {
            let is_drawn = at < turns;
            at = at.wrapping_sub(turns);
            is_drawn
        })?;
        let near = Turns::near_threshold(sessions, ahead);
        Some(DrawnTurn { index: near.unwrap_or(index), begins_cycle })
    }

    /// Returns the first session that can reach a threshold of a pinned event in a slice of
    /// another; `ahead` as for [`Self::draw`].
    pub fn near_threshold<'a>(
        mut sessions: impl Iterator<Item = &'a Session> + Clone,
        ahead: impl Fn(&Session) -> Counts,
    ) -> Option<usize> {
        let longest = sessions.clone().map(Session::slice_length).max().unwrap_or_default();
        sessions.position(|session| session.is_near_threshold(&ahead(session), longest))
    }
}

#[cfg(test)]
mod tests {
    use alloc::{boxed::Box, vec, vec::Vec};

    use tally_abi::SessionConfig;

    use super::*;
    use crate::{Demand, Layout, Passed, Pinned, Selector, Widths, bank::Page};

    /// A session of `events` mutually exclusive events.
    fn session(id: u32, events: u32) -> Session {
        let layout = Layout { general: 1, reference: false, extra: 0, widths: Widths::of(48) };
        let demands: Vec<_> =
            (0..events).map(|e| Demand::general(Selector(u64::from(e)), 1)).collect();
        Session::open(id, 1, SessionConfig::default(), 1, demands, &layout).unwrap()
    }

    fn draw(turns: &mut Turns, sessions: &mut [Session]) -> usize {
        let drawn = turns.draw(sessions.iter(), |_| Counts::default()).expect("there are sessions");
        for (index, session) in sessions.iter_mut().enumerate() {
            session.note_draw(drawn.begins_cycle, index == drawn.index);
        }
        drawn.index
    }

    #[test]
    fn each_cycle_has_a_round_of_every_session_at_random() {
        let mut sessions = [session(1, 6), session(2, 1), session(3, 3)];
        let mut turns = Turns::new(1, 0);
        let drawn: Vec<_> = (0..10_000).map(|_| draw(&mut turns, &mut sessions)).collect();
        let mut firsts = [0_usize; 3];
        for cycle in drawn.chunks(10) {
            let count = |index| cycle.iter().filter(|other| **other == index).count();
            assert_eq!([0, 1, 2].map(count), [6, 1, 3]);
            firsts[cycle[0]] += 1;
        }
        for (index, groups) in [6, 1, 3].into_iter().enumerate() {
            assert!(firsts[index].abs_diff(100 * groups) < 60, "{firsts:?}");
        }
        assert_eq!(turns.draw([].iter(), |_| Counts::default()), None);
    }

    #[test]
    fn a_new_session_begins_a_cycle() {
        let mut sessions = [session(1, 6), session(2, 3)];
        let mut turns = Turns::new(1, 0);
        let [first, _] = &mut sessions;
        (0..4).for_each(|_| assert_eq!(draw(&mut turns, core::slice::from_mut(first)), 0));
        let drawn: Vec<_> = (0..9).map(|_| draw(&mut turns, &mut sessions)).collect();
        assert_eq!(drawn.iter().filter(|index| **index == 1).count(), 3);
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
        session.pass(&Passed { counts: counted, ..Passed::default() }, 1000, 2000);
        assert!(matches!(kind(&session), tally_abi::Value::NotMeasured { .. }));
        assert_eq!((session.passed().counts[Pinned::Cycles], session.cycles()), (2000, 2000));
    }

    #[test]
    fn a_session_near_a_threshold_has_the_next_turn() {
        let demands = vec![Demand::pinned(Pinned::Cycles), Demand::general(Selector(1), 1)];
        let layout = Layout { general: 1, reference: false, extra: 0, widths: Widths::of(48) };
        let mut waits = Session::open(4, 1, SessionConfig::default(), 1, demands, &layout).unwrap();
        let pages: Vec<&'static Page> =
            (0..2).map(|_| &*Box::leak(Box::<Page>::default())).collect();
        assert!(waits.map_bank(Box::leak(Box::default()), pages.into(), |_| 0));
        let length = waits.slice_length();
        let sessions = [session(1, 60), waits];
        let drawn = |sessions: &[Session], ahead: u64| {
            let mut counts = Counts::default();
            counts[Pinned::Cycles] = ahead;
            let ahead = |of: &Session| if of.id() == 4 { counts } else { Counts::default() };
            Turns::new(1, 0).draw(sessions.iter(), ahead).expect("there are sessions").index
        };
        assert_eq!(drawn(&sessions, 0), 0, "most turns are the other session's");
        let mut sessions = sessions;
        sessions[1].set_threshold(0, Some(10 * length)).unwrap();
        let far = [0, 7 * length].map(|ahead| drawn(&sessions, ahead));
        let near = [8 * length, 10 * length].map(|ahead| drawn(&sessions, ahead));
        assert_eq!((far, near), ([0, 0], [1, 1]));
    }
}
