//! Predictors of the next phase (paper 004, section VII), and one that follows the best of them.

use tally_abi::phase::{PREDICTORS, Predictor};

/// Intervals that the history has (section VII).
const HISTORY: usize = 3;
/// Entries of a table (section VII).
const ENTRIES: usize = 256;

/// What predicts the phase of the next interval.
pub trait Predicts {
    /// The phase of an interval.
    fn observe(&mut self, phase: u8);
    /// The phase of the next interval; before the first, 0.
    fn predict(&self) -> u8;
}

/// Predictors beside [`Predictor::Best`].
const OTHERS: usize = PREDICTORS - 1;

/// The last three phases, the latest last.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    phases: [u8; HISTORY],
}

impl Recent {
    fn last(&self) -> u8 {
        self.phases[HISTORY - 1]
    }

    fn hash(&self) -> u32 {
        let key = self.phases.iter().fold(0_u32, |key, phase| key << 8 | u32::from(*phase));
        hash(key)
    }
}

impl Predicts for Recent {
    fn observe(&mut self, phase: u8) {
        self.phases.rotate_left(1);
        self.phases[HISTORY - 1] = phase;
    }

    /// The mode; the latest, if all differ.
    fn predict(&self) -> u8 {
        let [first, second, third] = self.phases;
        if first == second { first } else { third }
    }
}

/// Spreads a key: low bits index a table, high bits are the tag.
fn hash(key: u32) -> u32 {
    key.wrapping_add(1).wrapping_mul(0x9e37_79b1).rotate_left(15)
}

/// A phase that followed, by a hashed history.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// High bits of the hash.
    tag: u16,
    phase: u8,
    /// How far the entry is trusted; 0: the entry is free.
    confidence: u8,
}

#[derive(Debug)]
struct Table {
    entries: [Entry; ENTRIES],
}

impl Table {
    fn entry(&self, hash: u32) -> Option<&Entry> {
        let entry = self.entries.get(hash as usize % ENTRIES)?;
        (entry.tag == (hash >> 16) as u16 && entry.confidence > 0).then_some(entry)
    }

    /// Stores what followed; a wrong entry is replaced once its confidence is used up.
    fn store(&mut self, hash: u32, phase: u8, most: u8) {
        let Some(entry) = self.entries.get_mut(hash as usize % ENTRIES) else { return };
        let tag = (hash >> 16) as u16;
        if (entry.tag, entry.phase) == (tag, phase) && entry.confidence > 0 {
            entry.confidence = (entry.confidence + 1).min(most);
        } else if entry.confidence > 1 {
            entry.confidence -= 1;
        } else {
            *entry = Entry { tag, phase, confidence: 1 };
        }
    }
}

/// The Markov predictor of section VII: a miss predicts the current phase.
#[derive(Debug)]
struct Markov {
    recent: Recent,
    table: Table,
}

impl Predicts for Markov {
    fn observe(&mut self, phase: u8) {
        self.table.store(self.recent.hash(), phase, 1);
        self.recent.observe(phase);
    }

    fn predict(&self) -> u8 {
        self.table.entry(self.recent.hash()).map_or(self.recent.last(), |entry| entry.phase)
    }
}

/// What followed a run of a phase, by its length (Sherwood, Sair and Calder, "Phase Tracking and
/// Prediction", ISCA 2003, section 5.2). It predicts a change if that happened twice.
#[derive(Debug)]
struct RunLength {
    phase: u8,
    length: u16,
    table: Table,
}

const TRUSTED: u8 = 2;

impl RunLength {
    fn hash(&self) -> u32 {
        hash(u32::from(self.phase) << 16 | u32::from(self.length))
    }
}

impl Predicts for RunLength {
    fn observe(&mut self, phase: u8) {
        let hash = self.hash();
        // Runs that go on are in the table only where a change was stored before.
        if phase != self.phase || self.table.entry(hash).is_some() {
            self.table.store(hash, phase, TRUSTED + 1);
        }
        self.length = if phase == self.phase { self.length.saturating_add(1) } else { 1 };
        self.phase = phase;
    }

    fn predict(&self) -> u8 {
        let entry = self.table.entry(self.hash()).filter(|entry| entry.confidence >= TRUSTED);
        entry.map_or(self.phase, |entry| entry.phase)
    }
}

/// All predictors, and how often each was right of late.
#[derive(Debug)]
pub struct Predictors {
    recent: Recent,
    markov: Markov,
    run_length: RunLength,
    /// Points of the predictors but the last one; each right prediction gives [`POINT`], and all
    /// decay.
    scores: [u32; OTHERS],
    /// What they predict.
    predicted: [u8; OTHERS],
    is_begun: bool,
}

const POINT: u32 = 1 << 10;
/// A score is a mean over about 2 to this power intervals.
const DECAY: u32 = 5;
/// Another predictor is followed if its score exceeds that of the last value by this much: about
/// one right prediction in eight.
const MARGIN: u32 = (POINT << DECAY) / 8;

impl Default for Predictors {
    fn default() -> Predictors {
        let table = || Table { entries: [Entry::default(); ENTRIES] };
        Predictors {
            recent: Recent::default(),
            markov: Markov { recent: Recent::default(), table: table() },
            run_length: RunLength { phase: 0, length: 0, table: table() },
            scores: [0; OTHERS],
            predicted: [0; OTHERS],
            is_begun: false,
        }
    }
}

impl Predictors {
    /// The phase of an interval.
    pub fn observe(&mut self, phase: u8) {
        if self.is_begun {
            for (score, predicted) in self.scores.iter_mut().zip(self.predicted) {
                *score += if predicted == phase { POINT } else { 0 };
                *score -= *score >> DECAY;
            }
        }
        self.is_begun = true;
        self.recent.observe(phase);
        self.markov.observe(phase);
        self.run_length.observe(phase);
        let markov = self.markov.predict();
        self.predicted = [phase, self.recent.predict(), markov, self.run_length.predict()];
    }

    /// What each predicts, in the order of [`Predictor::ALL`].
    pub fn all(&self) -> [u8; PREDICTORS] {
        let [last, history, markov, run_length] = self.predicted;
        let scored = self.scores.into_iter().zip(self.predicted);
        let (score, best) = scored.max_by_key(|(score, _)| *score).unwrap_or((0, last));
        let best = if score > self.scores[0] + MARGIN { best } else { last };
        [last, history, markov, run_length, best]
    }

    /// What this one predicts.
    pub fn predict(&self, choice: Predictor) -> u8 {
        self.all()[choice as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each was right in the second half of a stream.
    fn right(phases: &[u8]) -> [usize; PREDICTORS] {
        let mut predictors = Predictors::default();
        let mut right = [0; PREDICTORS];
        for (index, phase) in phases.iter().enumerate() {
            if index >= phases.len() / 2 {
                for (right, predicted) in right.iter_mut().zip(predictors.all()) {
                    *right += usize::from(predicted == *phase);
                }
            }
            predictors.observe(*phase);
        }
        right
    }

    #[test]
    fn each_predicts_what_it_is_for() {
        // A phase that stays; a single other one is filtered by the history.
        let mut stays = [3; 40];
        stays[30] = 4;
        assert_eq!(right(&stays)[..2], [18, 19]);
        // In turns: the last value is never right.
        let turns: alloc::vec::Vec<u8> = (0..400_u32).map(|n| (n % 2) as u8).collect();
        let of_turns = right(&turns);
        assert_eq!((of_turns[0], of_turns[2], of_turns[4]), (0, 200, 200));
        // Runs of eight are longer than the history.
        let runs: alloc::vec::Vec<u8> = (0..800_u32).map(|n| (n / 8 % 3) as u8).collect();
        let of_runs = right(&runs);
        assert_eq!((of_runs[0], of_runs[3]), (350, 400));
        assert!(of_runs[2] < of_runs[0], "the end of a run replaces what follows within it");
    }
}
