//! Thresholds fire once, at their count, whether an event is pinned or multiplexed.

use xtask::{
    machine::{Boot, Outcome, Pmu, Request},
    report::Report,
};

use crate::{SharedBoot, assert_exact_counts_are_true, assert_output, assert_success, boot};

/// Programs with thresholds on `pinned` events (instructions, cycles, conditional branches, loads).
/// The first has only these. The second also has `others`, so that events are multiplexed. The
/// third exits and the fourth faults while thresholds are set. A fifth program runs at the same
/// time, so that turns end while thresholds are set.
fn request(pmu: Pmu, pinned: &str, others: &str) -> Request {
    let guest = format!("thresholds {pinned}");
    let programs = format!(
        "{guest} -- {guest},{others} -- {guest} armed -- {guest} fault -- share 1 {pinned} 200000"
    );
    Request { pmu, ..Request::new(format!("wire trace -- {programs}")) }
}

/// Number of sessions of a boot whose thresholds fire repeatedly: one with pinned events, one with
/// more.
fn sessions_with_records(boot: &Boot) -> usize {
    let records = &boot.transcript.thresholds;
    let many = |session: &&u32| records.iter().filter(|r| r.session == **session).count() >= 4;
    boot.transcript.sessions.keys().filter(many).count()
}

/// Defines a boot with these events, and a test for each behaviour.
macro_rules! thresholds {
    ($module:ident on $pmu:expr => $pinned:expr, $others:expr) => {
        mod $module {
            use super::*;

            static BOOT: SharedBoot = SharedBoot::new(|| request($pmu, $pinned, $others));

            #[test]
            fn handlers_run_once_at_the_count() {
                let boot = BOOT.get();
                let text = boot.transcript.text();
                assert_eq!(text.matches("thresholds: done").count(), 2, "{text}");
                let exit = ("thresholds".to_owned(), 0);
                let passed = boot.transcript.exits.iter().filter(|other| **other == exit);
                assert_eq!(passed.count(), 3, "{text}");
            }

            #[test]
            fn no_record_is_below_its_threshold() {
                let records = &BOOT.get().transcript.thresholds;
                assert!(records.iter().all(|r| r.count >= r.threshold), "{records:?}");
            }

            #[test]
            fn every_threshold_leaves_a_record() {
                let boot = BOOT.get();
                assert_eq!(sessions_with_records(boot), 2, "{:?}", boot.transcript.thresholds);
            }

            #[test]
            fn a_fault_with_thresholds_set_ends_its_program_alone() {
                let boot = BOOT.get();
                let troubles = &boot.transcript.failures;
                assert!(matches!(troubles[..], [Outcome::Faulted { .. }]), "{troubles:#?}");
                let text = boot.transcript.text();
                assert!(boot.transcript.exits.contains(&("share".into(), 0)), "{text}");
                assert!(!text.contains("survived"), "{text}");
                assert!(boot.transcript.done.is_some(), "{}", boot.outcome);
            }

            /// The preload of a counter changes the time of its overflow, not its count.
            #[test]
            fn exact_counts_stay_exact() {
                assert_exact_counts_are_true(&Report::of(BOOT.get()));
            }
        }
    };
}

thresholds! { on_icelake_server on Pmu::Intel =>
    "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD,BR_INST_RETIRED.COND,MEM_INST_RETIRED.ALL_LOADS",
    "BR_INST_RETIRED.ALL_BRANCHES,MEM_INST_RETIRED.ALL_STORES,BR_INST_RETIRED.COND_TAKEN,\
     MEM_LOAD_RETIRED.L1_HIT,MEM_INST_RETIRED.ANY"
}

thresholds! { on_zen_4 on Pmu::Amd =>
    "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,\
     LS_DISPATCH.LD_DISPATCH",
    "RETIRED_BRANCH_INSTRUCTIONS,LS_DISPATCH.STORE_DISPATCH,RETIRED_TAKEN_BRANCH_INSTRUCTIONS,\
     RETIRED_OPS"
}

// Zen 3 has no global status register that names the counters with an overflow.
thresholds! { on_zen_3 on Pmu::Zen3 =>
    "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,\
     LS_DISPATCH:LD_DISPATCH",
    "RETIRED_BRANCH_INSTRUCTIONS,LS_DISPATCH:STORE_DISPATCH,RETIRED_TAKEN_BRANCH_INSTRUCTIONS"
}

/// Another session has its turns on the counters meanwhile. An interrupt comes some instructions
/// after its overflow; a threshold that waits for the session's next turn is late by slices.
#[test]
fn thresholds_of_pinned_events_are_at_their_counts_beside_another_session() {
    for (pmu, list) in [
        (Pmu::Intel, "INST_RETIRED.ANY,BR_INST_RETIRED.COND"),
        (Pmu::Zen3, "RETIRED_INSTRUCTIONS,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS"),
    ] {
        let line = format!("wire -- thresholds {list} beside");
        let boot = boot(&Request { pmu, ..Request::new(line) });
        assert_success(&boot);
        assert_output(&boot, "thresholds: done");
    }
}
