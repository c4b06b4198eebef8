//! The kernel runs programs, and outlives everything that they do.

use std::process::Command;

use xtask::{
    fuzz,
    machine::{Outcome, Pmu, Request},
    project::Project,
    ramdisk,
};

use crate::{artefacts, assert_success, boot, run};

/// What the program `crash` can do, and a word of how the kernel must call it.
const CRASHES: [&str; 16] = [
    "read-null",
    "write-null",
    "read-kernel",
    "jump-kernel",
    "write-code",
    "run-stack",
    "invalid",
    "divide",
    "privileged",
    "msr",
    "rdpmc",
    "interrupt",
    "port",
    "trap-flag",
    "non-canonical",
    "stack",
];

#[test]
fn every_crash_ends_its_program_alone() {
    let mut programs: Vec<String> = CRASHES.iter().map(|way| format!("crash {way}")).collect();
    // What no instruction alone does, and how it is called.
    let others = [
        ("threads stuck", "deadlock", None),
        ("signals full", "no room on the stack", None),
        // A return to such an address faults in ring 0.
        ("signals nowhere", "handler that no program can have", Some(1 << 63)),
    ];
    programs.extend(others.map(|(program, ..)| program.into()));
    programs.push("status 0".into());
    let boot = run("", &programs.join(" -- "));
    let told = boot.transcript.text();
    assert_eq!(boot.transcript.panicked, None);
    assert_eq!(boot.transcript.done, Some(boot.outcome.status()), "{}", boot.outcome);
    let crashes = boot.transcript.troubles.iter();
    let named = crashes.filter(
        |trouble| matches!(trouble, Outcome::Faulted { fault, instruction, .. } if !fault.is_empty() && *instruction != 0),
    );
    assert_eq!(
        named.count(),
        CRASHES.len() + others.len(),
        "{:#?}\n{told}",
        boot.transcript.troubles
    );
    assert!(!told.contains("survived") && !told.contains("below"), "{told}");
    for (program, wanted, touched) in others {
        let is_it = |trouble: &Outcome| match trouble {
            Outcome::Faulted { fault, address, .. } => {
                fault.contains(wanted) && touched.is_none_or(|touched| *address == Some(touched))
            }
            _ => false,
        };
        assert!(boot.transcript.troubles.iter().any(is_it), "{program}: {told}");
    }
    assert!(boot.transcript.exits.contains(&("status".into(), 0)), "{told}");
}

#[test]
fn mmap_avoids_the_segments_and_the_heap_of_a_program_linked_in_its_area() {
    let boot = run("", "segments");
    assert_success(&boot);
    assert_eq!(boot.transcript.text(), "segments: done\n");
}

#[test]
fn programs_share_a_processor_without_a_trace() {
    let events = "INST_RETIRED.ANY";
    let boot = run(
        "",
        &format!("share 1 {events} 20000 -- share 2 {events} 30000 -- share 3 {events} 10000"),
    );
    assert_success(&boot);
    assert_eq!(boot.transcript.sessions.len(), 3);
}

/// Debian's busybox, as it is.
#[test]
fn busybox_does_here_what_it_does_under_linux() {
    let jobs = [
        // Of all of it these would compress for half a minute.
        "truncate -s 300K corpus.txt",
        "gzip -k corpus.txt",
        "bzip2 -k corpus.txt",
        "sort -o sorted corpus.txt",
        "sha256sum corpus.txt.gz corpus.txt.bz2 sorted",
        "awk {n+=NF;s=s+length($0)}END{print(n,s)} corpus.txt",
        "gunzip -f corpus.txt.gz",
        "bunzip2 -f corpus.txt.bz2",
        "wc corpus.txt",
        "md5sum corpus.txt",
        "grep -c unsafe corpus.txt",
        "sleep 0.05",
        "cp corpus.txt copy",
        "mv copy moved",
        "head -c 300 moved",
        "rm moved",
    ];
    let folder = Project::here().target.join("guest/busybox");
    std::fs::create_dir_all(&folder).unwrap();
    let artefacts = artefacts();
    let whole = ramdisk::file(&artefacts.boot.ramdisk, ramdisk::CORPUS).unwrap();
    std::fs::write(folder.join(ramdisk::CORPUS), whole).unwrap();
    let busybox = &artefacts.linux.as_ref().expect("`cargo xtask test` fetches it").busybox;
    let mut expected = String::new();
    for job in jobs {
        let here =
            Command::new(busybox).args(job.split(' ')).current_dir(&folder).output().unwrap();
        assert!(here.status.success(), "{job}: {here:?}");
        expected += &String::from_utf8_lossy(&here.stdout);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    let words: Vec<String> = jobs.iter().map(|job| format!("busybox {job}")).collect();
    let boot = run("", &format!("sequence {}", words.join(" ; ")));
    assert_success(&boot);
    assert!(
        boot.transcript.text() == expected,
        "what busybox prints here is not what it prints there"
    );
}

/// The image for a USB stick: another way to the kernel, and results for people in the log.
#[test]
fn the_disk_image_boots_and_logs_its_results() {
    let boot = boot(&Request { from_disk: true, ..Request::new("") });
    let log = boot.folder.log_tail(100);
    assert!(log.contains("INST_RETIRED.ANY") && log.contains(" exact"), "{log}");
    assert!(log.contains("all programs have ended, status 0"), "{log}");
}

#[test]
fn wild_system_calls_leave_the_kernel_right() {
    for (pmu, cpus, calls) in [(Pmu::Intel, 1, 12_000), (Pmu::Amd, 3, 24_000)] {
        let boot = boot(&fuzz::request(pmu, cpus, calls, 1));
        let told = boot.transcript.text();
        assert!(told.contains(fuzz::HELD), "{}\n{told}", boot.outcome);
        assert!(boot.transcript.done.is_some(), "{}", boot.outcome);
    }
}
