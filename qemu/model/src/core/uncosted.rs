//! Blocks that run again and again without a cost: code that was in no sample yet, such as a loop
//! that begins long before the next one.

/// Blocks that are followed at a time, a power of two; a block takes the entry of another.
const ENTRIES: usize = 256;
/// Repeats of a block after which a sample is due, and again after twice as many, if that sample
/// did not meet the block. With 8, samples meet caches and predictors that are still cold, and
/// blocks were charged for that until their next sample: 4.6 % mean error in place of 4.0 %.
const LEAST_REPEATS: u32 = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    place: usize,
    repeats: u32,
    /// Instructions of the domain at the block's last execution.
    at: u64,
}

/// Repeats of blocks without a cost.
#[derive(Clone, Debug)]
pub(super) struct Uncosted {
    entries: Box<[Entry; ENTRIES]>,
    /// Length of a sample in instructions.
    sample: u64,
}

impl Uncosted {
    pub(super) fn new(sample: u64) -> Uncosted {
        Uncosted { entries: Box::new([Entry::default(); ENTRIES]), sample }
    }

    /// Notes that the block at `place` was executed when the domain had retired `instructions`.
    /// Returns whether a sample is due.
    ///
    /// A repeat is an execution at most the length of a sample after the last one. What an
    /// interrupt leaves of a block is a block too, with an address of its own, and comes once in a
    /// slice: it makes no sample, so that interrupts do not move a program's samples.
    pub(super) fn note(&mut self, place: usize, instructions: u64) -> bool {
        let entry = &mut self.entries[place & (ENTRIES - 1)];
        if entry.place != place || entry.at == 0 {
            *entry = Entry { place, repeats: 0, at: instructions };
            return false;
        }
        let since = instructions - std::mem::replace(&mut entry.at, instructions);
        if since > self.sample {
            return false;
        }
        entry.repeats += 1;
        entry.repeats >= LEAST_REPEATS && entry.repeats.is_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_repeats_makes_a_sample_due() {
        let mut uncosted = Uncosted::new(2_000);
        let due = |turn: &u64| uncosted.note(3, 10 + turn * 100);
        let turns: Vec<u64> = (0..300).filter(due).collect();
        assert_eq!(turns, [64, 128, 256]);
    }

    #[test]
    fn what_interrupts_leave_of_a_block_makes_none() {
        let mut uncosted = Uncosted::new(2_000);
        assert!((0..1_000).all(|slice| !uncosted.note(3, 10 + slice * 5_000)));
        // Another block with the same entry takes its place.
        let mut alternate = (0..1_000).map(|turn| (3 + turn as usize % 2 * ENTRIES, turn));
        assert!(alternate.all(|(place, turn)| !uncosted.note(place, 6_000_000 + turn)));
    }
}
