//! The value of an event in a span of time, wherever it comes from.

use alloc::{string::String, vec::Vec};

use tally::{Reading, Usage, Value, derived};
use tally_abi::command::{Software, Source};

/// What was read of a program in a span of time: of a whole run, or of an interval.
#[derive(Clone)]
pub struct Span {
    /// The session's values at its end; none without a session.
    pub readings: Vec<Reading>,
    /// Those at its beginning; none if that is the session's.
    pub before: Vec<Reading>,
    /// What the program used in it.
    pub usage: Usage,
    /// Its length, in nanoseconds.
    pub time_ns: u64,
}

impl Span {
    /// Cycles in which the session could count.
    pub fn cycles(&self) -> u64 {
        let total = |readings: &[Reading]| readings.first().map_or(0, |first| first.total_cycles);
        total(&self.readings).saturating_sub(total(&self.before))
    }
}

/// The value of one event.
#[derive(Clone, Debug)]
pub struct Count {
    /// In events; times are in nanoseconds. None if it was not counted.
    pub value: Option<f64>,
    /// Half the width of the 95 % interval; 0 if the value is exact.
    pub half_width: f64,
    /// The share of the time for which it was counted, 0 to 1.
    pub coverage: f64,
    /// The kernel's event that it is, if it is one.
    pub software: Option<Software>,
    /// Why there is no value.
    pub reason: &'static str,
}

impl Count {
    fn exact(value: u64, software: Software) -> Count {
        let software = Some(software);
        Count { value: Some(value as f64), half_width: 0.0, coverage: 1.0, software, reason: "" }
    }

    /// An event that was not counted.
    pub fn not_counted(reason: &'static str) -> Count {
        Count { value: None, half_width: 0.0, coverage: 0.0, software: None, reason }
    }

    /// The relative half width; none of an exact value or of 0.
    pub fn error(&self) -> Option<f64> {
        let value = self.value.filter(|value| *value > 0.0)?;
        (self.half_width > 0.0).then(|| self.half_width / value)
    }

    /// The count of an event that was counted.
    pub fn measured(&self) -> Option<tally_breakdown::Count> {
        let (estimate, half_width_95) = (self.value?, self.half_width);
        Some(tally_breakdown::Count { estimate, half_width_95, truth: None })
    }

    /// perf's unit. Perf prints none for nanoseconds.
    pub fn unit(&self) -> &'static str {
        match self.software {
            Some(Software::TaskClock) => "msec",
            _ => "",
        }
    }

    /// The value in its unit.
    pub fn in_unit(&self) -> Option<f64> {
        let per = if self.software == Some(Software::TaskClock) { 1e6 } else { 1.0 };
        self.value.map(|value| value / per)
    }
}

/// The values of all events of the command, in order.
pub fn counts(columns: &[(String, Source)], span: &Span) -> Vec<Count> {
    let value = |(_, source): &(String, Source)| match *source {
        Source::Session(index) => of_session(span, index),
        Source::Software(software) => Count::exact(
            match software {
                Software::PageFaults => span.usage.page_faults,
                Software::ContextSwitches => span.usage.context_switches(),
                Software::TaskClock => span.usage.ran_ns(),
                Software::Duration => span.time_ns,
                Software::UserTime => span.usage.user_ns,
                Software::SystemTime => span.usage.system_ns,
            },
            software,
        ),
    };
    columns.iter().map(value).collect()
}

/// The value of an event of the session. That of an interval is the difference of two values, whose
/// errors add up.
fn of_session(span: &Span, index: usize) -> Count {
    let Some(end) = span.readings.get(index) else {
        return Count::not_counted("the session has ended");
    };
    let (reading, start) = match span.before.get(index) {
        None => (*end, (0, 0)),
        Some(before) => {
            let start = (before.counted_cycles, before.total_cycles);
            (difference(end, before), start)
        }
    };
    let counted = end.counted_cycles.saturating_sub(start.0) as f64;
    let coverage = match end.total_cycles.saturating_sub(start.1) {
        0 => 0.0,
        cycles => counted / cycles as f64,
    };
    match reading.value {
        Value::NotMeasured { reason } => Count::not_counted(reason.message()),
        Value::Exact { count } => {
            let value = Some(count as f64);
            Count { value, half_width: 0.0, coverage, software: None, reason: "" }
        }
        Value::Estimated { estimate, half_width_95, .. } => {
            let value = Some(estimate as f64);
            Count { value, half_width: half_width_95, coverage, software: None, reason: "" }
        }
    }
}

/// What was counted between two readings. An event without a value at the first has counted from
/// the session's start on.
fn difference(end: &Reading, start: &Reading) -> Reading {
    match start.value {
        Value::NotMeasured { .. } => *end,
        _ => derived::reading(end, start, true),
    }
}
