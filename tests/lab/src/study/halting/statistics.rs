//! Paired differences, their t intervals and tests, and the class of an event.
//!
//! Replicates are runs of several seeds. Each statistic (a difference, a slope, a bend) is computed
//! for each seed, and Student's t is taken over the seeds: differences at several lengths of one
//! seed share their halt points, so they are no independent observations (Crowder and Hand,
//! *Analysis of Repeated Measures*, 1990, chapter 2).

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The probability of an error of the first kind, over all events of a line of an experiment.
const LEVEL: f64 = 0.05;

/// A mean over seeds, with its 95 % interval and the test that it is 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Mean {
    pub(super) mean: f64,
    /// Half the length of the 95 % confidence interval, by Student's t.
    pub(super) half_width_95: f64,
    /// The probability of a mean at least as far from 0 if there is no effect, two-sided.
    pub(super) p: f64,
}

impl Mean {
    /// Computes the mean of two or more values.
    pub(super) fn of(values: &[f64]) -> Mean {
        let number = values.len() as f64;
        let mean = values.iter().sum::<f64>() / number;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let error = (squares / (number - 1.0) / number).sqrt();
        let t = StudentsT::new(0.0, 1.0, number - 1.0).expect("two values or more");
        let p = match (error > 0.0, mean == 0.0) {
            (true, _) => 2.0 * t.sf((mean / error).abs()),
            // Every seed has the same value.
            (false, is_zero) => f64::from(u8::from(is_zero)),
        };
        Mean { mean, half_width_95: t.inverse_cdf(0.975) * error, p }
    }

    /// Returns whether the mean's own interval excludes 0.
    pub(super) fn is_clear(&self) -> bool {
        self.mean.abs() > self.half_width_95
    }
}

/// Probabilities adjusted for their number: each is at most the level exactly if Holm's procedure
/// rejects it there (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979).
pub(super) fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let (mut adjusted, mut least) = (vec![1.0; p.len()], 0_f64);
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max((p.len() - rank) as f64 * p[index]).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

/// Returns which of these probabilities are significant among all of them.
pub(super) fn significant(p: &[f64]) -> Vec<bool> {
    holm(p).into_iter().map(|p| p <= LEVEL).collect()
}

/// The largest finite share. A share of a count of 0 is infinite or not a number.
pub(super) fn largest(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let finite = shares.filter(|share| share.is_finite());
    finite.max_by(|a, b| a.abs().total_cmp(&b.abs()))
}

/// The slope of the least-squares line through points; `None` if all have the same abscissa.
pub(super) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let number = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / number;
    let squares = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
    let products = points.iter().map(|(x, y)| (x - mean_x) * y).sum::<f64>();
    (squares > 0.0).then(|| products / squares)
}

/// A statistic of a seed's points.
type Statistic<'a> = dyn Fn(&[(f64, f64)]) -> f64 + 'a;

/// Response of an event to halts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    /// No effect of halts.
    None,
    /// An effect of halts that does not depend on their length, or number.
    Step,
    /// An effect that grows with the length, or the number, of halts.
    Linear,
    /// An effect whose growth decreases with the length, or the number, of halts.
    Saturating,
}

impl Class {
    pub(super) const ALL: [Class; 4] = [Class::None, Class::Step, Class::Linear, Class::Saturating];
}

/// Effect of a line of an experiment on an event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Effect {
    /// The mean difference between halted and unhalted runs.
    pub(super) shift: Mean,
    /// The growth of the difference per unit of the abscissa, among halted runs.
    pub(super) slope: Mean,
    /// The slope of the upper half of the points less that of the lower half; `None` with two
    /// points.
    pub(super) bend: Option<Mean>,
    /// The slope of the lower half.
    lower: f64,
}

impl Effect {
    /// Computes the effect from the points of each seed: rising abscissas, and differences.
    pub(super) fn of(seeds: &[Vec<(f64, f64)>]) -> Effect {
        let shifts = seeds.iter().map(|points| {
            points.iter().map(|(_, difference)| difference).sum::<f64>() / points.len() as f64
        });
        let over = |of: &Statistic<'_>| {
            let values: Vec<f64> = seeds.iter().map(|points| of(points)).collect();
            Mean::of(&values)
        };
        let slope_of = |points: &[(f64, f64)]| slope(points).unwrap_or_default();
        let lower = |points: &[(f64, f64)]| slope_of(&points[..=points.len() / 2]);
        let upper = |points: &[(f64, f64)]| slope_of(&points[points.len() / 2..]);
        let has_halves = seeds.iter().all(|points| points.len() > 2);
        Effect {
            shift: Mean::of(&shifts.collect::<Vec<f64>>()),
            slope: over(&slope_of),
            bend: has_halves.then(|| over(&|points| upper(points) - lower(points))),
            lower: if has_halves { over(&lower).mean } else { 0.0 },
        }
    }
}

/// Classifies all events of a line. Each of the three tests is corrected by Holm's procedure for
/// the number of events.
pub(super) fn classify(effects: &[Effect]) -> Vec<Class> {
    let significant =
        |of: &dyn Fn(&Effect) -> f64| significant(&effects.iter().map(of).collect::<Vec<f64>>());
    let shifts = significant(&|effect| effect.shift.p);
    let slopes = significant(&|effect| effect.slope.p);
    let bends = significant(&|effect| effect.bend.map_or(1.0, |bend| bend.p));
    let class = |(index, effect): (usize, &Effect)| {
        // The upper half is less than half as steep as the lower one.
        let flattens = effect.bend.is_some_and(|bend| {
            bend.mean * effect.lower < 0.0 && bend.mean.abs() > effect.lower.abs() / 2.0
        });
        match (shifts[index], slopes[index]) {
            (false, false) => Class::None,
            (true, false) => Class::Step,
            _ if bends[index] && flattens => Class::Saturating,
            _ => Class::Linear,
        }
    };
    effects.iter().enumerate().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-4
    }

    /// Source: Student's own sleep data (1908), differences of ten patients: t = 4.0621 with 9
    /// degrees of freedom, p = 0.002833, interval 0.7001 to 2.4599.
    #[test]
    fn the_t_test_is_student_s() {
        let sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let mean = Mean::of(&sleep);
        assert!(near(mean.mean, 1.58) && near(mean.p, 0.002833), "{mean:?}");
        assert!(near(mean.half_width_95, (2.459_885 - 0.700_115) / 2.0), "{mean:?}");
        assert!(mean.is_clear());
    }

    #[test]
    fn equal_differences_are_certain() {
        assert_eq!((Mean::of(&[3.0; 4]).p, Mean::of(&[3.0; 4]).is_clear()), (0.0, true));
        assert_eq!((Mean::of(&[0.0; 4]).p, Mean::of(&[0.0; 4]).is_clear()), (1.0, false));
    }

    /// Source: R, p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
    #[test]
    fn holm_s_probabilities_are_those_of_r() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(expected).all(|(a, b)| near(*a, b)), "{adjusted:?}");
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn slopes_are_of_least_squares() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), Some(2.0));
        let scattered = slope(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 5.0)]);
        assert!(near(scattered.unwrap(), 1.1), "{scattered:?}");
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 3.0)]), None);
    }

    /// Effect of five seeds whose differences follow `of`, with a little noise.
    fn seeds(of: fn(f64) -> f64) -> Effect {
        let noise = [0.02, -0.01, 0.0, 0.015, -0.025];
        let points = |seed: usize| {
            let point = |index: usize| {
                let x = index as f64;
                (
                    x,
                    of(x)
                        + noise[(seed + index) % 5]
                            * if index.is_multiple_of(2) { 1.0 } else { 2.0 },
                )
            };
            (0..5).map(point).collect()
        };
        Effect::of(&(0..5).map(points).collect::<Vec<_>>())
    }

    #[test]
    fn classes_are_of_shape() {
        let shapes: [fn(f64) -> f64; 4] =
            [|_| 0.0, |_| 9.0, |x| 9.0 * x, |x| 9.0 * (1.0 - (-2.0 * x).exp())];
        assert_eq!(classify(&shapes.map(seeds)), Class::ALL);
        let falling: [fn(f64) -> f64; 3] = [|_| -9.0, |x| -9.0 * x, |x| 9.0 * (-2.0 * x).exp()];
        assert_eq!(classify(&falling.map(seeds)), Class::ALL[1..]);
        // A curve that steepens does not saturate.
        assert_eq!(classify(&[seeds(|x| x * x)]), [Class::Linear]);
    }

    #[test]
    fn an_effect_that_one_test_would_find_is_not_found_among_many() {
        let weak = Effect::of(&[vec![(0.0, 1.0), (1.0, 1.0)], vec![(0.0, 1.2), (1.0, 1.2)]]);
        assert!(weak.shift.p < 0.06 && weak.bend.is_none(), "{weak:?}");
        let strong = Effect::of(&vec![vec![(0.0, 1.0), (1.0, 1.0)]; 2]);
        assert_eq!(classify(&[strong, weak]), [Class::Step, Class::None]);
    }
}
