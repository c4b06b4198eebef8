//! The results of a run: the engine's estimates and the virtual PMU's truth.

mod added;
pub mod cells;
mod ended;
pub(crate) mod estimate;
mod event;
mod groups;
mod halts;
mod interrupts;
mod intervals;
mod made;
mod phases;
mod refined;
mod regression;
mod rings;
mod series;
mod slices;
mod summary;
mod sums;
pub mod table;
mod together;
mod truth;
mod unobserved;
mod what_if;

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tally_abi::{boot::JobNumber, truth::Truth};

pub use tally_breakdown::{
    Breakdown, CyclePart, Stack, no_stack, short_stack_of, stack_of, stalls_of,
};

pub use self::{
    added::Additions,
    ended::{ExitReport, PanicReport},
    estimate::Estimate,
    event::{EventReport, Kind, relative_error},
    groups::GroupReport,
    halts::HaltReport,
    intervals::{Interval, IntervalEvent, intervals},
    made::Made,
    phases::{Hits, Judged, PhaseInterval, PhaseReport, PhaseShare, PredictorReport, glyph},
    refined::over_time,
    rings::Rings,
    series::Series,
    slices::{Slice, place, whole},
    what_if::{AS_GOOD, CAUSES, Cause, GROUPS, Interaction, Saving, Wanted, WhatIf},
};
#[cfg(test)]
pub(crate) use self::{phases::tests::records as made_up_phases, slices::made_up};
use crate::machine::{Boot, EventReading, Outcome, Session};

/// Reason why the engine's own instructions are unknown: the program uses all counters, so none
/// counts them (decision 8).
const NOT_COUNTED: &str = "known with the virtual PMU only: the program has all counters";

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The seed of every random order.
    pub seed: Option<u64>,
    /// The PMU that the kernel detected: driver and version.
    pub pmu: Option<String>,
    /// The first session. Without one, the JSON object has its names with the value null.
    #[serde(flatten, serialize_with = "session_or_nulls", deserialize_with = "session_if_any")]
    pub first: Option<SessionReport>,
    /// The other sessions, if the run had several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SessionReport>,
    /// The machine's halts, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halts: Option<HaltReport>,
    /// The kernel's panic, if any. Not read back from JSON: `failures` has its message.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub panic: Option<PanicReport>,
    /// The run's exit status.
    pub status: u8,
    /// The programs that ended by themselves, in the order of their ends.
    pub exits: Vec<ExitReport>,
    /// Reasons why the run failed, if the status is not a program's own: a line for each failure.
    pub failures: Vec<String>,
    /// Origin of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
}

/// The results of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SessionReport {
    /// The program that opened the session.
    pub program: String,
    /// The session's number, as in trace records.
    pub session: Option<u32>,
    /// The job of the session, if the machine had several, and the job's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobNumber>,
    /// Time slices, from start to end.
    pub slices: Option<u64>,
    /// Mean core cycles of a slice, including slices cut short by context switches.
    pub cycles_per_slice: Option<f64>,
    /// Slices that the engine lengthened to keep the budget.
    pub lengthened: Option<u64>,
    /// Sampling rounds completed.
    pub rounds: Option<u64>,
    /// PMIs that ended a slice.
    pub pmis: Option<u64>,
    /// PMIs that never came; the scheduler's timer ended their slices.
    pub lost_pmis: Option<u64>,
    /// Interrupts and exceptions in ring 3 while the session was on the counters, other than PMIs.
    pub interruptions: Option<u64>,
    /// Core cycles that are in no count, because the program had stopped its counters through its
    /// bank and the kernel did not know it yet. The truth contains them; if there are any, it is
    /// not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_cycles: Option<u64>,
    /// MSR reads and writes per PMI.
    pub msr_accesses_per_switch: Option<f64>,
    /// Instructions of the PMI handler per PMI in this session.
    pub instructions_per_switch: Option<f64>,
    /// Core cycles of a switch, from the interrupt's delivery to its return, with the folding of
    /// its slice; `None` if the processor does not count them or too few slices ended.
    pub cycles_per_switch: Option<u64>,
    /// Reason why `instructions_per_switch` is unknown, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_per_switch_reason: Option<Cow<'static, str>>,
    /// Mean frequency in Hz of the cores on which the program ran, while it ran, in every ring;
    /// `None` if the processor does not count core cycles (IA32_APERF), or the program has not
    /// ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_hz: Option<u64>,
    /// The engine's share of the time, 0 to 1: TSC ticks in the overflow path per tick of the
    /// session's running time. The budget limits it.
    pub engine_share: Option<f64>,
    /// Cycles of the PMI handlers, from delivery to return, per cycle of the session's region, 0
    /// to 1. Source: the virtual PMU's model.
    pub handler_cycle_share: Option<f64>,
    /// Cycles by cause, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
    /// Cycles of ring 0 by cause, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_breakdown: Option<Breakdown>,
    /// The program's savings without each cause, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIf>,
    /// Errors of sums of events, if the records of slices are present.
    #[serde(skip)]
    pub(super) sums: Option<Arc<sums::Sums>>,
    /// The groups of events that were counted together, if the list was known before the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupReport>,
    /// The counts of each interval, and its cycles by cause, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Interval>,
    /// The phases, if they were tracked and the trace is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhaseReport>,
    /// Logical counters.
    pub events: Vec<EventReport>,
}

impl Report {
    /// Combines the kernel's messages of `boot` with the virtual PMU's truth.
    pub fn of(boot: &Boot) -> Report {
        let (booted, truth) = (boot.transcript.booted.as_ref(), boot.truth.as_ref());
        let mut sessions = boot.transcript.sessions.iter();
        let mean_hz = |pid: u32| {
            let of_tsc = boot.transcript.frequencies.get(&pid)?;
            Some((of_tsc * booted?.tsc_hz as f64) as u64)
        };
        let report = |(tag, session): (&u32, &Session)| SessionReport {
            mean_hz: mean_hz(session.pid),
            ..SessionReport::of(*tag, session, truth)
        };
        let mut next = || sessions.next().map(report);
        Report {
            seed: booted.map(|booted| booted.seed),
            pmu: booted.and_then(|booted| Some(booted.pmu.as_ref()?.name.clone())),
            first: next(),
            others: std::iter::from_fn(next).collect(),
            halts: boot.transcript.halted.as_ref().map(HaltReport::of),
            panic: PanicReport::of(&boot.outcome),
            status: boot.outcome.status(),
            exits: boot.transcript.exits.iter().map(ExitReport::of).collect(),
            failures: boot.failures().into_iter().map(Outcome::first_line).collect(),
            made: None,
        }
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionReport> {
        self.first.iter().chain(&self.others)
    }
}

fn session_or_nulls<S: Serializer>(
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

fn session_if_any<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<SessionReport>, D::Error> {
    let fields = serde_json::Value::deserialize(from)?;
    if fields["program"].is_null() {
        return Ok(None);
    }
    serde_json::from_value(fields).map(Some).map_err(serde::de::Error::custom)
}

impl SessionReport {
    /// Makes the report of the session with the number `tag`, which is also the tag of its region
    /// in `truth`.
    #[expect(clippy::too_many_lines, reason = "one value of many fields")]
    fn of(tag: u32, session: &Session, truth: Option<&Truth>) -> SessionReport {
        let region = truth.and_then(|truth| truth.session(tag));
        let region = region.as_ref();
        let cost = region.map(|region| &region.pmi);
        let stats = session.stats.as_ref();
        let stopped_cycles = stats.map(|stats| stats.stopped_cycles);
        let comparable = region.filter(|_| stopped_cycles.unwrap_or_default() == 0);
        let instructions_per_switch = cost.and_then(|c| ratio(c.instructions, c.count));
        let event = |event: &EventReading| {
            let truth = comparable.and_then(|region| truth::truth_of(region, event));
            let report = EventReport::of(&event.name, &event.reading, truth);
            let likely_added = stats.and_then(|stats| interrupts::likely_added(event, stats));
            let lacks_truth = truth.is_none() && comparable.is_some();
            EventReport { unit: event.unit, likely_added, lacks_truth, ..report }
        };
        SessionReport {
            program: session.program.clone(),
            session: Some(tag),
            job: session.job,
            slices: stats.map(|stats| stats.slices),
            cycles_per_slice: stats.and_then(|s| ratio(s.cycles, s.slices)),
            lengthened: stats.map(|stats| stats.lengthened),
            rounds: stats.map(|stats| stats.rounds),
            pmis: stats.map(|stats| stats.pmis),
            lost_pmis: stats.map(|stats| stats.lost_pmis),
            interruptions: stats.map(|stats| stats.interruptions),
            stopped_cycles,
            msr_accesses_per_switch: stats.and_then(|s| ratio(s.msr_accesses, s.pmis)),
            instructions_per_switch,
            cycles_per_switch: stats.map(|s| s.switch_cycles).filter(|cycles| *cycles > 0),
            instructions_per_switch_reason: match (instructions_per_switch, cost) {
                (Some(_), _) => None,
                (None, Some(_)) => Some("no PMI occurred".into()),
                (None, None) => Some(NOT_COUNTED.into()),
            },
            mean_hz: None,
            engine_share: stats.and_then(|s| ratio(s.engine_ticks, s.session_ticks)),
            handler_cycle_share: cost.and_then(|c| ratio(c.cycles, c.region_cycles)),
            breakdown: None,
            kernel_breakdown: None,
            what_if: None,
            sums: None,
            groups: Vec::new(),
            intervals: Vec::new(),
            phases: None,
            events: session.readings.iter().map(event).collect(),
        }
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::symbols::{Place, StackFrame};
    use tally_abi::{
        Reading, SessionConfig, SessionStats, Value,
        registers::{Frame, Registers},
        truth::{Count, PmiCost, Region, RegionKind},
    };

    fn region(tag: u32, pmi: PmiCost) -> Region {
        let events = BTreeMap::from([("E".to_owned(), Count { user: 3, kernel: 4 })]);
        let kind = RegionKind::Session;
        Region { kind, tag, address_space: 0, closed: true, events, cpus: Vec::new(), pmi }
    }

    #[test]
    fn costs_are_of_each_session_and_shares_by_the_budgets_clock() {
        let pmi = |instructions| PmiCost {
            count: 10,
            instructions,
            cycles: 30,
            region_cycles: 100,
            ..PmiCost::default()
        };
        let truth = Truth {
            version: tally_abi::truth::VERSION,
            profile: "zen4".into(),
            regions: vec![region(1, pmi(7_000)), region(2, pmi(9_000))],
            shadows: Vec::new(),
        };
        let of = |tag, engine_ticks| {
            let stats =
                SessionStats { engine_ticks, session_ticks: 200, ..SessionStats::default() };
            let session = Session {
                pid: 1,
                program: "p".into(),
                address_space: 0,
                config: SessionConfig::default(),
                job: None,
                readings: Vec::new(),
                stats: Some(stats),
            };
            let report = SessionReport::of(tag, &session, Some(&truth));
            (report.instructions_per_switch, report.engine_share, report.handler_cycle_share)
        };
        assert_eq!(of(1, 2), (Some(700.0), Some(0.01), Some(0.3)));
        assert_eq!(of(2, 4), (Some(900.0), Some(0.02), Some(0.3)));
        assert_eq!(of(3, 4), (None, Some(0.02), None));
    }

    #[test]
    fn a_panic_is_in_the_object_with_functions_and_lines() {
        let place = Place {
            function: "f".into(),
            file: Some("a.rs".into()),
            line: Some(7),
            ..Place::default()
        };
        let frame = Frame { rax: 1 << 63, ..Frame::default() };
        let registers = Registers { frame, ..Registers::default() };
        let outcome = Outcome::Panicked {
            message: "no".into(),
            registers: registers.into(),
            backtrace: vec![StackFrame { address: 0xffff_8000_0000_1234, places: vec![place] }],
        };
        let json = serde_json::to_value(PanicReport::of(&outcome)).unwrap();
        assert_eq!(json["registers"]["rax"], "0x8000000000000000");
        let frame = &json["backtrace"][0];
        assert_eq!(frame["address"], "0xffff800000001234");
        assert_eq!(
            (&frame["places"][0]["function"], &frame["places"][0]["line"]),
            (&"f".into(), &7.into())
        );
        assert!(PanicReport::of(&Outcome::Done(0)).is_none());
    }

    #[test]
    fn the_json_object_has_the_documented_names() {
        let value = Value::Estimated { estimate: 1, stderr: 1.0, half_width_95: 2.0 };
        let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 4, slices: 9 };
        let session = SessionReport {
            program: "p".into(),
            session: Some(1),
            slices: Some(1),
            cycles_per_slice: Some(1.5),
            lengthened: Some(1),
            rounds: Some(2),
            pmis: Some(3),
            msr_accesses_per_switch: Some(4.5),
            instructions_per_switch: None,
            instructions_per_switch_reason: Some(NOT_COUNTED.into()),
            cycles_per_switch: Some(9),
            engine_share: Some(0.25),
            handler_cycle_share: Some(0.5),
            events: vec![EventReport::of("E", &reading, Some(3))],
            ..SessionReport::default()
        };
        let (seed, pmu) = (Some(7), Some("P".into()));
        let report = Report { seed, pmu, first: Some(session), ..Report::default() };
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
                "events" | "exits" | "failures" => assert_eq!(value, &serde_json::json!([])),
                "seed" | "pmu" | "status" => assert_eq!(value, &json[name]),
                _ => assert!(value.is_null(), "{name}: {none}"),
            }
        }
    }
}
