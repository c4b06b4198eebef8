//! The phases of a program by its costs, and the success of predicting the next one (sections VI
//! and VII).

use serde::Serialize;
use tally_abi::phase::{Classifier, DEFAULT_UNIT, MAX_PHASES, PREDICTORS};
use tally_engine::phase::{Model, Predictors, Vector, classify::classes};

use super::interval::Interval;

/// The unit of Figures 5 and 8 in thousandths of the program's cycles per instruction: the paper's
/// at one cycle per instruction.
pub(super) const OWN_UNIT: u32 = DEFAULT_UNIT;
/// Cost units of Figure 7 in thousandths of the program's cycles per instruction.
pub(super) const UNITS: [u32; 7] = [8, 16, 32, 64, OWN_UNIT, 256, 512];

/// The phases of a program by one kind of classes and one unit.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Classified {
    /// The unit.
    pub(super) unit: u32,
    /// Number of phases; beyond 32, all others count as one.
    pub(super) phases: usize,
    /// The sum of the costs' differences from their phase's means, as a share of the cycles: mean
    /// over the intervals.
    pub(super) within: f64,
    /// Number of intervals whose phase differs from that of the one before.
    pub(super) transitions: usize,
    /// The share of right predictions by predictor, in the order of
    /// [`tally_abi::phase::Predictor::ALL`].
    pub(super) right: [f64; PREDICTORS],
    /// The share of right predictions at transitions; `None` without transitions.
    pub(super) right_at_transitions: Option<[f64; PREDICTORS]>,
    /// The phase of each interval.
    #[serde(skip)]
    pub(super) sequence: Vec<u8>,
}

/// Assigns phases to the intervals, by both kinds of classes and each unit.
pub(super) fn classified(model: &Model, intervals: &[Interval]) -> [Vec<Classified>; 2] {
    let vectors: Vec<Vector> =
        intervals.iter().map(|interval| model.vector(&interval.counted())).collect();
    Classifier::ALL.map(|kind| UNITS.iter().map(|unit| classify(kind, *unit, &vectors)).collect())
}

fn classify(kind: Classifier, unit: u32, vectors: &[Vector]) -> Classified {
    let cpi = vectors.iter().map(|vector| vector.cpi).sum::<u64>() / vectors.len().max(1) as u64;
    let mut known = classes(kind, (u64::from(unit) * cpi / 1_000) as u32);
    let sequence: Vec<u8> = vectors.iter().map(|vector| known.classify(vector).phase).collect();
    let mut used = sequence.clone();
    used.sort_unstable();
    used.dedup();
    let (right, right_at_transitions, transitions) = predicted(&sequence);
    Classified {
        unit,
        phases: used.len(),
        within: within(vectors, &sequence),
        transitions,
        right,
        right_at_transitions,
        sequence,
    }
}

/// The share of right predictions by predictor, in all and at transitions, and the number of these.
fn predicted(sequence: &[u8]) -> ([f64; PREDICTORS], Option<[f64; PREDICTORS]>, usize) {
    let mut predictors = Predictors::default();
    let (mut all, mut at_transitions, mut transitions) = ([0; PREDICTORS], [0; PREDICTORS], 0);
    for pair in sequence.windows(2) {
        predictors.observe(pair[0]);
        let is_transition = pair[0] != pair[1];
        transitions += usize::from(is_transition);
        for (index, predicted) in predictors.all().into_iter().enumerate() {
            let right = usize::from(predicted == pair[1]);
            all[index] += right;
            at_transitions[index] += if is_transition { right } else { 0 };
        }
    }
    let pairs = sequence.len().saturating_sub(1).max(1) as f64;
    let of_transitions =
        (transitions > 0).then(|| at_transitions.map(|right| right as f64 / transitions as f64));
    (all.map(|right| right as f64 / pairs), of_transitions, transitions)
}

fn within(vectors: &[Vector], sequence: &[u8]) -> f64 {
    let mut sums = [(0.0, Vector::default().costs.map(|_| 0.0)); MAX_PHASES + 1];
    for (vector, phase) in vectors.iter().zip(sequence) {
        let (number, costs) = &mut sums[usize::from(*phase)];
        *number += 1.0;
        costs.iter_mut().zip(&vector.costs).for_each(|(sum, cost)| *sum += cost.cycles as f64);
    }
    let of = |(vector, phase): (&Vector, &u8)| {
        let (number, costs) = &sums[usize::from(*phase)];
        let costs = costs.iter().zip(&vector.costs);
        let off: f64 = costs.map(|(sum, cost)| (sum / number - cost.cycles as f64).abs()).sum();
        off / vector.cpi.max(1) as f64
    };
    vectors.iter().zip(sequence).map(of).sum::<f64>() / vectors.len().max(1) as f64
}

/// Gain of centroids over the hash with the last-value predictor: the success of centroids at the
/// within-class error of the hash with its own unit, interpolated between two units, less the
/// success of the hash. `None` if no centroids have as small an error or none as large.
pub(super) fn gain(hash: &[Classified], centroid: &[Classified]) -> Option<f64> {
    let wanted = hash.iter().find(|of| of.unit == OWN_UNIT)?;
    let mut points: Vec<(f64, f64)> = centroid.iter().map(|of| (of.within, of.right[0])).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let pair = points.windows(2).find(|pair| (pair[0].0..=pair[1].0).contains(&wanted.within))?;
    let part = (wanted.within - pair[0].0) / (pair[1].0 - pair[0].0).max(f64::MIN_POSITIVE);
    Some(pair[0].1 + part * (pair[1].1 - pair[0].1) - wanted.right[0])
}

#[cfg(test)]
mod tests {
    use tally_engine::phase::Cost;

    use super::*;

    #[test]
    fn phases_in_turns_are_told_apart_and_predicted() {
        let vector = |cost: u64| {
            let mut vector = Vector { cpi: 1_000, ..Vector::default() };
            vector.costs[8] = Cost { cycles: cost, half_width: 0 };
            vector
        };
        let vectors: Vec<Vector> =
            (0..200_u64).map(|n| vector(100 + 500 * (n / 4 % 2) + n % 2)).collect();
        let of = classify(Classifier::Centroid, OWN_UNIT, &vectors);
        // The first vector of a new class still has the phase before.
        assert_eq!((of.phases, of.transitions), (2, 49));
        assert!(of.within < 0.01, "{of:?}");
        let [last, _, markov, run_length, _] = of.right_at_transitions.unwrap();
        assert!(last == 0.0 && run_length > 0.8 && markov < run_length, "{of:?}");
        assert!((of.right[0] - 150.0 / 199.0).abs() < 1e-9, "{of:?}");
    }

    #[test]
    fn a_gain_is_read_at_the_same_error() {
        let of = |unit, within, right| Classified {
            unit,
            phases: 1,
            within,
            transitions: 0,
            right: [right; PREDICTORS],
            right_at_transitions: None,
            sequence: Vec::new(),
        };
        let centroid = [of(64, 0.1, 0.6), of(128, 0.3, 0.8)];
        assert!((gain(&[of(128, 0.2, 0.5)], &centroid).unwrap() - 0.2).abs() < 1e-9);
        assert_eq!(gain(&[of(128, 0.4, 0.5)], &centroid), None);
    }
}
