//! PERF_METRICS: the uses of slots, beside groups that are switched, in both rings, and beside
//! other sessions. The truth counts the slots of each use, which the register only gives as
//! fractions.

use xtask::{
    machine::{Boot, Pmu, Request},
    report::{EventReport, Report, SessionReport},
};

use crate::{assert_success, beside, boot};

/// Metrics of the first level, and of the second.
const FIRST: [&str; 4] =
    ["topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"];
const SECOND: [&str; 4] =
    ["topdown-heavy-ops", "topdown-br-mispredict", "topdown-fetch-lat", "topdown-mem-bound"];
/// More events than counters.
const EVENTS: &str = "cycles,instructions,BR_INST_RETIRED.COND_NTAKEN,BR_INST_RETIRED.COND_TAKEN,\
    BR_MISP_RETIRED.ALL_BRANCHES,MEM_LOAD_RETIRED.L1_MISS,MEM_LOAD_RETIRED.L1_HIT,\
    L1D.REPLACEMENT,LONGEST_LAT_CACHE.REFERENCE,MEM_INST_RETIRED.ALL_LOADS,\
    MEM_INST_RETIRED.ALL_STORES,ICACHE_DATA.STALLS";

fn with(pmu: Pmu, quirks: &[&str], line: String) -> Boot {
    let vpmu = quirks.iter().map(|quirk| (*quirk).to_owned()).collect();
    let boot = boot(&Request { pmu, vpmu, ..Request::new(line) });
    assert_success(&boot);
    boot
}

/// The session that the command line opens.
fn session(boot: &Boot) -> SessionReport {
    let report = Report::of(boot);
    let first = report.sessions().min_by_key(|session| session.session);
    first.expect("the job opens a session").clone()
}

fn event<'a>(session: &'a SessionReport, name: &str) -> &'a EventReport {
    session.events.iter().find(|event| event.name == name).expect("it is in the list")
}

/// Asserts that each metric is within its bound of the truth, and that the first level's sum is the
/// slots of a core of this width. `skew` is the cycles that ring 0 may add.
fn assert_true(session: &SessionReport, names: &[&str], width: u64, skew: u64) {
    for name in names {
        let metric = event(session, name);
        assert_eq!(metric.is_within(), Some(true), "{metric:?}");
    }
    let slots = width * event(session, "cycles").estimate.unwrap();
    let sum: u64 = FIRST.map(|name| event(session, name).estimate.unwrap()).iter().sum();
    assert!(sum.abs_diff(slots) <= 4 * slots / 255 + width * skew, "{sum} of {slots} slots");
    assert!(event(session, "topdown-be-bound").truth > Some(slots / 100), "{session:?}");
}

#[test]
fn metrics_beside_groups_are_true_on_intel() {
    let names = FIRST.join(",");
    let line =
        format!("wire -- deflate --level 1 --kib 1024 --slice 20000 --events {EVENTS},{names}");
    assert_true(&session(&with(Pmu::Intel, &["pipeline=ooo"], line)), &FIRST, 5, 0);
}

#[test]
fn both_levels_are_true_on_golden_cove_and_lion_cove() {
    let names = [FIRST, SECOND].concat();
    let line =
        format!("wire -- deflate --level 1 --slice 20000 --events cycles,{}", names.join(","));
    for pmu in [Pmu::SapphireRapids, Pmu::LunarLake] {
        assert_true(&session(&with(pmu, &[], line.clone())), &names, 6, 0);
    }
}

/// The handler's own slots are in the bounds.
#[test]
fn metrics_of_both_rings_are_true() {
    let names = FIRST.join(",");
    let line = format!("wire paranoid=1 -- tally stat --kernel -e cycles,{names} rounds 1 20000");
    let session = session(&with(Pmu::Intel, &["late=300"], line));
    let skew = 1000 * session.slices.unwrap();
    assert_true(&session, &FIRST, 5, skew);
}

/// Other sessions of the program have turns, in which metrics are counted all the same.
#[test]
fn metrics_are_counted_in_other_sessions_turns() {
    let (names, [list, one]) = (FIRST.join(","), beside::INTEL);
    let options = format!("events=cycles,{names} slice=20000 budget=200000");
    let line = format!("wire -- {options} beside {list} {one}");
    let boot = with(Pmu::Intel, &[], line);
    assert!(Report::of(&boot).sessions().count() > 1);
    assert_true(&session(&boot), &FIRST, 5, 0);
}
