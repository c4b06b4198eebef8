//! A session is stopped and started by calls and through its bank, in the middle of slices, samples
//! and thresholds: other sessions of the program lose nothing by it.

use xtask::{
    machine::{Pmu, Request},
    report::{Kind, Report},
};

use crate::{assert_output, assert_success, boot};

/// Programs that draw what they do from different seeds, each counted by the command line too.
fn check(pmu: Pmu, events: &str) {
    let jobs = (1..=4).map(|seed| format!(" -- events={events} stops {events} {seed} 600"));
    let boot = boot(&Request { pmu, ..Request::new(format!("wire{}", jobs.collect::<String>())) });
    assert_success(&boot);
    assert_output(&boot, "stops: done\n");
    let report = Report::of(&boot);
    let mut sessions: Vec<_> = report.sessions().collect();
    sessions.sort_by_key(|session| session.session);
    // Of each program the command line's, the one that its program stops, and another. The truth
    // of the second has what happened up to the kernel's notice that the program had stopped it.
    let others = sessions.chunks(3).flat_map(|program| [program[0], program[2]]);
    let exact: Vec<_> = others
        .flat_map(|session| &session.events)
        .filter(|event| event.kind == Kind::Exact)
        .map(|event| (event.name.clone(), event.estimate, event.truth))
        .collect();
    assert!(exact.len() >= 16, "{exact:?}");
    for (name, estimate, truth) in exact {
        assert_eq!(estimate, truth, "{name}");
    }
}

#[test]
fn other_sessions_stay_exact_on_intel() {
    check(Pmu::Intel, "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD,BR_INST_RETIRED.ALL_BRANCHES");
}

#[test]
fn other_sessions_stay_exact_on_amd() {
    check(Pmu::Amd, "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT,RETIRED_BRANCH_INSTRUCTIONS");
}
