//! Perfmon version 6: ten general counters, second unit masks, registers from 1900H.

use xtask::{
    machine::{Boot, Pmu, Request},
    report::{Kind, Report, SessionReport},
};

use crate::{assert_exact_counts_are_true, assert_success, boot, intervals::assert_estimates_hold};

/// Events for all ten counters. Those of conditional branches and of hits of the L1 have second
/// unit masks; two are bound to the counters that have no legacy registers.
const TEN: &str = "BR_INST_RETIRED.COND,BR_MISP_RETIRED.COND,MEM_LOAD_RETIRED.L1_HIT,\
    cpu/BR_INST_RETIRED.COND_TAKEN,counter=9/,cpu/BR_INST_RETIRED.COND_NTAKEN,counter=8/,\
    BR_INST_RETIRED.NEAR_TAKEN,UOPS_RETIRED.SLOTS,BR_INST_RETIRED.NEAR_CALL,\
    BR_INST_RETIRED.NEAR_RETURN,BR_MISP_RETIRED.COND_TAKEN";
/// Further events, so that groups with second unit masks follow others without.
const MORE: &str = "BR_INST_RETIRED.INDIRECT,BR_MISP_RETIRED.INDIRECT,MEM_INST_RETIRED.ALL_LOADS,\
    MEM_INST_RETIRED.ALL_STORES,MEM_LOAD_RETIRED.L1_MISS,ITLB_MISSES.STLB_HIT,\
    DTLB_LOAD_MISSES.STLB_HIT,LONGEST_LAT_CACHE.MISS,BR_INST_RETIRED.FAR_BRANCH";

fn with(quirks: &[&str], line: String) -> Boot {
    let vpmu = quirks.iter().map(|quirk| (*quirk).to_owned()).collect();
    boot(&Request { pmu: Pmu::LunarLake, vpmu, ..Request::new(line) })
}

fn session(boot: &Boot) -> SessionReport {
    assert_success(boot);
    let report = Report::of(boot);
    assert_exact_counts_are_true(&report);
    report.first.expect("the job opens a session")
}

#[test]
fn the_default_job_counts_exactly() {
    let boot = with(&[], "wire check-counters -- deflate --level 1".into());
    let pmu = boot.transcript.booted.as_ref().and_then(|booted| booted.pmu.clone());
    let pmu = pmu.expect("it has a PMU");
    assert_eq!((pmu.general, &*pmu.catalogue), (10, "lunarlake_lioncove"));
    let session = session(&boot);
    assert!(session.events.iter().all(|event| event.kind == Kind::Exact), "{session:?}");
}

#[test]
fn ten_events_are_counted_at_once() {
    let session = session(&with(&[], format!("wire -- deflate --level 1 --events {TEN}")));
    assert_eq!(session.events.len(), 10);
    for event in &session.events {
        assert!(event.kind == Kind::Exact && event.truth > Some(0), "{event:?}");
    }
}

#[test]
fn groups_with_second_unit_masks_are_switched() {
    let line = format!("wire -- deflate --level 1 --slice 20000 --events {TEN},{MORE}");
    let session = session(&with(&[], line));
    let estimated = session.events.iter().filter(|event| event.kind == Kind::Estimated);
    assert!(estimated.count() >= 18, "{session:?}");
    assert_estimates_hold(&session.events);
}

/// Ring 0 is counted too, and interrupts are late or lost: counts of ring 3 alone are exact.
#[test]
fn ring_0_and_lost_overflows_lose_nothing() {
    let events = "instructions:u,BR_INST_RETIRED.COND:u,cpu/BR_INST_RETIRED.COND_TAKEN,counter=9/u,\
                  BR_INST_RETIRED.COND:uk,cpu/event=0xc4,counter=8/uk";
    for quirk in ["late=0", "late=300", "lost=20"] {
        let job =
            format!("tally stat --kernel --slice 20000 --budget 50 -e {events} rounds 1 20000");
        let session = session(&with(&[quirk], format!("wire paranoid=1 -- {job}")));
        assert!(session.events[..3].iter().all(|event| event.kind == Kind::Exact), "{session:?}");
        for event in &session.events[3..] {
            let error = event.estimate.unwrap().abs_diff(event.truth.unwrap());
            assert!(error as f64 <= event.half_width_95.unwrap_or(0.0), "{quirk}: {event:?}");
        }
    }
}
