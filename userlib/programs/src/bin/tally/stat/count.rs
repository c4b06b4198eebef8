//! Value of an event in a span of time, from any source.

use alloc::{string::String, vec::Vec};

use tally::{Reading, Usage, Value, derived};
use tally_abi::command::{Software, Source};
use tally_programs::Clock;

/// Readings of a program in a span of time: of a whole run, or of an interval.
#[derive(Clone)]
pub struct Span {
    /// Values of the session at the end; empty without a session.
    pub readings: Vec<Reading>,
    /// Values at the beginning; empty if the span begins with the session.
    pub before: Vec<Reading>,
    /// Resource usage of the program in the span.
    pub usage: Usage,
    /// Length of the span, in nanoseconds.
    pub time_ns: u64,
    /// Clock of the times.
    pub clock: Clock,
}

impl Span {
    /// Returns the cycles in which the session could count.
    pub fn cycles(&self) -> u64 {
        let total = |readings: &[Reading]| readings.first().map_or(0, |first| first.total_cycles);
        total(&self.readings).saturating_sub(total(&self.before))
    }
}

/// Value of one event.
#[derive(Clone, Debug)]
pub struct Count {
    /// Value in events; times are in nanoseconds. `None` if the event was not counted.
    pub value: Option<f64>,
    /// Half width of the 95 % interval; 0 if the value is exact.
    pub half_width: f64,
    /// Share of the time for which the event was counted, 0 to 1.
    pub coverage: f64,
    /// The kernel's software event, if the event is one.
    pub software: Option<Software>,
    /// Reason why there is no value.
    pub reason: &'static str,
}

impl Count {
    fn exact(value: u64, software: Software) -> Count {
        let software = Some(software);
        Count { value: Some(value as f64), half_width: 0.0, coverage: 1.0, software, reason: "" }
    }

    /// Makes the count of an event that was not counted.
    pub fn not_counted(reason: &'static str) -> Count {
        Count { value: None, half_width: 0.0, coverage: 0.0, software: None, reason }
    }

    /// Returns the relative half width; `None` for an exact value or for 0.
    pub fn error(&self) -> Option<f64> {
        let value = self.value.filter(|value| *value > 0.0)?;
        (self.half_width > 0.0).then(|| self.half_width / value)
    }

    /// Returns the count of an event that was counted.
    pub fn measured(&self) -> Option<tally_breakdown::Count> {
        let (estimate, half_width_95) = (self.value?, self.half_width);
        Some(tally_breakdown::Count { estimate, half_width_95, truth: None })
    }

    /// Returns perf's unit. Perf prints none for nanoseconds.
    pub fn unit(&self) -> &'static str {
        match self.software {
            Some(Software::TaskClock) => "msec",
            _ => "",
        }
    }

    /// Returns the value in its unit.
    pub fn in_unit(&self) -> Option<f64> {
        let per = if self.software == Some(Software::TaskClock) { 1e6 } else { 1.0 };
        self.value.map(|value| value / per)
    }
}

/// Returns the values of all events of the command, in order.
pub fn counts(columns: &[(String, Source)], span: &Span) -> Vec<Count> {
    let value = |(_, source): &(String, Source)| match *source {
        Source::Session(index) => of_session(span, index),
        Source::Software(software) => Count::exact(
            match software {
                Software::PageFaults => span.usage.page_faults,
                Software::ContextSwitches => span.usage.context_switches(),
                Software::CpuMigrations => span.usage.migrations,
                Software::Never => 0,
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

/// Returns the value of an event of the session. The value of an interval is the difference of two
/// values, whose errors add up.
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

/// Returns the difference of two readings. An event without a value at the first has counted since
/// the session's start.
fn difference(end: &Reading, start: &Reading) -> Reading {
    match start.value {
        Value::NotMeasured { .. } => *end,
        _ => derived::reading(end, start, true),
    }
}
