//! Counts without multiplexing are exact, at whatever instruction an overflow interrupt arrives,
//! and events are counted as `run --explain` states.

use tally_abi::truth::RegionKind;
use xtask::{
    explain::{Asked, detect, planned},
    job::Job,
    machine::{Pmu, Request, virtual_pmu_of},
    report::{Kind, Report, SessionReport},
};

use crate::{assert_output, assert_success, boot, run};

/// Instructions, branches and loads, by the names of either vendor.
const INTEL: &str = "INST_RETIRED.ANY,BR_INST_RETIRED.ALL_BRANCHES,MEM_INST_RETIRED.ALL_LOADS";
const AMD: &str = "RETIRED_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS,LS_DISPATCH.LD_DISPATCH";

/// Loops of known content are counted in every mode, and with slices in cycles and in instructions.
fn check_exact_counts(pmu: Pmu, events: &str) {
    let line = format!("wire paranoid=1 -- exact {events}");
    let boot = boot(&Request { pmu, ..Request::new(line) });
    assert_success(&boot);
    assert_output(&boot, "exact: done");
}

#[test]
fn counts_of_known_loops_are_exact_on_intel() {
    check_exact_counts(Pmu::Intel, INTEL);
}

#[test]
fn counts_of_known_loops_are_exact_on_amd() {
    check_exact_counts(Pmu::Amd, AMD);
}

/// In ring 3 the program sends the virtual PMU the operations that mark sessions, and opens and
/// closes regions with the tags of sessions.
fn check_that_ring_3_cannot_change_the_truth(pmu: Pmu, events: &str) {
    let boot = boot(&Request { pmu, ..Request::new(format!("wire -- forge {events}")) });
    assert_success(&boot);
    for event in &Report::of(&boot).first.expect("there is a session").events {
        assert_eq!((event.kind, event.truth), (Kind::Exact, event.estimate), "{}", event.name);
    }
    let truth = boot.truth.as_ref().expect("the virtual PMU writes it");
    let count = |kind| truth.regions.iter().filter(|region| region.kind == kind).count();
    assert_eq!((count(RegionKind::Marked), count(RegionKind::Session)), (8, 1));
}

#[test]
fn a_program_cannot_change_the_truth_of_its_session_on_intel() {
    check_that_ring_3_cannot_change_the_truth(Pmu::Intel, INTEL);
}

#[test]
fn a_program_cannot_change_the_truth_of_its_session_on_amd() {
    check_that_ring_3_cannot_change_the_truth(Pmu::Amd, AMD);
}

#[test]
fn programs_on_one_cpu_keep_their_memory_registers_and_counts() {
    let share = |id, turns| format!("share {id} INST_RETIRED.ANY {turns}");
    let boot = run("", &[share(1, 20_000), share(2, 30_000), share(3, 10_000)].join(" -- "));
    assert_success(&boot);
    assert_eq!(boot.transcript.sessions.len(), 3);
}

/// Counters of ring 0 also overflow in the kernel, for example while the kernel reads them.
fn check_overflows_in_the_kernel(pmu: Pmu, events: &str) {
    let line = format!("wire paranoid=1 -- switches {events} 10000 full 2000");
    let boot = boot(&Request { pmu, ..Request::new(line) });
    assert_success(&boot);
    assert!(Report::of(&boot).first.is_some_and(|session| session.pmis >= Some(2000)));
}

#[test]
fn overflows_in_the_kernel_are_delivered_on_intel() {
    check_overflows_in_the_kernel(Pmu::Intel, INTEL);
}

#[test]
fn overflows_in_the_kernel_are_delivered_on_amd() {
    check_overflows_in_the_kernel(Pmu::Amd, AMD);
}

/// A fixed interrupt waits until the kernel returns; the instructions of the kernel until then are
/// counted. A write of 48 MiB lasts for thousands of slices.
fn check_count_of_a_long_system_call(pmu: Pmu) {
    let job = "tally stat --kernel --slice 5000 --budget 100 -e instructions:k turns call write";
    let boot = boot(&Request { pmu, ..Request::new(format!("wire paranoid=1 -- {job}")) });
    assert_success(&boot);
    let report = Report::of(&boot);
    let event = &report.first.expect("tally opens a session").events[0];
    let (counted, truth) = (event.estimate.unwrap_or(0), event.truth.unwrap_or(0));
    assert!(counted > 20_000_000 && counted.abs_diff(truth) < truth / 50, "{counted} {truth}");
}

#[test]
fn slices_that_end_inside_a_long_system_call_lose_no_count_on_intel() {
    check_count_of_a_long_system_call(Pmu::Intel);
}

#[test]
fn slices_that_end_inside_a_long_system_call_lose_no_count_on_amd() {
    check_count_of_a_long_system_call(Pmu::Amd);
}

/// Overflow interrupts arrive as NMIs, at one instruction after another of the start, stop and
/// close of a session.
fn check_nmis_at_every_instruction(pmu: Pmu, events: &str) {
    let (two, _) = events.rsplit_once(',').expect("there are three");
    let line = format!("wire overflows=nmi -- windows {two} 100 240");
    assert_success(&boot(&Request { pmu, ..Request::new(line) }));
}

#[test]
fn an_nmi_at_any_instruction_leaves_counts_exact_on_intel() {
    check_nmis_at_every_instruction(Pmu::Intel, INTEL);
}

#[test]
fn an_nmi_at_any_instruction_leaves_counts_exact_on_amd() {
    check_nmis_at_every_instruction(Pmu::Amd, AMD);
}

/// Events between braces are counted in the same slices, on counters that they share with others.
fn check_braces(pmu: Pmu, [a, b, c]: [&str; 3], others: &str) {
    let list = format!("{a},{others},{{cycles,{b},{c}}}");
    let job = format!("wire -- tally stat --slice 5000 -e {list} rounds 1 60000");
    let boot = boot(&Request { pmu, ..Request::new(job) });
    assert_success(&boot);
    let readings = &boot.transcript.sessions.values().next().unwrap().readings;
    let of =
        |index: usize| (readings[index].reading.slices, readings[index].reading.counted_cycles);
    let last = readings.len() - 1;
    assert_eq!(of(last), of(last - 1), "{readings:?}");
    let coverage = readings[last].reading.coverage().unwrap();
    assert!((0.1..0.9).contains(&coverage), "{coverage}");
    let log = std::fs::read_to_string(boot.folder.log()).unwrap();
    let is_one_group =
        |line: &str| line.contains(": group ") && line.contains(b) && line.contains(c);
    assert!(log.lines().any(is_one_group), "{log}");
}

#[test]
fn events_between_braces_are_counted_in_the_same_slices_on_intel() {
    let others = "BR_INST_RETIRED.NEAR_CALL,BR_INST_RETIRED.NEAR_TAKEN,BR_INST_RETIRED.INDIRECT,\
                  BR_MISP_RETIRED.COND,MEM_INST_RETIRED.ALL_STORES,L1D.REPLACEMENT,\
                  MEM_LOAD_RETIRED.L1_MISS";
    let events =
        ["BR_INST_RETIRED.COND", "BR_MISP_RETIRED.ALL_BRANCHES", "MEM_INST_RETIRED.ALL_LOADS"];
    check_braces(Pmu::Intel, events, others);
}

#[test]
fn events_between_braces_are_counted_in_the_same_slices_on_amd() {
    let others = "RETIRED_OPS,RETIRED_NEAR_RETURNS,LS_DISPATCH.STORE_DISPATCH,\
                  RETIRED_INDIRECT_BRANCH_INSTRUCTIONS,RETIRED_TAKEN_BRANCH_INSTRUCTIONS";
    let events = [
        "RETIRED_BRANCH_INSTRUCTIONS",
        "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED",
        "LS_DISPATCH.LD_DISPATCH",
    ];
    check_braces(Pmu::Amd, events, others);
}

/// Runs the default job, whose plan the kernel logs, and compares the log with the result of `run
/// --explain`.
fn check_explained(pmu: Pmu) {
    let shown = virtual_pmu_of(pmu, &[]).unwrap();
    let asked = Asked::of(&Job::default(), &[], shown.profile().signature).unwrap();
    let (resolved, plan) = planned(&detect(&shown).unwrap(), &asked).unwrap();
    let request = Request::new("wire -- deflate --file status");
    let boot = boot(&Request { pmu, ..request });
    assert_success(&boot);
    let log = std::fs::read_to_string(boot.folder.log()).unwrap();
    for line in plan.explain(|event| &resolved[event].name).to_string().lines() {
        assert!(log.contains(&format!("session 1: {line}")), "{line}\n{log}");
    }
}

#[test]
fn the_kernel_plans_as_run_explain_says_on_sapphire_rapids() {
    check_explained(Pmu::SapphireRapids);
}

#[test]
fn the_kernel_plans_as_run_explain_says_on_zen_3() {
    check_explained(Pmu::Zen3);
}

/// A session changes its list between loops, and while the program that it counts runs.
fn check_changes(pmu: Pmu, [list, other]: [&str; 2]) {
    let boot = boot(&Request { pmu, ..Request::new(format!("wire -- change {list} {other}")) });
    assert_success(&boot);
    assert_output(&boot, "change: done");
    let report = Report::of(&boot);
    // The program's own four lists, the exclusive one, and two of the child.
    assert_eq!(report.sessions().count(), 7);
    for event in report.sessions().flat_map(|session| &session.events) {
        if event.kind == Kind::Exact {
            assert_eq!(event.estimate, event.truth, "{}", event.name);
        }
    }
}

#[test]
fn sessions_change_their_events_on_intel() {
    check_changes(Pmu::Intel, [INTEL, "INST_RETIRED.ANY,MEM_INST_RETIRED.ALL_STORES"]);
}

#[test]
fn sessions_change_their_events_on_amd() {
    check_changes(Pmu::Amd, [AMD, "RETIRED_INSTRUCTIONS,LS_DISPATCH.STORE_DISPATCH"]);
}

/// A default session counts a program that counts nothing itself, and is not reported for one that
/// opens an exclusive session.
fn check_default(pmu: Pmu, events: &str) {
    let of = |program: &str| {
        let line = format!("wire -- default={events} {program}");
        let boot = boot(&Request { pmu, ..Request::new(line) });
        assert_success(&boot);
        let sessions: Vec<SessionReport> = Report::of(&boot).sessions().cloned().collect();
        assert_eq!(sessions.len(), 1, "{program}");
        sessions[0].events.iter().map(|event| (event.name.clone(), event.kind)).collect::<Vec<_>>()
    };
    let other = events.split(',').next().unwrap();
    assert_eq!(of(&format!("deflate --events {other}")), [(other.into(), Kind::Exact)]);
    let names = events.split(',').map(|name| (name.to_owned(), Kind::Exact));
    assert_eq!(of("speaks 0"), names.collect::<Vec<_>>());
}

#[test]
fn a_default_session_ends_when_the_program_opens_one_on_intel() {
    check_default(Pmu::Intel, INTEL);
}

#[test]
fn a_default_session_ends_when_the_program_opens_one_on_amd() {
    check_default(Pmu::Amd, AMD);
}
