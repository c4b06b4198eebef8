//! Programs in direct mode own counters that the engine does not multiplex, and keep their counts
//! across context switches.

use xtask::machine::{Pmu, Request};

use crate::{assert_success, boot};

/// Two programs in direct mode, with loops longer than a turn of the scheduler, and a session whose
/// overflow interrupts arrive in between.
fn check(pmu: Pmu, instructions: &str, branches: &str) {
    let more = "L1-dcache-loads,L1-dcache-load-misses,branch-misses";
    let direct = |turns| format!("direct {instructions},{branches},{more} {turns}");
    let programs = [direct(500_000), direct(350_000), format!("share 3 {instructions} 100000")];
    let line = format!("wire paranoid=0 -- {}", programs.join(" -- "));
    // The list has more events than counters; the events need not be modelled.
    let vpmu = vec!["unmodelled=zero".to_owned()];
    let boot = boot(&Request { pmu, vpmu, ..Request::new(line) });
    assert_success(&boot);
    let text = boot.transcript.text();
    assert_eq!(text.matches("direct: done").count(), 2, "{text}");
}

#[test]
fn counts_in_direct_mode_are_exact_on_icelake_server() {
    check(Pmu::Intel, "INST_RETIRED.ANY", "BR_INST_RETIRED.ALL_BRANCHES");
}

#[test]
fn counts_in_direct_mode_are_exact_on_zen_4() {
    check(Pmu::Amd, "RETIRED_INSTRUCTIONS", "RETIRED_BRANCH_INSTRUCTIONS");
}

#[test]
fn counts_in_direct_mode_are_exact_on_zen_3() {
    check(Pmu::Zen3, "RETIRED_INSTRUCTIONS", "RETIRED_BRANCH_INSTRUCTIONS");
}
