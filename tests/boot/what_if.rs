//! Savings without a cause, for programs that lose their cycles to a cause known by construction.
//! The savings are judged by perfect structures, not by the event that counts the cause.

use xtask::{
    report::{CAUSES, Report, WhatIf},
    run::RunArgs,
};

use crate::{assert_success, boot};

/// Programs, each with the cause that its core makes perfect.
const PROGRAMS: [(&str, &str); 3] = [
    ("branch 60000", "mispredicted branches"),
    ("chase 100000", "L1D misses"),
    ("divide 60000", "execution units"),
];

fn run(pmu: &str, what: &str, program: &str) -> WhatIf {
    let command = format!("cargo xtask run --pmu {pmu} --breakdown {what} -- bottleneck {program}");
    let args = RunArgs::of(&command).unwrap();
    let boot = boot(&args.request().unwrap());
    assert_success(&boot);
    let mut report = Report::of(&boot);
    report.add_what_if(boot.truth.as_ref().expect("there is the virtual PMU"));
    report.first.unwrap().what_if.expect("every core ran")
}

/// Programs of `causes`, each with the group that saves most and the parts that may be named first.
const KNOWN: [(&str, &str, &[&str]); 12] = [
    ("random 300000", "branches", &["mispredicted branches"]),
    ("indirect 300000", "branches", &["mispredicted branches"]),
    ("returns 200000", "branches", &["mispredicted branches"]),
    ("straight 1000000", "code", &FETCH),
    ("pages 1000000", "code", &FETCH),
    ("jumps 1500000", "code", &FETCH),
    ("second 500000", "data", &["memory"]),
    ("tlb 500000", "data", &["memory"]),
    ("memory 600000", "data", &["memory"]),
    ("divider 600000", "units", &["core"]),
    ("chain 400000", "units", &["core"]),
    ("port 500000", "units", &["core"]),
];
const FETCH: [&str; 3] = ["fetch latency", "instruction fetch", "fetch bandwidth"];

#[test]
#[ignore = "long"]
fn the_cause_that_is_built_in_is_named_and_its_removal_saves_most() {
    for pmu in ["intel", "amd"] {
        for pipeline in ["ooo", "interval"] {
            for (program, group, parts) in KNOWN {
                let command = format!(
                    "cargo xtask run --pmu {pmu} --vpmu pipeline={pipeline} --breakdown \
                     --what-if=groups -- causes {program}"
                );
                let args = RunArgs::of(&command).unwrap();
                let boot = boot(&args.request().unwrap());
                assert_success(&boot);
                let report = Report::with(&boot, args.plan().unwrap().as_ref(), &args.additions());
                let session = report.first.unwrap();
                let breakdown = session.breakdown.expect("its events were counted");
                let what_if = session.what_if.expect("every core ran");
                let what = format!("{pmu}, {pipeline}, {program}:\n{breakdown}\n{what_if}");
                let largest = breakdown.largest_loss().expect("there is one");
                // AMD's formula divides the back end by the cycles in which nothing retires, of
                // which a busy port has hardly any.
                let is_known_wrong = pmu == "amd" && program.starts_with("port");
                assert!(parts.contains(&&*largest.name) || is_known_wrong, "{what}");
                let most = what_if.groups.first();
                assert_eq!(most.map(|saving| &*saving.cause), Some(group), "{what}");
            }
        }
    }
}

/// The share that is saved without a cause.
fn saved(what_if: &WhatIf, cause: &str) -> f64 {
    let found = what_if.causes.iter().find(|saving| saving.cause == cause);
    found.expect(cause).saved_share
}

#[test]
fn the_cause_that_is_built_in_saves_most() {
    for pmu in ["intel", "amd"] {
        for (program, cause) in PROGRAMS {
            let what_if = run(pmu, "--what-if", program);
            let what = format!("{pmu}, {program}:\n{what_if}");
            assert_eq!(what_if.largest().map(|saving| &*saving.cause), Some(cause), "{what}");
            assert!(saved(&what_if, cause) > 0.3, "{what}");
            assert_eq!(what_if.causes.len(), CAUSES.len(), "{what}");
            assert!(what_if.interactions.is_empty(), "{what}");
            if program.starts_with("divide") {
                assert!(saved(&what_if, "mispredicted branches").abs() < 0.02, "{what}");
            }
        }
    }
}

/// Each load needs the previous one. No other work can execute out of order after the loads, and
/// the rest of the program is short, so two groups together save what they save alone.
#[test]
fn pairs_are_of_all_groups_and_save_what_their_parts_do() {
    let what_if = run("intel", "--what-if=pairs", "chase 60000");
    assert_eq!(what_if.interactions.len(), 10);
    for pair in &what_if.interactions {
        let sum: f64 = pair.saved_alone.iter().sum();
        assert!((pair.saved_both - sum - pair.difference).abs() < 1e-9, "{what_if}");
        // Structures that are perfect together save at least about as much as the better one.
        let most = pair.saved_alone[0].max(pair.saved_alone[1]);
        assert!(pair.saved_both > most - 0.02, "{what_if}");
    }
}
