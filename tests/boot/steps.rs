//! System calls in steps, whose code and ranges are changed by another thread between two steps.

use xtask::machine::{Pmu, Request};

use crate::{artefacts, assert_output, assert_success, boot_with};

/// Runs the changes one after another on a kernel that checks memory after each call.
fn check(pmu: Pmu) {
    let changes = ["read", "unmap", "kernel", "bank", "protect", "truncate", "own"];
    let jobs: Vec<String> = changes.iter().map(|change| format!("steps {change}")).collect();
    let line = format!("wire -- sequence {}", jobs.join(" ; "));
    let boot = boot_with(&artefacts().audited(), &Request { pmu, ..Request::new(line) });
    assert_success(&boot);
    // No page of a file is freed while it is mapped, and a file with its own mapping does not
    // deadlock. The calls have the results that they have without a second thread: ten bytes are
    // read, all is unmapped, and an address of the kernel is refused. A range that includes another
    // thread's bank is refused (`EFAULT`), or not mapped entirely (`ENOMEM`).
    for line in [
        "steps: read 10\n",
        "steps: unmap 0 false\n",
        "steps: kernel -14\n",
        "steps: bank -14 true\n",
        "steps: bank -12 true\n",
        "steps: truncate 0 0\n",
        "steps: own 4096 4096\n",
    ] {
        assert_output(&boot, line);
    }
}

#[test]
fn a_call_gets_no_progress_but_its_own_on_intel() {
    check(Pmu::Intel);
}

#[test]
fn a_call_gets_no_progress_but_its_own_on_amd() {
    check(Pmu::Amd);
}
