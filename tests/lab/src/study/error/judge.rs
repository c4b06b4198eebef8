//! Comparison of estimates with the truth, over seeds and programs.

use std::collections::BTreeMap;

use serde::Serialize;
use xtask::report::{EventReport, Kind, Report};

use crate::study::seeds::CLAIMED;

/// Truth, in events, above which an event is frequent.
pub(super) const FREQUENT: u64 = 1_000;
/// The claim for each program: the least share of its estimates whose interval contains the truth.
pub(super) const CLAIMED_OF_EACH: f64 = 0.92;

/// A program's words and its reports by seed.
pub(super) type ProgramReports<'a> = (&'a &'a str, &'a [Report]);

/// Results of an event over all seeds and programs.
#[derive(Debug, Serialize)]
pub(super) struct EventError {
    pub(super) name: String,
    /// Number of values with an interval and a truth.
    pub(super) judged: u64,
    /// The share of judged values whose interval contains the truth.
    pub(super) within: f64,
    /// Mean of |estimate − truth| / truth, without truths of 0.
    pub(super) mean_relative_error: Option<f64>,
    /// Mean of half width / estimate, without estimates of 0.
    pub(super) mean_relative_half_width: Option<f64>,
}

/// Accuracy of estimates, without exact values.
#[derive(Debug, Serialize)]
pub(super) struct Accuracy {
    /// The number of estimates with an interval and a truth.
    pub(super) estimated: u64,
    /// The share of these estimates whose interval contains the truth.
    pub(super) estimated_within: f64,
    pub(super) frequent: FrequentError,
}

/// The errors of estimated values whose truth is above [`FREQUENT`]; `None` without such values.
#[derive(Debug, Serialize)]
pub(super) struct FrequentError {
    pub(super) values: u64,
    /// Median of |estimate − truth| / truth.
    pub(super) median_relative_error: Option<f64>,
    /// The 99th percentile of |estimate − truth| / truth.
    pub(super) p99_relative_error: Option<f64>,
    /// Median of half width / estimate.
    pub(super) median_relative_half_width: Option<f64>,
}

/// The estimates of a program over all seeds.
#[derive(Debug, Serialize)]
pub(super) struct ProgramError {
    /// The program's words; empty for the default job.
    pub(super) program: String,
    #[serde(flatten)]
    pub(super) accuracy: Accuracy,
}

/// Accuracies of the values that have a refined estimate: by the engine's estimates, and by the
/// refined ones.
#[derive(Debug, Serialize)]
pub(super) struct Refinement {
    pub(super) engine: Accuracy,
    pub(super) refined: Accuracy,
}

/// The results of all events over all seeds and programs.
#[derive(Debug, Serialize)]
pub(super) struct ErrorStudy {
    /// The number of seeds, and the first of them.
    pub(super) seeds: u64,
    pub(super) first_seed: Option<u64>,
    pub(super) pmu: Option<String>,
    /// Values with an interval and a truth: events times seeds times programs.
    pub(super) judged: u64,
    /// Values without an interval or a truth.
    pub(super) not_judged: u64,
    /// The share of judged values whose interval contains the truth.
    pub(super) within: f64,
    #[serde(flatten)]
    pub(super) accuracy: Accuracy,
    /// The lowest share of a single run.
    pub(super) worst_seed_within: f64,
    /// Accuracies of refined estimates, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refinement: Option<Refinement>,
    /// The claimed range of `estimated_within`.
    pub(super) claimed: [f64; 2],
    /// The claimed lower bound for each program.
    pub(super) claimed_of_each: f64,
    /// Whether the claims hold, also for refined estimates.
    pub(super) holds: bool,
    pub(super) programs: Vec<ProgramError>,
    pub(super) events: Vec<EventError>,
}

/// Judges the reports of programs, and their refined estimates if they have some.
pub(super) fn judge(programs: &[ProgramReports<'_>], is_refined: bool) -> ErrorStudy {
    let reports: Vec<&Report> = programs.iter().flat_map(|(_, reports)| *reports).collect();
    let all: Vec<&EventReport> = reports.iter().flat_map(|report| events(report)).collect();
    let mut by_name: BTreeMap<&str, Vec<&EventReport>> = BTreeMap::new();
    for event in &all {
        by_name.entry(&event.name).or_default().push(event);
    }
    let (judged, within) = share_within(&all);
    let accuracy = Accuracy::of(&all);
    let refinement = is_refined.then(|| Refinement::of(&all));
    let each = |(program, reports): &ProgramReports<'_>| {
        let all: Vec<&EventReport> = reports.iter().flat_map(events).collect();
        ProgramError { program: program.to_string(), accuracy: Accuracy::of(&all) }
    };
    let programs: Vec<ProgramError> = programs.iter().map(each).collect();
    let refined = refinement.as_ref().map(|refinement| &refinement.refined);
    let holds = accuracy.holds()
        && refined.is_none_or(Accuracy::holds)
        && programs.iter().all(|program| program.accuracy.estimated_within >= CLAIMED_OF_EACH);
    let runs = reports.iter().map(|report| share_within(&events(report).collect::<Vec<_>>()).1);
    ErrorStudy {
        seeds: (reports.len() / programs.len().max(1)) as u64,
        first_seed: reports.first().and_then(|report| report.seed),
        pmu: reports.first().and_then(|report| report.pmu.clone()),
        judged,
        not_judged: all.len() as u64 - judged,
        within,
        accuracy,
        worst_seed_within: runs.fold(1.0, f64::min),
        refinement,
        claimed: [*CLAIMED.start(), *CLAIMED.end()],
        claimed_of_each: CLAIMED_OF_EACH,
        holds,
        programs,
        events: by_name.into_iter().map(|(name, events)| judge_event(name, &events)).collect(),
    }
}

fn events(report: &Report) -> impl Iterator<Item = &EventReport> {
    report.sessions().flat_map(|session| &session.events)
}

impl Accuracy {
    /// Computes the accuracy of the estimates among these values.
    fn of(values: &[&EventReport]) -> Accuracy {
        let is_estimated = |value: &&&EventReport| value.kind == Kind::Estimated;
        let estimates: Vec<_> = values.iter().filter(is_estimated).copied().collect();
        let (estimated, estimated_within) = share_within(&estimates);
        Accuracy { estimated, estimated_within, frequent: judge_frequent(&estimates) }
    }

    fn holds(&self) -> bool {
        CLAIMED.contains(&self.estimated_within)
    }
}

impl Refinement {
    fn of(values: &[&EventReport]) -> Refinement {
        let both = values.iter().filter_map(|value| Some((*value, value.as_refined()?)));
        let (engine, refined): (Vec<&EventReport>, Vec<EventReport>) = both.unzip();
        let refined: Vec<&EventReport> = refined.iter().collect();
        Refinement { engine: Accuracy::of(&engine), refined: Accuracy::of(&refined) }
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

/// The quantile of sorted values: the least that a share of at least `share` does not exceed.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The number of values with an interval and a truth, and the share of them whose interval contains
/// the truth.
fn share_within(events: &[&EventReport]) -> (u64, f64) {
    let judged: Vec<bool> = events.iter().filter_map(|event| event.is_within()).collect();
    let within = judged.iter().filter(|within| **within).count();
    (judged.len() as u64, if judged.is_empty() { 0.0 } else { within as f64 / judged.len() as f64 })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::{super::table::render, *};
    use tally_abi::{Reading, Value};
    use xtask::report::SessionReport;

    /// A seed's report of one event with the truth 100 and the half width 10.
    fn report(estimate: u64) -> Report {
        let value = Value::Estimated { estimate, stderr: 5.0, half_width_95: 10.0 };
        let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 2, slices: 9 };
        let mut first = SessionReport::default();
        first.program = "deflate".into();
        first.events = vec![EventReport::of("E", &reading, Some(100))];
        Report { seed: Some(1), first: Some(first), ..Report::default() }
    }

    /// A study of `all` estimates, of which `within` have the truth in their interval.
    fn study(within: usize, all: usize) -> ErrorStudy {
        let reports = (0..all).map(|seed| report(if seed < within { 105 } else { 120 }));
        judge_job(&reports.collect::<Vec<_>>())
    }

    fn judge_job(reports: &[Report]) -> ErrorStudy {
        judge(&[(&"", reports)], false)
    }

    #[test]
    fn coverage_below_or_above_the_claim_fails() {
        let passes = study(19, 20);
        assert_eq!((passes.judged, passes.within, passes.holds), (20, 0.95, true));
        assert_eq!((passes.accuracy.estimated, passes.worst_seed_within), (20, 0.0));
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
        let study = judge_job(&reports);
        assert!(study.within > 0.95 && !study.holds, "{}", render(&study));
    }

    #[test]
    fn a_study_without_values_fails() {
        assert!(!judge_job(&[]).holds);
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
        let study = judge_job(&[report]);
        let FrequentError { values, median_relative_error, p99_relative_error, .. } =
            study.accuracy.frequent;
        assert_eq!(
            (values, median_relative_error, p99_relative_error),
            (100, Some(0.5), Some(0.99))
        );
        let width = study.accuracy.frequent.median_relative_half_width.unwrap();
        assert!((width - 100.0 / 15_100.0).abs() < 1e-4, "{width}");
        assert!(judge_job(&[]).accuracy.frequent.median_relative_error.is_none());
    }
}
