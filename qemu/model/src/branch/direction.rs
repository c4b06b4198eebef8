//! Directions of conditional branches: a TAGE predictor (Seznec and Michaud, "A case for (partially)
//! tagged geometric history length branch prediction", JILP 8, 2006).
//!
//! A table by address alone and four tagged ones by address and ever more history; the longest
//! history that matches provides the prediction. The look-up and the common update are arithmetic
//! without branches: on random data a branch here would cost the host a misprediction for each of
//! the guest's.

/// Tagged tables.
const TABLES: usize = 4;
/// Outcomes that each of them looks back on.
const HISTORY: [u32; TABLES] = [6, 14, 31, 64];
/// Entries of a tagged table, as a power of two.
const BITS: u32 = 11;
/// Entries of the table by address, as a power of two.
const BASE_BITS: u32 = 13;
const BASE: usize = 1 << BASE_BITS;
/// The bits of a tag.
const TAG: u16 = 0x3ff;

// An entry: a counter of three bits, two bits of usefulness, a tag of ten.
const USEFUL: u16 = 1 << 3;
const USEFUL_MASK: u16 = 3 << 3;
const TAG_SHIFT: u32 = 6;
const WEAKLY_TAKEN: u16 = 4;

/// Multipliers that spread addresses and histories: from the golden ratio and the square root of 3.
const SPREAD_PC: u64 = 0x9e37_79b9_7f4a_7c15;
const SPREAD_HISTORY: u64 = 0xbb67_ae85_84ca_a73b;

/// All tables one after the other, the one by address first, so that which of them provides is an
/// index and not a branch.
const ENTRIES: usize = BASE + (TABLES << BITS);

#[derive(Clone, Debug)]
pub(super) struct Directions {
    entries: Box<[u16; ENTRIES]>,
    /// Outcomes, the last one lowest.
    history: u64,
}

/// What a look-up finds in the table by address and the four tagged ones.
struct Found {
    at: [usize; TABLES + 1],
    tags: [u16; TABLES + 1],
    /// The table that provides the prediction, and the one that would without it.
    provider: usize,
    alternate: usize,
}

impl Directions {
    pub(super) fn new() -> Directions {
        Directions { entries: Box::new([WEAKLY_TAKEN; ENTRIES]), history: 0 }
    }

    #[inline]
    fn find(&self, pc: u64) -> Found {
        let spread = pc.wrapping_mul(SPREAD_PC);
        let mut at = [(spread >> (64 - BASE_BITS)) as usize; TABLES + 1];
        let mut tags = [0; TABLES + 1];
        let mut hits = 1u32;
        for table in 1..=TABLES {
            let seen = self.history << (64 - HISTORY[table - 1]);
            // The table's number goes in, so that histories of noughts differ by length.
            let mixed = (seen ^ spread ^ (table as u64) << 20).wrapping_mul(SPREAD_HISTORY);
            at[table] = BASE + ((table - 1) << BITS) + (mixed >> (64 - BITS)) as usize;
            tags[table] = (mixed >> 32) as u16 & TAG;
            hits |= u32::from(self.entries[at[table]] >> TAG_SHIFT == tags[table]) << table;
        }
        let provider = hits.ilog2();
        // Without the provider; the table by address always stays.
        let others = hits & !(1 << provider) | 1;
        Found { at, tags, provider: provider as usize, alternate: others.ilog2() as usize }
    }

    /// Learns an outcome; whether the prediction was wrong.
    #[inline]
    pub(super) fn learn(&mut self, pc: u64, taken: bool) -> bool {
        let found = self.find(pc);
        let entry = self.entries[found.at[found.provider]];
        let alternate = self.entries[found.at[found.alternate]];
        let (says, otherwise) = (counter_says(entry), counter_says(alternate));
        // A new entry knows less than what it was made to correct.
        let is_new = matches!(entry & 7, 3 | 4) & (entry & USEFUL_MASK == 0);
        let predicted = if is_new { otherwise } else { says };
        let updated = towards(entry, taken);
        let useful = useful(updated, says == taken);
        self.entries[found.at[found.provider]] = if says != otherwise { useful } else { updated };
        self.history = self.history << 1 | u64::from(taken);
        if predicted != taken {
            self.allocate(&found, taken);
        }
        predicted != taken
    }

    /// Makes an entry with more history than the one that was wrong, where one is free.
    #[inline(never)]
    fn allocate(&mut self, found: &Found, taken: bool) {
        for table in found.provider + 1..=TABLES {
            let entry = &mut self.entries[found.at[table]];
            if *entry & USEFUL_MASK == 0 {
                *entry = found.tags[table] << TAG_SHIFT | (WEAKLY_TAKEN - u16::from(!taken));
                return;
            }
        }
        // None is: make one freer.
        for table in found.provider + 1..=TABLES {
            self.entries[found.at[table]] -= USEFUL;
        }
    }
}

fn counter_says(entry: u16) -> bool {
    entry & 4 != 0
}

/// An entry's counter one step towards the outcome.
#[inline]
fn towards(entry: u16, taken: bool) -> u16 {
    let counter = entry & 7;
    let up = u16::from(taken & (counter != 7));
    let down = u16::from(!taken & (counter != 0));
    entry + up - down
}

/// An entry that was right where the next best was not, or the other way round.
#[inline]
fn useful(entry: u16, right: bool) -> u16 {
    let bits = entry & USEFUL_MASK;
    let up = u16::from(right & (bits != USEFUL_MASK));
    let down = u16::from(!right & (bits != 0));
    entry + up * USEFUL - down * USEFUL
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mispredictions in the second half of a run.
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
