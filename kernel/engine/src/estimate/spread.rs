//! The spread of residuals between slices, from sums of pairs of them.

use super::sample::{Sample, in_ones};
use crate::moments::{BLOCKS, Base, Difference, FAR, NEAR, WEIGHT};

/// Squared standard deviations beyond which a difference is significant: one in thirteen
/// differences is that large by chance.
const SIGNIFICANT: f64 = 2.0;
/// Number of pairs as which a sum counts for each time that it contains its largest square: chosen
/// like [`super::tails`], and by readings of a program (`cargo xtask study live`).
pub(super) const LARGE: f64 = 6.0;

/// A variance of residuals, with its precision.
#[derive(Clone, Copy)]
pub(super) struct Spread {
    pub(super) variance: f64,
    /// Equivalent number of independent differences, if they are normal.
    pairs: f64,
    /// Effective number of pairs once dominance by a few large ones is discounted; at most `pairs`.
    even: f64,
}

/// The variance of residuals: between slices, and the part that does not even out over blocks.
pub(super) fn spread(sample: &Sample, base: Base, rate: f64) -> [Spread; 2] {
    let of = |kind| Spread::of(sample, base, rate, kind);
    let (near, far, blocks) = (of(NEAR), of(FAR), of(BLOCKS));
    // Far pairs overestimate the variance within a round if the program drifts, so near pairs are
    // used alone if they are significantly smaller.
    let slices = near.or(far).fall_to(near.or_ends_in(far));
    // An effect of the place in the round evens out over a block, so the blocks' sums lack it.
    [slices, slices.fall_to(blocks)]
}

impl Spread {
    fn of(sample: &Sample, base: Base, rate: f64, kind: usize) -> Spread {
        let (event, group) = (&sample.event.pairs[kind], &sample.group.pairs[kind]);
        let products = event.products[base as usize] as f64;
        let squares = group.squares[base as usize] as f64;
        let residual = event.squares as f64 - 2.0 * rate * products + rate * rate * squares;
        let (weight, squared) = (in_ones(group.weight), in_ones(group.squared_weight));
        if weight == 0.0 {
            return Spread { variance: 0.0, pairs: 0.0, even: 0.0 };
        }
        // All slices of a round are paired with its first, so their pairs are correlated: more than
        // four pairs of a round count as four.
        let worth = (4.0 / f64::from(sample.group.share())).min(1.0);
        let variance = residual.max(0.0) / WEIGHT as f64 / 2.0 / weight;
        let pairs = worth * weight * weight / squared;
        // A sum dominated by its largest term has few degrees of freedom (decision 28).
        let Difference { events, base, weight: times } = event.largest[base as usize];
        let largest = events as f64 - rate * base as f64;
        let largest = times as f64 * largest * largest;
        let large = if largest > 0.0 { (residual / largest).max(1.0) } else { pairs };
        let even = 1.0 / (1.0 / large - 1.0 / pairs).max(0.0);
        Spread { variance, pairs, even: pairs.min(LARGE * even) }
    }

    /// Pools two estimates of the same variance, weighted by their pairs.
    fn or(self, other: Spread) -> Spread {
        let pairs = self.pairs + other.pairs;
        let sum = self.pairs * self.variance + other.pairs * other.variance;
        let variance = if pairs > 0.0 { sum / pairs } else { 0.0 };
        Spread { variance, pairs, even: self.even + other.even }
    }

    /// Returns the near pairs' spread, or a quarter of the `far` pairs' variance if that is larger.
    ///
    /// If slices differ only because phases end between them, the mean square of their difference
    /// is proportional to their distance: with the weights of near pairs a third of a round, for
    /// far pairs at most four thirds. But few ends of phases lie within near pairs, and by chance
    /// none (decision 88).
    fn or_ends_in(self, far: Spread) -> Spread {
        let ends = Spread { variance: far.variance / 4.0, ..far };
        if ends.variance > self.variance { ends } else { self }
    }

    /// Returns `other` if it is significantly lower, otherwise `self`.
    fn fall_to(self, other: Spread) -> Spread {
        let fall = self.variance - other.variance;
        // The variance of the difference if both estimate `self.variance`.
        let chance = self.chance() + Spread { variance: self.variance, ..other }.chance();
        if fall > 0.0 && other.pairs > 0.0 && fall * fall > SIGNIFICANT * chance {
            other
        } else {
            self
        }
    }

    /// The variance of this estimate. The mean square of m successive differences of a normal
    /// variable has a variance of 3 / m relative to its own square (von Neumann 1941).
    fn chance(self) -> f64 {
        3.0 * self.variance * self.variance / self.pairs
    }

    /// Degrees of freedom, from the variance of a mean square of successive differences as a
    /// multiple of that of independent ones.
    pub(super) fn degrees(self) -> f64 {
        let pairs = self.even.max(1.0);
        2.0 * pairs * pairs / (3.0 * pairs - 1.0)
    }
}

/// The 97.5 % quantile of Student's t.
pub fn student_t_95(degrees: f64) -> f64 {
    /// Pairs of 1/degrees and quantile; between them the quantile is close to linear.
    const TABLE: [(f64, f64); 12] = [
        (0.0, 1.960),
        (1.0 / 60.0, 2.000),
        (1.0 / 30.0, 2.042),
        (1.0 / 20.0, 2.086),
        (1.0 / 12.0, 2.179),
        (1.0 / 8.0, 2.306),
        (1.0 / 6.0, 2.447),
        (1.0 / 5.0, 2.571),
        (1.0 / 4.0, 2.776),
        (1.0 / 3.0, 3.182),
        (1.0 / 2.0, 4.303),
        (1.0, 12.706),
    ];
    let x = (1.0 / degrees.max(1.0)).clamp(0.0, 1.0);
    let mut spans = TABLE.windows(2).filter_map(|span| <[_; 2]>::try_from(span).ok());
    let span = spans.find(|[_, (upper, _)]| x <= *upper);
    span.map_or(12.706, |[(x0, t0), (x1, t1)]| t0 + (t1 - t0) * (x - x0) / (x1 - x0))
}
