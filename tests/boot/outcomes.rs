//! Every way in which a run can end is told apart from every other.

use std::{path::Path, time::Duration};

use tally_abi::ExitStatus;
use xtask::{
    machine::{self, Outcome, Request},
    report::Report,
};

use crate::{artefacts, assert_success, boot, run};

/// Asserts a refusal with `status` whose reason has `word` in it.
fn assert_refused(outcome: &Outcome, status: ExitStatus, word: &str) {
    match outcome {
        Outcome::Refused { status: found, why, .. } => {
            assert_eq!(*found, u8::from(status), "{why}");
            assert!(why.contains(word), "{why}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_program_s_status_passes_through() {
    assert_eq!(run("", "status 42").outcome, Outcome::Done(42));
}

#[test]
fn a_program_that_measures_itself_is_measured_by_another() {
    let boot = run("", "tally stat -e branches deflate --level 0");
    assert_eq!(boot.outcome, Outcome::Done(0), "{}", boot.transcript.text());
}

#[test]
fn slices_that_the_budget_lengthened_are_told_beside_what_was_asked_for() {
    let boot = run("", "tally stat --slice 5000 -e branches rounds 1 60000");
    assert_eq!(boot.outcome, Outcome::Done(0));
    let report = Report::of(&boot).first.expect("tally opens a session");
    let told = boot.transcript.text().replace(',', "");
    let [slices, lengthened] = [report.slices, report.lengthened].map(|n| n.expect("it is told"));
    let line =
        format!(" {slices} slices of 5000 cycles as asked for {lengthened} of them lengthened");
    assert!(lengthened > 0 && told.contains(&line), "{line}: {told}");
}

#[test]
fn a_period_of_nothing_is_refused() {
    let boot = run("", "tally record -e branches -c 0 status 0");
    assert_eq!(boot.outcome, Outcome::Done(ExitStatus::Usage.into()));
    assert!(boot.transcript.text().contains("-c is at least 1"), "{}", boot.transcript.text());
}

#[test]
fn a_program_that_is_not_there_is_refused() {
    assert_refused(&run("", "no-such").outcome, ExitStatus::ProgramNotFound, "ramdisk");
}

#[test]
fn a_program_that_is_no_program_is_refused() {
    assert_refused(&run("", "corpus.txt").outcome, ExitStatus::NotStaticElf, "ELF");
}

/// Programs move from CPU to CPU: on such a one they would go uncounted.
#[test]
fn where_a_cpu_cannot_count_nothing_is_counted() {
    for (options, cpus, refused) in [("fail=pmu", 2, true), ("fail=pmu", 1, false), ("", 2, false)]
    {
        let line = format!("wire {options} -- events=instructions status 0");
        let outcome = boot(&Request { cpus, ..Request::new(line) }).outcome;
        match refused {
            true => assert_refused(&outcome, ExitStatus::NoPmu, "CPU 1 cannot count"),
            false => assert_eq!(outcome, Outcome::Done(0)),
        }
    }
}

#[test]
fn an_option_that_is_not_there_is_refused() {
    // More of it than a message holds.
    let option = format!("colour={}", "red".repeat(1000));
    let boot = boot(&Request::new(format!("wire {option} -- status 0")));
    assert_refused(&boot.outcome, ExitStatus::Usage, "colour=red");
    assert!(boot.folder.log_tail(20).contains("colour=red"), "{}", boot.folder.log_tail(20));
}

#[test]
fn a_kernel_that_panics_says_so() {
    let boot = run("fail=panic", "status 0");
    assert!(matches!(boot.outcome, Outcome::Panicked { .. }), "{}", boot.outcome);
    assert_eq!(boot.outcome.status(), u8::from(ExitStatus::KernelPanic));
}

#[test]
fn a_kernel_stack_that_is_used_up_is_a_fault_and_nobody_s_data() {
    let boot = run("fail=stack", "status 0");
    match &boot.outcome {
        Outcome::Panicked { message, .. } => {
            // The push faults at the guard page, and so does the fault's own frame.
            assert!(message.contains("double fault in the kernel"), "{message}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_kernel_that_hangs_is_stopped() {
    let time_limit = Duration::from_secs(15);
    let boot = boot(&Request { time_limit, ..Request::new("wire fail=hang -- status 0") });
    match &boot.outcome {
        Outcome::TimedOut { log_tail, .. } => assert!(log_tail.contains("tally"), "{log_tail}"),
        other => panic!("{other}"),
    }
    assert_eq!(boot.outcome.status(), u8::from(ExitStatus::TimedOut));
    assert!(!is_used(&boot.folder.log()), "QEMU has ended");
}

#[test]
fn a_machine_that_does_not_start_says_why() {
    let artefacts = machine::Artefacts { plugin: "/no/such/plugin.so".into(), ..artefacts() };
    let boot = machine::boot(&artefacts, &Request::new("wire -- status 0"), &mut |_| {}).unwrap();
    match &boot.outcome {
        Outcome::MachineFailed { said } => assert!(said.contains("no/such/plugin"), "{said}"),
        other => panic!("{other}"),
    }
}

/// Whether some process has `file` open.
fn is_used(file: &Path) -> bool {
    let folders =
        std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("fd"));
    let mut open = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    open.any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == file))
}

/// On a hybrid processor the first core's kind is used: on others a selector means another event. And where the
/// interval timer does not tick, by which times are measured otherwise, ACPI's does.
#[test]
fn cores_of_another_kind_and_a_missing_timer_are_done_without() {
    let vpmu = vec!["unlike=1".to_owned()];
    let line = "wire -- events=instructions status 0";
    let boot = boot(&Request { cpus: 3, vpmu, lacks: Some("pit"), ..Request::new(line) });
    assert_success(&boot);
    let log = boot.folder.log_tail(30);
    assert!(log.contains("interrupt controller 1 counts other events; it is left out"), "{log}");
    assert_eq!(boot.transcript.booted.as_ref().map(|booted| booted.cpus), Some(2));
    let ns = boot.transcript.boot_ns.expect("a program runs");
    assert!((10_000_000..10_000_000_000).contains(&ns), "{ns} ns");
}
