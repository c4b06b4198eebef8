//! The largest term of a sum of squared residuals, in the overflow path.

use super::base::{Base, PerBase};

/// Fraction bits of a rate.
const RATE_BITS: u32 = 40;
/// Fraction bits of an inverse.
const INVERSE_BITS: u32 = 90;

/// Difference of two slices, or of two blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Difference in events.
    pub events: i64,
    /// Difference in a base.
    pub base: i64,
    /// Weight of the pair, in units of 1 / [`super::WEIGHT`].
    pub weight: i64,
}

impl Difference {
    /// The square of the residual at `rate`, multiplied by its weight.
    fn square(&self, rate: i64) -> i128 {
        let follows = (i128::from(self.base) * i128::from(rate)) >> RATE_BITS;
        let residual = self.events.wrapping_sub(follows as i64);
        let weighed = residual.wrapping_mul(self.weight);
        i128::from(residual) * i128::from(weighed)
    }

    /// Replaces `self` by `other` if its square is larger at `rate`.
    pub(super) fn keep_larger(&mut self, other: Difference, rate: i64) {
        if other.square(rate) > self.square(rate) {
            *self = other;
        }
    }
}

/// The inverses of a group's bases, from which each event's rate follows by one multiplication.
pub(super) struct Inverses(PerBase<u128>);

impl Inverses {
    pub(super) fn of(sums: PerBase<u64>) -> Inverses {
        Inverses(sums.map(|sum| (1 << INVERSE_BITS) / u128::from(sum.max(1))))
    }

    /// Events per count of the base.
    pub(super) fn rate(&self, events: u64, base: Base) -> i64 {
        (u128::from(events).wrapping_mul(self.0[base as usize]) >> (INVERSE_BITS - RATE_BITS))
            as i64
    }
}
