//! A program under Tally and under Linux with perf: each estimate compared with the truth of its
//! run.

use std::{sync::OnceLock, time::Duration};

use expect_test::expect;
use tally_abi::ExitStatus;
use tally_lab::compare::{self, CompareRequest, Compared, Comparison};
use xtask::{job::Job, machine::Pmu, report::Kind};

use crate::{artefacts, machine_permit, masked};

/// Events of every kind of phase, in five groups.
const INTEL: &str = "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD,BR_INST_RETIRED.COND_TAKEN,\
    BR_INST_RETIRED.NEAR_CALL,BR_INST_RETIRED.INDIRECT,BR_MISP_RETIRED.COND,\
    MEM_INST_RETIRED.ALL_LOADS,MEM_INST_RETIRED.ALL_STORES,MEM_LOAD_RETIRED.L1_MISS,\
    MEM_LOAD_RETIRED.L2_HIT,MEM_LOAD_RETIRED.L2_MISS,L1D.REPLACEMENT,L2_RQSTS.ALL_RFO,\
    DTLB_LOAD_MISSES.STLB_HIT,CYCLE_ACTIVITY.STALLS_TOTAL,CYCLE_ACTIVITY.STALLS_L1D_MISS";
const AMD: &str = "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT,RETIRED_OPS,\
    RETIRED_BRANCH_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED,\
    RETIRED_TAKEN_BRANCH_INSTRUCTIONS,RETIRED_NEAR_RETURNS,\
    RETIRED_INDIRECT_BRANCH_INSTRUCTIONS,LS_DISPATCH.LD_DISPATCH,LS_DISPATCH.STORE_DISPATCH,\
    ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2,MAB_ALLOCATION_BY_TYPE.LS,\
    L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT,REQUESTS_TO_L2_GROUP1.RD_BLK_L";

/// Compares `program` with an argument. `cargo xtask test` built the program for Tally's ramdisk.
fn compared(pmu: Pmu, events: &str, program: &str, argument: &str) -> Compared {
    let artefacts = artefacts();
    let _permit = machine_permit();
    let built = artefacts.on_demand.iter().find(|path| path.ends_with(program));
    let request = CompareRequest {
        pmu,
        vpmu: Vec::new(),
        job: Job { events: Some(events.into()), ..Job::default() },
        files: vec![built.cloned().unwrap_or_else(|| program.into())],
        arguments: vec![argument.into()],
        time_limit: Duration::from_secs(200),
    };
    let linux = artefacts.linux.as_ref().expect("`cargo xtask test` fetches it");
    compare::compare(&artefacts, linux, &request).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Defines a comparison of 200 phases, and a test for each claim.
macro_rules! phases {
    ($module:ident on $pmu:expr, $events:expr $(, #[$attribute:meta])*) => {
        mod $module {
            use super::*;

            /// Shared comparison, remembered even if it fails.
            pub(super) fn comparison() -> &'static Comparison {
                static COMPARISON: OnceLock<Option<Comparison>> = OnceLock::new();
                let compare = || match compared($pmu, $events, "phases", "200") {
                    Compared::Both(comparison) => comparison,
                    Compared::Failed(outcome) => panic!("{outcome}"),
                };
                let compare = || std::panic::catch_unwind(compare).ok();
                COMPARISON.get_or_init(compare).as_ref().expect("both systems run the program")
            }

            #[test]
            $(#[$attribute])*
            fn both_execute_the_same_work() {
                let instructions = comparison().instructions;
                let (tally, linux) = (instructions.tally, instructions.linux);
                assert!(tally.abs_diff(linux) <= tally / 1000, "{instructions:?}");
            }

            #[test]
            $(#[$attribute])*
            fn tally_s_median_error_is_below_perf_s() {
                let medians = comparison().medians.expect("both multiplex");
                assert!(medians.ratio.is_some_and(|ratio| ratio > 3.0), "{medians:?}");
            }
        }
    };
}

/// Replaces each percentage of `text` by `#%`.
fn without_shares(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_digit() || "+-.".contains(c);
    let pieces: Vec<&str> = text.split('%').collect();
    let Some((last, others)) = pieces.split_last() else { return String::new() };
    let masked = others.iter().map(|piece| piece.trim_end_matches(is_part).to_owned() + "#%");
    masked.collect::<String>() + last
}

#[test]
#[expect(clippy::too_many_lines, reason = "two lines of the snapshot for each event")]
fn the_table_has_both_sides_of_each_event() {
    let text = compare::render(on_intel::comparison());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    expect![[r#"
        phases: Intel architectural performance monitoring, version #, seed #
        event side truth estimate counted error
        INST_RETIRED.ANY Tally # # #% #%
        perf # # #% #%
        CPU_CLK_UNHALTED.THREAD Tally # # #% #%
        perf # # #% #%
        BR_INST_RETIRED.COND_TAKEN Tally # # #% #%
        perf # # #% #%
        BR_INST_RETIRED.NEAR_CALL Tally # # #% #%
        perf # # #% #%
        BR_INST_RETIRED.INDIRECT Tally # # #% #%
        perf # # #% #%
        BR_MISP_RETIRED.COND Tally # # #% #%
        perf # # #% #%
        MEM_INST_RETIRED.ALL_LOADS Tally # # #% #%
        perf # # #% #%
        MEM_INST_RETIRED.ALL_STORES Tally # # #% #%
        perf # # #% #%
        MEM_LOAD_RETIRED.L1_MISS Tally # # #% #%
        perf # # #% #%
        MEM_LOAD_RETIRED.L2_HIT Tally # # #% #%
        perf # # #% #%
        MEM_LOAD_RETIRED.L2_MISS Tally # # #% #%
        perf # # #% #%
        L1D.REPLACEMENT Tally # # #% #%
        perf # # #% #%
        L2_RQSTS.ALL_RFO Tally # # #% #%
        perf # # #% #%
        DTLB_LOAD_MISSES.STLB_HIT Tally # # #% #%
        perf # # #% #%
        CYCLE_ACTIVITY.STALLS_TOTAL Tally # # #% #%
        perf # # #% #%
        CYCLE_ACTIVITY.STALLS_L1D_MISS
        Tally # # #% #%
        perf # # #% #%

        true instructions: Tally #, Linux # (#%)
        median error of # multiplexed events: Tally #%, perf #%, ratio #
    "#]]
    .assert_eq(&without_shares(&masked(&text)));
}

/// Perf also counts two events all the time, and its counts equal those of the virtual PMU in ring
/// 3 of the address space that is taken for the program's.
#[test]
fn exact_counts_are_the_truth_on_both() {
    let Compared::Both(comparison) = compared(Pmu::Intel, "instructions,cycles", "phases", "9")
    else {
        panic!("the program does not crash")
    };
    assert_eq!(comparison.events.len(), 2);
    for side in comparison.events.iter().flat_map(|event| [&event.tally, &event.perf]) {
        assert_eq!((side.kind, side.estimate), (Kind::Exact, side.truth), "{side:?}");
        assert!(side.estimate > Some(0), "{side:?}");
    }
    assert_eq!(comparison.medians, None);
}

/// The outcome has the status of a run, and Linux is not booted.
#[test]
fn a_program_that_tally_refuses_ends_the_comparison() {
    let Compared::Failed(outcome) = compared(Pmu::Intel, "cycles", "nobody", "1") else {
        panic!("Tally's ramdisk has no such program")
    };
    assert_eq!(outcome.status(), u8::from(ExitStatus::ProgramNotFound), "{outcome}");
}

phases! { on_intel on Pmu::Intel, INTEL }
phases! { on_amd on Pmu::Amd, AMD, #[ignore = "long"] }
