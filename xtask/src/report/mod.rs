//! A run's results: the engine's estimates beside the virtual PMU's truth.

pub mod table;

use serde::{Serialize, Serializer};
use tally_abi::{
    Mode, Reading, Value,
    truth::{Count, PmiCost, Region, RegionKind, Truth},
};

use crate::machine::{Boot, Event, Session};

/// Why the engine's own instructions are not known (decision 8).
const NOT_COUNTED: &str = "counted under the virtual PMU only: all counters are the program's";

/// The results of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The seed of every random order.
    pub seed: Option<u64>,
    /// The PMU that the kernel found: its driver and version.
    pub pmu: Option<String>,
    /// The first session; where there is none its names are there all the same, and say nothing.
    #[serde(flatten, serialize_with = "session_or_nothing")]
    pub first: Option<SessionReport>,
    /// Other sessions, if the run had more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SessionReport>,
    /// The status that the run ended with.
    pub status: u8,
}

/// The results of one session.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SessionReport {
    /// The program that opened it.
    pub program: String,
    /// Its number, which trace records have too.
    pub session: Option<u32>,
    /// Slices begun and ended.
    pub slices: Option<u64>,
    /// Slices that the budget made longer than asked for.
    pub lengthened: Option<u64>,
    /// Rounds finished.
    pub rounds: Option<u64>,
    /// Overflow interrupts that ended a slice.
    pub pmis: Option<u64>,
    /// Reads and writes of MSRs to one overflow interrupt.
    pub msr_accesses_per_switch: Option<f64>,
    /// Instructions of one overflow interrupt's handler; of all sessions together.
    pub instructions_per_switch: Option<f64>,
    /// Why it is not known, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_per_switch_reason: Option<&'static str>,
    /// The engine's share of the time, 0 to 1.
    pub engine_share: Option<f64>,
    /// Logical counters.
    pub events: Vec<EventReport>,
}

/// What kind of value an event has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Counted all the time.
    Exact,
    /// Counted part of the time.
    Estimated,
    /// Not, or not enough.
    NotMeasured,
}

/// The result of one event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventReport {
    /// The catalogue's name.
    pub name: String,
    /// What the numbers are.
    pub kind: Kind,
    /// Events.
    pub estimate: Option<u64>,
    /// The estimate's standard error, in events.
    pub stderr: Option<f64>,
    /// Half the width of the 95 % interval, in events.
    pub half_width_95: Option<f64>,
    /// The share of the time for which the event was counted, 0 to 1; none where the session has not run.
    pub coverage: Option<f64>,
    /// What the virtual PMU saw.
    pub truth: Option<u64>,
    /// Why there is no estimate.
    pub reason: Option<&'static str>,
}

impl Report {
    /// Puts together what `boot` told and what the virtual PMU saw.
    pub fn of(boot: &Boot) -> Report {
        let booted = boot.transcript.booted.as_ref();
        let truth = boot.truth.as_ref();
        let mut sessions = boot.transcript.sessions.iter();
        let mut next = || sessions.next().map(|(tag, s)| SessionReport::of(*tag, s, truth));
        Report {
            seed: booted.map(|booted| booted.seed),
            pmu: booted.and_then(|booted| Some(booted.pmu.as_ref()?.name.clone())),
            first: next(),
            others: std::iter::from_fn(next).collect(),
            status: boot.outcome.status(),
        }
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionReport> {
        self.first.iter().chain(&self.others)
    }
}

fn session_or_nothing<S: Serializer>(
    session: &Option<SessionReport>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    if let Some(session) = session {
        return session.serialize(to);
    }
    let nothing = serde_json::to_value(SessionReport::default());
    let mut nothing = nothing.map_err(serde::ser::Error::custom)?;
    nothing["program"] = serde_json::Value::Null;
    nothing.serialize(to)
}

impl SessionReport {
    /// The session whose region is tagged `tag` in `truth`.
    fn of(tag: u32, session: &Session, truth: Option<&Truth>) -> SessionReport {
        let region = truth.and_then(|truth| truth.region(RegionKind::Session, tag));
        let cost = truth.map(|truth| truth.pmi);
        let stats = session.stats.as_ref();
        let instructions_per_switch = cost.and_then(|c| ratio(c.instructions, c.count));
        let event = |event: &Event| {
            let Event { name, native, mode, reading } = event;
            let truth = true_count(region, native.as_ref().unwrap_or(name), *mode);
            EventReport::of(name, reading, truth)
        };
        SessionReport {
            program: session.program.clone(),
            session: Some(tag),
            slices: stats.map(|stats| stats.slices),
            lengthened: stats.map(|stats| stats.lengthened),
            rounds: stats.map(|stats| stats.rounds),
            pmis: stats.map(|stats| stats.pmis),
            msr_accesses_per_switch: stats.and_then(|s| ratio(s.msr_accesses, s.pmis)),
            instructions_per_switch,
            instructions_per_switch_reason: match (instructions_per_switch, cost) {
                (Some(_), _) => None,
                (None, Some(_)) => Some("no overflow interrupt came"),
                (None, None) => Some(NOT_COUNTED),
            },
            // Under the virtual PMU the TSC is virtual time, not the model's cycles.
            engine_share: match cost {
                Some(PmiCost { cycles, region_cycles, .. }) => ratio(cycles, region_cycles),
                None => stats.and_then(|s| ratio(s.engine_ticks, s.session_ticks)),
            },
            events: session.readings.iter().map(event).collect(),
        }
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn true_count(region: Option<&Region>, event: &str, mode: Mode) -> Option<u64> {
    let Count { user, kernel } = *region?.events.get(event)?;
    Some(match mode {
        Mode::User => user,
        Mode::Kernel => kernel,
        Mode::Full => user + kernel,
    })
}

impl EventReport {
    /// One event's reading beside its truth.
    pub fn of(name: &str, reading: &Reading, truth: Option<u64>) -> EventReport {
        let (kind, estimate, stderr, half_width_95, reason) = match reading.value {
            Value::Exact { count } => (Kind::Exact, Some(count), Some(0.0), Some(0.0), None),
            Value::Estimated { estimate, stderr, half_width_95 } => {
                (Kind::Estimated, Some(estimate), Some(stderr), Some(half_width_95), None)
            }
            Value::NotMeasured { reason } => {
                (Kind::NotMeasured, None, None, None, Some(reason.message()))
            }
        };
        EventReport {
            name: name.to_owned(),
            kind,
            estimate,
            stderr,
            half_width_95,
            coverage: reading.coverage(),
            truth,
            reason,
        }
    }

    /// Estimate less truth, in events.
    pub fn error(&self) -> Option<f64> {
        Some(self.estimate? as f64 - self.truth? as f64)
    }

    /// The error as a share of the truth; none where the truth is 0 and the estimate is not.
    pub fn relative_error(&self) -> Option<f64> {
        match (self.error()?, self.truth?) {
            (error, 0) => (error == 0.0).then_some(0.0),
            (error, truth) => Some(error / truth as f64),
        }
    }

    /// Half the interval's width as a share of the estimate.
    pub fn relative_half_width(&self) -> Option<f64> {
        match (self.half_width_95?, self.estimate?) {
            (width, 0) => (width == 0.0).then_some(0.0),
            (width, estimate) => Some(width / estimate as f64),
        }
    }

    /// Whether the truth lies within the 95 % interval.
    pub fn is_within(&self) -> Option<bool> {
        Some(self.error()?.abs() <= self.half_width_95?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn estimated(estimate: u64, half_width_95: f64, truth: Option<u64>) -> EventReport {
        let value = Value::Estimated { estimate, stderr: half_width_95 / 1.96, half_width_95 };
        let reading = Reading { value, counted_cycles: 1, total_cycles: 4, slices: 9 };
        EventReport::of("E", &reading, truth)
    }

    #[test]
    fn errors_are_judged_against_the_bar() {
        assert_eq!(estimated(110, 10.0, Some(100)).is_within(), Some(true));
        assert_eq!(estimated(111, 10.0, Some(100)).is_within(), Some(false));
        assert_eq!(estimated(89, 10.0, Some(100)).is_within(), Some(false));
        assert_eq!(estimated(89, 10.0, None).is_within(), None);
        assert_eq!(estimated(90, 9.0, Some(100)).relative_error(), Some(-0.1));
        assert_eq!(estimated(90, 9.0, Some(100)).relative_half_width(), Some(0.1));
        assert_eq!(estimated(1, 1.0, Some(0)).relative_error(), None);
    }

    #[test]
    fn the_truth_follows_the_mode() {
        let events = BTreeMap::from([("E".to_owned(), Count { user: 3, kernel: 4 })]);
        let region = Region {
            kind: RegionKind::Session,
            tag: 1,
            address_space: 0,
            closed: true,
            events,
            cpus: Vec::new(),
        };
        let of = |event, mode| true_count(Some(&region), event, mode);
        assert_eq!(of("E", Mode::User), Some(3));
        assert_eq!(of("E", Mode::Kernel), Some(4));
        assert_eq!(of("E", Mode::Full), Some(7));
        assert_eq!(of("F", Mode::Full), None);
    }

    #[test]
    fn the_object_has_the_promised_names() {
        let session = SessionReport {
            program: "p".into(),
            session: Some(1),
            slices: Some(1),
            lengthened: Some(1),
            rounds: Some(2),
            pmis: Some(3),
            msr_accesses_per_switch: Some(4.5),
            instructions_per_switch: None,
            instructions_per_switch_reason: Some(NOT_COUNTED),
            engine_share: Some(0.25),
            events: vec![estimated(1, 2.0, Some(3))],
        };
        let (seed, pmu) = (Some(7), Some("P".into()));
        let report = Report { seed, pmu, first: Some(session), others: vec![], status: 0 };
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["seed"], 7);
        assert_eq!(json["msr_accesses_per_switch"], 4.5);
        assert!(json["instructions_per_switch"].is_null());
        assert_eq!(json["instructions_per_switch_reason"], NOT_COUNTED);
        assert_eq!(json["events"][0]["coverage"], 0.25);
        assert_eq!(json["events"][0]["kind"], "estimated");
        let none = serde_json::to_value(Report { first: None, ..report }).unwrap();
        let names = json.as_object().unwrap().keys().filter(|name| !name.ends_with("_reason"));
        for name in names {
            let value = none.get(name).unwrap_or_else(|| panic!("{name}: {none}"));
            match &**name {
                "events" => assert!(value.as_array().is_some_and(Vec::is_empty), "{none}"),
                "seed" | "pmu" | "status" => assert_eq!(value, &json[name]),
                _ => assert!(value.is_null(), "{name}: {none}"),
            }
        }
    }
}
