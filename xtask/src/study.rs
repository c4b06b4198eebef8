//! `cargo xtask study`: repeats a run over many seeds and compares its estimates with the truth;
//! compares programs with their runs on the build machine.

pub(crate) mod estimators;
pub mod live;
mod options;
pub mod overhead;
pub mod programs;
mod seeds;
mod unobserved;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde::Serialize;
use tally_abi::ExitStatus;

use self::{options::ErrorArgs, seeds::CLAIMED};
use crate::{
    Result,
    machine::Artefacts,
    output,
    project::Project,
    report::{EventReport, Kind, Report, table::percent},
};

/// A truth above it, in events, makes an event frequent.
const FREQUENT: u64 = 1_000;

/// Options of `cargo xtask study`.
#[derive(Args, Debug)]
pub struct StudyArgs {
    #[command(subcommand)]
    study: Study,
}

#[derive(Debug, Subcommand)]
enum Study {
    /// How often 95 % intervals contain the truth; fails unless it is 93 to 97 % of the estimated
    /// values. With fewer than 20 seeds it can fail by chance
    Error(ErrorArgs),
    /// Linear scaling and ratio estimates on made-up streams, side by side
    Estimators(estimators::EstimatorsArgs),
    /// The same for readings while a program runs, at random moments, and for their differences:
    /// in the bank and by system call
    Live(live::LiveArgs),
    /// What group switches cost at 1 to 1,000 kHz, beside paper 000's Table 4
    Overhead(overhead::OverheadArgs),
    /// Whether programs of other origins have the same output, files and status under Tally as on
    /// this machine, on a machine of each vendor; tests/programs/list.toml has them
    Programs(programs::ProgramsArgs),
    /// How often the intervals of unobserved values contain the truth of runs without interrupts
    Unobserved(unobserved::UnobservedArgs),
}

/// One event's results over all seeds.
#[derive(Debug, Serialize)]
struct EventError {
    name: String,
    /// Seeds that gave an estimate and a truth.
    judged: u64,
    /// The share of these whose interval contains the truth.
    within: f64,
    /// Mean of |estimate − truth| / truth, without truths of 0.
    mean_relative_error: Option<f64>,
    /// Mean of half width / estimate, without estimates of 0.
    mean_relative_half_width: Option<f64>,
}

/// The errors of estimated values whose truth is above [`FREQUENT`]; none without such values.
#[derive(Debug, Serialize)]
struct FrequentError {
    values: u64,
    /// Of |estimate − truth| / truth.
    median_relative_error: Option<f64>,
    /// The 99th percentile of the same.
    p99_relative_error: Option<f64>,
    /// Of half width / estimate.
    median_relative_half_width: Option<f64>,
}

/// The results of all events over all seeds.
#[derive(Debug, Serialize)]
struct ErrorStudy {
    /// The number of seeds, and the first of them.
    seeds: u64,
    first_seed: Option<u64>,
    pmu: Option<String>,
    /// Values with an interval and a truth: events times seeds.
    judged: u64,
    /// Values without an interval or a truth.
    not_judged: u64,
    /// The share of judged values whose interval contains the truth.
    within: f64,
    /// Judged values without the exact ones.
    estimated: u64,
    /// The share of these whose interval contains the truth.
    estimated_within: f64,
    /// The lowest share of a single seed.
    worst_seed_within: f64,
    frequent: FrequentError,
    /// The claimed range of `estimated_within`.
    claimed: [f64; 2],
    /// Whether the claim holds.
    holds: bool,
    events: Vec<EventError>,
}

/// Runs the study.
///
/// # Errors
/// A machine cannot be built, or a run of the job fails.
pub fn main(project: &Project, args: &StudyArgs) -> Result<u8> {
    match &args.study {
        Study::Error(args) => error(project, args),
        Study::Estimators(args) => estimators::main(project, args),
        Study::Live(args) => live::main(project, args),
        Study::Overhead(args) => overhead::main(project, args),
        Study::Programs(args) => programs::main(project, args),
        Study::Unobserved(args) => unobserved::main(project, args),
    }
}

fn error(project: &Project, args: &ErrorArgs) -> Result<u8> {
    args.check()?;
    let artefacts = match &*args.file {
        [] => Artefacts::make(project)?,
        files => Artefacts::make_for_run(project, files)?,
    };
    let reports = seeds::each(args.seeds.clone(), |seed| run_seed(&artefacts, args, seed))?;
    let study = judge(&reports);
    output::print(args.json, &study, &(render(&study) + "\n"))?;
    Ok(if study.holds { 0 } else { ExitStatus::CheckFailed.into() })
}

fn run_seed(artefacts: &Artefacts, args: &ErrorArgs, seed: u64) -> Result<Report> {
    Ok(Report::of(&seeds::boot(artefacts, &args.request(seed)?, seed)?))
}

fn judge(reports: &[Report]) -> ErrorStudy {
    let mut by_name: BTreeMap<&str, Vec<&EventReport>> = BTreeMap::new();
    let events = |report| Report::sessions(report).flat_map(|session| &session.events);
    for event in reports.iter().flat_map(events) {
        by_name.entry(&event.name).or_default().push(event);
    }
    let all: Vec<&EventReport> = reports.iter().flat_map(events).collect();
    let (judged, within) = share_within(&all);
    let estimated: Vec<_> = all.iter().copied().filter(|e| e.kind == Kind::Estimated).collect();
    let frequent = judge_frequent(&estimated);
    let (estimated, estimated_within) = share_within(&estimated);
    let seeds = reports.iter().map(|report| share_within(&events(report).collect::<Vec<_>>()).1);
    ErrorStudy {
        seeds: reports.len() as u64,
        first_seed: reports.first().and_then(|report| report.seed),
        pmu: reports.first().and_then(|report| report.pmu.clone()),
        judged,
        not_judged: all.len() as u64 - judged,
        within,
        estimated,
        estimated_within,
        worst_seed_within: seeds.fold(1.0, f64::min),
        frequent,
        claimed: [*CLAIMED.start(), *CLAIMED.end()],
        holds: CLAIMED.contains(&estimated_within),
        events: by_name.into_iter().map(|(name, events)| judge_event(name, &events)).collect(),
    }
}

fn judge_event(name: &str, events: &[&EventReport]) -> EventError {
    let (judged, within) = share_within(events);
    EventError {
        name: name.to_owned(),
        judged,
        within,
        mean_relative_error: mean(events.iter().filter_map(|e| e.relative_error()).map(f64::abs)),
        mean_relative_half_width: mean(events.iter().filter_map(|e| e.relative_half_width())),
    }
}

fn judge_frequent(estimated: &[&EventReport]) -> FrequentError {
    let frequent: Vec<_> = estimated
        .iter()
        .filter(|event| event.truth.is_some_and(|truth| truth > FREQUENT))
        .collect();
    let sorted = |of: fn(&EventReport) -> Option<f64>| {
        let mut values: Vec<f64> = frequent.iter().filter_map(|e| of(e)).map(f64::abs).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let errors = sorted(EventReport::relative_error);
    FrequentError {
        values: errors.len() as u64,
        median_relative_error: quantile(&errors, 0.5),
        p99_relative_error: quantile(&errors, 0.99),
        median_relative_half_width: quantile(&sorted(EventReport::relative_half_width), 0.5),
    }
}

/// The least of the sorted values that at least this share of them does not exceed.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The number of values with an interval and a truth, and the share of them whose interval contains
/// it.
fn share_within(events: &[&EventReport]) -> (u64, f64) {
    let judged: Vec<bool> = events.iter().filter_map(|event| event.is_within()).collect();
    let within = judged.iter().filter(|within| **within).count();
    (judged.len() as u64, if judged.is_empty() { 0.0 } else { within as f64 / judged.len() as f64 })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

fn render(study: &ErrorStudy) -> String {
    let share = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| percent(v, false));
    let mut text =
        format!("{:<44} {:>10} {:>11} {:>12}\n", "event", "coverage", "mean error", "mean ± 95 %");
    for event in &study.events {
        let within = if event.judged == 0 { "-".into() } else { percent(event.within, false) };
        let (error, width) =
            (share(event.mean_relative_error), share(event.mean_relative_half_width));
        text += &format!("{:<44} {within:>10} {error:>11} {width:>12}\n", event.name);
    }
    text += &format!(
        "coverage of 95 % intervals: {} of {} values over {} seeds ({});\n\
         {} of {} estimated values; worst seed {}\n",
        (study.within * study.judged as f64).round(),
        study.judged,
        study.seeds,
        percent(study.within, false),
        percent(study.estimated_within, false),
        study.estimated,
        percent(study.worst_seed_within, false),
    );
    if study.not_judged > 0 {
        text += &format!("{} values without interval or truth\n", study.not_judged);
    }
    let FrequentError { values, .. } = study.frequent;
    text += &format!(
        "{values} estimated values above {FREQUENT} events: error median {}, 99th percentile {}; \
         median ± 95 % {}\n",
        share(study.frequent.median_relative_error),
        share(study.frequent.p99_relative_error),
        share(study.frequent.median_relative_half_width),
    );
    let verdict = if study.holds { "pass" } else { "FAIL" };
    let [least, most] = study.claimed.map(|share| 100.0 * share);
    text += &format!(
        "{verdict}: the claimed coverage of estimated values is {least:.0} to {most:.0} %"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::SessionReport;
    use tally_abi::{Reading, Value};

    /// One seed's report of one event with the truth 100 and the half width 10.
    fn report(estimate: u64) -> Report {
        let value = Value::Estimated { estimate, stderr: 5.0, half_width_95: 10.0 };
        let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 2, slices: 9 };
        let events = vec![EventReport::of("E", &reading, Some(100))];
        let first = SessionReport { program: "deflate".into(), events, ..SessionReport::default() };
        Report { seed: Some(1), first: Some(first), ..Report::default() }
    }

    /// A study of `all` estimates, of which `within` have the truth in their interval.
    fn study(within: usize, all: usize) -> ErrorStudy {
        let reports = (0..all).map(|seed| report(if seed < within { 105 } else { 120 }));
        judge(&reports.collect::<Vec<_>>())
    }

    #[test]
    fn coverage_below_or_above_the_claim_fails() {
        let passes = study(19, 20);
        assert_eq!((passes.judged, passes.within, passes.holds), (20, 0.95, true));
        assert_eq!((passes.estimated, passes.worst_seed_within), (20, 0.0));
        let error = passes.events[0].mean_relative_error.unwrap();
        assert!((error - 0.0575).abs() < 1e-12);
        for within in [18, 20] {
            let fails = study(within, 20);
            assert!(!fails.holds && render(&fails).contains("FAIL"), "{}", render(&fails));
        }
    }

    #[test]
    fn exact_values_do_not_count_for_the_claim() {
        let exact = Reading {
            value: Value::Exact { count: 100 },
            counted: 100,
            counted_cycles: 2,
            total_cycles: 2,
            slices: 9,
        };
        let mut reports = vec![report(105), report(120)];
        for report in &mut reports {
            let first = report.first.as_mut().unwrap();
            first.events.extend(vec![EventReport::of("X", &exact, Some(100)); 20]);
        }
        let study = judge(&reports);
        assert!(study.within > 0.95 && !study.holds, "{}", render(&study));
    }

    #[test]
    fn a_study_without_values_fails() {
        assert!(!judge(&[]).holds);
    }

    #[test]
    fn quantiles_are_of_estimated_values_of_frequent_events() {
        let event = |estimate, truth| {
            let value = Value::Estimated { estimate, stderr: 5.0, half_width_95: 100.0 };
            let reading =
                Reading { value, counted: 0, counted_cycles: 1, total_cycles: 2, slices: 9 };
            EventReport::of("E", &reading, Some(truth))
        };
        // Errors of 0.01 to 1.00, and one of an event that is not frequent.
        let mut events: Vec<_> = (1..=100).map(|n| event(10_000 + 100 * n, 10_000)).collect();
        events.push(event(9_000, FREQUENT));
        let mut report = report(100);
        report.first.as_mut().unwrap().events = events;
        let study = judge(&[report]);
        let FrequentError { values, median_relative_error, p99_relative_error, .. } =
            study.frequent;
        assert_eq!(
            (values, median_relative_error, p99_relative_error),
            (100, Some(0.5), Some(0.99))
        );
        let width = study.frequent.median_relative_half_width.unwrap();
        assert!((width - 100.0 / 15_100.0).abs() < 1e-4, "{width}");
        assert!(judge(&[]).frequent.median_relative_error.is_none());
    }
}
