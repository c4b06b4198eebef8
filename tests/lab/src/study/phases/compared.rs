//! Comparison of the nearest centroid with the paper's hash (section VI.C), on the true vectors of
//! a run: the share of right predictions of the next phase at the same error within a class.
//!
//! The hash has the paper's unit, scaled to the run's cycles per instruction. The centroids have
//! the largest radius of [`RADII`] at which their error within a class does not exceed the hash's.
//! No other parameter is chosen, and the choice does not use predictions. If no radius has as small
//! an error, there is no gain: an interval in which a program changes is a separate class for the
//! hash, and belongs to the nearest class for centroids.

use std::collections::BTreeMap;

use serde::Serialize;
use tally_abi::phase::{COSTS, Classifier, DEFAULT_UNIT, Predictor};
use tally_engine::phase::{Predictors, Vector, classify::classes};

/// Radii in cycles per 1,000 instructions: four per octave.
const RADII: [u32; 33] = radii();

const fn radii() -> [u32; 33] {
    let (mut radii, mut index) = ([0; 33], 0);
    while index < radii.len() {
        // 2 to the power 0, 1/4, 1/2 and 3/4, in thousandths.
        radii[index] = ([1000, 1189, 1414, 1682][index % 4] << (index / 4)) * 8 / 1000;
        index += 1;
    }
    radii
}

/// Classes by one classifier, summed over runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Classified {
    /// Number of classes, of all runs together.
    pub(super) phases: usize,
    /// Number of pairs of an interval and the next.
    pub(super) pairs: usize,
    /// Sum over intervals of the costs' differences from the class's mean, as shares of the cycles.
    pub(super) within: f64,
    /// Number of intervals.
    pub(super) intervals: usize,
    /// Right predictions of the last-value predictor.
    pub(super) last: usize,
    /// Right predictions of the predictor `best`.
    pub(super) best: usize,
}

/// Results of both classifiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Compared {
    pub(super) hash: Classified,
    pub(super) centroid: Classified,
}

impl Compared {
    /// Classifies the true vectors of a run.
    pub(super) fn of(vectors: &[Vector]) -> Compared {
        let hash = Classified::of(vectors, &hashed(vectors));
        let of_radius = |radius| {
            let mut known = classes(Classifier::Centroid, radius);
            let phases: Vec<u32> =
                vectors.iter().map(|vector| known.classify(vector).phase.into()).collect();
            Classified::of(vectors, &phases)
        };
        // The largest radius whose error is small enough, or the one with the least error.
        let larger = |best: Classified, next: Classified| {
            if next.within <= best.within.max(hash.within) { next } else { best }
        };
        let centroid = RADII.into_iter().map(of_radius).reduce(larger).unwrap_or_default();
        Compared { hash, centroid }
    }

    pub(super) fn add(&mut self, other: &Compared) {
        self.hash.add(&other.hash);
        self.centroid.add(&other.centroid);
    }

    /// Gain of centroids in the share of right last-value predictions; 0 if their error within a
    /// class exceeds the hash's.
    pub(super) fn gain(&self) -> f64 {
        if self.centroid.within > self.hash.within {
            return 0.0;
        }
        let right = |of: &Classified| of.last as f64 / of.pairs.max(1) as f64;
        right(&self.centroid) - right(&self.hash)
    }
}

/// The paper's classes, without a limit of their number.
fn hashed(vectors: &[Vector]) -> Vec<u32> {
    let mut known: BTreeMap<[u64; COSTS], u32> = BTreeMap::new();
    let cpi = vectors.iter().map(|vector| vector.cpi).sum::<u64>() / vectors.len().max(1) as u64;
    let unit = (u64::from(DEFAULT_UNIT) * cpi / 1_000).max(1);
    let class = |vector: &Vector| {
        let next = known.len() as u32;
        let key = vector.costs.map(|cost| cost.cycles / unit);
        *known.entry(key).or_insert(next)
    };
    vectors.iter().map(class).collect()
}

impl Classified {
    fn of(vectors: &[Vector], phases: &[u32]) -> Classified {
        let mut sums: BTreeMap<u32, (f64, [f64; COSTS])> = BTreeMap::new();
        for (vector, phase) in vectors.iter().zip(phases) {
            let (number, costs) = sums.entry(*phase).or_default();
            *number += 1.0;
            costs.iter_mut().zip(&vector.costs).for_each(|(sum, cost)| *sum += cost.cycles as f64);
        }
        let off = |(vector, phase): (&Vector, &u32)| {
            let (number, costs) = &sums[phase];
            let costs = costs.iter().zip(&vector.costs);
            let off: f64 = costs.map(|(sum, cost)| (sum / number - cost.cycles as f64).abs()).sum();
            off / vector.cpi.max(1) as f64
        };
        let (mut predictors, mut best) = (Predictors::default(), 0);
        for pair in phases.windows(2) {
            // Predictors know 256 phases; the last-value check distinguishes two with the same
            // number.
            predictors.observe(pair[0] as u8);
            best += usize::from(predictors.predict(Predictor::Best) == pair[1] as u8);
        }
        Classified {
            phases: sums.len(),
            pairs: phases.len().saturating_sub(1),
            within: vectors.iter().zip(phases).map(off).sum(),
            intervals: phases.len(),
            last: phases.windows(2).filter(|pair| pair[0] == pair[1]).count(),
            best,
        }
    }

    fn add(&mut self, other: &Classified) {
        self.phases += other.phases;
        self.pairs += other.pairs;
        self.within += other.within;
        self.intervals += other.intervals;
        self.last += other.last;
        self.best += other.best;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(first: u64, second: u64) -> Vector {
        let mut vector = Vector { cpi: 1_000, ..Vector::default() };
        (vector.costs[0].cycles, vector.costs[9].cycles) = (first, second);
        vector
    }

    #[test]
    fn a_class_across_a_boundary_of_the_hash_is_one_of_the_centroids() {
        // One cost crosses 256 at each interval; the other alternates every 50 intervals between
        // two values that the hash does not distinguish.
        let of = |index: u64| vector(252 + 8 * (index % 2), 130 + 120 * (index / 50 % 2));
        let vectors: Vec<Vector> = (0..400).map(of).collect();
        let compared = Compared::of(&vectors);
        let Compared { hash, centroid } = compared;
        assert_eq!((hash.phases, centroid.phases), (2, 2));
        assert_eq!((centroid.intervals, centroid.pairs, hash.last), (400, 399, 0));
        assert!((hash.within - 400.0 * 0.06).abs() < 1e-9);
        assert!(centroid.within < hash.within / 4.0);
        assert!(compared.gain() > 0.95, "{compared:?}");
        assert_eq!(Compared::of(&[]), Compared::default());
    }

    #[test]
    fn there_is_no_gain_without_an_error_as_small() {
        // A mixture that occurs once.
        let of = |index: u64| vector(600 * u64::from(index >= 50) + 300 * u64::from(index > 50), 9);
        let vectors: Vec<Vector> = (0..100).map(of).collect();
        let compared = Compared::of(&vectors);
        assert_eq!((compared.hash.phases, compared.hash.within), (3, 0.0));
        assert_eq!(compared.centroid.phases, 2);
        assert!(compared.centroid.within > 0.0);
        assert!(compared.gain().abs() < f64::EPSILON);
    }
}
