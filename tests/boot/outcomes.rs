//! Every way in which a run can end is told apart from every other.

use std::{path::Path, time::Duration};

use tally_abi::{ExitStatus, session::MAX_EVENTS, truth::RegionKind};
use xtask::{
    machine::{self, Boot, Outcome, Request},
    report::{Kind, Report},
};

use crate::{artefacts, assert_small, assert_success, boot, run, said};

/// Asserts that something was refused with `status`, for a reason that has `word` in it.
fn assert_refused(boot: &Boot, status: ExitStatus, word: &str) {
    let is_it = |trouble: &Outcome| match trouble {
        Outcome::Refused { status: found, why, .. } => {
            *found == u8::from(status) && why.contains(word)
        }
        _ => false,
    };
    assert!(boot.transcript.troubles.iter().any(is_it), "{:#?}", boot.transcript.troubles);
}

#[test]
fn the_kernel_is_soon_there_and_a_program_s_status_passes_through() {
    let boot = run("", "status 42");
    assert_eq!(boot.outcome, Outcome::Done(42));
    assert_small(&boot, 1);
    // With one CPU the clock is the machine's own.
    let boot_ns = boot.transcript.boot_ns.expect("a program ran");
    assert!(boot_ns <= 300_000_000, "{boot_ns} ns from the kernel's entry");
}

/// Side by side: what becomes of one is no other's affair.
#[test]
fn each_program_ends_in_its_own_way_and_says_why() {
    let many = vec!["INST_RETIRED.ANY"; MAX_EVENTS + 1].join(",");
    let programs: [(&str, u8, &str); 8] = [
        ("tally record -e branches -c 0 status 0", ExitStatus::Usage.into(), "-c is at least 1"),
        (
            "deflate --events BR_INST_RETIRED.ALL_BRANCHE",
            ExitStatus::UnknownEvent.into(),
            "BR_INST_RETIRED.ALL_BRANCHES",
        ),
        ("deflate --slice 10", ExitStatus::SliceOutOfRange.into(), "slice"),
        (&format!("deflate --events {many}"), ExitStatus::TooManyEvents.into(), "1024"),
        // It would measure itself; another does.
        ("tally stat -e branches deflate --file status", 0, "branches"),
        ("calls INST_RETIRED.ANY", 0, "calls: done\n"),
        ("capi INST_RETIRED.ANY,BR_INST_RETIRED.ALL_BRANCHES", 0, "capi: done\n"),
        // Ends in the middle of its session.
        ("status 0 INST_RETIRED.ANY", 0, ""),
    ];
    let words = programs.map(|(words, ..)| words).join(" -- ");
    let boot = run("", &format!("{words} -- no-such -- corpus.txt"));
    assert!(boot.transcript.panicked.is_none() && boot.transcript.done.is_some());
    assert_eq!(boot.transcript.troubles.len(), 2, "{:#?}", boot.transcript.troubles);
    assert_refused(&boot, ExitStatus::ProgramNotFound, "ramdisk");
    assert_refused(&boot, ExitStatus::NotStaticElf, "ELF");
    for (index, (words, status, word)) in programs.into_iter().enumerate() {
        let told = [1, 2].map(|fd| said(&boot, index, fd)).concat();
        assert!(told.contains(word) && !told.contains("FAILED"), "{words}: {told}");
        let exit = (words.split(' ').next().unwrap().to_owned(), status.into());
        assert!(boot.transcript.exits.contains(&exit), "{exit:?}, {:?}", boot.transcript.exits);
    }
    let (tag, _) =
        boot.transcript.sessions.iter().find(|(_, known)| known.program == "status").unwrap();
    let truth = boot.truth.as_ref().expect("the virtual PMU writes it");
    assert!(
        truth.region(RegionKind::Session, *tag).is_some_and(|region| region.closed),
        "it is closed"
    );
    let report = Report::of(&boot);
    let event = &report.sessions().find(|session| session.program == "status").unwrap().events[0];
    assert_eq!((event.kind, event.estimate), (Kind::Exact, event.truth));
}

#[test]
fn slices_that_the_budget_lengthened_are_told_beside_what_was_asked_for() {
    let boot = run("", "tally stat --slice 5000 -e branches rounds 1 60000");
    assert_eq!(boot.outcome, Outcome::Done(0));
    let report = Report::of(&boot).first.expect("tally opens a session");
    let told = boot.transcript.text().replace(',', "");
    let [slices, lengthened] = [report.slices, report.lengthened].map(|n| n.expect("it is told"));
    let line =
        format!(" {slices} slices of 5000 cycles as requested {lengthened} of them lengthened");
    assert!(lengthened > 0 && told.contains(&line), "{line}: {told}");
}

/// Programs move from CPU to CPU: on such a one they would go uncounted.
#[test]
fn where_a_cpu_cannot_count_nothing_is_counted() {
    // Where only one is started, it does not matter what the other cannot do.
    for (options, refused) in [("fail=pmu", true), ("fail=pmu cpus=1", false), ("", false)] {
        let line = format!("wire {options} -- events=instructions status 0");
        let boot = boot(&Request { cpus: 2, ..Request::new(line) });
        match refused {
            true => assert_refused(&boot, ExitStatus::NoPmu, "CPU 1 cannot count"),
            false => assert_eq!(boot.outcome, Outcome::Done(0)),
        }
    }
}

#[test]
fn an_option_that_is_not_there_is_refused() {
    // More of it than a message holds.
    let option = format!("colour={}", "red".repeat(1000));
    let boot = boot(&Request::new(format!("wire {option} -- status 0")));
    assert_refused(&boot, ExitStatus::Usage, "colour=red");
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
    assert!(log.contains("APIC ID 1 has another PMU than the first CPU; offline"), "{log}");
    assert_eq!(boot.transcript.booted.as_ref().map(|booted| booted.cpus), Some(2));
    let ns = boot.transcript.boot_ns.expect("a program runs");
    assert!((10_000_000..10_000_000_000).contains(&ns), "{ns} ns");
}
