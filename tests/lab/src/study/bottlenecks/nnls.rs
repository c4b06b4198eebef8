//! Least squares without negative coefficients.

/// Maximum sweeps: each costs the square of the number of coefficients.
const SWEEPS: usize = 20_000;
/// Termination: no coefficient moves by more than this part of the largest.
const LEAST_MOVE: f64 = 1e-9;

/// The sums of rows that coefficients are fitted to (the normal equations).
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// Σ a·aᵀ.
    products: Vec<Vec<f64>>,
    /// Σ a·b.
    targets: Vec<f64>,
}

impl Rows {
    /// Makes sums without any row, for this number of coefficients.
    pub(super) fn new(coefficients: usize) -> Rows {
        Rows {
            products: vec![vec![0.0; coefficients]; coefficients],
            targets: vec![0.0; coefficients],
        }
    }

    /// Adds a row: `factors` times the coefficients should be `target`.
    pub(super) fn add(&mut self, factors: &[f64], target: f64, weight: f64) {
        for (index, factor) in factors.iter().enumerate().filter(|(_, factor)| **factor != 0.0) {
            for (sum, other) in self.products[index].iter_mut().zip(factors) {
                *sum += weight * factor * other;
            }
            self.targets[index] += weight * factor * target;
        }
    }

    /// The non-negative coefficients with the least sum of squares, by coordinate descent: each in
    /// turn is set to its best value at or above 0. The sum is convex, so that this converges to
    /// its minimum. A coefficient that is in no row is 0.
    pub(super) fn solve(&self) -> Vec<f64> {
        let mut solution = vec![0.0_f64; self.targets.len()];
        for _ in 0..SWEEPS {
            let mut moved = 0.0_f64;
            for index in 0..solution.len() {
                let (row, own) = (&self.products[index], self.products[index][index]);
                if own <= 0.0 {
                    continue;
                }
                let sum: f64 = row.iter().zip(&solution).map(|(product, x)| product * x).sum();
                let best = (solution[index] + (self.targets[index] - sum) / own).max(0.0);
                moved = moved.max((best - solution[index]).abs());
                solution[index] = best;
            }
            if moved <= LEAST_MOVE * solution.iter().copied().fold(0.0, f64::max) {
                break;
            }
        }
        solution
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers from 0 to 1.
    fn numbers(mut state: u64) -> impl FnMut() -> f64 {
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f64 / (1 << 24) as f64
        }
    }

    #[test]
    fn planted_coefficients_are_found() {
        let planted = [30.0, 0.0, 14.0, 250.0, 1.0];
        let (mut next, mut rows) = (numbers(1), Rows::new(planted.len() + 1));
        for _ in 0..200 {
            let mut factors: Vec<f64> = planted.iter().map(|_| next()).collect();
            let target = factors.iter().zip(planted).map(|(factor, x)| factor * x).sum();
            // The last coefficient is in no row.
            factors.push(0.0);
            rows.add(&factors, target, 0.5);
        }
        let found = rows.solve();
        for (found, planted) in found.iter().zip(planted.iter().chain(&[0.0])) {
            assert!((found - planted).abs() < 1e-3, "{found} {planted}");
        }
    }

    #[test]
    fn coefficients_are_never_negative_and_no_step_from_them_is_better() {
        for seed in 1..60 {
            let mut next = numbers(seed);
            let rows: Vec<(Vec<f64>, f64)> =
                (0..20).map(|_| ((0..6).map(|_| next()).collect(), 4.0 * next() - 2.0)).collect();
            let mut sums = Rows::new(6);
            rows.iter().for_each(|(factors, target)| sums.add(factors, *target, 1.0));
            let found = sums.solve();
            assert!(found.iter().all(|x| *x >= 0.0), "{found:?}");
            let squares = |x: &[f64]| -> f64 {
                let of = |factors: &[f64]| factors.iter().zip(x).map(|(a, x)| a * x).sum::<f64>();
                rows.iter().map(|(factors, target)| (of(factors) - target).powi(2)).sum()
            };
            let least = squares(&found);
            for index in 0..6 {
                for step in [-0.01, 0.01] {
                    let mut other = found.clone();
                    other[index] = (other[index] + step).max(0.0);
                    assert!(squares(&other) >= least - 1e-9, "{seed}: {found:?}");
                }
            }
        }
    }
}
