//! Programs with threads, signals and affinities: what they do here is what they do under Linux, and what
//! is counted of them is the truth.

use std::{os::unix::process::ExitStatusExt, process::Command};

use xtask::{
    machine::{Boot, Pmu, Request},
    project::Project,
    ramdisk,
    report::Report,
};

use crate::{artefacts, assert_success, boot, run, said};

/// What a program wrote to its two outputs, and its status as shells tell it.
type Ran = ([String; 2], i32);

/// Runs a program of the ramdisk here, under Linux, in a folder with the ramdisk's text.
fn under_linux(words: &str) -> Ran {
    let (name, arguments) = words.split_once(' ').unwrap_or((words, ""));
    let hosted = Project::here().target.join("guest/hosted");
    let folder = hosted.join(format!("run-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = ramdisk::file(&artefacts().boot.ramdisk, ramdisk::CORPUS).unwrap();
    std::fs::write(folder.join(ramdisk::CORPUS), text).unwrap();
    let done = Command::new(hosted.join(name))
        .args(arguments.split_whitespace())
        .current_dir(&folder)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let status = done.status.code().or(done.status.signal().map(|signal| 128 + signal));
    let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (said, status.unwrap())
}

/// Each of the programs that `boot` ran side by side did what it does under Linux.
fn assert_as_under_linux(boot: &Boot, programs: &[&str]) {
    for (index, words) in programs.iter().enumerate() {
        let (wanted, status) = under_linux(words);
        let told = [1, 2].map(|fd| said(boot, index, fd));
        assert_eq!(told, wanted, "{words}: {}", boot.outcome);
        let exit = (words.split(' ').next().unwrap().to_owned(), status);
        assert!(boot.transcript.exits.contains(&exit), "{exit:?}, {:?}", boot.transcript.exits);
    }
    assert_eq!(boot.transcript.panicked, None);
}

/// What was counted of every session, all the time, is the truth.
fn assert_exact(boot: &Boot, sessions: usize) {
    let report = Report::of(boot);
    assert_eq!(report.sessions().count(), sessions);
    for session in report.sessions() {
        for event in &session.events {
            assert_eq!(event.estimate, event.truth, "{}: {event:?}", session.program);
        }
    }
}

#[test]
fn threads_and_signals_do_here_what_they_do_under_linux() {
    // The kernel counts around the first three, which do not know of it. `files` is there once, as its files
    // have names.
    let programs = [
        "threads 8",
        "signals",
        "libc corpus.txt word",
        "libc-pie corpus.txt word",
        "threads-pie 3",
        "signals-pie",
        "signals 10",
        "signals 17",
        "rust corpus.txt 5",
        "files",
    ];
    for (pmu, cpus) in [(Pmu::Intel, 1), (Pmu::Amd, 2)] {
        let counted = "events=instructions,branches slice=50000";
        let counting = programs.join(" -- ").replacen("-- ", &format!("-- {counted} "), 2);
        let line = format!("wire -- {counted} {counting}");
        let boot = boot(&Request { pmu, cpus, ..Request::new(line) });
        assert_as_under_linux(&boot, &programs);
        assert_exact(&boot, 3);
    }
}

/// musl does much of this in other ways than glibc.
#[test]
fn programs_of_another_c_library_do_here_what_they_do_under_linux() {
    let programs = [
        "threads-musl 8",
        "signals-musl",
        "libc-musl corpus.txt word",
        "threads-musl-pie 3",
        "signals-musl-pie",
        "libc-musl-pie corpus.txt word",
        "affinity-musl",
        "files-musl",
    ];
    let line = format!("events=instructions,branches {}", programs.join(" -- "));
    let boot = run("", &line);
    assert_as_under_linux(&boot, &programs);
    assert_exact(&boot, 1);
}

#[test]
fn threads_and_programs_run_where_they_are_told_to() {
    for cpus in [2, 4] {
        let line = "wire -- affinity -- pinned -- affinity-pie -- threads let-be";
        let boot = boot(&Request { cpus, ..Request::new(line) });
        assert_success(&boot);
        assert_eq!(said(&boot, 0, 1), "affinity: done\n");
        assert_eq!(said(&boot, 1, 1), format!("pinned: done on {cpus} CPUs\n"));
        assert_eq!(said(&boot, 2, 1), "affinity: done\n");
        assert!(said(&boot, 3, 1).starts_with("threads: let be"), "{}", boot.outcome);
    }
}

/// Turns go to programs first, and then to a program's threads.
#[test]
fn turns_are_fair() {
    let boot = run("", "fair 4 1000 -- fair 1 1000");
    assert_success(&boot);
    let turns = |index| -> Vec<f64> {
        said(&boot, index, 1)
            .split(' ')
            .skip(1)
            .map(|turns| turns.trim().parse().unwrap())
            .collect()
    };
    let (four, one) = (turns(0), turns(1));
    assert_eq!((four.len(), one.len()), (4, 1));
    let whole: f64 = four.iter().sum();
    assert!((0.85..1.15).contains(&(whole / one[0])), "{four:?}, {one:?}");
    // Twelve or thirteen turns each.
    assert!(four.iter().all(|turns| (0.85..1.15).contains(&(turns * 4.0 / whole))), "{four:?}");
}
