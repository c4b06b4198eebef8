//! The measurements under Tally and under Linux, event by event, and their table.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use serde::Serialize;
use tally_abi::text::{Grouped, percent};
use xtask::{
    perf::Count,
    report::{EventReport, Kind, relative_error},
};

use crate::median::median;

/// Columns of an event's name; a longer name has its own line.
const NAME: usize = 27;

/// The two measurements of one program.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The program.
    pub program: String,
    /// The PMU that Tally's kernel detected.
    pub pmu: Option<String>,
    /// The seed of Tally's random orders and of the delay under Linux.
    pub seed: u64,
    /// The program's exit status, which both systems returned.
    pub status: u8,
    /// Each event.
    pub events: Vec<ComparedEvent>,
    /// True instructions of the program in ring 3.
    pub instructions: Instructions,
    /// The medians; `None` if no event is judged.
    pub medians: Option<Medians>,
}

/// An event under both systems.
#[derive(Debug, Serialize)]
pub struct ComparedEvent {
    /// Name of the event.
    pub name: String,
    /// Result under Tally.
    pub tally: Side,
    /// Result under Linux with perf.
    pub perf: Side,
}

/// An event under one of the two systems.
#[derive(Debug, Serialize)]
pub struct Side {
    /// The kind of the value.
    pub kind: Kind,
    /// The virtual PMU's count in this system's run, in events; `None` if it has no such event.
    pub truth: Option<u64>,
    /// Number of events.
    pub estimate: Option<u64>,
    /// Half the width of the 95 % interval, in events; `None` for perf, which has none.
    pub half_width_95: Option<f64>,
    /// The share of the time in which the event was counted, 0 to 1.
    pub coverage: Option<f64>,
    /// (estimate − truth) / truth.
    pub relative_error: Option<f64>,
    /// Reason why there is no estimate.
    pub reason: Option<Cow<'static, str>>,
}

/// True instructions in ring 3.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Instructions {
    /// Count under Tally.
    pub tally: u64,
    /// Count under Linux.
    pub linux: u64,
}

/// Medians of |relative error| over the events that both systems multiplexed and that have truths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Medians {
    /// Number of these events.
    pub events: u64,
    /// Tally's median.
    pub tally: f64,
    /// Perf's median.
    pub perf: f64,
    /// Perf's median divided by Tally's; `None` if Tally's is 0.
    pub ratio: Option<f64>,
}

impl Side {
    /// Makes a side from Tally's reading.
    pub(super) fn of_tally(event: &EventReport) -> Side {
        Side {
            kind: event.kind,
            truth: event.truth,
            estimate: event.estimate,
            half_width_95: event.half_width_95,
            coverage: event.coverage,
            relative_error: event.relative_error(),
            reason: event.reason.clone(),
        }
    }

    /// Makes a side from perf's count and the truth under Linux.
    pub(super) fn of_perf(count: Count, truth: Option<u64>) -> Side {
        let (kind, estimate, coverage, reason) = match count {
            Count::Counted { estimate, coverage: 1.0 } => {
                (Kind::Exact, Some(estimate), Some(1.0), None)
            }
            Count::Counted { estimate, coverage } => {
                (Kind::Estimated, Some(estimate), Some(coverage), None)
            }
            Count::NotCounted => {
                (Kind::NotMeasured, None, None, Some("perf gave it no turn".into()))
            }
            Count::NotSupported => {
                (Kind::NotMeasured, None, None, Some("Linux cannot count it".into()))
            }
        };
        let relative_error = match (estimate, truth) {
            (Some(estimate), Some(truth)) => relative_error(estimate as f64, truth as f64),
            _ => None,
        };
        Side { kind, truth, estimate, half_width_95: None, coverage, relative_error, reason }
    }

    /// |relative error| of a multiplexed event.
    fn judged_error(&self) -> Option<f64> {
        (self.kind == Kind::Estimated).then_some(self.relative_error?.abs())
    }
}

impl Medians {
    /// Computes the medians of these events; `None` if no event is judged.
    pub(super) fn of(events: &[ComparedEvent]) -> Option<Medians> {
        let both =
            |event: &ComparedEvent| Some((event.tally.judged_error()?, event.perf.judged_error()?));
        let (tally, perf): (Vec<f64>, Vec<f64>) = events.iter().filter_map(both).unzip();
        let count = tally.len() as u64;
        let (tally, perf) = (median(tally)?, median(perf)?);
        let ratio = (tally > 0.0).then(|| perf / tally);
        Some(Medians { events: count, tally, perf, ratio })
    }
}

/// The table, of 80 columns.
pub fn render(comparison: &Comparison) -> String {
    let mut text = String::new();
    write_all(&mut text, comparison).expect("writing to a string does not fail");
    text
}

fn write_all(text: &mut String, comparison: &Comparison) -> fmt::Result {
    let pmu = comparison.pmu.as_deref().unwrap_or("no PMU");
    writeln!(text, "{}: {pmu}, seed {}", comparison.program, comparison.seed)?;
    let heads = ("side", "truth", "estimate", "counted", "error");
    write!(text, "{:<NAME$} {:<5} {:>13} {:>13}", "event", heads.0, heads.1, heads.2)?;
    writeln!(text, " {:>7} {:>6}", heads.3, heads.4)?;
    for event in &comparison.events {
        let is_long = event.name.chars().count() > NAME;
        if is_long {
            writeln!(text, "{}", event.name)?;
        }
        write_side(text, if is_long { "" } else { &event.name }, "Tally", &event.tally)?;
        write_side(text, "", "perf", &event.perf)?;
    }
    writeln!(text)?;
    let Instructions { tally, linux } = comparison.instructions;
    let more = relative_error(linux as f64, tally as f64);
    let more = more.map_or_else(|| "-".into(), |more| percent(more, true));
    let (tally, linux) = (Grouped(tally), Grouped(linux));
    writeln!(text, "true instructions: Tally {tally}, Linux {linux} ({more})")?;
    let Some(Medians { events, tally, perf, ratio }) = comparison.medians else {
        return writeln!(text, "no event was multiplexed by both: name more events");
    };
    let (tally, perf) = (percent(tally, false), percent(perf, false));
    let ratio = ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.1}"));
    writeln!(
        text,
        "median error of {events} multiplexed events: Tally {tally}, perf {perf}, ratio {ratio}"
    )
}

fn write_side(text: &mut String, name: &str, system: &str, side: &Side) -> fmt::Result {
    let number = |count: Option<u64>| count.map_or("-".into(), |count| Grouped(count).to_string());
    let share = |share: Option<f64>, signed| share.map_or("-".into(), |s| percent(s, signed));
    write!(text, "{name:<NAME$} {system:<5} {:>13} ", number(side.truth))?;
    if let Some(reason) = &side.reason {
        return writeln!(text, "not measured\n  {reason}");
    }
    let (estimate, counted) = (number(side.estimate), share(side.coverage, false));
    writeln!(text, "{estimate:>13} {counted:>7} {:>6}", share(side.relative_error, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use tally_abi::{Reading, Value, reading::Reason};

    fn event(name: &str, value: Value, truth: u64, count: Count) -> ComparedEvent {
        let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 5, slices: 9 };
        let reading = EventReport::of(name, &reading, Some(truth));
        let perf = Side::of_perf(count, Some(truth));
        ComparedEvent { name: name.into(), tally: Side::of_tally(&reading), perf }
    }

    fn events() -> Vec<ComparedEvent> {
        let of = |estimate| Value::Estimated { estimate, stderr: 1.0, half_width_95: 2.0 };
        let counted = |estimate| Count::Counted { estimate, coverage: 0.25 };
        let exact = Count::Counted { estimate: 900, coverage: 1.0 };
        let reason = Reason::TooFewSlices;
        vec![
            event("PINNED", Value::Exact { count: 900 }, 900, exact),
            event("A", of(1_010), 1_000, counted(900)),
            event("BR_INST_RETIRED.ALL_BRANCHES_OF_ALL", of(990), 1_000, counted(1_300)),
            event("C", of(1_030), 1_000, counted(1_000)),
            event("ZERO", of(1), 0, counted(0)),
            event("NONE", Value::NotMeasured { reason }, 5, Count::NotCounted),
        ]
    }

    #[test]
    fn the_table_has_two_lines_for_each_event() {
        let events = events();
        let comparison = Comparison {
            program: "p".into(),
            pmu: Some("P".into()),
            seed: 7,
            status: 0,
            medians: Medians::of(&events),
            events,
            instructions: Instructions { tally: 123_456_789, linux: 123_500_000 },
        };
        let text = render(&comparison);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        expect![[r#"
            p: P, seed 7
            event                       side          truth      estimate counted  error
            PINNED                      Tally           900           900   20.0% +0.00%
                                        perf            900           900  100.0% +0.00%
            A                           Tally         1,000         1,010   20.0% +1.00%
                                        perf          1,000           900   25.0% -10.0%
            BR_INST_RETIRED.ALL_BRANCHES_OF_ALL
                                        Tally         1,000           990   20.0% -1.00%
                                        perf          1,000         1,300   25.0% +30.0%
            C                           Tally         1,000         1,030   20.0% +3.00%
                                        perf          1,000         1,000   25.0% +0.00%
            ZERO                        Tally             0             1   20.0%      -
                                        perf              0             0   25.0% +0.00%
            NONE                        Tally             5 not measured
              fewer than four slices counted: run longer or use shorter slices
                                        perf              5 not measured
              perf gave it no turn

            true instructions: Tally 123,456,789, Linux 123,500,000 (+0.04%)
            median error of 3 multiplexed events: Tally 1.00%, perf 10.0%, ratio 10.0
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn medians_are_of_events_that_both_multiplexed() {
        let medians = Medians::of(&events()).unwrap();
        assert_eq!((medians.events, medians.tally, medians.perf), (3, 0.01, 0.1));
        assert_eq!(medians.ratio, Some(10.0));
        assert_eq!(Medians::of(&events()[..1]), None);
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }
}
