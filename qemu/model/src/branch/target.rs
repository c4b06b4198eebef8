//! Targets of indirect branches, in the manner of ITTAGE (Seznec, "A 64-Kbytes ITTAGE indirect
//! branch predictor", 2011): a table indexed by address alone, and two tagged ones by address and
//! the path of recent targets.

/// Entries of a table, as a power of two.
const BITS: u32 = 10;
const ENTRIES: usize = 1 << BITS;
/// Path bits of the tagged tables: four for each target.
const PATHS: [u32; 2] = [16, 64];
/// A multiplier that spreads bits upwards, from the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A target, and the tag of the branch that it belongs to.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    target: u64,
    tag: u32,
    /// Whether a branch has allocated the entry: no tag value means "free".
    is_allocated: bool,
    /// Whether the entry was wrong since it was last right: a second error replaces the target.
    doubted: bool,
}

/// The bits that a target adds to the path.
pub(super) fn step(target: u64) -> u64 {
    target.wrapping_mul(SPREAD) >> 60
}

/// The path after a branch to `target`.
pub(super) fn behind(path: u64, target: u64) -> u64 {
    path << 4 ^ step(target)
}

/// The branch's index in a table, and its tag there.
fn place(pc: u64, path: u64, table: usize) -> (usize, u32) {
    let path = if table == 0 { 0 } else { path << (64 - PATHS[table - 1]) };
    let mixed = (pc ^ path.wrapping_mul(SPREAD) >> 7).wrapping_mul(SPREAD);
    ((mixed >> (64 - BITS)) as usize, (mixed >> 8) as u32)
}

#[derive(Clone, Debug)]
pub(super) struct Targets {
    /// Tables: by address alone, then by address and path.
    tables: Box<[[Entry; ENTRIES]; 1 + PATHS.len()]>,
    path: u64,
}

impl Targets {
    pub(super) fn new() -> Targets {
        Targets { tables: Box::new([[Entry::default(); ENTRIES]; 1 + PATHS.len()]), path: 0 }
    }

    /// The path of recent targets.
    pub(super) fn path(&self) -> u64 {
        self.path
    }

    /// The branch's index and tag in each table, and the number of the table that predicts.
    fn provider(&self, pc: u64, path: u64) -> ([(usize, u32); 1 + PATHS.len()], usize) {
        let places = [0, 1, 2].map(|table| place(pc, path, table));
        let has = |table: &usize| {
            let (at, tag) = places[*table];
            let entry = &self.tables[*table][at];
            entry.is_allocated && entry.tag == tag
        };
        (places, (1..places.len()).rev().find(has).unwrap_or(0))
    }

    /// The target that is predicted after this path of targets, if any.
    pub(super) fn predict(&self, pc: u64, path: u64) -> Option<u64> {
        let (places, provider) = self.provider(pc, path);
        let target = self.tables[provider][places[provider].0].target;
        (target != 0).then_some(target)
    }

    /// Trains with a target; returns the target that was predicted.
    pub(super) fn learn(&mut self, pc: u64, target: u64) -> u64 {
        let (places, provider) = self.provider(pc, self.path);
        let entry = &mut self.tables[provider][places[provider].0];
        let predicted = entry.target;
        let wrong = predicted != target;
        if wrong && (entry.doubted || provider == 0) {
            entry.target = target;
        }
        entry.doubted = wrong && !entry.doubted;
        if wrong && provider + 1 < places.len() {
            let (at, tag) = places[provider + 1];
            self.tables[provider + 1][at] =
                Entry { target, tag, is_allocated: true, doubted: false };
        }
        self.path = behind(self.path, target);
        predicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late_misses(count: usize, mut outcome: impl FnMut(usize) -> (u64, u64)) -> usize {
        let mut targets = Targets::new();
        (0..count)
            .filter(|at| {
                let (pc, target) = outcome(*at);
                let predicted = targets.predict(pc, targets.path()).unwrap_or(0);
                let same = targets.learn(pc, target);
                assert_eq!(predicted, same);
                (same != target) & (*at >= count / 2)
            })
            .count()
    }

    #[test]
    fn a_single_target_is_learnt_at_once() {
        let mut targets = Targets::new();
        let wrong = (0..100).filter(|_| targets.learn(0x1000, 0x2000) != 0x2000).count();
        assert_eq!(wrong, 1);
    }

    #[test]
    fn a_target_is_learnt_wherever_the_branch_lies() {
        for pc in [0, 1, u64::MAX, 0x7fff_ffff_ffff, 0xffff_8000_0000_0000] {
            for target in [0, pc, u64::MAX] {
                let mut targets = Targets::new();
                let wrong = (0..100).filter(|_| targets.learn(pc, target) != target).count();
                assert!(wrong <= 1, "{pc:#x} to {target:#x}: {wrong}");
            }
        }
    }

    #[test]
    fn an_interpreters_loop_is_learnt() {
        let program = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8];
        let misses = late_misses(20_000, |at| (0x1000, 0x4000 + 64 * program[at % program.len()]));
        assert!(misses < 20, "{misses}");
    }

    #[test]
    fn random_targets_are_missed() {
        let mut state = 1u64;
        let misses = late_misses(20_000, |_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (0x1000, 0x4000 + 64 * (state >> 61))
        });
        assert!(misses > 7_500, "{misses} of 10000 among eight targets");
    }
}
