//! A session is stopped and started by calls and through its bank, in the middle of slices, samples
//! and thresholds. Other sessions of the program lose no counts.

use xtask::{
    machine::{Pmu, Request},
    report::{Kind, Report},
};

use crate::{assert_output, assert_success, boot};

/// Runs a program that chooses its operations at random and is also counted by the command line.
fn check(pmu: Pmu, events: &str) {
    let line = format!("wire -- events={events} stops {events} 1 1200");
    let boot = boot(&Request { pmu, ..Request::new(line) });
    assert_success(&boot);
    assert_output(&boot, "stops: done\n");
    let report = Report::of(&boot);
    let mut sessions: Vec<_> = report.sessions().collect();
    sessions.sort_by_key(|session| session.session);
    // The second session is the one that the program stops. The truth runs until the kernel notices
    // the stop, so it cannot judge that session.
    let stopped = sessions[1];
    assert!(stopped.stopped_cycles > Some(0) && stopped.events.iter().all(|e| e.truth.is_none()));
    let exact: Vec<_> = [sessions[0], sessions[2]]
        .into_iter()
        .flat_map(|session| &session.events)
        .filter(|event| event.kind == Kind::Exact)
        .map(|event| (event.name.clone(), event.estimate, event.truth))
        .collect();
    assert!(exact.len() >= 4, "{exact:?}");
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
