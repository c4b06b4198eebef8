//! The spread of residuals between slices, from sums of pairs of them.

use super::sample::{Sample, in_ones};
use crate::moments::{BLOCKS, Base, Difference, FAR, NEAR, WEIGHT};

/// Squared standard deviations of chance beyond which a difference is significant: one difference
/// in thirteen is that large by chance.
const SIGNIFICANT: f64 = 2.0;
/// Pairs that are worth as much as one of the largest squares that make up a sum: chosen as
/// [`super::tails`], and by readings of a program (`cargo xtask study live`).
pub(super) const LARGE: f64 = 6.0;

/// A variance of residuals, and how well it is known.
#[derive(Clone, Copy)]
pub(super) struct Spread {
    pub(super) variance: f64,
    /// The number of independent differences that it is worth, if they are normal.
    pairs: f64,
    /// The number where a few of them are most of the variance; no more than `pairs`.
    even: f64,
}

/// The variance of residuals: between slices, and the part that does not even out over blocks.
pub(super) fn spread(sample: &Sample, base: Base, rate: f64) -> [Spread; 2] {
    let of = |kind| Spread::of(sample, base, rate, kind);
    let (near, far, blocks) = (of(NEAR), of(FAR), of(BLOCKS));
    // Slices that are further apart than those of a round differ more, if they do not differ less.
    let slices = near.or(far).fall_to(near.or_ends_in(far));
    // An effect of the same place of every round evens out, and is not in the blocks' sums.
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
        // Of the slices of one round, all of which are paired with its first, four are worth as
        // much as any number.
        let worth = (4.0 / f64::from(sample.group.share())).min(1.0);
        let variance = residual.max(0.0) / WEIGHT as f64 / 2.0 / weight;
        let pairs = worth * weight * weight / squared;
        // A sum most of which is its largest term is worth few degrees of freedom (decision 28).
        let Difference { events, base, weight: times } = event.largest[base as usize];
        let largest = events as f64 - rate * base as f64;
        let largest = times as f64 * largest * largest;
        let large = if largest > 0.0 { (residual / largest).max(1.0) } else { pairs };
        let even = 1.0 / (1.0 / large - 1.0 / pairs).max(0.0);
        Spread { variance, pairs, even: pairs.min(LARGE * even) }
    }

    /// The mean of two estimates of the same.
    fn or(self, other: Spread) -> Spread {
        let pairs = self.pairs + other.pairs;
        let sum = self.pairs * self.variance + other.pairs * other.variance;
        let variance = if pairs > 0.0 { sum / pairs } else { 0.0 };
        Spread { variance, pairs, even: self.even + other.even }
    }

    /// This of near pairs, or what the ends of phases in `far` pairs show, if that is more.
    ///
    /// Where slices differ by the ends of phases alone, the mean square of their difference is in
    /// proportion to their distance: a third of a round for near pairs by their weights, four
    /// thirds at most for far ones. Few ends lie within near pairs, though, and by chance none
    /// (decision 88).
    fn or_ends_in(self, far: Spread) -> Spread {
        let ends = Spread { variance: far.variance / 4.0, ..far };
        if ends.variance > self.variance { ends } else { self }
    }

    /// `other`, if it is lower by more than chance.
    fn fall_to(self, other: Spread) -> Spread {
        let fall = self.variance - other.variance;
        // If they were the same.
        let chance = self.chance() + Spread { variance: self.variance, ..other }.chance();
        if fall > 0.0 && other.pairs > 0.0 && fall * fall > SIGNIFICANT * chance {
            other
        } else {
            self
        }
    }

    /// Its own variance: 3 / m is that of a mean square of m successive differences of a normal
    /// variable, relative to its own square (von Neumann 1941).
    fn chance(self) -> f64 {
        3.0 * self.variance * self.variance / self.pairs
    }

    /// Degrees of freedom: the variance of a mean square of successive differences is that of as
    /// many independent ones.
    pub(super) fn degrees(self) -> f64 {
        let pairs = self.even.max(1.0);
        2.0 * pairs * pairs / (3.0 * pairs - 1.0)
    }
}

/// The 97.5 % quantile of Student's t.
pub fn student_t_95(degrees: f64) -> f64 {
    /// Of 1/degrees and quantile; between them the quantile is close to linear.
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
