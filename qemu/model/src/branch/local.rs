//! The branch assist: counters selected by the last outcomes of the same branch, a local history
//! that the predictor by global history does not have.

use crate::assist::ENTRIES;

/// Branches that have a local history, and outcomes in it.
const BRANCHES: usize = 1 << 10;
const OUTCOMES: u32 = 10;
/// Bounds of the counters.
const MOST: i8 = 3;
const LEAST: i8 = -4;

/// A branch's last outcomes, and whether the counters were better than the predictor.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    outcomes: u16,
    better: i8,
}

#[derive(Clone, Debug)]
pub(super) struct Locals {
    histories: Box<[History; BRANCHES]>,
    counters: Box<[i8; ENTRIES]>,
}

impl Locals {
    pub(super) fn new() -> Locals {
        let histories = Box::new([History::default(); BRANCHES]);
        Locals { histories, counters: Box::new([0; ENTRIES]) }
    }

    /// The indices of the branch's history and of its counter.
    fn places(&self, pc: u64) -> (usize, usize) {
        let spread = pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let at = spread as usize % BRANCHES;
        let outcomes = usize::from(self.histories[at].outcomes);
        (at, (spread as usize >> 16 << OUTCOMES | outcomes) % ENTRIES)
    }

    /// The combined prediction, where the global predictor's is `predicted`.
    pub(super) fn predict(&self, pc: u64, predicted: bool) -> bool {
        let (at, place) = self.places(pc);
        let counter = self.counters[place];
        let is_sure = counter == MOST || counter == LEAST;
        if is_sure && self.histories[at].better > 0 { counter >= 0 } else { predicted }
    }

    /// Trains with an outcome. `wrong` is whether the global predictor mispredicted it; returns
    /// whether the combined prediction was wrong.
    pub(super) fn learn(&mut self, pc: u64, taken: bool, wrong: bool) -> bool {
        let (at, place) = self.places(pc);
        let history = &mut self.histories[at];
        let counter = &mut self.counters[place];
        let is_sure = *counter == MOST || *counter == LEAST;
        let own_wrong = (*counter >= 0) != taken;
        let overrides = is_sure && history.better > 0;
        if is_sure && own_wrong != wrong {
            history.better = towards(history.better, wrong);
        }
        *counter = towards(*counter, taken);
        history.outcomes = (history.outcomes << 1 | u16::from(taken)) & ((1 << OUTCOMES) - 1);
        if overrides { own_wrong } else { wrong }
    }
}

/// Moves a counter one step up or down.
fn towards(counter: i8, up: bool) -> i8 {
    if up { (counter + 1).min(MOST) } else { (counter - 1).max(LEAST) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_with_a_period_of_its_own_is_learnt_where_the_predictor_is_wrong() {
        let mut locals = Locals::new();
        let wrongs = (0..2_000).filter(|at| {
            let (taken, wrong) = (at % 7 == 0, at % 3 == 0);
            let predicted = locals.predict(0x40_1234, taken != wrong);
            let wrong = locals.learn(0x40_1234, taken, wrong);
            assert_eq!(wrong, predicted != taken);
            wrong && *at >= 1_000
        });
        assert_eq!(wrongs.count(), 0);
    }

    #[test]
    fn a_predictor_that_is_right_is_believed() {
        let mut locals = Locals::new();
        let mut state = 1u64;
        let wrongs = (0..10_000).filter(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            locals.learn(0x40_1234, state >> 63 == 1, false)
        });
        assert!(wrongs.count() < 200);
    }
}
