//! Estimates that are made after the run, with their intervals.

use serde::{Deserialize, Serialize};

/// Squared events that might have been met or missed by chance in all slices: the rule of three, as
/// in the engine's estimates.
pub(super) const UNSEEN: f64 = 2.343;
/// Terms of one size of which a sum of squares consists at least, for each degree of freedom
/// (decision 28).
const TERMS: f64 = 4.0;

/// An event's number, estimated from the records of slices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate, in events.
    pub estimate: f64,
    /// Half the width of its 95 % interval, in events; the interval can reach further down.
    pub half_width_95: f64,
    /// The lower end of the interval, in events; not below 0.
    pub low_95: f64,
    /// The upper end of the interval, in events.
    pub high_95: f64,
}

impl Estimate {
    pub(super) fn of(estimate: f64, half_width_95: f64) -> Estimate {
        let low_95 = (estimate - half_width_95).max(0.0);
        Estimate { estimate, half_width_95, low_95, high_95: estimate + half_width_95 }
    }

    /// The same, with a lower end that is lower by `events`.
    pub(super) fn down_by(self, events: f64) -> Estimate {
        Estimate { low_95: (self.low_95 - events).max(0.0), ..self }
    }

    /// The same, with a half width of at least this.
    pub(super) fn at_least(self, half_width_95: f64) -> Estimate {
        let more = (half_width_95 - self.half_width_95).max(0.0);
        let low_95 = (self.low_95 - more).max(0.0);
        let half_width_95 = self.half_width_95 + more;
        Estimate { half_width_95, low_95, high_95: self.high_95 + more, ..self }
    }

    /// The same, with a lower end that is not above this.
    pub(super) fn down_to(self, low_95: f64) -> Estimate {
        Estimate { low_95: self.low_95.min(low_95.max(0.0)), ..self }
    }

    /// Returns whether a count lies within the 95 % interval.
    pub fn contains(&self, truth: u64) -> bool {
        (self.low_95..=self.high_95).contains(&(truth as f64))
    }
}

/// The degrees of freedom of a mean of squares: few, if few of them are most of it (decision 28).
pub(crate) fn degrees(squares: &[f64]) -> f64 {
    let (all, number) = (squares.iter().sum::<f64>(), squares.len() as f64);
    let largest = squares.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return number;
    }
    let excess = largest / all - 1.0 / number;
    if excess > 0.0 { number.min(TERMS / excess) } else { number }
}
