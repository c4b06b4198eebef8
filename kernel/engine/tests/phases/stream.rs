//! Streams of intervals whose phases are known, and the engine's results for them.

#[path = "../random/mod.rs"]
mod random;

use std::collections::BTreeMap;

use tally_abi::{
    PhaseConfig,
    phase::{Bottleneck, Classifier, Predictor},
};
use tally_engine::phase::{Counted, Estimate, MAX_TERMS, Model, Place, Tracker, cost::CYCLE};

pub use self::random::Random;

pub const INSTRUCTIONS: u64 = 10_000_000;

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        (self.uniform() * limit as f64) as usize
    }

    /// Returns a normal deviate: the sum of twelve uniform ones.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Terms of the model: every cost except those of the queue and of contention, with penalties in
/// cycles.
pub const TERMS: [(Bottleneck, u32); 9] = [
    (Bottleneck::ItlbMiss, 30),
    (Bottleneck::Il1Miss, 14),
    (Bottleneck::Il2Miss, 60),
    (Bottleneck::DirectMisprediction, 17),
    (Bottleneck::ExpensiveInstructions, 20),
    (Bottleneck::DtlbMiss, 30),
    (Bottleneck::Dl1Miss, 14),
    (Bottleneck::Dl2Miss, 200),
    (Bottleneck::IndirectMisprediction, 17),
];

/// Rates of a phase: events per 1,000 instructions, and cycles without any of their costs.
#[derive(Clone, Debug)]
pub struct Phase {
    pub rates: [f64; TERMS.len()],
    pub base_cpi: f64,
}

/// Interval of a stream: the planted phase (`None` if two are mixed), its true counts, and
/// estimates.
pub struct Interval {
    pub phase: Option<usize>,
    pub truth: Counted,
    pub estimated: Counted,
}

/// Noise of a stream: the relative spread of rates between the intervals of a phase, and the
/// relative standard error of an event with 1,000 occurrences in an interval.
#[derive(Clone, Copy)]
pub struct Noise {
    pub spread: f64,
    pub error: f64,
}

/// Makes the intervals of a list of phases and lengths. The first interval of each run has a part
/// of the previous phase.
pub fn intervals(
    phases: &[Phase],
    runs: &[(usize, usize)],
    noise: Noise,
    random: &mut Random,
) -> Vec<Interval> {
    let mut all = Vec::new();
    let mut last = None;
    for &(phase, length) in runs {
        for index in 0..length {
            let share = if index == 0 && last.is_some() { random.uniform() } else { 1.0 };
            let old = &phases[last.unwrap_or(phase)];
            let interval = one(&phases[phase], old, share, noise, random);
            let planted = (share > 0.9).then_some(phase);
            all.push(Interval { phase: planted, ..interval });
        }
        last = Some(phase);
    }
    all
}

fn one(new: &Phase, old: &Phase, share: f64, noise: Noise, random: &mut Random) -> Interval {
    let mixed = |new: f64, old: f64| share * new + (1.0 - share) * old;
    let mut truth = Counted { instructions: INSTRUCTIONS, ..Counted::default() };
    let mut estimated = truth;
    let thousands = INSTRUCTIONS as f64 / 1000.0;
    let mut cycles = mixed(new.base_cpi, old.base_cpi) * INSTRUCTIONS as f64;
    for (index, (_, penalty)) in TERMS.iter().enumerate() {
        let rate = mixed(new.rates[index], old.rates[index]);
        let count = rate * thousands * (1.0 + noise.spread * random.normal()).max(0.0);
        cycles += count * f64::from(*penalty) * 0.7;
        let error = noise.error * (1000.0 * count).sqrt();
        let estimate = (count + error * random.normal()).max(0.0);
        truth.events[index] = Estimate { count: count as u64, half_width: 0 };
        estimated.events[index] =
            Estimate { count: estimate as u64, half_width: (1.96 * error) as u64 };
    }
    let cycles = cycles * (1.0 + 0.25 * noise.spread * random.normal());
    (truth.cycles, estimated.cycles) = (cycles as u64, cycles as u64);
    Interval { phase: None, truth, estimated }
}

pub fn tracker(classifier: Classifier) -> Tracker {
    let config = PhaseConfig {
        interval_instructions: INSTRUCTIONS,
        unit: 128,
        classifier,
        predictor: Predictor::Best,
    };
    let mut model = Model { width: 5, ..Model::default() };
    for (slot, (kind, penalty)) in model.terms.iter_mut().zip(TERMS) {
        *slot = Some((kind, penalty * CYCLE));
    }
    Tracker::new(config, model, &[None::<Place>; MAX_TERMS])
}

/// Maximum distance of an alarm from its change, in intervals, exclusive.
const LATEST: usize = 10;

/// Results for some streams.
#[derive(Debug, Default)]
pub struct Found {
    /// Planted changes, and those that were found within three intervals.
    pub changes: usize,
    pub found: usize,
    /// Changes that were found later, within [`LATEST`] intervals.
    pub late: usize,
    /// Intervals, and alarms that belong to no change.
    pub intervals: usize,
    pub false_alarms: usize,
    /// Intervals of one phase that have a certain class, and those whose class is the same for the
    /// true counts.
    pub sure: usize,
    pub same: usize,
    /// Intervals of one phase, and those whose class is its most frequent one and that of no other
    /// phase.
    pub of_one: usize,
    pub right: usize,
    pub classes: usize,
    /// Predictions, by predictor: correct ones, and those at transitions.
    pub predicted: usize,
    pub predicted_right: [usize; 5],
    pub transitions: usize,
    pub transitions_right: [usize; 5],
}

impl Found {
    /// Returns a share in percent.
    pub fn share(part: usize, whole: usize) -> f64 {
        100.0 * part as f64 / whole.max(1) as f64
    }

    /// Adds the tracker's results for a stream.
    pub fn add(&mut self, intervals: &[Interval], runs: &[(usize, usize)], classifier: Classifier) {
        let mut tracker = tracker(classifier);
        let (mut alarms, mut labels) = (Vec::new(), Vec::new());
        let mut last: Option<(u8, [u8; 5])> = None;
        for (at, interval) in intervals.iter().enumerate() {
            let lookup = tracker.lookup(&interval.truth);
            let ended = tracker.observe(&interval.estimated);
            let truth = lookup.or_else(|| tracker.lookup(&interval.truth));
            if ended.changed {
                alarms.push(at);
            }
            let phase = ended.class.phase;
            if interval.phase.is_some() && ended.class.sure {
                self.sure += 1;
                self.same += usize::from(truth == Some(phase));
            }
            labels.extend(interval.phase.map(|planted| (planted, phase)));
            if let Some((before, predicted)) = last {
                let right = predicted.map(|predicted| usize::from(predicted == phase));
                self.predicted += 1;
                add(&mut self.predicted_right, right);
                if before != phase {
                    self.transitions += 1;
                    add(&mut self.transitions_right, right);
                }
            }
            last = Some((phase, ended.predicted));
        }
        self.intervals += intervals.len();
        self.judge_changes(&alarms, runs);
        self.judge_labels(&labels);
    }

    fn judge_changes(&mut self, alarms: &[usize], runs: &[(usize, usize)]) {
        let mut begin = 0;
        let mut begins = Vec::new();
        for (_, length) in runs {
            begins.push(begin);
            begin += length;
        }
        begins.remove(0);
        self.changes += begins.len();
        // The interval in which the phase begins, and the two after it.
        let near = |begin: usize, alarm: usize| (begin..begin + 3).contains(&alarm);
        let found = |begin: &&usize| alarms.iter().any(|alarm| near(**begin, *alarm));
        self.found += begins.iter().filter(found).count();
        // A second alarm for one change is a false one.
        let mut used = vec![false; begins.len()];
        for alarm in alarms {
            let last = begins.iter().rposition(|begin| begin <= alarm);
            match last.filter(|index| alarm - begins[*index] < LATEST && !used[*index]) {
                Some(index) => {
                    used[index] = true;
                    self.late += usize::from(!near(begins[index], *alarm));
                }
                None => self.false_alarms += 1,
            }
        }
    }

    fn judge_labels(&mut self, labels: &[(usize, u8)]) {
        let mut times: BTreeMap<(u8, usize), usize> = BTreeMap::new();
        labels
            .iter()
            .for_each(|(planted, phase)| *times.entry((*phase, *planted)).or_default() += 1);
        // A class stands for the planted phase that it has most often, and a planted phase for one
        // class.
        let mut of_phase: BTreeMap<usize, (usize, u8)> = BTreeMap::new();
        for ((phase, planted), number) in &times {
            let largest = of_phase.entry(*planted).or_default();
            *largest = (*largest).max((*number, *phase));
        }
        let mut classes: Vec<u8> = of_phase.values().map(|(_, phase)| *phase).collect();
        classes.sort_unstable();
        classes.dedup();
        self.of_one += labels.len();
        // Phases that share a class are distinguished for at most one of them.
        for class in classes {
            let of_class = of_phase.values().filter(|(_, phase)| *phase == class);
            self.right += of_class.map(|(number, _)| *number).max().unwrap_or_default();
        }
        self.classes +=
            times.keys().map(|(phase, _)| phase).collect::<std::collections::BTreeSet<_>>().len();
    }

    /// Prints the results as a line of a table.
    pub fn print(&self, what: &str) {
        let share = Found::share;
        println!(
            "{what}: changes found {:.1} % of {}, late {}, false alarms {} of {} intervals; sure {:.1} %, as \
             the truth {:.1} %; classes {}, right {:.1} %; predicted {:?} %, at {} transitions {:?} %",
            share(self.found, self.changes),
            self.changes,
            self.late,
            self.false_alarms,
            self.intervals,
            share(self.sure, self.of_one),
            share(self.same, self.sure),
            self.classes,
            share(self.right, self.of_one),
            self.predicted_right.map(|right| share(right, self.predicted).round()),
            self.transitions,
            self.transitions_right.map(|right| share(right, self.transitions).round()),
        );
    }
}

fn add(sums: &mut [usize; 5], more: [usize; 5]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
