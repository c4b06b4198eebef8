//! Several sessions count one program at once: its own, and one from the command line.

use xtask::{
    machine::{Boot, Pmu, Request},
    report::{Kind, Report, SessionReport},
};

use crate::{SharedBoot, assert_output, assert_success, boot};

/// Event lists of a processor: instructions and more events than counters, and a list of one group.
pub const INTEL: [&str; 2] = [
    "INST_RETIRED.ANY,BR_INST_RETIRED.COND_NTAKEN,BR_INST_RETIRED.COND_TAKEN,\
     BR_MISP_RETIRED.ALL_BRANCHES,MEM_LOAD_RETIRED.L1_MISS,MEM_LOAD_RETIRED.L1_HIT,\
     L1D.REPLACEMENT,LONGEST_LAT_CACHE.REFERENCE,MEM_INST_RETIRED.ALL_LOADS,\
     MEM_INST_RETIRED.ALL_STORES",
    "INST_RETIRED.ANY,CPU_CLK_UNHALTED.REF_TSC,BR_INST_RETIRED.ALL_BRANCHES,\
     MEM_INST_RETIRED.ALL_LOADS",
];
const AMD: [&str; 2] = [
    "RETIRED_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED,\
     RETIRED_TAKEN_BRANCH_INSTRUCTIONS,RETIRED_OPS,ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2,\
     MAB_ALLOCATION_BY_TYPE.LS,LS_DISPATCH.LD_DISPATCH,LS_DISPATCH.STORE_DISPATCH",
    "RETIRED_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS,LS_DISPATCH.LD_DISPATCH",
];

fn request(pmu: Pmu, [list, one]: [&str; 2], seed: u32) -> Request {
    let options = format!("events={list} slice=20000 budget=200000");
    let line = format!("wire seed={seed} -- {options} beside {list} {one}");
    Request { pmu, ..Request::new(line) }
}

/// Sessions of a boot, in the order in which they were opened.
fn sessions(boot: &Boot) -> Vec<SessionReport> {
    let mut sessions: Vec<_> = Report::of(boot).sessions().cloned().collect();
    sessions.sort_by_key(|session| session.session);
    sessions
}

/// Intervals of these sessions: how many contain the truth, and how many there are.
fn intervals<'a>(sessions: impl IntoIterator<Item = &'a SessionReport>) -> [usize; 2] {
    let events = sessions.into_iter().flat_map(|session| &session.events);
    let (mut inside, mut all) = (0, 0);
    for event in events.filter(|event| event.kind == Kind::Estimated) {
        all += 1;
        inside += usize::from(event.is_within().expect("the virtual PMU counts it"));
    }
    [inside, all]
}

/// Defines a boot of the program, and a test for each behaviour.
macro_rules! beside {
    ($module:ident on $pmu:expr, $lists:expr, $slices:literal) => {
        mod $module {
            use super::*;

            static BOOT: SharedBoot = SharedBoot::new(|| request($pmu, $lists, 1));

            #[test]
            fn sessions_start_stop_and_are_read_beside_each_other() {
                let boot = BOOT.get();
                assert_success(boot);
                assert_output(boot, "beside: done");
                // A list of one group beside four whose events take the general counters by fours.
                let words = "beside 4 other sessions the events have 1 of each";
                assert_output(boot, &format!("{words} {} slices", $slices));
                assert!(!boot.transcript.text().contains("FAILED"));
                assert_eq!(Report::of(boot).sessions().count(), 5);
            }

            /// Instructions and reference cycles stay exact, whichever session has its turn. The
            /// last session is stopped by its control word, which the truth does not take into
            /// account.
            #[test]
            fn pinned_events_are_exact_for_the_time_of_each_session() {
                for session in &sessions(BOOT.get())[..4] {
                    let event = &session.events[0];
                    assert_eq!(event.kind, Kind::Exact, "{session:?}");
                    assert_eq!(event.estimate, event.truth, "{session:?}");
                }
            }

            #[test]
            fn each_session_counts_its_own_part_of_the_program() {
                let sessions = sessions(BOOT.get());
                let instructions = |index: usize| sessions[index].events[0].estimate.unwrap();
                let [command_line, whole, middle, parts] = [0, 1, 2, 3].map(instructions);
                assert!(command_line > whole && whole > middle + middle / 2, "{sessions:#?}");
                assert!(whole > parts + parts / 2 && middle != parts, "{sessions:#?}");
            }

            /// Counts credited to the wrong session exceed what happened in its time, or make its
            /// values wrong by far more than their bars. One event in a few bursts that no slice
            /// met says nothing about either.
            #[test]
            fn no_session_has_the_counts_of_another() {
                let boot = BOOT.get();
                let of = &sessions(boot)[..4];
                for session in of {
                    let readings =
                        &boot.transcript.sessions[&session.session.expect("one session")].readings;
                    for (event, reading) in session.events.iter().zip(readings) {
                        let counted = reading.reading.counted;
                        assert!(
                            counted <= event.truth.expect("the virtual PMU counts it"),
                            "{counted} counted: {event:?}"
                        );
                    }
                }
                let [inside, all] = intervals(of);
                // 20 of 40 intervals of 95 % miss their truth with probability 10⁻¹⁵.
                assert!(all >= 20 && inside * 2 > all, "{inside} of {all}: {of:#?}");
            }

            /// Counts the intervals of boots with three seeds.
            #[test]
            #[ignore = "long"]
            fn intervals_contain_the_truth() {
                let others = [2, 3].map(|seed| boot(&request($pmu, $lists, seed)));
                let of_boot = |boot| sessions(boot).into_iter().take(4);
                let sessions: Vec<_> =
                    others.iter().chain([BOOT.get()]).flat_map(of_boot).collect();
                let [inside, all] = intervals(&sessions);
                println!("{inside} of {all}");
                assert!(all > 90 && inside * 100 >= all * 90, "{inside} of {all}: {sessions:#?}");
            }

            /// Events that would fit on the counters together become estimates next to other
            /// sessions.
            #[test]
            fn a_session_of_one_group_is_multiplexed_with_the_others() {
                let own = sessions(BOOT.get()).pop().unwrap();
                let event = own.events.last().unwrap();
                assert_eq!(event.kind, Kind::Estimated, "{event:?}");
                assert!(event.coverage.unwrap() < 0.5, "{event:?}");
            }
        }
    };
}

beside! { on_intel on Pmu::Intel, INTEL, 13 }
beside! { on_amd on Pmu::Amd, AMD, 9 }
