//! The tracker of one session: the slices of the current interval, and the state from earlier ones.

use alloc::boxed::Box;

use tally_abi::{
    PhaseConfig,
    phase::{Bottleneck, PREDICTORS},
};

pub use super::sums::Place;
use super::{
    calibrate::Calibration,
    change::Detector,
    classify::{Class, Classes, classes},
    cost::{Counted, MAX_TERMS, Model, Vector},
    fixed::BITS,
    predict::Predictors,
    sums::{Places, Sums},
    weighed::Weighed,
};
use crate::Counts;

/// An interval that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The interval's number, from 0.
    pub number: u64,
    /// Core cycles, exactly.
    pub cycles: u64,
    /// Instructions, exactly.
    pub instructions: u64,
    /// The interval's costs by the catalogue's penalties, which its class is of.
    pub vector: Vector,
    /// The interval's phase.
    pub class: Class,
    /// Whether the program has changed, in this interval or the few before it.
    pub changed: bool,
    /// The phase of the next interval, by each predictor in the order of
    /// [`tally_abi::phase::Predictor::ALL`].
    pub predicted: [u8; PREDICTORS],
    /// The largest cost by the penalties as calibrated so far.
    pub bottleneck: Bottleneck,
    /// The model's time, `T_model`, in cycles ([`Model::time`]), by the penalties as calibrated so
    /// far.
    pub model_cycles: u64,
}

/// Tracks the phases of a session.
#[derive(Debug)]
pub struct Tracker {
    config: PhaseConfig,
    model: Model,
    places: Places,
    calibration: Calibration,
    current: Sums,
    /// An interval that has ended and is not evaluated yet.
    closed: Option<Sums>,
    classes: Box<dyn Classes>,
    predictors: Predictors,
    detector: Detector,
    number: u64,
    changes: u64,
}

impl Tracker {
    /// Makes a tracker for a model whose events are counted at `places`, in the order of its terms.
    pub fn new(config: PhaseConfig, model: Model, places: &[Option<Place>; MAX_TERMS]) -> Tracker {
        Tracker {
            config,
            model,
            places: Places::new(places),
            calibration: Calibration::default(),
            current: Sums::default(),
            closed: None,
            classes: classes(config.classifier, config.unit),
            predictors: Predictors::default(),
            detector: Detector::default(),
            number: 0,
            changes: 0,
        }
    }

    /// The tracker's configuration.
    pub fn config(&self) -> PhaseConfig {
        self.config
    }

    /// The penalties' factors, by the intervals so far.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Changes found so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Adds a slice of a group. Also runs in the overflow path of sessions with a bank: an interval
    /// ends only when the one before it is evaluated, and grows until then.
    pub fn add(&mut self, group: u16, counts: &Counts) {
        self.current.add(&self.places, group, counts);
        if self.current.instructions >= self.config.interval_instructions
            && self.closed.is_none()
            && self.current.is_complete(&self.places)
        {
            self.closed = Some(core::mem::take(&mut self.current));
        }
    }

    /// Returns whether an interval waits for its evaluation.
    pub fn is_due(&self) -> bool {
        self.closed.is_some()
    }

    /// Evaluates the interval that has ended, if there is one.
    pub fn evaluate(&mut self) -> Option<Ended> {
        // Evaluated in place: the sums are large.
        let sums = self.closed.as_mut()?;
        let weighed = sums.costs(&self.places, &self.model);
        let (cycles, instructions) = (sums.cycles, sums.instructions);
        self.closed = None;
        Some(self.take(&weighed, cycles, instructions))
    }

    /// Evaluates an interval's counts: its class, the predictions, and whether the phase has
    /// changed.
    pub fn observe(&mut self, counted: &Counted) -> Ended {
        let vector = self.model.vector(counted);
        let sum = vector.costs.iter().fold(0, |sum, cost| sum + (cost.cycles << BITS));
        self.take(&Weighed { vector, sum }, counted.cycles, counted.instructions)
    }

    #[inline]
    fn take(&mut self, weighed: &Weighed, cycles: u64, instructions: u64) -> Ended {
        let vector = weighed.vector;
        let class = self.classes.classify(&vector);
        let changed = self.detector.observe(class);
        self.predictors.observe(class.phase);
        let calibrated = self.calibration.apply(&vector);
        let model_cycles = self.model_cycles(&calibrated, weighed, instructions);
        self.calibration.learn(&vector, cycles, model_cycles, instructions);
        let number = self.number;
        self.number += 1;
        self.changes += u64::from(changed);
        Ended {
            number,
            cycles,
            instructions,
            vector,
            class,
            changed,
            predicted: self.predictors.all(),
            bottleneck: calibrated.dominant(),
            model_cycles,
        }
    }

    /// The model's time of an interval in cycles: that of an ideal pipeline plus all costs.
    #[inline]
    fn model_cycles(&self, calibrated: &Vector, weighed: &Weighed, instructions: u64) -> u64 {
        let ideal = instructions / u64::from(self.model.width.max(1));
        // Costs are in whole cycles; what rounding took from them is in their sum.
        let rounded = weighed.sum.saturating_sub(weighed.vector.total() << BITS);
        let sum = (calibrated.total() << BITS) + rounded;
        let costs = u128::from(sum) * u128::from(instructions) / (1000 << BITS);
        ideal.saturating_add(u64::try_from(costs).unwrap_or(u64::MAX))
    }

    /// The phase that an interval of these counts would have; `None` if no known class has it.
    pub fn lookup(&self, counted: &Counted) -> Option<u8> {
        self.classes.lookup(&self.model.vector(counted))
    }
}
