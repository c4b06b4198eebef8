//! Phases of a program by its bottlenecks (paper 004): how the engine tracks them, and what a
//! program reads of them.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    Malformed,
    record::{Field, Form},
};

/// Number of kinds of cost.
pub const COSTS: usize = 11;
/// Maximum number of classes.
pub const MAX_PHASES: usize = 32;
/// The phase of vectors that found no free class.
pub const OTHERS: u8 = MAX_PHASES as u8;
/// The default of [`PhaseConfig::interval_instructions`].
pub const DEFAULT_INTERVAL: u64 = 5_000_000;
/// The default of [`PhaseConfig::unit`] (paper 004, section VII).
pub const DEFAULT_UNIT: u32 = 128;

/// A kind of cost, in the order of Figure 3 of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// Misses of the instruction TLB.
    ItlbMiss,
    /// Misses of the first-level instruction cache.
    Il1Miss,
    /// Code that the second-level cache did not have.
    Il2Miss,
    /// Mispredicted direct branches.
    DirectMisprediction,
    /// Full queues.
    QueueFull,
    /// Instructions that waited for a port.
    ResourceContention,
    /// Divisions and other long operations.
    ExpensiveInstructions,
    /// Misses of the data TLB.
    DtlbMiss,
    /// Misses of the first-level data cache.
    Dl1Miss,
    /// Data that the second-level cache did not have.
    Dl2Miss,
    /// Mispredicted indirect branches and returns.
    IndirectMisprediction,
    /// No cost.
    None,
}

impl Bottleneck {
    const WORDS: [&str; COSTS + 1] = [
        "itlb-misses",
        "l1i-misses",
        "l2-code-misses",
        "direct-mispredictions",
        "full-queues",
        "port-contention",
        "expensive-instructions",
        "dtlb-misses",
        "l1d-misses",
        "l2-data-misses",
        "indirect-mispredictions",
        "none",
    ];

    /// All kinds, in their order.
    pub const ALL: [Bottleneck; COSTS] = [
        Bottleneck::ItlbMiss,
        Bottleneck::Il1Miss,
        Bottleneck::Il2Miss,
        Bottleneck::DirectMisprediction,
        Bottleneck::QueueFull,
        Bottleneck::ResourceContention,
        Bottleneck::ExpensiveInstructions,
        Bottleneck::DtlbMiss,
        Bottleneck::Dl1Miss,
        Bottleneck::Dl2Miss,
        Bottleneck::IndirectMisprediction,
    ];

    /// The kind's name in records and reports.
    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

impl Field for Bottleneck {
    const BITS: u32 = 8;
    const FORM: Form = Form::Choice(&Bottleneck::WORDS);

    #[inline(always)]
    fn bits(self) -> u64 {
        self as u64
    }

    fn from_bits(bits: u64) -> Result<Self, Malformed> {
        match (bits & 0xff) as usize {
            COSTS => Ok(Bottleneck::None),
            index => Bottleneck::ALL.get(index).copied().ok_or(Malformed),
        }
    }
}

/// Method by which vectors are divided into classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Classifier {
    /// The paper's method: costs divided by the unit, hashed.
    Hash,
    /// The nearest of several means, within the unit.
    #[default]
    Centroid,
}

impl Classifier {
    /// All classifiers.
    pub const ALL: [Classifier; 2] = [Classifier::Hash, Classifier::Centroid];

    /// The name in options.
    pub const fn word(self) -> &'static str {
        match self {
            Classifier::Hash => "hash",
            Classifier::Centroid => "centroid",
        }
    }

    /// Parses the name in options.
    pub fn parse(word: &str) -> Option<Classifier> {
        Classifier::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// Number of predictors.
pub const PREDICTORS: usize = 5;

/// A predictor of the next phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predictor {
    /// The phase of the last interval.
    Last,
    /// The most frequent phase of the last three intervals.
    History,
    /// The phase that followed the last three phases when they last occurred.
    Markov,
    /// The phase that followed a run of this phase and length.
    RunLength,
    /// The predictor among these that has been right most often recently.
    #[default]
    Best,
}

impl Predictor {
    /// All predictors, in their order.
    pub const ALL: [Predictor; PREDICTORS] = [
        Predictor::Last,
        Predictor::History,
        Predictor::Markov,
        Predictor::RunLength,
        Predictor::Best,
    ];

    /// The name in options.
    pub const fn word(self) -> &'static str {
        match self {
            Predictor::Last => "last",
            Predictor::History => "history",
            Predictor::Markov => "markov",
            Predictor::RunLength => "run-length",
            Predictor::Best => "best",
        }
    }

    /// Parses the name in options.
    pub fn parse(word: &str) -> Option<Predictor> {
        Predictor::ALL.into_iter().find(|choice| choice.word() == word)
    }
}

/// Configuration of the tracking of phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseConfig {
    /// Minimum instructions of an interval. An interval ends with a slice, and not before each
    /// group that counts an event of the cost model has had three slices.
    pub interval_instructions: u64,
    /// Unit of the classes, in cycles per 1,000 instructions, at least 1.
    pub unit: u32,
    /// Method by which vectors are divided into classes.
    pub classifier: Classifier,
    /// The predictor whose prediction the program gets.
    pub predictor: Predictor,
}

impl Default for PhaseConfig {
    fn default() -> Self {
        PhaseConfig {
            interval_instructions: DEFAULT_INTERVAL,
            unit: DEFAULT_UNIT,
            classifier: Classifier::default(),
            predictor: Predictor::default(),
        }
    }
}

/// A [`PhaseConfig`] as it crosses the system-call boundary.
pub type PhaseConfigWords = [u64; 4];

impl PhaseConfig {
    /// Encodes: instructions, unit, classes, predictor.
    pub fn to_words(self) -> PhaseConfigWords {
        let (classifier, predictor) = (self.classifier as u64, self.predictor as u64);
        [self.interval_instructions, self.unit.into(), classifier, predictor]
    }

    /// Decodes what [`Self::to_words`] made.
    ///
    /// # Errors
    /// A classifier or predictor that this version does not define, or a number out of range.
    pub fn from_words(
        [instructions, unit, kind, predictor]: PhaseConfigWords,
    ) -> Result<Self, Malformed> {
        let of = |index: u64| usize::try_from(index).map_err(|_| Malformed);
        let config = PhaseConfig {
            interval_instructions: instructions,
            unit: u32::try_from(unit).map_err(|_| Malformed)?,
            classifier: *Classifier::ALL.get(of(kind)?).ok_or(Malformed)?,
            predictor: *Predictor::ALL.get(of(predictor)?).ok_or(Malformed)?,
        };
        config.is_valid().then_some(config).ok_or(Malformed)
    }

    fn is_valid(&self) -> bool {
        (1..=1 << 40).contains(&self.interval_instructions) && (1..=1 << 20).contains(&self.unit)
    }

    /// Parses the text that [`fmt::Display`] writes; parts left out at the end have their defaults.
    pub fn parse(text: &str) -> Option<PhaseConfig> {
        let mut config = PhaseConfig::default();
        let mut parts = text.split(',');
        config.interval_instructions = parts.next()?.parse().ok()?;
        if let Some(unit) = parts.next() {
            config.unit = unit.parse().ok()?;
        }
        if let Some(word) = parts.next() {
            config.classifier = Classifier::parse(word)?;
        }
        if let Some(word) = parts.next() {
            config.predictor = Predictor::parse(word)?;
        }
        (config.is_valid() && parts.next().is_none()).then_some(config)
    }
}

/// Formats as an option's value: `INSTRUCTIONS,UNIT,CLASSES,PREDICTOR`.
impl fmt::Display for PhaseConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (classifier, predictor) = (self.classifier.word(), self.predictor.word());
        write!(f, "{},{},{classifier},{predictor}", self.interval_instructions, self.unit)
    }
}

/// State of a program's phases at the end of the last finished interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseState {
    /// Finished intervals; before the first, the other fields mean nothing.
    pub intervals: u64,
    /// Changes found so far.
    pub changes: u64,
    /// The interval's phase; [`OTHERS`] if there were more than [`MAX_PHASES`].
    pub phase: u8,
    /// The phase predicted for the next interval.
    pub predicted: u8,
    /// Whether the error bars cross no boundary between classes.
    pub sure: bool,
    /// The largest cost.
    pub bottleneck: Bottleneck,
    /// Core cycles of the interval.
    pub cycles: u64,
    /// Instructions of the interval.
    pub instructions: u64,
}

/// A [`PhaseState`] as it crosses the system-call boundary.
pub type PhaseWords = [u64; 8];

impl Default for PhaseState {
    fn default() -> Self {
        PhaseState {
            intervals: 0,
            changes: 0,
            phase: 0,
            predicted: 0,
            sure: false,
            bottleneck: Bottleneck::None,
            cycles: 0,
            instructions: 0,
        }
    }
}

impl PhaseState {
    /// Encodes in the order of the fields.
    pub fn to_words(&self) -> PhaseWords {
        [
            self.intervals,
            self.changes,
            self.phase.into(),
            self.predicted.into(),
            self.sure.into(),
            self.bottleneck as u64,
            self.cycles,
            self.instructions,
        ]
    }

    /// Decodes what [`Self::to_words`] made.
    ///
    /// # Errors
    /// A kind of cost that this version does not define.
    pub fn from_words(words: PhaseWords) -> Result<Self, Malformed> {
        let [intervals, changes, phase, predicted, sure, kind, cycles, instructions] = words;
        let (phase, predicted) = (phase as u8, predicted as u8);
        let (sure, bottleneck) = (bool::from_bits(sure)?, Bottleneck::from_bits(kind)?);
        Ok(PhaseState {
            intervals,
            changes,
            phase,
            predicted,
            sure,
            bottleneck,
            cycles,
            instructions,
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn configurations_round_trip_and_reject() {
        for classifier in Classifier::ALL {
            for predictor in Predictor::ALL {
                let config =
                    PhaseConfig { interval_instructions: 7, unit: 9, classifier, predictor };
                assert_eq!(PhaseConfig::from_words(config.to_words()), Ok(config));
                assert_eq!(PhaseConfig::parse(&config.to_string()), Some(config));
            }
        }
        let short = PhaseConfig { interval_instructions: 9, ..PhaseConfig::default() };
        assert_eq!(PhaseConfig::parse("9"), Some(short));
        for bad in ["", "0", "9,0", "9,1,mean", "9,1,hash,oracle", "9,1,hash,last,", "x"] {
            assert_eq!(PhaseConfig::parse(bad), None, "{bad}");
        }
        for bad in [[0, 1, 0, 0], [1, 0, 0, 0], [1, 1, 2, 0], [1, 1, 0, 5], [1, 1 << 32, 0, 0]] {
            assert_eq!(PhaseConfig::from_words(bad), Err(Malformed));
        }
    }

    #[test]
    fn states_round_trip() {
        for bottleneck in Bottleneck::ALL.into_iter().chain([Bottleneck::None]) {
            let state = PhaseState {
                intervals: 1,
                changes: 2,
                phase: 3,
                predicted: 4,
                sure: true,
                bottleneck,
                cycles: 5,
                instructions: 6,
            };
            assert_eq!(PhaseState::from_words(state.to_words()), Ok(state));
        }
        assert_eq!(PhaseState::from_words([0, 0, 0, 0, 0, 12, 0, 0]), Err(Malformed));
    }
}
