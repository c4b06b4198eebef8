//! The results of several runs in one table.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::{self, Write},
};

use serde::{Deserialize, Serialize};
use tally_abi::{
    ExitStatus,
    boot::JobNumber,
    text::{Grouped, percent},
};

use super::estimate::{Combined, RunEstimate, combine, mean, variance};
use crate::{
    Failure, Result,
    machine::Boot,
    report::{EventReport, Kind, Report, SessionReport, relative_error},
};

/// Columns of an event's name; a longer name has its own line.
const NAME: usize = 27;

/// A run.
#[derive(Debug)]
pub struct OneRun {
    report: Report,
    /// By session and event: whether the event is counted in ring 0.
    ring_0: Vec<Vec<bool>>,
}

/// All runs, merged.
#[derive(Debug, Serialize, Deserialize)]
pub struct Merged {
    /// Number of runs.
    pub runs: u64,
    /// The first run's seed; each further run has the next one.
    pub first_seed: Option<u64>,
    /// The PMU that the kernel detected.
    pub pmu: Option<String>,
    /// The first exit status other than 0, or 0.
    pub status: u8,
    /// The sessions that every run had.
    pub sessions: Vec<MergedSession>,
}

/// A session of every run.
#[derive(Debug, Serialize, Deserialize)]
pub struct MergedSession {
    /// The program that opened the session.
    pub program: String,
    /// Events of the session.
    pub events: Vec<MergedEvent>,
}

/// An event over all runs.
#[derive(Debug, Serialize, Deserialize)]
pub struct MergedEvent {
    /// Name of the event.
    pub name: String,
    /// Kind of the value: exact only if it is so in every run.
    pub kind: Kind,
    /// The mean of the runs' estimates, in events.
    pub estimate: Option<f64>,
    /// Half the width of the 95 % interval of the mean of the runs' true counts, in events.
    pub half_width_95: Option<f64>,
    /// Estimated standard deviation of the true counts from run to run, in events.
    pub run_to_run: Option<f64>,
    /// Whether the estimates differ more than their errors explain, with 5 % error probability.
    pub varies: Option<bool>,
    /// The mean of the virtual PMU's counts, in events.
    pub truth: Option<f64>,
    /// The standard deviation of the virtual PMU's counts from run to run, in events.
    pub true_run_to_run: Option<f64>,
    /// Runs that did not measure the event; if there are any, there is no estimate.
    pub unmeasured_runs: u64,
    /// Reason of the first unmeasured run.
    pub reason: Option<Cow<'static, str>>,
}

impl OneRun {
    /// Makes the run of this boot.
    pub fn of(boot: &Boot) -> OneRun {
        let sessions = boot.transcript.sessions.values();
        let ring_0 = sessions.map(|s| s.readings.iter().map(|r| r.mode.kernel()).collect());
        OneRun { report: Report::of(boot), ring_0: ring_0.collect() }
    }

    /// The runs of each job of a machine that ran several, by the job's number.
    pub fn of_jobs(boot: &Boot) -> BTreeMap<u32, Vec<OneRun>> {
        let OneRun { report, ring_0 } = OneRun::of(boot);
        let mut sessions: BTreeMap<JobNumber, Vec<(&SessionReport, Vec<bool>)>> = BTreeMap::new();
        for (session, ring_0) in report.sessions().zip(ring_0) {
            if let Some(job) = session.job {
                sessions.entry(job).or_default().push((session, ring_0));
            }
        }
        let mut jobs: BTreeMap<u32, Vec<OneRun>> = BTreeMap::new();
        for (job, sessions) in sessions {
            let (mut sessions, ring_0): (Vec<_>, _) = sessions.into_iter().unzip();
            let report = Report {
                seed: Some(job.seed),
                pmu: report.pmu.clone(),
                first: Some(sessions.remove(0).clone()),
                others: sessions.into_iter().cloned().collect(),
                status: report.status,
                ..Report::default()
            };
            jobs.entry(job.number).or_default().push(OneRun { report, ring_0 });
        }
        jobs
    }

    /// The program and the names of the events of each session.
    fn shape(&self) -> Vec<(&str, Vec<&str>)> {
        self.report.sessions().map(shape).collect()
    }
}

/// The program and the names of the events of a session.
fn shape(session: &SessionReport) -> (&str, Vec<&str>) {
    (&session.program, session.events.iter().map(|event| event.name.as_str()).collect())
}

impl Merged {
    /// Merges two or more runs, in the order of their seeds.
    ///
    /// # Errors
    /// The runs have different sessions or events.
    pub fn of(runs: &[OneRun]) -> Result<Merged> {
        let first = &runs[0];
        if let Some(other) = runs.iter().find(|run| run.shape() != first.shape()) {
            let why = format!(
                "the runs with seeds {} and {} have different sessions: only equal sessions can be \
                 merged",
                first.report.seed.unwrap_or_default(),
                other.report.seed.unwrap_or_default()
            );
            return Err(Failure::new(ExitStatus::CheckFailed, why));
        }
        let session = |(index, (program, names)): (usize, (&str, Vec<&str>))| {
            let event = |at: usize| {
                let of = |run: &OneRun| {
                    let sessions: Vec<&SessionReport> = run.report.sessions().collect();
                    (sessions[index].events[at].clone(), run.ring_0[index][at])
                };
                MergedEvent::of(&runs.iter().map(of).collect::<Vec<_>>())
            };
            let events = (0..names.len()).map(event).collect();
            MergedSession { program: program.to_owned(), events }
        };
        let mut statuses = runs.iter().map(|run| run.report.status);
        Ok(Merged {
            runs: runs.len() as u64,
            first_seed: first.report.seed,
            pmu: first.report.pmu.clone(),
            status: statuses.find(|status| *status != 0).unwrap_or_default(),
            sessions: first.shape().into_iter().enumerate().map(session).collect(),
        })
    }
}

impl MergedEvent {
    /// Merges one event's reports, each with whether it is counted in ring 0.
    fn of(runs: &[(EventReport, bool)]) -> MergedEvent {
        let estimates: Vec<RunEstimate> = runs.iter().filter_map(run_estimate).collect();
        let missing = runs.len() - estimates.len();
        let combined = (missing == 0).then(|| combine(&estimates));
        let truths: Option<Vec<f64>> = runs.iter().map(|(e, _)| Some(e.truth? as f64)).collect();
        MergedEvent {
            name: runs[0].0.name.clone(),
            kind: match combined {
                None => Kind::NotMeasured,
                Some(_) if runs.iter().all(|(event, _)| event.kind == Kind::Exact) => Kind::Exact,
                Some(_) => Kind::Estimated,
            },
            estimate: combined.map(|combined| combined.mean),
            half_width_95: combined.map(|combined| combined.half_width_95),
            run_to_run: combined.map(|combined| combined.run_to_run),
            varies: combined.map(|Combined { varies, .. }| varies),
            truth: truths.as_ref().map(|truths| mean(truths.iter().copied())),
            true_run_to_run: truths.map(|truths| variance(truths.iter().copied()).sqrt()),
            unmeasured_runs: missing as u64,
            reason: runs.iter().find_map(|(event, _)| event.reason.clone()),
        }
    }

    /// The estimate less the truth, as a share of the truth; `None` if the truth is 0 and the
    /// estimate is not.
    pub fn relative_error(&self) -> Option<f64> {
        relative_error(self.estimate?, self.truth?)
    }

    /// Returns whether the mean of the truths lies within the 95 % interval, with a tolerance of
    /// 1/1000 of an event for sums in another order.
    pub fn is_within(&self) -> Option<bool> {
        Some((self.estimate? - self.truth?).abs() <= self.half_width_95? + 1e-3)
    }
}

fn run_estimate((event, systematic): &(EventReport, bool)) -> Option<RunEstimate> {
    Some(RunEstimate {
        estimate: event.estimate? as f64,
        stderr: event.stderr?,
        half_width_95: event.half_width_95?,
        systematic: *systematic,
    })
}

/// The table, of 80 columns.
pub fn render(merged: &Merged) -> String {
    let mut text = String::new();
    write_all(&mut text, merged).expect("writing to a string does not fail");
    text
}

fn write_all(text: &mut String, merged: &Merged) -> fmt::Result {
    let pmu = merged.pmu.as_deref().unwrap_or("no PMU");
    let (runs, first) = (merged.runs, merged.first_seed.unwrap_or_default());
    for session in &merged.sessions {
        let last = first.saturating_add(runs - 1);
        writeln!(text, "{}: {pmu}, {runs} runs, seeds {first} to {last}", session.program)?;
        let heads = ("mean", "± 95 %", "varies", "truth", "error");
        write!(text, "{:<NAME$} {:>13} {:>8} {:>7}", "event", heads.0, heads.1, heads.2)?;
        writeln!(text, " {:>13} {:>6}", heads.3, heads.4)?;
        session.events.iter().try_for_each(|event| write_event(text, event))?;
        let judged: Vec<bool> = session.events.iter().filter_map(MergedEvent::is_within).collect();
        if !judged.is_empty() {
            let within = judged.iter().filter(|within| **within).count();
            writeln!(text, "{within}/{} within ± 95 %; ! marks the others", judged.len())?;
        }
        writeln!(
            text,
            "varies: standard deviation from run to run beyond sampling errors; - none found"
        )?;
    }
    Ok(())
}

fn write_event(text: &mut String, event: &MergedEvent) -> fmt::Result {
    let name = &event.name;
    if let Some(reason) = &event.reason {
        let (runs, s) = (event.unmeasured_runs, if event.unmeasured_runs == 1 { "" } else { "s" });
        return writeln!(text, "{name}\n  not measured in {runs} run{s}:\n  {reason}");
    }
    if name.chars().count() > NAME {
        writeln!(text, "{name}")?;
        write!(text, "{:NAME$} ", "")?;
    } else {
        write!(text, "{name:<NAME$} ")?;
    }
    let number = |value: Option<f64>| {
        value.map_or_else(String::new, |value| Grouped(value.round() as u64).to_string())
    };
    // A share of the estimate; for an estimate of 0, in events.
    let share = |value: Option<f64>| match (value, event.estimate) {
        (Some(value), Some(estimate)) if estimate > 0.0 => percent(value / estimate, false),
        (Some(value), _) => format!("±{value:.1}"),
        (None, _) => "unknown".into(),
    };
    let bar = match event.kind {
        Kind::Exact => "exact".into(),
        _ => share(event.half_width_95),
    };
    let varies = match event.varies {
        Some(true) => share(event.run_to_run),
        _ => "-".into(),
    };
    write!(text, "{:>13} {bar:>8} {varies:>7}", number(event.estimate))?;
    if event.truth.is_some() {
        let error = event.relative_error().map_or_else(|| "-".into(), |error| percent(error, true));
        let mark = if event.is_within() == Some(false) { "!" } else { "" };
        write!(text, " {:>13} {error:>6}{mark}", number(event.truth))?;
    }
    writeln!(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use tally_abi::{Reading, Value, reading::Reason};

    fn event(name: &str, value: Value, truth: u64) -> EventReport {
        let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 4, slices: 9 };
        EventReport::of(name, &reading, Some(truth))
    }

    /// Makes a run whose values are `off` tens off.
    fn run(seed: u64, off: i64, last: Value) -> OneRun {
        let at = |value: u64| value.saturating_add_signed(off * 10);
        let of = |estimate| Value::Estimated { estimate, stderr: 10.0, half_width_95: 19.6 };
        let events = vec![
            event("PINNED", Value::Exact { count: at(5_000) }, at(5_000)),
            event("STEADY", of(at(1_000)), 1_000),
            event("BR_INST_RETIRED.ALL_BRANCHES", of(at(1_000) + 10 * seed * seed), 1_000),
            event("WRONG", of(at(2_000)), 1_900),
            event("ZERO", of(0), 0),
            event("LAST", last, 7),
        ];
        let ring_0 = vec![vec![false; events.len()]];
        let first = SessionReport { program: "p".into(), events, ..SessionReport::default() };
        let pmu = Some("P".into());
        let report = Report { seed: Some(seed), pmu, first: Some(first), ..Report::default() };
        OneRun { report, ring_0 }
    }

    fn runs() -> Vec<OneRun> {
        let reason = Reason::TooFewSlices;
        let measured = Value::Exact { count: 7 };
        vec![
            run(3, -1, measured),
            run(4, 0, Value::NotMeasured { reason }),
            run(5, 1, measured),
            run(6, 0, measured),
        ]
    }

    #[test]
    fn the_table_has_a_line_for_each_event() {
        let text = render(&Merged::of(&runs()).unwrap());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        expect![[r#"
            p: P, 4 runs, seeds 3 to 6
            event                                mean   ± 95 %  varies         truth  error
            PINNED                              5,000    exact   0.16%         5,000 +0.00%
            STEADY                              1,000    0.98%       -         1,000 +0.00%
            BR_INST_RETIRED.ALL_BRANCHES
                                                1,215    0.81%   9.97%         1,000 +21.5%!
            WRONG                               2,000    0.49%       -         1,900 +5.26%!
            ZERO                                    0     ±9.8       -             0 +0.00%
            LAST
              not measured in 1 run:
              fewer than four slices counted: run longer or use shorter slices
            3/5 within ± 95 %; ! marks the others
            varies: standard deviation from run to run beyond sampling errors; - none found
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn runs_with_different_events_are_refused() {
        let mut runs = runs();
        runs[2].report.first.as_mut().unwrap().events.pop();
        let refused = Merged::of(&runs).unwrap_err();
        assert_eq!(refused.status, ExitStatus::CheckFailed);
        assert!(refused.message.contains("seeds 3 and 5"), "{refused}");
    }

    #[test]
    fn the_status_is_the_first_that_is_not_0() {
        let mut runs = runs();
        assert_eq!(Merged::of(&runs).unwrap().status, 0);
        (runs[1].report.status, runs[2].report.status) = (5, 6);
        assert_eq!(Merged::of(&runs).unwrap().status, 5);
    }
}
