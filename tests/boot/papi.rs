//! PAPI's calls (`papi.h`, `libpapi.a`): compared with the truth, and by PAPI's own tests.

use std::{collections::BTreeSet, fs, path::PathBuf, sync::OnceLock};

use tally_abi::truth::RegionKind;
use tally_lab::study::papi::{Verdict, run};
use xtask::{
    build::{
        HEADERS,
        archives::{self, Archives},
        papi::{self, List},
    },
    machine::{Artefacts, DEFAULT_TIME_LIMIT, Pmu},
    project::Project,
    report::Report,
};

use crate::{
    artefacts, assert_success,
    intervals::assert_hold,
    linked::{boot_seeded, compile_with, printed_here},
    machine_permit, output_of,
};

/// For each processor: more events than counters, presets and native ones.
const EVENTS: [(Pmu, &str); 2] = [
    (
        Pmu::Intel,
        "PAPI_TOT_INS,PAPI_TOT_CYC,PAPI_L1_DCM,PAPI_L2_TCM,PAPI_BR_MSP,PAPI_BR_TKN,PAPI_BR_NTK,\
         PAPI_LD_INS,PAPI_SR_INS,MEM_LOAD_RETIRED.L2_HIT,L2_RQSTS.DEMAND_DATA_RD_MISS",
    ),
    (
        Pmu::Amd,
        "PAPI_TOT_INS,PAPI_TOT_CYC,PAPI_L1_DCM,PAPI_BR_MSP,PAPI_BR_TKN,PAPI_BR_INS,\
         LS_DISPATCH.LD_DISPATCH,LS_DISPATCH.STORE_DISPATCH,REQUESTS_TO_L2_GROUP1.RD_BLK_L,\
         ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2",
    ),
];

/// Upper bound of the library's own events between `PAPI_start` and the mark of the truth, and
/// between the other mark and the reading.
const OWN_EVENTS: f64 = 2000.0;

/// Estimate of this event in its last session, and half the width of its interval.
fn value_of(report: &Report, event: &str) -> [f64; 2] {
    let events = report.sessions().flat_map(|session| &session.events);
    let last = events.filter(|of| of.name == event).last().unwrap_or_else(|| panic!("{event}"));
    let value = last.estimate.map(|value| value as f64);
    [value, last.half_width_95].map(|number| number.unwrap_or_else(|| panic!("{event}")))
}

/// Path of the guest, compiled once.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile_with("papi", "papi"))
}

/// Boots with this seed and returns how many intervals there are, and those that miss the truth.
/// Instructions must be exact, and each value near the session's own value.
fn intervals_and_misses((pmu, events): (Pmu, &str), seed: u64) -> (usize, Vec<String>) {
    let boot = boot_seeded(pmu, std::slice::from_ref(program()), events, seed);
    assert_success(&boot);
    let printed = output_of(&boot, 0, 1);
    assert!(printed.ends_with("papi: done\n") && !printed.contains("FAILED"), "{printed}");
    let truth = boot.truth.as_ref().unwrap().region(RegionKind::Marked, 1).unwrap();
    let report = Report::of(&boot);
    let lines: Vec<&str> = printed.lines().filter(|line| !line.starts_with("papi")).collect();
    assert_eq!(lines.len(), events.split(',').count(), "{printed}");
    let (mut exact, mut estimated, mut misses) = (0, 0, Vec::new());
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [event, native, kind, count, half_width] = words[..] else { panic!("{line}") };
        assert_ne!(kind, "not_measured", "{line}");
        let (count, half): (f64, f64) = (count.parse().unwrap(), half_width.parse().unwrap());
        // The virtual PMU writes no truth for a preset with several unit masks.
        let Some(truth) = truth.events.get(native) else { continue };
        let error = count - truth.user as f64;
        println!("{pmu:?}, seed {seed}: {line}, error {error}");
        let is_inside = (-half..=half + OWN_EVENTS).contains(&error);
        if event == "PAPI_TOT_INS" {
            assert!(kind == "exact" && is_inside, "{line}: {error}");
            exact += 1;
        }
        if kind == "estimated" {
            // PAPI's value covers all of a session but its last slice, and has the session's
            // estimate. With the last slice the other basis may have the narrower interval.
            let [session, of_session] = value_of(&report, event);
            let most = half + of_session + OWN_EVENTS;
            assert!((count - session).abs() <= most, "{line}: {session}");
            estimated += 1;
            misses.extend((!is_inside).then(|| format!("{line}: {error}")));
        }
    }
    assert_eq!(exact, 1, "{printed}");
    (estimated, misses)
}

#[test]
fn papi_counts_the_truth_and_has_papi_s_states() {
    let runs = EVENTS.map(|of_pmu| intervals_and_misses(of_pmu, 1));
    assert!(runs.iter().all(|(estimated, _)| *estimated >= 5), "{runs:?}");
    assert_hold(runs.iter().map(|run| run.0).sum(), &runs.map(|run| run.1).concat());
    assert_eq!(printed_here(program()), "papi: Not supported\n");
}

/// A run has few slices with correlated errors, so one seed is not enough.
#[test]
#[ignore = "long"]
fn intervals_of_papi_s_values_contain_the_truth() {
    let seeds = 1..=3;
    let runs = EVENTS.into_iter().flat_map(|of_pmu| seeds.clone().map(move |seed| (of_pmu, seed)));
    let counts: Vec<_> = runs.map(|(of_pmu, seed)| intervals_and_misses(of_pmu, seed)).collect();
    let estimated: usize = counts.iter().map(|of| of.0).sum();
    let misses: usize = counts.iter().map(|of| of.1.len()).sum();
    assert!(estimated >= 36 && misses * 5 <= estimated, "{misses} of {estimated}");
}

/// Panics unless the quick tests of PAPI have the verdicts of the list.
///
/// Each machine runs every second test, from `first` on. The study runs all of them on both.
fn check_list(pmu: Pmu, first: usize) {
    let project = Project::here();
    let list = List::read(&project).unwrap();
    let quick: Vec<_> = list.wanted(true).collect();
    // Both machines read the files, which are written once.
    static PROGRAMS: OnceLock<Result<Vec<PathBuf>, String>> = OnceLock::new();
    let make = || papi::make(&project, &quick).map_err(|failure| failure.to_string());
    let programs = PROGRAMS.get_or_init(make).clone().unwrap_or_else(|why| panic!("{why}"));
    let artefacts = Artefacts { on_demand: programs, ..artefacts() };
    let _permit = machine_permit();
    let some: Vec<_> = quick.iter().copied().skip(first).step_by(2).collect();
    let ran = run(&artefacts, &some, pmu, DEFAULT_TIME_LIMIT, false).unwrap();
    let failed: Vec<_> = ran.iter().filter(|ran| ran.verdict != Verdict::Passed).collect();
    assert!(quick.len() >= 8 && failed.is_empty(), "{failed:#?}");
}

#[test]
fn papi_s_own_tests_pass_on_intel() {
    check_list(Pmu::Intel, 0);
}

#[test]
fn papi_s_own_tests_pass_on_amd() {
    check_list(Pmu::Amd, 1);
}

#[test]
fn the_list_has_every_test_of_papi_s() {
    let project = Project::here();
    let list = List::read(&project).unwrap();
    let listed: BTreeSet<&str> = list.tests.iter().map(|test| test.source()).collect();
    let files = papi::files(&project).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(listed, files.iter().map(String::as_str).collect(), "tests/papi/list.toml");
}

#[test]
fn libpapi_has_the_functions_of_papi_h_and_no_other_symbol() {
    let project = Project::here();
    let header = fs::read_to_string(project.root.join(HEADERS).join("papi.h")).unwrap();
    let name = |line: &str| {
        let before = line.split_once('(').filter(|_| line.starts_with(char::is_alphabetic))?.0;
        before.rsplit([' ', '*']).next().map(str::to_owned)
    };
    let declared: BTreeSet<String> = header.lines().filter_map(name).collect();
    let Archives { papi, .. } = Archives::of(&project);
    let found: BTreeSet<String> = archives::global_symbols(&papi).unwrap().into_iter().collect();
    assert_eq!(found, declared);
    assert_eq!(archives::undefined_symbols(&papi).unwrap(), [""; 0]);
}
