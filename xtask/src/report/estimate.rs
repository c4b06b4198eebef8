//! Estimates made after the run, with their intervals.

use serde::{Deserialize, Serialize};

/// Squared error for events that no slice may have met by chance: the rule of three, as in the
/// engine's estimates.
pub(super) const UNSEEN: f64 = 2.343;
/// Equally large terms of a sum of squares per degree of freedom: few large differences say little
/// about the variance (decision 28).
const TERMS: f64 = 4.0;

/// The number of an event's occurrences, estimated from the records of slices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate, in events.
    pub estimate: f64,
    /// Half the width of the 95 % interval, in events; the interval can extend further down.
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

    /// Lowers the lower end by `events`.
    pub(super) fn down_by(self, events: f64) -> Estimate {
        Estimate { low_95: (self.low_95 - events).max(0.0), ..self }
    }

    /// Widens the interval to at least this half width.
    pub(super) fn at_least(self, half_width_95: f64) -> Estimate {
        let more = (half_width_95 - self.half_width_95).max(0.0);
        let low_95 = (self.low_95 - more).max(0.0);
        let half_width_95 = self.half_width_95 + more;
        Estimate { half_width_95, low_95, high_95: self.high_95 + more, ..self }
    }

    /// Lowers the lower end to at most `low_95`.
    pub(super) fn down_to(self, low_95: f64) -> Estimate {
        Estimate { low_95: self.low_95.min(low_95.max(0.0)), ..self }
    }

    /// Returns whether a count lies within the 95 % interval.
    pub fn contains(&self, truth: u64) -> bool {
        (self.low_95..=self.high_95).contains(&(truth as f64))
    }
}

/// The degrees of freedom of a mean of squares: few, if few large squares dominate it, as these say
/// little about the variance (decision 28).
pub(crate) fn degrees(squares: &[f64]) -> f64 {
    let (all, number) = (squares.iter().sum::<f64>(), squares.len() as f64);
    let largest = squares.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return number;
    }
    let excess = largest / all - 1.0 / number;
    if excess > 0.0 { number.min(TERMS / excess) } else { number }
}
