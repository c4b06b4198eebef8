//! Directions of conditional branches: a TAGE predictor (Seznec and Michaud, "A case for
//! (partially) tagged geometric history length branch prediction", JILP 8, 2006).
//!
//! One table is indexed by address alone, four tagged ones by address and increasing history
//! lengths; the longest matching history provides the prediction. The look-up and the common update
//! are arithmetic without branches: on random data a branch here would cost the host one
//! misprediction per misprediction of the guest.

/// Tagged tables.
const TABLES: usize = 4;
/// Outcomes in the history of each table.
const HISTORY: [u32; TABLES] = [6, 14, 31, 64];
/// Entries of a tagged table, as a power of two.
const BITS: u32 = 11;
/// Entries of the base table, indexed by address alone, as a power of two.
const BASE_BITS: u32 = 13;
const BASE: usize = 1 << BASE_BITS;
/// The bits of a tag.
const TAG: u16 = 0x3ff;

// An entry: a counter of three bits, two bits of usefulness, one unused, a tag of ten bits.
const USEFUL: u16 = 1 << 3;
const USEFUL_MASK: u16 = 3 << 3;
const STATE: u16 = 31;
const TAG_SHIFT: u32 = 6;
const WEAKLY_TAKEN: u16 = 4;

/// Multipliers that spread addresses and histories: from the golden ratio and the square root of 3.
const SPREAD_PC: u64 = 0x9e37_79b9_7f4a_7c15;
const SPREAD_HISTORY: u64 = 0xbb67_ae85_84ca_a73b;

/// Entries of all tables, stored one after the other with the base table first: a power of two.
const ENTRIES: usize = BASE + (TABLES << BITS);
const _: () = assert!(ENTRIES.is_power_of_two());

#[derive(Clone, Debug)]
pub(super) struct Directions {
    entries: Box<[u16; ENTRIES]>,
    /// Outcomes of the last branches, the last one in the lowest bit.
    history: u64,
}

/// A branch's index in a tagged table, and its tag there.
#[derive(Clone, Copy)]
struct Slot {
    at: usize,
    tag: u16,
}

/// Flag of a step, next to the entry's new state: the prediction was wrong.
const WRONG: u8 = 1 << 7;

/// Table of steps, indexed by the provider's state (5 bits), the next-best prediction and the
/// outcome.
static STEPS: [u8; 128] = steps();

const fn steps() -> [u8; 128] {
    let mut steps = [0; 128];
    let mut index = 0;
    while index < 128 {
        let (counter, useful) = (index & 7, index >> 3 & 3);
        let (otherwise, taken) = (index >> 5 & 1, index >> 6);
        let says = counter >> 2;
        // A new entry is less reliable than the entry that it was allocated to correct.
        let is_new = (counter == 3 || counter == 4) && useful == 0;
        let predicted = if is_new { otherwise } else { says };
        let counter = match taken {
            1 => counter + (counter != 7) as usize,
            _ => counter - (counter != 0) as usize,
        };
        // Useful: right where the next best was wrong.
        let useful = match (says == otherwise, says == taken) {
            (true, _) => useful,
            (false, true) => useful + (useful != 3) as usize,
            (false, false) => useful - (useful != 0) as usize,
        };
        let wrong = if predicted != taken { WRONG } else { 0 };
        steps[index] = (counter | useful << 3) as u8 | wrong;
        index += 1;
    }
    steps
}

/// The provider's step for an outcome.
#[inline(always)]
fn step(entry: u16, next_best: u16, taken: bool) -> u8 {
    let index = entry & STATE | (next_best >> 2 & 1) << 5 | u16::from(taken) << 6;
    STEPS[usize::from(index) & 127]
}

impl Directions {
    pub(super) fn new() -> Directions {
        Directions { entries: Box::new([WEAKLY_TAKEN; ENTRIES]), history: 0 }
    }

    /// Outcomes of the last branches, the last one in the lowest bit.
    pub(super) fn history(&self) -> u64 {
        self.history
    }

    /// The branch's slots in the tagged tables, shortest history first.
    #[inline(always)]
    fn slots(history: u64, pc: u64) -> [Slot; TABLES] {
        let spread = pc.wrapping_mul(SPREAD_PC);
        let mut slots = [Slot { at: 0, tag: 0 }; TABLES];
        for (table, slot) in slots.iter_mut().enumerate() {
            let seen = history << (64 - HISTORY[table]);
            // Mixes in the table's number, so that histories of zeros differ by length.
            let mixed = (seen ^ spread ^ (table as u64 + 1) << 20).wrapping_mul(SPREAD_HISTORY);
            *slot = Slot {
                at: BASE + (table << BITS) + (mixed >> (64 - BITS)) as usize,
                tag: (mixed >> 32) as u16 & TAG,
            };
        }
        slots
    }

    /// The entry that provides the prediction, its index, and the next-best entry.
    #[inline(always)]
    fn provider(&self, pc: u64, history: u64) -> (u16, usize, u16) {
        let mut at = (pc.wrapping_mul(SPREAD_PC) >> (64 - BASE_BITS)) as usize;
        let mut entry = self.entries[at & (ENTRIES - 1)];
        let mut next_best = entry;
        // The longest history that matches provides; by conditional moves, not branches.
        for slot in Directions::slots(history, pc) {
            let found = self.entries[slot.at & (ENTRIES - 1)];
            let hit = found >> TAG_SHIFT == slot.tag;
            next_best = if hit { entry } else { next_best };
            entry = if hit { found } else { entry };
            at = if hit { slot.at } else { at };
        }
        (entry, at, next_best)
    }

    /// Predicts a branch after these outcomes, the last one in the lowest bit.
    pub(super) fn predict(&self, pc: u64, history: u64) -> bool {
        let (entry, _, next_best) = self.provider(pc, history);
        step(entry, next_best, true) & WRONG == 0
    }

    /// Learns an outcome; returns whether the prediction was wrong.
    #[inline(always)]
    pub(super) fn learn(&mut self, pc: u64, taken: bool) -> bool {
        let (entry, at, next_best) = self.provider(pc, self.history);
        let step = step(entry, next_best, taken);
        self.entries[at & (ENTRIES - 1)] = entry & !STATE | u16::from(step) & STATE;
        let wrong = step & WRONG != 0;
        if wrong {
            self.allocate(pc, at, taken);
        }
        self.history = self.history << 1 | u64::from(taken);
        wrong
    }

    /// Allocates an entry with a longer history than the one at `provider`, which was wrong, if
    /// there is a free one.
    #[inline(never)]
    fn allocate(&mut self, pc: u64, provider: usize, taken: bool) {
        let longer = if provider < BASE { 0 } else { ((provider - BASE) >> BITS) + 1 };
        let slots = Directions::slots(self.history, pc);
        for slot in &slots[longer..] {
            let entry = &mut self.entries[slot.at];
            if *entry & USEFUL_MASK == 0 {
                *entry = slot.tag << TAG_SHIFT | (WEAKLY_TAKEN - u16::from(!taken));
                return;
            }
        }
        // No entry is free: age them.
        for slot in &slots[longer..] {
            self.entries[slot.at] -= USEFUL;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the mispredictions in the second half of a run.
    fn late_misses(count: usize, mut outcome: impl FnMut(usize) -> (u64, bool)) -> usize {
        let mut directions = Directions::new();
        (0..count)
            .filter(|at| {
                let (pc, taken) = outcome(*at);
                directions.learn(pc, taken) & (*at >= count / 2)
            })
            .count()
    }

    fn random(state: &mut u64) -> bool {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *state >> 63 == 1
    }

    #[test]
    fn predictions_are_those_that_are_learnt_from() {
        let (mut directions, mut state) = (Directions::new(), 1);
        for at in 0..20_000u64 {
            let (pc, taken) = (0x1000 + at % 7, random(&mut state) | (at % 3 == 0));
            let predicted = directions.predict(pc, directions.history());
            assert_eq!(directions.learn(pc, taken), predicted != taken);
        }
    }

    #[test]
    fn steady_branches_are_learnt() {
        assert_eq!(late_misses(1000, |_| (0x1234, false)), 0);
        assert_eq!(late_misses(1000, |_| (0x1234, true)), 0);
    }

    #[test]
    fn loops_are_learnt_to_the_length_of_the_history() {
        for length in [2, 3, 7, 13, 30] {
            let misses = late_misses(20_000, |at| (0x1234, at % length != length - 1));
            assert!(misses <= 20, "a loop of {length}: {misses}");
        }
        // Longer than any history: the exit is missed.
        assert!(late_misses(20_000, |at| (0x1234, at % 100 != 99)) >= 80);
    }

    #[test]
    fn patterns_are_learnt() {
        for pattern in [0b1011_0010u32, 0b1100_1010_0110_0001] {
            let misses = late_misses(20_000, |at| (0x1234, pattern >> (at % 16) & 1 == 1));
            assert!(misses <= 20, "{pattern:b}: {misses}");
        }
    }

    #[test]
    fn a_branch_that_follows_another_is_learnt() {
        let (mut state, mut last) = (1, false);
        let misses = late_misses(20_000, |at| match at % 2 {
            0 => {
                last = random(&mut state);
                (0x1000, last)
            }
            _ => (0x2000, last),
        });
        // The leader misses half of its 5,000; the follower should add little.
        assert!((2_200..3_000).contains(&misses), "{misses}");
    }

    #[test]
    fn random_outcomes_miss_half_the_time() {
        let mut state = 1;
        let misses = late_misses(100_000, |_| (0x1234, random(&mut state)));
        assert!((23_500..26_500).contains(&misses), "{misses} of 50000");
    }

    #[test]
    fn many_branches_share_the_tables() {
        let misses = late_misses(400_000, |at| {
            let branch = at % 1000;
            (0x40_0000 + 5 * branch as u64, branch % 3 == 0)
        });
        assert!(misses < 2_000, "{misses}");
    }
}
