//! The kernel runs programs, and outlives everything that they do.

use std::process::Command;

use xtask::{
    fuzz,
    machine::{Outcome, Pmu, Request},
    project::Project,
    ramdisk,
    report::{Kind, Report},
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
    programs.push("status 0".into());
    let boot = run("", &programs.join(" -- "));
    let told = boot.transcript.text();
    assert_eq!(boot.transcript.panicked, None);
    assert_eq!(boot.transcript.done, Some(boot.outcome.status()), "{}", boot.outcome);
    let crashes = boot.transcript.troubles.iter();
    let named = crashes.filter(
        |trouble| matches!(trouble, Outcome::Faulted { fault, instruction, .. } if !fault.is_empty() && *instruction != 0),
    );
    assert_eq!(named.count(), CRASHES.len(), "{:#?}\n{told}", boot.transcript.troubles);
    assert!(!told.contains("survived"), "{told}");
    assert!(boot.transcript.exits.contains(&("status".into(), 0)), "{told}");
}

#[test]
fn wrong_system_calls_have_their_answers() {
    let boot = run("", "calls INST_RETIRED.ANY");
    assert_success(&boot);
    assert!(boot.transcript.text().contains("calls: done"));
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

#[test]
fn several_processors_run_several_programs() {
    let events = "INST_RETIRED.ANY";
    let line = format!("wire cpus=4 -- share 1 {events} 20000 -- share 2 {events} 20000");
    let boot = boot(&Request { cpus: 4, ..Request::new(line) });
    assert_success(&boot);
    assert_eq!(boot.transcript.booted.map(|booted| booted.cpus), Some(4));
    assert_eq!(boot.transcript.sessions.len(), 2);
}

#[test]
fn the_kernel_is_small() {
    let boot = run("", "status 0");
    assert_success(&boot);
    let memory_bytes = boot.transcript.booted.expect("the kernel says so").memory_bytes;
    assert!(memory_bytes <= 16 << 20, "the kernel holds {memory_bytes} bytes");
}

#[test]
fn logical_counters_are_read_without_system_calls() {
    for (pmu, exact, events) in [
        (
            Pmu::Intel,
            "INST_RETIRED.ANY",
            "MEM_INST_RETIRED.ALL_LOADS,MEM_INST_RETIRED.ALL_STORES,BR_INST_RETIRED.COND,\
             BR_INST_RETIRED.ALL_BRANCHES,BR_MISP_RETIRED.COND,L1D.REPLACEMENT",
        ),
        (
            Pmu::Amd,
            "RETIRED_INSTRUCTIONS",
            "LS_DISPATCH.LD_DISPATCH,LS_DISPATCH.STORE_DISPATCH,RETIRED_BRANCH_INSTRUCTIONS,\
             RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,RETIRED_TAKEN_BRANCH_INSTRUCTIONS,\
             RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED",
        ),
    ] {
        let bank = format!("bank {exact} {events}");
        let job = format!("wire -- {bank} -- share 1 {exact} 1000");
        assert_success(&boot(&Request { pmu, ..Request::new(job) }));
        // The right to use RDPMC is the one program's, whoever runs beside it.
        let boot = boot(&Request { pmu, ..Request::new(format!("wire -- {bank} -- crash rdpmc")) });
        assert!(boot.transcript.exits.contains(&("bank".into(), 0)), "{}", boot.outcome);
        let faults = boot.transcript.troubles.iter();
        let faults: Vec<_> = faults.filter(|t| matches!(t, Outcome::Faulted { .. })).collect();
        assert_eq!(faults.len(), 1, "{:#?}", boot.transcript.troubles);
    }
}

#[test]
fn a_word_of_the_programs_own_starts_and_stops_its_counters() {
    const PAIRS: u64 = 4_000;
    for (pmu, events) in [
        (Pmu::Intel, "INST_RETIRED.ANY,MEM_INST_RETIRED.ALL_LOADS,BR_INST_RETIRED.COND"),
        (
            Pmu::Amd,
            "RETIRED_INSTRUCTIONS,LS_DISPATCH.LD_DISPATCH,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS",
        ),
    ] {
        for job in [
            format!("wire -- switch 200000 {events}"),
            format!("wire -- switch 5000 {events} -- share 1 {events} 300000"),
        ] {
            let boot = boot(&Request { pmu, ..Request::new(&job) });
            assert_success(&boot);
            println!("{}", boot.transcript.text());
            let truth = boot.truth.as_ref().expect("the virtual PMU writes it");
            let region = truth.regions.iter().find(|region| region.tag == 77).expect("it was open");
            let sessions = Report::of(&boot);
            let report = sessions.first.iter().chain(&sessions.others);
            let report = report.into_iter().find(|report| report.program == "switch").unwrap();
            for event in &report.events {
                let counted = event.estimate.expect("it is exact");
                let truth = region.events[&event.name].user;
                println!("{job}: {} counted {counted}, truth {truth}", event.name);
                // Stopping and starting are in the counts, at each counter's own edges.
                assert_eq!(event.kind, Kind::Exact);
                assert!((truth..truth + 200 * PAIRS).contains(&counted), "{event:?} {truth}");
            }
        }
    }
}

/// Of either vendor: instructions, cycles, conditional branches, loads, and a list that takes turns.
const THRESHOLDS: [(Pmu, &str, &str); 3] = [
    (
        Pmu::Intel,
        "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD,BR_INST_RETIRED.COND,MEM_INST_RETIRED.ALL_LOADS",
        "BR_INST_RETIRED.ALL_BRANCHES,MEM_INST_RETIRED.ALL_STORES,BR_INST_RETIRED.COND_TAKEN,\
         MEM_LOAD_RETIRED.L1_HIT,MEM_INST_RETIRED.ANY",
    ),
    (
        Pmu::Amd,
        "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,\
         LS_DISPATCH.LD_DISPATCH",
        "RETIRED_BRANCH_INSTRUCTIONS,LS_DISPATCH.STORE_DISPATCH,RETIRED_TAKEN_BRANCH_INSTRUCTIONS,\
         RETIRED_OPS",
    ),
    // It has no register that says what has overflowed.
    (
        Pmu::Zen3,
        "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,\
         LS_DISPATCH:LD_DISPATCH",
        "RETIRED_BRANCH_INSTRUCTIONS,LS_DISPATCH:STORE_DISPATCH,RETIRED_TAKEN_BRANCH_INSTRUCTIONS",
    ),
];

#[test]
fn thresholds_fire_once_at_the_count() {
    for (pmu, exact, others) in THRESHOLDS {
        for events in [exact.to_owned(), format!("{exact},{others}")] {
            // Beside another program, so that turns end while thresholds are set.
            let job = format!("wire trace -- thresholds {events} -- share 1 {exact} 200000");
            let boot = boot(&Request { pmu, ..Request::new(job) });
            assert_success(&boot);
            println!("{}", boot.transcript.text());
            assert!(boot.transcript.text().contains("thresholds: done"));
            let told = &boot.transcript.thresholds;
            assert!(told.len() >= 4, "{told:?}");
            assert!(told.iter().all(|record| record.count >= record.threshold), "{told:?}");
            // Preloading loses nothing: what was counted all the time is the truth.
            for session in Report::of(&boot).sessions() {
                for event in session.events.iter().filter(|event| event.kind == Kind::Exact) {
                    assert_eq!(event.estimate, event.truth, "{event:?}");
                }
            }
        }
    }
}

#[test]
fn thresholds_go_with_their_program() {
    for (pmu, exact, _) in THRESHOLDS {
        let guest = format!("thresholds {exact}");
        let job = format!("wire -- {guest} armed -- {guest} fault -- share 1 {exact} 100000");
        let boot = boot(&Request { pmu, ..Request::new(job) });
        let told = boot.transcript.text();
        let faults = boot.transcript.troubles.iter();
        assert_eq!(faults.filter(|t| matches!(t, Outcome::Faulted { .. })).count(), 1, "{told}");
        assert!(boot.transcript.exits.contains(&("share".into(), 0)), "{told}");
        assert!(boot.transcript.exits.contains(&("thresholds".into(), 0)), "{told}");
        assert!(!told.contains("survived") && boot.transcript.panicked.is_none(), "{told}");
    }
}

#[test]
fn samples_say_where_a_program_was() {
    for (pmu, events) in [
        (Pmu::Intel, "branches"),
        (Pmu::Amd, "branches"),
        (Pmu::Zen3, "instructions,branches,branch-misses"),
    ] {
        let job = format!("wire trace -- tally record -e {events} -c 10000 rounds 1 60000");
        let boot = boot(&Request { pmu, ..Request::new(job) });
        assert_success(&boot);
        let told = boot.transcript.text();
        let report = Report::of(&boot).first.expect("tally opens a session");
        // Sampling loses nothing.
        for event in report.events.iter().filter(|event| event.kind == Kind::Exact) {
            assert_eq!(event.estimate, event.truth, "{event:?}");
        }
        let samples = &boot.transcript.samples;
        let all = report.events[0].truth.expect("the model counts it");
        let (taken, expected) = (samples.len() as u64, all / 10_000);
        assert!(taken.abs_diff(expected) <= 1 + expected / 50, "{taken}, {expected}: {told}");
        for two in samples.windows(2) {
            let gap = two[1].count - two[0].count;
            // A skid beyond the latest count that there could be.
            assert!((8_750..11_300).contains(&gap), "{two:?}");
            assert!(two[1].user && (0x20_0000..0x30_0000).contains(&two[1].address), "{two:?}");
        }
        let line = format!(" {taken} samples of ");
        assert!(told.replace(',', "").contains(&line), "{told}");
    }
}

#[test]
fn a_c_program_measures_itself() {
    let boot = run("", "capi INST_RETIRED.ANY,BR_INST_RETIRED.ALL_BRANCHES");
    assert_success(&boot);
    assert!(boot.transcript.text().contains("capi: done"), "{}", boot.transcript.text());
}

/// The image for a USB stick: another way to the kernel, and results for people in the log.
#[test]
fn an_ordinary_c_program_does_here_what_it_does_under_linux() {
    // It does not know of Tally; the kernel counts around it.
    let events = "events=INST_RETIRED.ANY,BR_INST_RETIRED.COND slice=50000";
    let boot = run("", &format!("{events} libc corpus.txt word -- status 0"));
    let report = Report::of(&boot).first.expect("the kernel opened a session");
    assert_eq!(report.program, "libc");
    for event in &report.events {
        assert_eq!(event.estimate, event.truth, "{}", event.name);
    }
    let told = boot.transcript.text();
    assert!(boot.transcript.exits.contains(&("libc".into(), 7)), "{}\n{told}", boot.outcome);
    let folder = Project::here().target.join("guest/hosted");
    let corpus = ramdisk::file(&artefacts().boot.ramdisk, ramdisk::CORPUS).unwrap();
    std::fs::write(folder.join(ramdisk::CORPUS), corpus).unwrap();
    let here = Command::new(folder.join("libc"))
        .args([ramdisk::CORPUS, "word"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert_eq!(here.status.code(), Some(7));
    assert!(told.contains(&*String::from_utf8_lossy(&here.stdout)), "{told}");
    assert!(told.contains(&*String::from_utf8_lossy(&here.stderr)), "{told}");
}

#[test]
fn files_are_written_and_programs_run_anywhere() {
    let boot = run("", "sequence files ; files-pie ; libc-pie corpus.txt word");
    let told = boot.transcript.text();
    // `libc` ends with 7, here and everywhere.
    assert_eq!(boot.transcript.done, Some(7), "{}\n{told}", boot.outcome);
    assert_eq!(told.matches("files: 499500\n").count(), 2, "{told}");
}

/// Debian's busybox, as it is.
#[test]
fn busybox_does_here_what_it_does_under_linux() {
    let jobs = [
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

#[test]
fn the_disk_image_boots_and_logs_its_results() {
    let boot = boot(&Request { from_disk: true, ..Request::new("") });
    let log = boot.folder.log_tail(100);
    assert!(log.contains("INST_RETIRED.ANY") && log.contains(" exact"), "{log}");
    assert!(log.contains("all programs have ended, status 0"), "{log}");
}

#[test]
fn programs_measure_programs_that_they_load() {
    for (pmu, events, cpus) in [
        (Pmu::Intel, "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD", 1),
        (Pmu::Amd, "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT", 1),
        (Pmu::Intel, "INST_RETIRED.ANY", 3),
    ] {
        let line = format!("wire cpus={cpus} -- family {events}");
        let boot = boot(&Request { pmu, cpus, ..Request::new(line) });
        let told = boot.transcript.text();
        assert!(told.contains("family: done") && !told.contains("FAILED"), "{told}");
        // A crash of a program that another loaded is that one's affair.
        assert_eq!(boot.transcript.done, Some(0), "{}\n{told}", boot.outcome);
        let report = Report::of(&boot);
        let sessions: Vec<_> = report.first.iter().chain(&report.others).collect();
        assert_eq!(sessions.len(), 3, "{sessions:#?}");
        // The first one's program never let it count. What the second and the third counted, the latter
        // after its owner had ended, is the truth to the one.
        for session in &sessions[1..] {
            assert_eq!(session.program, "family");
            let counted = &session.events[0];
            assert!(counted.estimate > Some(10_000_000), "{counted:#?}");
            assert_eq!(counted.estimate, counted.truth, "{counted:#?}");
        }
    }
}

#[test]
fn programs_look_after_their_counters_themselves() {
    for (pmu, instructions, branches) in [
        (Pmu::Intel, "INST_RETIRED.ANY", "BR_INST_RETIRED.ALL_BRANCHES"),
        (Pmu::Amd, "RETIRED_INSTRUCTIONS", "RETIRED_BRANCH_INSTRUCTIONS"),
        (Pmu::Zen3, "RETIRED_INSTRUCTIONS", "RETIRED_BRANCH_INSTRUCTIONS"),
    ] {
        let direct = |turns| format!("direct {instructions},{branches},r01c2 {turns}");
        // Longer than the scheduler's turns, and with another's overflow interrupts in between.
        let programs = [direct(500_000), direct(350_000), format!("share 3 {instructions} 100000")];
        let boot = boot(&Request {
            pmu,
            ..Request::new(format!("wire paranoid=0 -- {}", programs.join(" -- ")))
        });
        assert_success(&boot);
        let told = boot.transcript.text();
        assert_eq!(told.matches("direct: done").count(), 2, "{told}");
    }
}

#[test]
fn wild_system_calls_leave_the_kernel_right() {
    for (pmu, cpus, calls) in [(Pmu::Intel, 1, 16_000), (Pmu::Amd, 3, 24_000)] {
        let boot = boot(&fuzz::request(pmu, cpus, calls, 1));
        let told = boot.transcript.text();
        assert!(told.contains(fuzz::HELD), "{}\n{told}", boot.outcome);
        assert!(boot.transcript.done.is_some(), "{}", boot.outcome);
    }
}
