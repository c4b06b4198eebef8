//! Means over several runs, and the spread between them.

use alloc::vec::Vec;

use tally::Usage;

use super::{count::Count, measure::Run};

/// Mean over runs.
#[derive(Clone, Copy)]
pub struct Mean {
    /// Mean value.
    pub mean: f64,
    /// Standard deviation of the mean, from the spread between the runs: 0 for one run.
    pub deviation: f64,
}

impl Mean {
    /// Computes the mean of one value for each run.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Mean {
        let runs = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / runs;
        let squares: f64 = values.map(|value| (value - mean) * (value - mean)).sum();
        let deviation = if runs > 1.0 { libm::sqrt(squares / (runs - 1.0) / runs) } else { 0.0 };
        Mean { mean, deviation }
    }

    /// Returns the deviation as a share of the mean, in percent: perf's `( +- x% )`.
    pub fn spread_percent(self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { 100.0 * self.deviation / self.mean }
    }
}

/// Returns the mean of each event, and its spread in percent if there are several runs. The half
/// widths are those of the mean: the errors of runs are independent.
pub fn means(runs: &[(Run, Vec<Count>)]) -> (Vec<Count>, Option<Vec<f64>>) {
    let of_event = |index: usize| {
        let of_runs = || runs.iter().map(|(_, counts)| &counts[index]);
        let first = runs[0].1[index].clone();
        if let Some(without) = of_runs().find(|count| count.value.is_none()) {
            return (without.clone(), 0.0);
        }
        let mean = Mean::of(of_runs().filter_map(|count| count.value));
        let squares: f64 = of_runs().map(|count| count.half_width * count.half_width).sum();
        let half_width = libm::sqrt(squares) / runs.len() as f64;
        let coverage = Mean::of(of_runs().map(|count| count.coverage)).mean;
        let count = Count { value: Some(mean.mean), half_width, coverage, ..first };
        (count, mean.spread_percent())
    };
    let (counts, spreads) = (0..runs[0].1.len()).map(of_event).unzip();
    (counts, (runs.len() > 1).then_some(spreads))
}

/// Returns the average resource usage of the program in a run.
pub fn usage(runs: &[(Run, Vec<Count>)]) -> Usage {
    let all = runs.iter().fold(Usage::default(), |all, (run, _)| all.with(run.span.usage));
    Usage::from_words(all.to_words().map(|word| word / runs.len() as u64))
}
