//! The phases of a session: their list, their bottlenecks, and how well the next one was predicted
//! (paper 004, sections V to VII).

mod render;
mod truth;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tally_abi::{
    PhaseConfig,
    phase::{Bottleneck, COSTS, Classifier, PREDICTORS, Predictor},
    trace::PhaseRecord,
};
use tally_engine::phase::Calibration;

pub use self::{
    render::{glyph, render},
    truth::Judged,
};

/// The phases of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PhaseReport {
    /// Minimum instructions of an interval.
    pub interval_instructions: u64,
    /// The classes' unit, in cycles per 1,000 instructions.
    pub unit: u32,
    /// Kind of the classes.
    pub classes: Classifier,
    /// Costs for which no event was counted.
    pub missing: Vec<Bottleneck>,
    /// Changes that the detector found.
    pub changes: u64,
    /// Intervals whose phase differs from that of the one before.
    pub transitions: u64,
    /// The share of intervals whose class is sure, 0 to 1.
    pub sure: f64,
    /// The mean relative error of the model's time (formula 2), 0 to 1 and more.
    pub model_error: f64,
    /// The phases, in the order of their first appearance.
    pub phases: Vec<PhaseShare>,
    /// The predictors.
    pub predictors: Vec<PredictorReport>,
    /// The intervals, in the order of time.
    pub intervals: Vec<PhaseInterval>,
}

/// A phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PhaseShare {
    /// Number of the phase; 32 if there were more.
    pub phase: u8,
    /// Number of its intervals.
    pub intervals: u64,
    /// Share of the core cycles of all intervals, 0 to 1.
    pub share: f64,
    /// Cycles per instruction.
    pub cpi: f64,
    /// The largest cost of its mean vector.
    pub bottleneck: Bottleneck,
    /// The largest cost, as a share of its cycles.
    pub bottleneck_share: f64,
}

/// Success of a predictor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PredictorReport {
    /// Name of the predictor.
    pub name: Predictor,
    /// The share of right predictions, 0 to 1; `None` without any prediction.
    pub right: Option<f64>,
    /// The share of right predictions for intervals whose phase differs from that of the one
    /// before.
    pub right_at_transitions: Option<f64>,
}

/// An interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PhaseInterval {
    /// Number of the phase.
    pub phase: u8,
    /// Whether the error bars cross no boundary between classes.
    pub sure: bool,
    /// Whether the detector found a change in the interval.
    pub changed: bool,
    /// Core cycles.
    pub cycles: u64,
    /// Instructions.
    pub instructions: u64,
    /// Core cycles by the model.
    pub model_cycles: u64,
    /// The largest cost.
    pub bottleneck: Bottleneck,
    /// The costs by the catalogue's penalties in cycles per 1,000 instructions, each with its half
    /// width, in the order of [`Bottleneck::ALL`]: the phase is theirs.
    pub costs: [(u32, u32); COSTS],
    /// The costs by the penalties as calibrated by the intervals before, likewise.
    pub calibrated: [(u32, u32); COSTS],
    /// The next phase by each predictor, in the order of [`Predictor::ALL`].
    pub predicted: [u8; PREDICTORS],
}

impl PhaseInterval {
    fn of(record: &PhaseRecord) -> PhaseInterval {
        let PhaseRecord { phase, history, markov, run_length, best, .. } = *record;
        PhaseInterval {
            phase,
            sure: record.sure,
            changed: record.changed,
            cycles: record.cycles,
            instructions: record.instructions,
            model_cycles: record.model_cycles,
            bottleneck: record.bottleneck,
            costs: record.costs(),
            calibrated: record.costs(),
            predicted: [phase, history, markov, run_length, best],
        }
    }
}

impl PhaseReport {
    /// Makes the report of a session's records, which are in the order of time.
    pub fn of(
        records: &[PhaseRecord],
        config: PhaseConfig,
        missing: Vec<Bottleneck>,
    ) -> PhaseReport {
        let mut intervals: Vec<PhaseInterval> = records.iter().map(PhaseInterval::of).collect();
        calibrate(&mut intervals);
        let number = intervals.len().max(1) as f64;
        let share = |of: fn(&PhaseInterval) -> f64| intervals.iter().map(of).sum::<f64>() / number;
        let pairs = || intervals.iter().zip(intervals.iter().skip(1));
        PhaseReport {
            interval_instructions: config.interval_instructions,
            unit: config.unit,
            classes: config.classifier,
            missing,
            changes: intervals.iter().filter(|interval| interval.changed).count() as u64,
            transitions: pairs().filter(|(one, next)| one.phase != next.phase).count() as u64,
            sure: share(|interval| f64::from(u8::from(interval.sure))),
            model_error: share(|interval| {
                let cycles = interval.cycles.max(1) as f64;
                (interval.model_cycles as f64 - cycles).abs() / cycles
            }),
            phases: phases(&intervals),
            predictors: Predictor::ALL.map(|name| predictor(name, &intervals)).into(),
            intervals,
        }
    }
}

/// Computes the calibrated costs again as the kernel did: its records have those that classes are
/// of.
fn calibrate(intervals: &mut [PhaseInterval]) {
    let mut calibration = Calibration::default();
    for interval in intervals {
        let word = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let costs = interval.calibrate(&mut calibration).costs;
        interval.calibrated = costs.map(|cost| (word(cost.cycles), word(cost.half_width)));
    }
}

/// The summary of each phase.
fn phases(intervals: &[PhaseInterval]) -> Vec<PhaseShare> {
    let all: u64 = intervals.iter().map(|interval| interval.cycles).sum();
    let mut by_phase: BTreeMap<u8, Vec<&PhaseInterval>> = BTreeMap::new();
    for interval in intervals {
        by_phase.entry(interval.phase).or_default().push(interval);
    }
    let share = |(phase, own): (u8, Vec<&PhaseInterval>)| {
        let sum = |of: fn(&PhaseInterval) -> u64| own.iter().map(|it| of(it)).sum::<u64>();
        let (cycles, instructions) = (sum(|it| it.cycles), sum(|it| it.instructions));
        let cost = |index: usize| -> f64 {
            let cycles = |it: &&PhaseInterval| {
                f64::from(it.calibrated[index].0) * it.instructions as f64 / 1000.0
            };
            own.iter().map(cycles).sum()
        };
        let costs = Bottleneck::ALL.into_iter().map(|kind| (cost(kind as usize), kind));
        let largest = costs.max_by(|one, other| one.0.total_cmp(&other.0));
        let (cost, bottleneck) =
            largest.filter(|(cost, _)| *cost > 0.0).unwrap_or((0.0, Bottleneck::None));
        PhaseShare {
            phase,
            intervals: own.len() as u64,
            share: cycles as f64 / all.max(1) as f64,
            cpi: cycles as f64 / instructions.max(1) as f64,
            bottleneck,
            bottleneck_share: cost / cycles.max(1) as f64,
        }
    };
    by_phase.into_iter().map(share).collect()
}

/// Numbers of right and of all predictions of a predictor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hits {
    /// Right predictions, and all.
    pub all: [usize; 2],
    /// Right predictions, and all, for intervals whose phase differs from that of the one before.
    pub at_transitions: [usize; 2],
}

impl Hits {
    /// Counts the hits of this predictor.
    pub fn of(name: Predictor, intervals: &[PhaseInterval]) -> Hits {
        let mut hits = Hits::default();
        for (one, next) in intervals.iter().zip(intervals.iter().skip(1)) {
            let right = usize::from(one.predicted[name as usize] == next.phase);
            hits.all = [hits.all[0] + right, hits.all[1] + 1];
            if one.phase != next.phase {
                let [before, of] = hits.at_transitions;
                hits.at_transitions = [before + right, of + 1];
            }
        }
        hits
    }
}

fn predictor(name: Predictor, intervals: &[PhaseInterval]) -> PredictorReport {
    let Hits { all, at_transitions } = Hits::of(name, intervals);
    let share = |[right, of]: [usize; 2]| (of > 0).then(|| right as f64 / of as f64);
    PredictorReport { name, right: share(all), right_at_transitions: share(at_transitions) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Records of phases 0 and 1 in turns of three; each predictor predicts that the phase stays.
    pub fn records() -> Vec<PhaseRecord> {
        let record = |number: u32| {
            let phase = (number / 3 % 2) as u8;
            let mut record = PhaseRecord {
                number,
                phase,
                sure: !number.is_multiple_of(4),
                changed: number == 3,
                history: phase,
                markov: phase,
                run_length: phase,
                best: 1 - phase,
                cycles: 1_000 + 1_000 * u64::from(phase),
                instructions: 1_000,
                model_cycles: 900,
                ..PhaseRecord::default()
            };
            let mut costs = [(0, 0); COSTS];
            costs[if phase == 0 { 8 } else { 9 }] = (500, 10);
            record.set_costs(costs);
            record
        };
        (0..12).map(record).collect()
    }

    #[test]
    fn phases_have_shares_bottlenecks_and_predictions() {
        let report = PhaseReport::of(&records(), PhaseConfig::default(), Vec::new());
        assert_eq!((report.transitions, report.changes, report.sure), (3, 1, 0.75));
        let [first, second] = &report.phases[..] else { panic!("{report:?}") };
        assert_eq!((first.intervals, first.bottleneck), (6, Bottleneck::Dl1Miss));
        assert_eq!((second.share, second.cpi), (2.0 / 3.0, 2.0));
        // Of 12,000 cycles 500 in each of six intervals by the catalogue's penalty. As the model's
        // time is too short, the factor is 1, 2.76 and 4, then 3.86 after a pause, and 4 twice;
        // costs are rounded down.
        let costs = 500.0 + 1_379.0 + 2_000.0 + 1_930.0 + 2_000.0 + 2_000.0;
        let expected = (Bottleneck::Dl2Miss, costs / 12_000.0);
        assert_eq!((second.bottleneck, second.bottleneck_share), expected);
        assert_eq!(report.intervals[0].calibrated, report.intervals[0].costs);
        let right = |name: Predictor| {
            let of = &report.predictors[name as usize];
            (of.right.unwrap(), of.right_at_transitions.unwrap())
        };
        assert_eq!(right(Predictor::Last), (8.0 / 11.0, 0.0));
        assert_eq!(right(Predictor::Best), (3.0 / 11.0, 1.0));
        assert!((report.model_error - (0.1 + 0.55) / 2.0).abs() < 1e-9, "{report:?}");
    }
}
