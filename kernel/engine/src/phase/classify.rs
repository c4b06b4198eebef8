//! Classes of vectors: by the hash of paper 004, section VI, or by the nearest centroid.
//!
//! A class is *sure* if every vector within the error bars has the same one.

use alloc::boxed::Box;
use core::fmt;

use tally_abi::phase::{COSTS, Classifier, MAX_PHASES, OTHERS};

use super::{
    cost::Vector,
    fixed::{BITS, root},
};

/// The class of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The phase: below [`MAX_PHASES`] in the order of their first appearance, or [`OTHERS`].
    pub phase: u8,
    /// Whether the error bars cross no boundary between classes.
    pub sure: bool,
    /// Whether the class began with this vector, the second one of its kind.
    pub begins: bool,
}

/// Classifier that assigns vectors to classes, learned from the vectors so far.
pub trait Classes: fmt::Debug + Send {
    /// The class of the next vector, which may be a new one.
    fn classify(&mut self, vector: &Vector) -> Class;
    /// The phase that a vector would have; `None` if no known class has it.
    fn lookup(&self, vector: &Vector) -> Option<u8>;
    /// Number of classes so far.
    fn number(&self) -> usize;
}

/// Makes an empty classifier. `unit` is in cycles per 1,000 instructions, at least 1.
pub fn classes(kind: Classifier, unit: u32) -> Box<dyn Classes> {
    let unit = u64::from(unit.max(1));
    match kind {
        Classifier::Hash => Box::new(Hashed { unit, keys: [0; MAX_PHASES], number: 0 }),
        Classifier::Centroid => Box::new(Centroids {
            radius: unit,
            means: [Centroid::EMPTY; MAX_PHASES],
            number: 0,
            last: 0,
            candidate: None,
        }),
    }
}

/// Classes by the hash of the costs in units (section VI.C).
#[derive(Debug)]
struct Hashed {
    unit: u64,
    keys: [u64; MAX_PHASES],
    number: usize,
}

impl Hashed {
    /// The identity of a vector (FNV-1a over the costs in units).
    fn key(&self, vector: &Vector) -> u64 {
        vector.costs.iter().fold(0xcbf2_9ce4_8422_2325, |key, cost| {
            (key ^ (cost.cycles / self.unit)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    fn position(&self, key: u64) -> Option<usize> {
        self.keys.iter().take(self.number).position(|known| *known == key)
    }
}

impl Classes for Hashed {
    fn classify(&mut self, vector: &Vector) -> Class {
        let sure = vector.costs.iter().all(|cost| {
            let (low, high) = (cost.cycles.saturating_sub(cost.half_width), cost.cycles);
            low / self.unit == high.saturating_add(cost.half_width) / self.unit
        });
        let key = self.key(vector);
        let known = self.position(key);
        if known.is_none()
            && let Some(place) = self.keys.get_mut(self.number)
        {
            *place = key;
            self.number += 1;
            return Class { phase: (self.number - 1) as u8, sure, begins: false };
        }
        Class { phase: known.map_or(OTHERS, |phase| phase as u8), sure, begins: false }
    }

    fn lookup(&self, vector: &Vector) -> Option<u8> {
        self.position(self.key(vector)).map(|phase| phase as u8)
    }

    fn number(&self) -> usize {
        self.number
    }
}

/// The mean of a class.
#[derive(Clone, Copy, Debug)]
struct Centroid {
    /// Sums of the costs of 2 to the power `weight` vectors.
    sums: [u64; COSTS],
    /// At most [`MOST_WEIGHT`].
    weight: u32,
    /// The sum of the means: a bound of distances without the costs.
    total: u64,
}

/// Weight limit: beyond it a mean moves by a fixed share of each vector.
const MOST_WEIGHT: u32 = 4;

impl Centroid {
    const EMPTY: Centroid = Centroid { sums: [0; COSTS], weight: 0, total: 0 };

    fn of(vector: &Vector) -> Centroid {
        let sums = vector.costs.map(|cost| cost.cycles);
        Centroid { sums, weight: 0, total: vector.total() }
    }

    /// The sum of the differences of all costs, or any value of at least `limit` if the sum is not
    /// below it. `total` is the vector's.
    fn distance(&self, vector: &Vector, total: u64, limit: u64) -> u64 {
        let bound = self.total.abs_diff(total);
        if bound >= limit {
            return bound;
        }
        let costs = self.sums.iter().zip(&vector.costs);
        costs.fold(0, |sum, (mean, cost)| sum + (mean >> self.weight).abs_diff(cost.cycles))
    }

    /// Moves the mean by the vector's share of it.
    fn add(&mut self, vector: &Vector) {
        let weight = self.weight;
        self.total = 0;
        if weight < MOST_WEIGHT {
            // The new sum is half old mean, half new vector.
            self.weight += 1;
            for (sum, cost) in self.sums.iter_mut().zip(&vector.costs) {
                *sum += cost.cycles << weight;
                self.total += *sum >> self.weight;
            }
            return;
        }
        for (sum, cost) in self.sums.iter_mut().zip(&vector.costs) {
            *sum = *sum - (*sum >> weight) + cost.cycles;
            self.total += *sum >> weight;
        }
    }
}

/// Classes by the nearest of the means, in sums of differences of costs.
///
/// A vector further from all means than the radius begins a class when a second such vector, near
/// it, follows: the interval in which a program changes is a mixture of two phases, and comes only
/// once.
#[derive(Debug)]
struct Centroids {
    radius: u64,
    means: [Centroid; MAX_PHASES],
    number: usize,
    /// The class of the last vector.
    last: usize,
    /// The last vector that was far from all means.
    candidate: Option<Centroid>,
}

impl Centroids {
    fn known(&self) -> &[Centroid] {
        self.means.get(..self.number).unwrap_or_default()
    }

    /// The nearest mean, its distance, and the second distance, or the nearest distance plus
    /// `enough` if that is smaller.
    fn nearest(&self, vector: &Vector, enough: u64) -> (usize, u64, u64) {
        let total = vector.total();
        let Some(last) = self.known().get(self.last) else { return (0, u64::MAX, u64::MAX) };
        // Starts with the last vector's mean: mostly it is the nearest, and bounds suffice for the
        // others.
        let distance = last.distance(vector, total, u64::MAX);
        let mut nearest = (self.last, distance, distance + enough);
        for (index, mean) in self.known().iter().enumerate() {
            if index == self.last {
                continue;
            }
            let distance = mean.distance(vector, total, nearest.2);
            if distance < nearest.1 {
                nearest = (index, distance, nearest.1.min(distance + enough));
            } else {
                nearest.2 = nearest.2.min(distance);
            }
        }
        nearest
    }

    /// Makes a class of the vector; `None` if there is no room.
    fn found(&mut self, centroid: Centroid) -> Option<u8> {
        let place = self.means.get_mut(self.number)?;
        *place = centroid;
        self.last = self.number;
        self.number += 1;
        Some((self.number - 1) as u8)
    }
}

impl Classes for Centroids {
    fn classify(&mut self, vector: &Vector) -> Class {
        // The distance errs by the sum of the costs' errors, which are independent.
        let squares = vector.squared_bars();
        // A second mean beyond this distance makes no class unsure: a root is at most 0.5 % too
        // small.
        let bar = root(squares) >> BITS;
        let enough = 2 * (bar + bar / 64 + 2);
        let (nearest, distance, second) = self.nearest(vector, enough);
        self.last = nearest;
        let exceeds = |gap: u64| gap.saturating_mul(gap) > squares;
        if distance <= self.radius {
            // Both distances err: in the worst case their errors are opposite and the gap errs by
            // their sum.
            let sure = exceeds(self.radius - distance) && exceeds((second - distance) / 2);
            if let Some(mean) = self.means.get_mut(nearest).filter(|_| sure) {
                mean.add(vector);
            }
            return Class { phase: nearest as u8, sure, begins: false };
        }
        let is_far = exceeds(distance - self.radius);
        let again = self
            .candidate
            .is_some_and(|mean| mean.distance(vector, vector.total(), u64::MAX) <= self.radius);
        if self.number == 0 || (is_far && again) {
            self.candidate = None;
            let phase = self.found(Centroid::of(vector));
            let (phase, sure) = (phase.unwrap_or(OTHERS), phase.is_some());
            return Class { phase, sure, begins: sure && again };
        }
        self.candidate = is_far.then(|| Centroid::of(vector));
        Class { phase: nearest as u8, sure: false, begins: false }
    }

    fn lookup(&self, vector: &Vector) -> Option<u8> {
        let (nearest, distance, _) = self.nearest(vector, 0);
        (distance <= self.radius).then_some(nearest as u8)
    }

    fn number(&self) -> usize {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Cost;

    fn vector(first: u64, second: u64, half_width: u64) -> Vector {
        let mut vector = Vector::default();
        vector.costs[0] = Cost { cycles: first, half_width };
        vector.costs[9] = Cost { cycles: second, half_width };
        vector
    }

    #[test]
    fn a_hash_tells_costs_apart_by_the_unit() {
        let mut classes = super::classes(Classifier::Hash, 128);
        let class = |phase, sure| Class { phase, sure, begins: false };
        assert_eq!(classes.classify(&vector(10, 300, 0)), class(0, true));
        assert_eq!(classes.classify(&vector(100, 310, 5)), class(0, true));
        assert_eq!(classes.classify(&vector(10, 600, 0)), class(1, true));
        // The boundary is at 384.
        assert_eq!(classes.classify(&vector(10, 380, 5)), class(0, false));
        assert_eq!(classes.lookup(&vector(0, 639, 0)), Some(1));
        assert_eq!((classes.lookup(&vector(0, 640, 0)), classes.number()), (None, 2));
        let more =
            (3..=MAX_PHASES as u64 + 1).map(|n| classes.classify(&vector(0, 640 * n, 0)).phase);
        assert_eq!(more.last(), Some(OTHERS));
    }

    #[test]
    fn a_centroid_begins_at_the_second_far_vector() {
        let mut classes = super::classes(Classifier::Centroid, 100);
        let class = |phase, sure| Class { phase, sure, begins: false };
        assert_eq!(classes.classify(&vector(0, 300, 1)), class(0, true));
        assert_eq!(classes.classify(&vector(0, 340, 1)), class(0, true));
        // Half-way: a mixture that comes once.
        assert_eq!(classes.classify(&vector(0, 600, 1)), class(0, false));
        assert_eq!(classes.classify(&vector(0, 900, 1)), class(0, false));
        let begins = Class { begins: true, ..class(1, true) };
        assert_eq!(classes.classify(&vector(0, 910, 1)), begins);
        assert_eq!(classes.number(), 2);
        // The bars cross the radius, and the middle between both means.
        assert_eq!(classes.classify(&vector(0, 990, 40)), class(1, false));
        assert_eq!(classes.lookup(&vector(0, 600, 0)), None);
        assert_eq!(classes.lookup(&vector(20, 350, 0)), Some(0));
    }
}
