//! The counter unit counts the list of a session exactly, next to the multiplexed counters.

use tally_abi::ExitStatus;
use xtask::{
    machine::{Boot, Pmu, Request},
    report::{EventReport, Kind, Report},
};

use crate::{
    SharedBoot, assert_exact_counts_are_true, assert_output, boot, intervals::assert_estimates_hold,
};

/// Machine with a program that counts itself on the unit and the counters, one that the kernel
/// counts in this way, and one that moves between turns at the same time.
fn request(pmu: Pmu, cpus: usize, events: &str) -> Request {
    let line = format!(
        "wire -- deflate --unit yes --level 1 -- unit {events} 3000000 \
         -- events={events} slice=20000 budget=100000 unit=yes deflate --level 2"
    );
    Request { pmu, cpus, vpmu: vec!["unit=yes".into()], ..Request::new(line) }
}

/// Asserts that every count of the unit equals the truth. Returns the estimates beside them.
fn estimates_beside_true_units(boot: &Boot) -> Vec<EventReport> {
    assert_output(boot, "unit: done");
    let text = boot.transcript.text();
    assert!(boot.outcome.is_success() && !text.contains("FAILED"), "{}\n{text}", boot.outcome);
    let report = Report::of(boot);
    assert_exact_counts_are_true(&report);
    let sessions: Vec<_> =
        report.sessions().filter(|it| it.events.iter().any(|event| event.unit.is_some())).collect();
    assert_eq!(sessions.len(), 3);
    let events: Vec<_> = sessions.iter().flat_map(|session| &session.events).collect();
    for event in &events {
        assert_eq!(event.unit, event.truth, "{event:?}");
    }
    let estimated = events.into_iter().filter(|event| event.kind == Kind::Estimated);
    let estimated: Vec<_> = estimated.cloned().collect();
    assert!(estimated.len() >= 20, "{estimated:?}");
    estimated
}

/// Nine events, which need three groups.
const INTEL: &str = "INST_RETIRED.ANY,BR_INST_RETIRED.COND,BR_INST_RETIRED.COND_TAKEN,\
    MEM_INST_RETIRED.ALL_LOADS,MEM_INST_RETIRED.ALL_STORES,UOPS_RETIRED.SLOTS,\
    BR_INST_RETIRED.NEAR_CALL,L1D.REPLACEMENT,BR_MISP_RETIRED.COND";

const AMD: &str = "RETIRED_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS,\
    RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,RETIRED_TAKEN_BRANCH_INSTRUCTIONS,\
    LS_DISPATCH.LD_DISPATCH,LS_DISPATCH.STORE_DISPATCH,RETIRED_OPS,\
    RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED,RETIRED_NEAR_RETURNS";

#[test]
fn the_unit_counts_exactly_beside_estimates_on_intel() {
    let boot = boot(&request(Pmu::Intel, 1, INTEL));
    assert_estimates_hold(&estimates_beside_true_units(&boot));
}

/// Runs on two CPUs are never identical, and a CPU may count few slices, so the estimates are not
/// judged. The unit's counts are exact for any interleaving.
#[test]
fn the_unit_counts_exactly_on_two_cpus() {
    estimates_beside_true_units(&boot(&request(Pmu::Intel, 2, INTEL)));
}

#[test]
fn the_unit_counts_exactly_beside_estimates_on_amd() {
    let boot = boot(&request(Pmu::Amd, 1, AMD));
    assert_estimates_hold(&estimates_beside_true_units(&boot));
}

static WITHOUT: SharedBoot =
    SharedBoot::new(|| Request::new("wire -- events=INST_RETIRED.ANY unit=yes deflate --level 1"));

#[test]
fn a_machine_without_the_unit_says_so() {
    let boot = WITHOUT.get();
    assert_eq!(boot.outcome.status(), u8::from(ExitStatus::NoPmu));
    let why = boot.outcome.to_string();
    assert!(why.contains("this machine has no counter unit"), "{why}");
}
