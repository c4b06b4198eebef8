//! What is measured is true, repeatable, and accounted for.

use tally_abi::ExitStatus;
use xtask::{
    machine::{Boot, Outcome, Pmu, Request},
    report::{Kind, Report},
};

use crate::{assert_success, boot, run};

/// Ring 3's instructions, branches and loads, by the names of either vendor.
const INTEL: &str = "INST_RETIRED.ANY,BR_INST_RETIRED.ALL_BRANCHES,MEM_INST_RETIRED.ALL_LOADS";
const AMD: &str = "RETIRED_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS,LS_DISPATCH.LD_DISPATCH";

/// A run of the default job that is as short as it can be, and its truth over time.
fn short_job(seed: u64) -> (Boot, String) {
    let own = std::env::temp_dir().join(format!("tally-{}", std::process::id()));
    let series = own.join("series.csv");
    std::fs::create_dir_all(&own).expect("there is room for temporary files");
    let line = format!("wire trace seed={seed} -- deflate --level 1 --slice 50000");
    let vpmu = vec![format!("series={}", series.display()), "every=1000000c".to_owned()];
    let boot = boot(&Request { vpmu, ..Request::new(line) });
    assert_success(&boot);
    let rows = std::fs::read_to_string(series).expect("the virtual PMU writes it");
    std::fs::remove_dir_all(&own).expect("it is ours");
    (boot, rows)
}

#[test]
fn same_seed_same_trace_and_another_seed_another() {
    let [(first, series), (again, same_series), (other, _)] = [7, 7, 8].map(short_job);
    assert!(!first.transcript.slices.is_empty());
    // Not `assert_eq!`: it would print thousands of records.
    assert!(first.transcript.slices == again.transcript.slices, "the traces are the same");
    assert_eq!(first.transcript.sessions, again.transcript.sessions);
    assert_eq!(first.truth, again.truth);
    assert!(
        series.lines().count() > 10 && series == same_series,
        "the truth is the same all the time"
    );
    let groups = |boot: &Boot| -> Vec<u16> {
        boot.transcript.slices.iter().map(|slice| slice.group).collect()
    };
    assert_ne!(groups(&first), groups(&other));
    for ring in first.transcript.rings {
        assert_eq!(ring.written, ring.read + ring.lost);
    }
}

/// Runs the default job and checks what must hold whatever the estimates are.
fn check_default_job(pmu: Pmu, catalogue: &str) {
    let boot = boot(&Request { pmu, ..Request::new("wire seed=1 -- deflate") });
    assert_success(&boot);
    let found = boot.transcript.booted.as_ref().and_then(|booted| booted.pmu.as_ref());
    assert_eq!(found.map(|pmu| pmu.catalogue.as_str()), Some(catalogue));
    let report = Report::of(&boot).first.expect("the job has a session");
    assert!(report.events.len() >= 20, "{} events", report.events.len());
    for event in &report.events {
        assert!(event.truth.is_some(), "{} has no truth", event.name);
        match event.kind {
            Kind::Exact => assert_eq!(event.estimate, event.truth, "{}", event.name),
            Kind::Estimated => assert!(event.coverage > 0.0 && event.coverage < 1.0),
            Kind::NotMeasured => panic!("{} was not measured", event.name),
        }
    }
    assert!(report.events.iter().any(|event| event.kind == Kind::Exact));
    assert!(report.pmis > Some(100) && report.rounds > Some(10) && report.slices >= report.pmis);
    assert!(report.msr_accesses_per_switch.is_some_and(|accesses| accesses >= 1.0));
    assert!(report.instructions_per_switch.is_some_and(|instructions| instructions >= 10.0));
    assert!(report.engine_share.is_some_and(|share| share > 0.0 && share < 0.5));
}

#[test]
fn the_default_job_on_intel() {
    check_default_job(Pmu::Intel, "icelake-server");
}

#[test]
fn the_default_job_on_amd() {
    check_default_job(Pmu::Amd, "zen4");
}

#[test]
fn what_is_always_counted_is_exact_on_intel() {
    let boot = run("", &format!("exact {INTEL}"));
    assert_success(&boot);
    assert!(boot.transcript.text().contains("exact: done"));
}

#[test]
fn what_is_always_counted_is_exact_on_amd() {
    let request = Request::new(format!("wire -- exact {AMD}"));
    let boot = boot(&Request { pmu: Pmu::Amd, ..request });
    assert_success(&boot);
    assert!(boot.transcript.text().contains("exact: done"));
}

/// Asserts that the default job with `arguments` ends with `status` and says `word`.
fn check_refused(arguments: &str, status: ExitStatus, word: &str) {
    let boot = run("", &format!("deflate {arguments}"));
    assert_eq!(boot.outcome, Outcome::Done(status.into()), "{}", boot.transcript.text());
    assert!(boot.transcript.text().contains(word), "{}", boot.transcript.text());
}

#[test]
fn an_unknown_event_is_named_with_the_nearest() {
    let events = "--events BR_INST_RETIRED.ALL_BRANCHE";
    check_refused(events, ExitStatus::UnknownEvent, "BR_INST_RETIRED.ALL_BRANCHES");
}

#[test]
fn a_slice_below_the_floor_is_refused() {
    check_refused("--slice 10", ExitStatus::SliceOutOfRange, "slice");
}

#[test]
fn more_events_than_a_plan_can_hold_are_refused() {
    let events = vec!["INST_RETIRED.ANY"; tally_abi::session::MAX_EVENTS + 1].join(",");
    check_refused(&format!("--events {events}"), ExitStatus::TooManyEvents, "1024");
}

#[test]
fn a_machine_without_a_pmu_says_what_to_do() {
    let request = Request::new("wire -- deflate");
    let boot = boot(&Request { virtual_pmu: false, ..request });
    assert_eq!(boot.outcome, Outcome::Done(ExitStatus::NoPmu.into()));
    assert!(boot.transcript.text().contains("virtual PMU"), "{}", boot.transcript.text());
}

#[test]
fn a_program_that_ends_in_a_session_has_it_closed() {
    let boot = run("", "status 0 INST_RETIRED.ANY");
    assert_success(&boot);
    let truth = boot.truth.as_ref().expect("the virtual PMU writes it");
    assert!(truth.regions.len() == 1 && truth.regions[0].closed, "{:?}", truth.regions);
    let event = &Report::of(&boot).first.expect("the session is told").events[0];
    assert_eq!((event.kind, event.estimate), (Kind::Exact, event.truth));
}
