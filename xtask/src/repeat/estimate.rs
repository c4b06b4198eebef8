//! The mean of an event's estimates over several runs, and the variation from run to run.
//!
//! A run's estimate is `y = truth + e`: `e` is the error of sampling, of which the run states the
//! standard error `s` and the half width `h`. The runs' seeds differ, so their errors are
//! independent. Two questions are kept apart:
//!
//! - How well is the mean of the runs' true counts known? Its error is the mean of the `e`, and its
//!   half width √(Σ h²) / N: 1/√N of a run's. The mean has equal weights. Weights of 1/s² would
//!   pull it down, because a run that meets few events states a small error too.
//! - How much do the true counts differ from run to run? Their variance is the variance of the
//!   estimates less the mean of s²: the unweighted form of the method of moments of `DerSimonian`
//!   and Laird, "Meta-analysis in clinical trials", Controlled Clinical Trials 7 (1986); Hedges and
//!   Olkin, "Statistical Methods for Meta-Analysis" (1985), chapter 9.

/// The estimate of an event in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RunEstimate {
    /// Number of events.
    pub(super) estimate: f64,
    /// Standard error, in events; 0 if the estimate is exact.
    pub(super) stderr: f64,
    /// Half the width of the 95 % interval, in events; 0 if the estimate is exact.
    pub(super) half_width_95: f64,
    /// Whether the error is the same in every run, so that a mean does not reduce it. This is so
    /// for the skew of counts in ring 0.
    pub(super) systematic: bool,
}

/// The combined result of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Combined {
    /// The mean of the estimates, in events.
    pub(super) mean: f64,
    /// Half the width of the 95 % interval of the mean of the true counts, in events.
    pub(super) half_width_95: f64,
    /// The standard deviation of the true counts from run to run, in events; 0 if the estimates
    /// differ less than their errors.
    pub(super) run_to_run: f64,
    /// Whether the estimates differ more than their errors explain, with 5 % error probability.
    pub(super) varies: bool,
}

/// Combines the estimates of two or more runs.
pub(super) fn combine(runs: &[RunEstimate]) -> Combined {
    let count = runs.len() as f64;
    let mean = mean(runs.iter().map(|run| run.estimate));
    let spread = variance(runs.iter().map(|run| run.estimate));
    let sampling = self::mean(runs.iter().map(|run| run.stderr * run.stderr));
    let squares: f64 = runs.iter().map(|run| run.half_width_95 * run.half_width_95).sum();
    let half_width_95 = if runs.iter().any(|run| run.systematic) {
        self::mean(runs.iter().map(|run| run.half_width_95))
    } else {
        squares.sqrt() / count
    };
    let degrees = count - 1.0;
    Combined {
        mean,
        half_width_95,
        run_to_run: (spread - sampling).max(0.0).sqrt(),
        varies: degrees * spread > sampling * chi_squared_95(degrees),
    }
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// The sample variance of two or more values.
pub(super) fn variance(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    let mean = mean(values.clone());
    values.map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0)
}

/// The 95 % quantile of χ², by Wilson and Hilferty, "The distribution of chi-square" (1931); the
/// error is below 3 % from one degree of freedom on.
fn chi_squared_95(degrees: f64) -> f64 {
    let share = 2.0 / (9.0 * degrees);
    degrees * (1.0 - share + 1.6449 * share.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trials of each setting. The standard error of a coverage of 95 % is then 0.34 %.
    const TRIALS: usize = 4000;

    /// `SplitMix64`.
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((x ^ x >> 31) >> 11) as f64 / (1u64 << 53) as f64
        }

        /// A standard normal value, by Box and Muller.
        fn normal(&mut self) -> f64 {
            let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
            radius * (std::f64::consts::TAU * self.uniform()).cos()
        }
    }

    /// Results of a setting's trials.
    #[derive(Debug, Default)]
    struct Trials {
        /// The share of intervals that contain the mean of the true counts.
        covered: f64,
        /// The share of trials that find a variation from run to run.
        found: f64,
        /// The mean of the squares of the variation.
        squared_run_to_run: f64,
        /// The mean half width.
        half_width_95: f64,
    }

    /// Runs trials of `count` runs, whose true counts vary by `between` around a million, with
    /// standard errors of 500 to 1,500. The runs estimate these from `degrees` normal values, and
    /// multiply them by `quantile`.
    fn trials(count: usize, between: f64, degrees: Option<u32>, quantile: f64) -> Trials {
        let mut random = Random(count as u64 ^ between as u64);
        let mut sum = Trials::default();
        for _ in 0..TRIALS {
            let mut truths = 0.0;
            let runs = (0..count).map(|_| {
                let truth = 1e6 + between * random.normal();
                truths += truth / count as f64;
                let true_error = 500.0 + 1000.0 * random.uniform();
                let stderr = true_error
                    * degrees.map_or(1.0, |degrees| {
                        let squares = (0..degrees).map(|_| random.normal().powi(2));
                        (squares.sum::<f64>() / f64::from(degrees)).sqrt()
                    });
                let estimate = truth + true_error * random.normal();
                let half_width_95 = quantile * stderr;
                RunEstimate { estimate, stderr, half_width_95, systematic: false }
            });
            let combined = combine(&runs.collect::<Vec<_>>());
            let is_covered = (combined.mean - truths).abs() <= combined.half_width_95;
            let share = 1.0 / TRIALS as f64;
            sum.covered += if is_covered { share } else { 0.0 };
            sum.found += if combined.varies { share } else { 0.0 };
            sum.squared_run_to_run += share * combined.run_to_run.powi(2);
            sum.half_width_95 += share * combined.half_width_95;
        }
        sum
    }

    #[test]
    fn the_interval_of_the_mean_covers_whether_the_program_varies_or_not() {
        for count in [2, 5, 20] {
            for between in [0.0, 1_000.0, 50_000.0] {
                let covered = trials(count, between, None, 1.96).covered;
                assert!((0.94..0.96).contains(&covered), "{count}, {between}: {covered}");
            }
        }
    }

    /// Student's t with 8 degrees of freedom is 2.306 at 95 %. A mean of several such errors is
    /// nearer to normal, so its interval is a little too wide.
    #[test]
    fn intervals_of_few_slices_stay_on_the_safe_side() {
        for count in [2, 5, 20] {
            let covered = trials(count, 0.0, Some(8), 2.306).covered;
            assert!((0.94..0.985).contains(&covered), "{count}: {covered}");
        }
    }

    #[test]
    fn half_widths_shrink_as_the_root_of_the_number_of_runs() {
        let [few, many] = [4, 16].map(|count| trials(count, 0.0, None, 1.96).half_width_95);
        assert!((few / many / 2.0 - 1.0).abs() < 0.03, "{few}, {many}");
    }

    #[test]
    fn the_variation_of_the_program_is_told_apart_from_sampling() {
        let none = trials(20, 0.0, None, 1.96);
        assert!(none.found < 0.07, "{none:?}");
        let large = trials(20, 3_000.0, None, 1.96);
        assert!(large.found > 0.99, "{large:?}");
        let ratio = large.squared_run_to_run / 3_000.0_f64.powi(2);
        assert!((0.95..1.05).contains(&ratio), "{ratio}");
    }

    #[test]
    fn exact_counts_have_no_error_and_their_own_variance() {
        let exact =
            |estimate| RunEstimate { estimate, stderr: 0.0, half_width_95: 0.0, systematic: false };
        let same = combine(&[exact(7.0), exact(7.0)]);
        assert_eq!((same.mean, same.half_width_95, same.run_to_run), (7.0, 0.0, 0.0));
        assert!(!same.varies);
        let differ = combine(&[exact(6.0), exact(8.0)]);
        assert_eq!((differ.mean, differ.half_width_95), (7.0, 0.0));
        assert!(differ.varies && (differ.run_to_run - 2.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_systematic_error_does_not_shrink() {
        let run = RunEstimate { estimate: 9.0, stderr: 1.0, half_width_95: 2.0, systematic: true };
        assert_eq!(combine(&[run; 4]).half_width_95, 2.0);
        assert_eq!(combine(&[RunEstimate { systematic: false, ..run }; 4]).half_width_95, 1.0);
    }

    #[test]
    fn quantiles_of_chi_squared_are_those_of_tables() {
        for (degrees, quantile) in [(1.0, 3.841), (4.0, 9.488), (19.0, 30.144)] {
            let ratio: f64 = chi_squared_95(degrees) / quantile;
            assert!((ratio - 1.0).abs() < 0.03, "{degrees}: {ratio}");
        }
    }
}
