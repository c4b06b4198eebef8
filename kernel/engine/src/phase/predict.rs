//! Predictors of the next phase (paper 004, section VII), and one that follows the best of them.

use tally_abi::phase::{PREDICTORS, Predictor};

/// Length of the history in intervals (section VII).
const HISTORY: usize = 3;
/// Entries of a table (section VII).
const ENTRIES: usize = 256;

/// A predictor of the next interval's phase.
pub trait Predicts {
    /// Observes the phase of an interval.
    fn observe(&mut self, phase: u8);
    /// The phase predicted for the next interval; 0 before the first.
    fn predict(&self) -> u8;
}

/// Number of predictors besides [`Predictor::Best`].
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

    /// The mode; the latest phase if all differ.
    fn predict(&self) -> u8 {
        let [first, second, third] = self.phases;
        if first == second { first } else { third }
    }
}

/// Spreads a key: low bits index a table, high bits are the tag.
fn hash(key: u32) -> u32 {
    key.wrapping_add(1).wrapping_mul(0x9e37_79b1).rotate_left(15)
}

/// A successor phase, by a hashed history.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// High bits of the hash.
    tag: u16,
    phase: u8,
    /// Confidence in the entry; 0 for a free entry.
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

    /// Stores a successor; a wrong entry is replaced when its confidence is used up.
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

/// The phase that followed a run of a phase, by the run's length (Sherwood, Sair and Calder, "Phase
/// Tracking and Prediction", ISCA 2003, section 5.2). Predicts a change if it happened twice.
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
        // A run that continues is only in the table if a change was stored for its length.
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

/// All predictors, with their recent success.
#[derive(Debug)]
pub struct Predictors {
    recent: Recent,
    markov: Markov,
    run_length: RunLength,
    /// Points of the predictors except the last one; each right prediction gives [`POINT`], and all
    /// points decay.
    scores: [u32; OTHERS],
    /// Predictions for the next interval.
    predicted: [u8; OTHERS],
    is_begun: bool,
}

const POINT: u32 = 1 << 10;
/// A score is a mean over about 2 to this power intervals.
const DECAY: u32 = 5;
/// Lead over the score of the last value that another predictor needs to be followed: about one
/// right prediction in eight.
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
    /// Observes the phase of an interval.
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

    /// The predictions of all predictors, in the order of [`Predictor::ALL`].
    pub fn all(&self) -> [u8; PREDICTORS] {
        let [last, history, markov, run_length] = self.predicted;
        let scored = self.scores.into_iter().zip(self.predicted);
        let (score, best) = scored.max_by_key(|(score, _)| *score).unwrap_or((0, last));
        let best = if score > self.scores[0] + MARGIN { best } else { last };
        [last, history, markov, run_length, best]
    }

    /// The prediction of one predictor.
    pub fn predict(&self, choice: Predictor) -> u8 {
        self.all()[choice as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of right predictions of each predictor in the second half of a stream.
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
        // A phase that stays: the history filters out a single other one.
        let mut stays = [3; 40];
        stays[30] = 4;
        assert_eq!(right(&stays)[..2], [18, 19]);
        // Alternating phases: the last value is never right.
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
