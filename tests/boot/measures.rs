//! What is measured is true, repeatable, and accounted for.

use tally_abi::{ExitStatus, truth::RegionKind};
use xtask::{
    explain::{Asked, detect, planned},
    job::Job,
    machine::{Outcome, Pmu, Request, shown},
    report::{EventReport, Kind, Report},
};

use crate::{assert_success, boot, run};

/// Ring 3's instructions, branches and loads, by the names of either vendor.
const INTEL: &str = "INST_RETIRED.ANY,BR_INST_RETIRED.ALL_BRANCHES,MEM_INST_RETIRED.ALL_LOADS";
const AMD: &str = "RETIRED_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS,LS_DISPATCH.LD_DISPATCH";

/// A program in ring 3 must not change the truth by which its own counts are judged, and its
/// regions are not its sessions, whatever their tags.
#[test]
fn a_program_cannot_change_the_truth_of_its_session() {
    for (pmu, events) in [(Pmu::Intel, INTEL), (Pmu::Amd, AMD)] {
        let boot = boot(&Request { pmu, ..Request::new(format!("wire -- forge {events}")) });
        assert_success(&boot);
        let report = Report::of(&boot);
        for event in &report.first.as_ref().expect("there is a session").events {
            assert_eq!((event.kind, event.truth), (Kind::Exact, event.estimate), "{}", event.name);
        }
        let truth = boot.truth.as_ref().expect("the virtual PMU writes it");
        let kinds = |kind| truth.regions.iter().filter(|region| region.kind == kind).count();
        assert_eq!((kinds(RegionKind::Marked), kinds(RegionKind::Session)), (8, 1));
    }
}

/// Counters that count the kernel overflow in the kernel too: while it reads them, for one.
#[test]
fn overflows_anywhere_in_the_kernel_are_delivered() {
    for (pmu, events) in [(Pmu::Intel, INTEL), (Pmu::Amd, AMD)] {
        let job = format!("wire paranoid=1 -- switches {events} 10000 full 2000");
        let boot = boot(&Request { pmu, ..Request::new(job) });
        assert_success(&boot);
        assert!(Report::of(&boot).first.is_some_and(|session| session.pmis >= Some(2000)));
    }
}

/// A fixed interrupt waits for the kernel's return: what it does until then is counted all the same.
#[test]
fn the_kernel_s_own_work_is_counted_when_slices_end_in_its_middle() {
    // Many events, so that the kernel works on them for long.
    let list: Vec<String> = (1..=200).map(|umask| format!("r{umask:02x}c4")).collect();
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let program = format!("tally stat -e {} rounds 1 100", list.join(","));
        let job =
            format!("tally stat --kernel --slice 5000 --budget 100 -e instructions:k {program}");
        let boot = boot(&Request { pmu, ..Request::new(format!("wire paranoid=1 -- {job}")) });
        assert_success(&boot);
        let Report { first, others, .. } = Report::of(&boot);
        let mut sessions = first.into_iter().chain(others);
        let outer = sessions.find(|session| session.program == "tally");
        let event = &outer.expect("it measures the inner one").events[0];
        let (counted, truth) = (event.estimate.unwrap_or(0), event.truth.unwrap_or(0));
        // The truth has the engine's own work too.
        assert!(counted.abs_diff(truth) < truth / 30, "{counted} {truth}");
    }
}

/// Overflows come as NMIs in the middle of the kernel's own work on sessions, and in ring 3's.
#[test]
fn an_overflow_at_any_moment_of_a_session_s_life_disturbs_nothing() {
    for (pmu, events) in [(Pmu::Intel, INTEL), (Pmu::Amd, AMD)] {
        let events = events.rsplit_once(',').expect("there are three").0;
        let job = format!("wire overflows=nmi -- windows {events} 100 240");
        let boot = boot(&Request { pmu, ..Request::new(job) });
        assert_success(&boot);
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
            Kind::Estimated => {
                assert!(event.coverage.is_some_and(|share| share > 0.0 && share < 1.0));
            }
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
    let boot = run("paranoid=1", &format!("exact {INTEL}"));
    assert_success(&boot);
    assert!(boot.transcript.text().contains("exact: done"));
}

#[test]
fn what_is_always_counted_is_exact_on_amd() {
    let request = Request::new(format!("wire paranoid=1 -- exact {AMD}"));
    let boot = boot(&Request { pmu: Pmu::Amd, ..request });
    assert_success(&boot);
    assert!(boot.transcript.text().contains("exact: done"));
}

/// Asserts that the default job ends well, and is counted as `run --explain` says.
fn check_explained(pmu: Pmu) {
    let shown = shown(pmu, &[]).unwrap();
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
fn a_plan_is_explained_as_it_is_carried_out_on_sapphire_rapids() {
    check_explained(Pmu::SapphireRapids);
}

#[test]
fn a_plan_is_explained_as_it_is_carried_out_on_zen_3() {
    check_explained(Pmu::Zen3);
}

#[test]
fn a_machine_without_a_pmu_says_what_to_do() {
    let request = Request::new("wire -- deflate");
    let boot = boot(&Request { virtual_pmu: false, ..request });
    assert_eq!(boot.outcome, Outcome::Done(ExitStatus::NoPmu.into()));
    assert!(boot.transcript.text().contains("virtual PMU"), "{}", boot.transcript.text());
}

/// The default job's first session with `events`: the table that a user would see.
fn counted(events: &str) -> Vec<EventReport> {
    let boot = run("paranoid=1", &format!("deflate --level 1 --events {events}"));
    assert_success(&boot);
    Report::of(&boot).first.expect("it has a session").events
}

#[test]
fn off_core_responses_in_one_group_are_exact_however_spelled() {
    let rfo = "cpu/event=0xb7,umask=1,offcore_rsp=0x104000002,name=rfo/";
    let events =
        counted(&format!("OCR.DEMAND_DATA_RD.DRAM,{rfo},branches/u,MEM_LOAD_RETIRED:L1_MISS:u"));
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(
        names,
        ["OCR.DEMAND_DATA_RD.DRAM", "rfo", "branches/u", "MEM_LOAD_RETIRED:L1_MISS:u"]
    );
    for event in &events {
        assert_eq!(event.kind, Kind::Exact, "{event:?}");
        // The virtual PMU has no name for the value that was spelled in numbers.
        if event.name != "rfo" {
            assert!(event.truth.is_some_and(|truth| truth > 0), "{event:?}");
            assert_eq!(event.estimate, event.truth, "{event:?}");
        }
    }
}

#[test]
fn values_of_extra_registers_change_with_the_group_and_shares_are_kept() {
    let events = counted(
        "OCR.DEMAND_DATA_RD.DRAM,OCR.DEMAND_DATA_RD.L3_HIT,OCR.DEMAND_RFO.DRAM,OCR.DEMAND_RFO.L3_HIT,\
         OCR.DEMAND_CODE_RD.DRAM,branch-misses@3,L1-dcache-loads,r08d1,dTLB-loads:k,cycles",
    );
    let find = |name: &str| events.iter().find(|event| event.name == name).expect(name);
    for name in ["OCR.DEMAND_DATA_RD.DRAM", "branch-misses", "L1-dcache-loads", "r08d1"] {
        let event = find(name);
        let (error, bar) = (event.error().expect(name), event.half_width_95.expect(name));
        assert_eq!(event.kind, Kind::Estimated, "{event:?}");
        assert!(event.truth.is_some_and(|truth| truth > 0), "{event:?}");
        assert!(error.abs() <= 2.0 * bar, "{event:?}");
    }
    // Three groups, one of which has three slices of a round's five.
    assert!((find("branch-misses").coverage.unwrap() - 0.6).abs() < 0.02, "{events:?}");
    let kernel = find("dTLB-loads:k");
    assert!(kernel.truth.is_some_and(|truth| truth < find("L1-dcache-loads").truth.unwrap()));
}

/// The same number of switches, dealt otherwise: who is less certain has more slices, nobody too few.
#[test]
fn adaptive_shares_follow_what_is_uncertain_and_stay_true() {
    let run = |shares: &str| {
        let line = format!("wire seed=5 -- deflate --level 1 --slice 50000 --shares {shares}");
        let boot = boot(&Request::new(line));
        assert_success(&boot);
        Report::of(&boot).first.expect("it has a session")
    };
    let [planned, adaptive] = ["planned", "adaptive"].map(run);
    assert!(adaptive.slices.unwrap().abs_diff(planned.slices.unwrap()) < 10);
    let estimated = |event: &&EventReport| event.kind == Kind::Estimated;
    let groups = (1.0 / planned.events.iter().find(estimated).unwrap().coverage.unwrap()).round();
    let mut shares: Vec<f64> = Vec::new();
    for event in adaptive.events.iter().filter(estimated) {
        // Of a round with twice the slices everybody keeps one.
        let share = event.coverage.unwrap();
        assert!(share > 0.45 / groups, "{event:?}");
        let (error, bar) = (event.error().unwrap(), event.half_width_95.unwrap());
        assert!(error.abs() <= 2.0 * bar, "{event:?}");
        shares.push(share);
    }
    shares.sort_by(f64::total_cmp);
    assert!(shares[shares.len() - 1] > 1.4 * shares[0], "{shares:?}");
    let bars = |events: &[EventReport]| -> Vec<f64> {
        events.iter().filter(estimated).filter_map(EventReport::relative_half_width).collect()
    };
    let largest = |events| bars(events).into_iter().fold(0.0, f64::max);
    assert!(largest(&adaptive.events) < largest(&planned.events));
}

/// Of kinds of events and the whole that they are of, each in groups of their own: no part is told to be
/// more than its whole, which estimates alone would say now and then, and the truth lies in the interval.
#[test]
fn parts_are_never_more_than_their_whole() {
    let events = "BR_MISP_RETIRED.COND,BR_MISP_RETIRED.ALL_BRANCHES,BR_INST_RETIRED.COND_TAKEN,\
                  BR_INST_RETIRED.NEAR_CALL,BR_INST_RETIRED.NEAR_RETURN,MEM_LOAD_RETIRED.L2_MISS,\
                  MEM_LOAD_RETIRED.L1_MISS,MEM_LOAD_RETIRED.L2_HIT,BR_MISP_RETIRED.COND_TAKEN,\
                  BR_INST_RETIRED.NEAR_TAKEN,L2_RQSTS.ALL_RFO,L2_RQSTS.RFO_HIT,L2_RQSTS.RFO_MISS,\
                  L2_RQSTS.ALL_DEMAND_DATA_RD,L2_RQSTS.DEMAND_DATA_RD_HIT,\
                  L2_RQSTS.DEMAND_DATA_RD_MISS";
    let job = format!("deflate --level 1 --slice 2000000 --events {events}");
    // Each session draws an order of its own.
    let boot = run("", &[&*job; 3].join(" -- "));
    assert_success(&boot);
    let report = Report::of(&boot);
    assert_eq!(report.sessions().count(), 3);
    let mut touched = 0;
    for (number, session) in (1..).zip(report.sessions()) {
        let find = |name: &str| session.events.iter().find(|event| event.name == name).expect(name);
        let told = |name: &str| find(name).estimate.expect("it was measured");
        for (whole, parts) in [
            ("BR_MISP_RETIRED.ALL_BRANCHES", "BR_MISP_RETIRED.COND"),
            ("BR_MISP_RETIRED.COND", "BR_MISP_RETIRED.COND_TAKEN"),
            (
                "BR_INST_RETIRED.NEAR_TAKEN",
                "BR_INST_RETIRED.COND_TAKEN+BR_INST_RETIRED.NEAR_CALL+BR_INST_RETIRED.NEAR_RETURN",
            ),
            ("MEM_LOAD_RETIRED.L1_MISS", "MEM_LOAD_RETIRED.L2_MISS"),
            ("MEM_LOAD_RETIRED.L1_MISS", "MEM_LOAD_RETIRED.L2_HIT"),
            // Of these the parts are all of it, so that estimates alone would be too much every other time.
            ("L2_RQSTS.ALL_RFO", "L2_RQSTS.RFO_HIT+L2_RQSTS.RFO_MISS"),
            (
                "L2_RQSTS.ALL_DEMAND_DATA_RD",
                "L2_RQSTS.DEMAND_DATA_RD_HIT+L2_RQSTS.DEMAND_DATA_RD_MISS",
            ),
        ] {
            let sum: u64 = parts.split('+').map(told).sum();
            let truth: u64 = parts.split('+').map(|part| find(part).truth.expect(part)).sum();
            assert!(truth <= find(whole).truth.expect(whole), "{parts} of {whole}, in truth");
            println!("session {number}: {whole} {} {sum}", told(whole));
            assert!(sum <= told(whole), "{number}: {parts} {sum}, {whole} {}", told(whole));
            touched += u32::from(sum == told(whole));
        }
    }
    // Otherwise this has shown nothing.
    assert!(touched > 0, "no bound was needed");
}
