//! A program loads other programs and measures them from outside, during their run and after their
//! end.

use xtask::{
    machine::{Pmu, Request},
    report::Report,
};

use crate::{SharedBoot, assert_output, assert_success, boot};

fn request(pmu: Pmu, cpus: usize, events: &str, turns: u32) -> Request {
    Request { pmu, cpus, ..Request::new(format!("wire -- family {events} {turns}")) }
}

/// Defines a boot of a program with children, and a test for each behaviour.
macro_rules! children {
    ($module:ident on $pmu:expr, $cpus:literal CPUs: $events:literal, $turns:literal) => {
        mod $module {
            use super::*;

            static BOOT: SharedBoot = SharedBoot::new(|| request($pmu, $cpus, $events, $turns));

            #[test]
            fn the_parent_starts_stops_and_reads_its_child() {
                let boot = BOOT.get();
                assert_output(boot, "family: done");
                assert!(!boot.transcript.text().contains("FAILED"), "{}", boot.transcript.text());
            }

            /// The crash of a child does not change the machine's status.
            #[test]
            fn the_machines_status_is_the_parents() {
                let boot = BOOT.get();
                assert_eq!(boot.transcript.done, Some(0), "{}", boot.outcome);
            }

            /// The child of the first session was never counted. The second child ends before its
            /// parent, the third after it.
            #[test]
            fn counts_of_children_are_exact() {
                let report = Report::of(BOOT.get());
                let sessions: Vec<_> = report.sessions().collect();
                assert_eq!(sessions.len(), 3, "{sessions:#?}");
                for session in &sessions[1..] {
                    assert_eq!(session.program, "family");
                    let event = &session.events[0];
                    assert!(event.estimate > Some(10_000_000), "{event:#?}");
                    assert_eq!(event.estimate, event.truth, "{event:#?}");
                }
            }
        }
    };
}

children! { on_intel on Pmu::Intel, 1 CPUs:
    "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD", 20_000_000
}
children! { on_amd on Pmu::Amd, 1 CPUs: "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT", 20_000_000 }
children! { on_three_cpus on Pmu::Intel, 3 CPUs: "INST_RETIRED.ANY", 60_000_000 }

/// Defines a test of a program that reads the bank of another running program.
macro_rules! monitors {
    ($($name:ident on $pmu:expr, $cpus:literal CPUs: $events:literal;)*) => {$(
        #[test]
        fn $name() {
            let line = format!("wire -- monitor {} 40000000", $events);
            let boot = boot(&Request { pmu: $pmu, cpus: $cpus, ..Request::new(line) });
            assert_output(&boot, "monitor: done");
            assert!(!boot.transcript.text().contains("FAILED"), "{}", boot.transcript.text());
            assert_success(&boot);
        }
    )*};
}

monitors! {
    a_monitor_reads_a_bank_on_intel on Pmu::Intel, 1 CPUs:
        "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD,r01c4,r02c4,r08c4,r10c4,r20c4,r40c4";
    a_monitor_reads_a_bank_on_amd on Pmu::Amd, 1 CPUs:
        "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT,r0c2,r0c4,r0c0";
    a_monitor_reads_a_bank_on_two_cpus on Pmu::Intel, 2 CPUs:
        "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD,r01c4,r02c4,r08c4,r10c4,r20c4,r40c4";
}
