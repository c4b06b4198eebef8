//! The value of a logical counter, with its kind and its error.

use serde::{Deserialize, Serialize};

use crate::Malformed;

/// Knowledge of a count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// Counted all the time in ring 3, so without any error.
    Exact {
        /// Events.
        count: u64,
    },
    /// Counted part of the time and scaled. Also any count in ring 0, because each overflow
    /// interrupt adds to it or takes from it (docs/internals/estimator.md).
    Estimated {
        /// Events, rounded to the nearest integer. The engine raises an estimate that is below an
        /// earlier reading, and lowers a part's estimate that is above its whole's.
        estimate: u64,
        /// Standard error, in events, of the estimate before the engine moved it. For a pinned
        /// count in ring 0, the half width divided by 1.96.
        stderr: f64,
        /// Half the width of the 95 % interval, in events: 1.96 standard errors, or more with few
        /// slices (Student's t), plus the distance by which the estimate was moved, plus the upper
        /// bound of what overflow interrupts added to a count in ring 0 or took from it.
        half_width_95: f64,
    },
    /// Not counted, or in too few slices to compute an error.
    NotMeasured {
        /// The reason.
        reason: Reason,
    },
}

/// Reason why a counter has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The session has not run yet.
    NotStarted,
    /// The event was counted in fewer than four slices.
    TooFewSlices,
    /// A counter of a CPU has stopped counting since the session was opened.
    CounterFailed,
    /// The counter counted nothing, although events that are a part of its event were counted: the
    /// processor lacks the event, or the counter stood still.
    CountsNothing,
}

impl Reason {
    const ALL: [Reason; 4] =
        [Reason::NotStarted, Reason::TooFewSlices, Reason::CounterFailed, Reason::CountsNothing];

    /// The message for users.
    pub fn message(self) -> &'static str {
        match self {
            Reason::NotStarted => "the session has not run",
            Reason::TooFewSlices => {
                "fewer than four slices counted: run longer or use shorter slices"
            }
            Reason::CounterFailed => "a counter has stopped counting",
            Reason::CountsNothing => {
                "it counted nothing, though events that are a part of it were counted"
            }
        }
    }
}

/// A logical counter's value with its coverage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The value.
    pub value: Value,
    /// Events in the slices in which the event was counted: a lower bound of the true count. For a
    /// count in ring 0, reduced by what overflow interrupts may have added.
    pub counted: u64,
    /// Cycles for which the event was counted, at the session's privilege.
    pub counted_cycles: u64,
    /// Cycles for which the session ran, at the session's privilege.
    pub total_cycles: u64,
    /// Slices in which the event was counted.
    pub slices: u64,
}

/// A [`Reading`] as it crosses the system-call boundary.
pub type ReadingWords = [u64; 8];

const EXACT: u64 = 1;
const ESTIMATED: u64 = 2;
const NOT_MEASURED: u64 = 3;

impl Reading {
    /// Replaces the value by the reason why it is not known.
    #[must_use]
    pub fn without_value(self, reason: Reason) -> Reading {
        Reading { value: Value::NotMeasured { reason }, ..self }
    }

    /// The coverage of the event, 0 to 1; `None` if the session has not run.
    pub fn coverage(&self) -> Option<f64> {
        let share = self.counted_cycles as f64 / self.total_cycles as f64;
        (self.total_cycles > 0).then_some(share)
    }

    /// The 95 % interval, in events: from the value minus the half width, but at least the events
    /// that were counted, to the value plus the half width. `None` if there is no value.
    pub fn interval_95(&self) -> Option<(f64, f64)> {
        match self.value {
            Value::Exact { count } => Some((count as f64, count as f64)),
            Value::Estimated { estimate, half_width_95, .. } => {
                let (middle, counted) = (estimate as f64, self.counted as f64);
                let low = (middle - half_width_95).max(counted.min(middle));
                Some((low, middle + half_width_95))
            }
            Value::NotMeasured { .. } => None,
        }
    }

    /// Encodes: kind, three words that depend on the kind, counted and total cycles, slices, events
    /// counted.
    pub fn to_words(&self) -> ReadingWords {
        let (kind, [a, b, c]) = match self.value {
            Value::Exact { count } => (EXACT, [count, 0, 0]),
            Value::Estimated { estimate, stderr, half_width_95 } => {
                (ESTIMATED, [estimate, stderr.to_bits(), half_width_95.to_bits()])
            }
            Value::NotMeasured { reason } => (NOT_MEASURED, [reason as u64, 0, 0]),
        };
        [kind, a, b, c, self.counted_cycles, self.total_cycles, self.slices, self.counted]
    }

    /// Decodes what [`Self::to_words`] made.
    ///
    /// # Errors
    /// A kind or reason that this version does not define.
    pub fn from_words(words: ReadingWords) -> Result<Self, Malformed> {
        let [kind, a, b, c, counted_cycles, total_cycles, slices, counted] = words;
        let value = match kind {
            EXACT => Value::Exact { count: a },
            ESTIMATED => Value::Estimated {
                estimate: a,
                stderr: f64::from_bits(b),
                half_width_95: f64::from_bits(c),
            },
            NOT_MEASURED => Value::NotMeasured {
                reason: Reason::ALL.into_iter().find(|r| *r as u64 == a).ok_or(Malformed)?,
            },
            _ => return Err(Malformed),
        };
        Ok(Reading { value, counted, counted_cycles, total_cycles, slices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_begins_at_the_events_that_were_counted() {
        let interval = |estimate, half_width_95, counted| {
            let value = Value::Estimated { estimate, stderr: 1.0, half_width_95 };
            let reading = Reading { value, counted, counted_cycles: 1, total_cycles: 4, slices: 9 };
            reading.interval_95()
        };
        assert_eq!(interval(100, 20.0, 25), Some((80.0, 120.0)));
        assert_eq!(interval(22, 66.0, 5), Some((5.0, 88.0)));
        // The estimate was lowered below the counted events, to fit another count.
        assert_eq!(interval(4, 2.0, 5), Some((4.0, 6.0)));
    }

    #[test]
    fn words_round_trip_and_reject() {
        let values = [
            Value::Exact { count: u64::MAX },
            Value::Estimated { estimate: 5, stderr: 0.25, half_width_95: 0.5 },
            Value::NotMeasured { reason: Reason::NotStarted },
            Value::NotMeasured { reason: Reason::TooFewSlices },
        ];
        for value in values {
            let reading =
                Reading { value, counted: 3, counted_cycles: 1, total_cycles: 4, slices: 2 };
            assert_eq!(Reading::from_words(reading.to_words()), Ok(reading));
            assert_eq!(reading.coverage(), Some(0.25));
            assert_eq!(Reading { total_cycles: 0, ..reading }.coverage(), None);
        }
        assert_eq!(Reading::from_words([0; 8]), Err(Malformed));
        assert_eq!(Reading::from_words([NOT_MEASURED, 9, 0, 0, 0, 0, 0, 0]), Err(Malformed));
    }
}
