//! Penalties calibrated on line, by the program's own intervals.
//!
//! The penalties of a catalogue are published latencies; what an event costs a program depends on
//! what executes meanwhile. Each kind of cost has a factor, at first 1, that follows the error of
//! the model's time by leaky, regularized, normalized least mean squares (Haykin, *Adaptive Filter
//! Theory*, the chapter on normalized LMS): after an interval with costs v, cycles T and error e =
//! T − `T_model`, a factor grows by e · v / (Σ v² + (T / 8)²), and moves towards 1 by a 64th of its
//! distance. The second square keeps costs that are small beside T from explaining all of the
//! error, and the move towards 1 gives kinds that no longer occur their published penalties back.
//! The time of an interval is computed with the factors of the intervals before it.

use tally_abi::phase::COSTS;

use super::{
    cost::{Cost, Vector},
    fixed::{MOST_BAR, MOST_COST},
};

/// Fraction bits of a factor.
const FACTOR_BITS: u32 = 16;
/// A factor of 1.
const ONE: i64 = 1 << FACTOR_BITS;
/// Maximum of a factor.
const MOST_FACTOR: i64 = 4 << FACTOR_BITS;
/// Bits by which T is shifted for the second square.
const REGULAR_BITS: u32 = 3;
/// Bits by which a factor's distance from 1 is shifted for its move towards 1.
const LEAK_BITS: u32 = 6;
/// Fraction bits of the error over the squares. An error has at most 29 bits, and
/// the quotient times a cost at most as many.
const GAIN_BITS: u32 = 30;
/// Maximum of an error, in cycles per 1,000 instructions.
const MOST_ERROR: u64 = MOST_COST;

/// Factors of the costs, in the order of [`tally_abi::phase::Bottleneck::ALL`].
#[derive(Clone, Debug)]
pub struct Calibration {
    factors: [i64; COSTS],
}

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration { factors: [ONE; COSTS] }
    }
}

impl Calibration {
    /// The costs with their factors, from those by the catalogue's penalties.
    pub fn apply(&self, vector: &Vector) -> Vector {
        let mut calibrated = *vector;
        for (cost, factor) in calibrated.costs.iter_mut().zip(&self.factors) {
            // Costs have at most 28 bits and factors 19.
            let priced = |value: u64| (value * factor.unsigned_abs()) >> FACTOR_BITS;
            *cost = Cost {
                cycles: priced(cost.cycles).min(MOST_COST),
                half_width: priced(cost.half_width).min(MOST_BAR),
            };
        }
        calibrated
    }

    /// Adapts the factors to an interval: its costs by the catalogue's penalties, its cycles, the
    /// model's time by the factors so far, and its instructions.
    pub fn learn(&mut self, vector: &Vector, cycles: u64, model_cycles: u64, instructions: u64) {
        let regular = vector.cpi >> REGULAR_BITS;
        let square = |cost: &Cost| cost.cycles * cost.cycles;
        let squares = vector.costs.iter().fold(regular * regular, |sum, cost| sum + square(cost));
        let per_1000 = |value: u64| {
            value.saturating_mul(1000).checked_div(instructions).unwrap_or_default().min(MOST_ERROR)
        };
        let error = per_1000(cycles.saturating_sub(model_cycles)) as i64
            - per_1000(model_cycles.saturating_sub(cycles)) as i64;
        let Some(gain) = (error << GAIN_BITS).checked_div(squares as i64) else { return };
        for (factor, cost) in self.factors.iter_mut().zip(&vector.costs) {
            let step = (gain * cost.cycles as i64) >> (GAIN_BITS - FACTOR_BITS);
            let leak = (ONE - *factor) >> LEAK_BITS;
            *factor = (*factor + step + leak).clamp(0, MOST_FACTOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use tally_abi::phase::Bottleneck::{DirectMisprediction, Dl1Miss};

    use super::*;

    fn vector(branches: u64, data: u64, cpi: u64) -> Vector {
        let mut vector = Vector { cpi, ..Vector::default() };
        vector.costs[DirectMisprediction as usize].cycles = branches;
        vector.costs[Dl1Miss as usize].cycles = data;
        vector
    }

    /// Learns intervals of a million instructions without other cycles than costs.
    fn learned(intervals: &[Vector]) -> Calibration {
        let mut calibration = Calibration::default();
        for vector in intervals {
            let costs = calibration.apply(vector);
            calibration.learn(vector, vector.cpi * 1000, costs.total() * 1000, 1_000_000);
        }
        calibration
    }

    #[test]
    fn factors_of_two_costs_are_found() {
        // An event of the first costs 1.5 times the catalogue's penalty, one of the second a half.
        let of = |branches, data| vector(branches, data, (3 * branches + data) / 2);
        let intervals: Vec<_> =
            (0..200).map(|n| of(100 + n * 37 % 300, 50 + n * 91 % 400)).collect();
        let costs = learned(&intervals).apply(&of(1000, 1000)).costs;
        // The move towards 1 takes a part of the way back, at most a quarter here.
        assert!((1375..=1500).contains(&costs[DirectMisprediction as usize].cycles), "{costs:?}");
        assert!((500..=625).contains(&costs[Dl1Miss as usize].cycles), "{costs:?}");
    }

    #[test]
    fn a_small_cost_does_not_explain_a_large_error() {
        let costs = learned(&[vector(10, 0, 1000); 3]).apply(&vector(10, 0, 1000)).costs;
        assert!(costs[DirectMisprediction as usize].cycles <= 30, "{costs:?}");
    }

    #[test]
    fn factors_stay_in_their_range_whatever_an_interval_says() {
        let extremes = [0, 1, 1000, MOST_COST];
        let mut calibration = Calibration::default();
        for number in 0..4096_usize {
            let pick = |place: u32| extremes[number >> (2 * place) & 3];
            let vector = vector(pick(0), pick(1), pick(2));
            let times = [0, 1, 1 << 40, u64::MAX];
            let (cycles, model) = (times[number >> 6 & 3], times[number >> 8 & 3]);
            calibration.learn(
                &vector,
                cycles,
                model,
                [0, 1, 1_000_000, u64::MAX][number >> 10 & 3],
            );
            assert!(calibration.factors.iter().all(|factor| (0..=MOST_FACTOR).contains(factor)));
            let all = calibration.apply(&vector).costs;
            assert!(all.iter().all(|cost| cost.cycles <= MOST_COST));
        }
    }

    #[test]
    fn an_interval_without_costs_teaches_nothing() {
        let learned = learned(&[vector(0, 0, 1000)]);
        assert_eq!(learned.factors, Calibration::default().factors);
    }
}
