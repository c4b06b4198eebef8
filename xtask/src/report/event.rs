//! The result of an event.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tally_abi::{Reading, Value};
use tally_breakdown::Count;

use super::estimate::Estimate;

/// The kind of an event's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Counted all the time (pinned).
    Exact,
    /// Counted part of the time (multiplexed).
    Estimated,
    /// Not counted, or for too few slices.
    NotMeasured,
}

impl Kind {
    /// The kind's name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Exact => "exact",
            Kind::Estimated => "estimated",
            Kind::NotMeasured => "not_measured",
        }
    }
}

/// The result of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventReport {
    /// The event's name.
    pub name: String,
    /// The kind of the value.
    pub kind: Kind,
    /// Number of events.
    pub estimate: Option<u64>,
    /// The estimate's standard error, in events.
    pub stderr: Option<f64>,
    /// Half the width of the 95 % interval, in events.
    pub half_width_95: Option<f64>,
    /// The lower end of the 95 % interval, in events; not below the number that was counted.
    pub low_95: Option<f64>,
    /// The upper end of the 95 % interval, in events.
    pub high_95: Option<f64>,
    /// The share of the time in which the event was counted, 0 to 1; `None` if the session never
    /// ran.
    pub coverage: Option<f64>,
    /// The virtual PMU's count, in events; in ring 0 without the PMI handlers.
    pub truth: Option<u64>,
    /// Whether the virtual PMU kept the truth of other events of the session, and not of this one.
    #[serde(skip)]
    pub lacks_truth: bool,
    /// The counter unit's count, in events, if it counted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u64>,
    /// Reason why there is no estimate.
    pub reason: Option<Cow<'static, str>>,
    /// Maximum events that the session's interrupts are likely to have added, by the events that
    /// one interrupt added at most in experiments (decision 83); `None` in ring 0, and if it is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likely_added: Option<f64>,
    /// The number without interrupts, if requested and known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unobserved: Option<Estimate>,
    /// The refined estimate from the records of all slices, if requested and if there are enough
    /// slices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refined: Option<Estimate>,
}

/// A function that finds the counts of these events by name.
pub(super) fn counts(events: &[EventReport]) -> impl Fn(&str) -> Option<Count> {
    |name| events.iter().find(|event| event.name == name)?.count()
}

impl EventReport {
    /// Combines one event's reading with its truth.
    pub fn of(name: &str, reading: &Reading, truth: Option<u64>) -> EventReport {
        let (kind, estimate, stderr, half_width_95, reason) = match reading.value {
            Value::Exact { count } => (Kind::Exact, Some(count), Some(0.0), Some(0.0), None),
            Value::Estimated { estimate, stderr, half_width_95 } => {
                (Kind::Estimated, Some(estimate), Some(stderr), Some(half_width_95), None)
            }
            Value::NotMeasured { reason } => {
                (Kind::NotMeasured, None, None, None, Some(reason.message().into()))
            }
        };
        let (low_95, high_95) = reading.interval_95().unzip();
        EventReport {
            name: name.to_owned(),
            kind,
            estimate,
            stderr,
            half_width_95,
            low_95,
            high_95,
            coverage: reading.coverage(),
            truth,
            lacks_truth: false,
            unit: None,
            reason,
            likely_added: None,
            unobserved: None,
            refined: None,
        }
    }

    /// The event with its refined estimate in place of the engine's; `None` without a refined one.
    pub fn as_refined(&self) -> Option<EventReport> {
        let refined = self.refined?;
        Some(EventReport {
            estimate: Some(refined.estimate.round() as u64),
            stderr: None,
            half_width_95: Some(refined.half_width_95),
            low_95: Some(refined.low_95),
            high_95: Some(refined.high_95),
            ..self.clone()
        })
    }

    /// The refined count, or else the engine's; `None` if the event was not measured.
    pub fn count(&self) -> Option<Count> {
        let (estimate, half_width_95) = match self.refined {
            Some(refined) => (refined.estimate, refined.half_width_95),
            None => (self.estimate? as f64, self.half_width_95.unwrap_or_default()),
        };
        let truth = self.truth.map(|truth| truth as f64);
        Some(Count { estimate, half_width_95, truth })
    }

    /// Estimate less truth, in events.
    pub fn error(&self) -> Option<f64> {
        Some(self.estimate? as f64 - self.truth? as f64)
    }

    /// The error as a share of the truth; `None` if the truth is 0 and the estimate is not.
    pub fn relative_error(&self) -> Option<f64> {
        relative_error(self.estimate? as f64, self.truth? as f64)
    }

    /// The half width as a share of the estimate; `None` if the estimate is 0 and the half width is
    /// not.
    pub fn relative_half_width(&self) -> Option<f64> {
        match (self.half_width_95?, self.estimate?) {
            (width, 0) => (width == 0.0).then_some(0.0),
            (width, estimate) => Some(width / estimate as f64),
        }
    }

    /// The part that interrupts added, relative to the number without them; `None` without that
    /// number, or if it is not told apart from 0.
    pub fn added(&self) -> Option<f64> {
        let unobserved = self.unobserved.filter(|value| value.low_95 > 0.0)?;
        Some(self.estimate? as f64 / unobserved.estimate - 1.0)
    }

    /// Returns whether the truth lies within the 95 % interval.
    pub fn is_within(&self) -> Option<bool> {
        let truth = self.truth? as f64;
        Some((self.low_95?..=self.high_95?).contains(&truth))
    }
}

/// The error of an estimate as a share of the truth; `None` if the truth is 0 and the estimate is
/// not.
pub fn relative_error(estimate: f64, truth: f64) -> Option<f64> {
    let error = estimate - truth;
    if truth == 0.0 { (error == 0.0).then_some(0.0) } else { Some(error / truth) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimated(estimate: u64, half_width_95: f64, truth: Option<u64>) -> EventReport {
        let value = Value::Estimated { estimate, stderr: half_width_95 / 1.96, half_width_95 };
        let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 4, slices: 9 };
        EventReport::of("E", &reading, truth)
    }

    #[test]
    fn errors_are_compared_with_the_interval() {
        assert_eq!(estimated(110, 10.0, Some(100)).is_within(), Some(true));
        assert_eq!(estimated(111, 10.0, Some(100)).is_within(), Some(false));
        assert_eq!(estimated(89, 10.0, Some(100)).is_within(), Some(false));
        assert_eq!(estimated(89, 10.0, None).is_within(), None);
        assert_eq!(estimated(90, 9.0, Some(100)).relative_error(), Some(-0.1));
        assert_eq!(estimated(90, 9.0, Some(100)).relative_half_width(), Some(0.1));
        assert_eq!(estimated(1, 1.0, Some(0)).relative_error(), None);
    }

    #[test]
    fn the_truth_is_not_below_what_was_counted() {
        let value = Value::Estimated { estimate: 22, stderr: 30.0, half_width_95: 66.0 };
        let reading = Reading { value, counted: 5, counted_cycles: 1, total_cycles: 4, slices: 9 };
        let within = |truth| EventReport::of("E", &reading, Some(truth)).is_within();
        assert_eq!([4, 5, 88, 89].map(within), [Some(false), Some(true), Some(true), Some(false)]);
    }
}
