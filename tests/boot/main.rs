//! Tests that boot a machine and check its end and its messages. tests/README.md lists the guest
//! program that each module runs.
//!
//! `cargo xtask test` builds the files to boot and passes their paths in an environment variable.
//! Each boot is a separate machine under TCG with the virtual PMU and has a time limit.
//!
//! Several tests may check one boot ([`SharedBoot`]), so that each test is about one behaviour.

mod attacks;
mod bank;
mod beside;
mod bottlenecks;
mod branch_cost;
mod branches;
mod breakdown;
mod check;
mod children;
mod command;
mod compare;
mod cpi;
mod crashes;
mod cycles;
mod debugging;
mod decode;
mod direct;
mod dynamic;
mod ends;
mod estimates;
mod export;
mod exposed;
mod foreign;
mod halts;
mod image;
mod intervals;
mod jobs;
mod large_pages;
mod linked;
mod linux;
mod linux_branches;
mod linux_precise;
mod linux_program;
mod live;
mod machines;
mod many_cpus;
mod memory;
mod merged;
mod metrics;
mod names;
mod outcomes;
mod overhead;
mod paper000;
mod paper002;
mod papi;
mod phases;
mod ports;
mod precise;
mod prefetch;
mod processors;
mod programs;
mod quirks;
mod recorded;
mod refined;
mod rejections;
mod repeat;
mod returned;
mod roofline;
mod sampled_threads;
mod samples;
mod scopes;
mod screen;
mod sessions;
mod shared;
mod sizes;
mod stacks;
mod stat;
mod steps;
mod stops;
mod targets;
mod threads;
mod thresholds;
mod traces;
mod turns;
mod unit;
mod unobserved;
mod version_6;
mod virtual_pmu;
mod what_if;
mod wide;
mod wrong_paths;

use std::{
    process::{Command, Output},
    time::Duration,
};

use xtask::{
    machine::{Artefacts, Boot, Request},
    process,
    report::{Kind, Report, SessionReport},
    run::RunArgs,
};

use self::shared::{SharedBoot, boot_drawn, machine_permit};

/// Longest permitted run of a program on the host, which may be slow; some tests build their
/// programs.
const HOST_LIMIT: Duration = Duration::from_secs(600);

/// Runs a program on the host.
fn on_host(command: &mut Command) -> Output {
    process::output_within(command, HOST_LIMIT)
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Files built by `cargo xtask test`.
fn artefacts() -> Artefacts {
    Artefacts::from_environment().unwrap_or_else(|failure| panic!("{failure}"))
}

/// Boots the requested machine.
fn boot(request: &Request) -> Boot {
    boot_with(&artefacts(), request)
}

/// Boots the requested machine from these files.
fn boot_with(artefacts: &Artefacts, request: &Request) -> Boot {
    boot_drawn(artefacts, request).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Boots one processor with Intel's virtual PMU and `programs`, with the kernel's `options`.
fn run(options: &str, programs: &str) -> Boot {
    boot(&Request::new(format!("wire {options} -- {programs}")))
}

/// First session of a `cargo xtask run …` command, which must succeed.
fn session_of(command: &str) -> SessionReport {
    let boot = boot(&RunArgs::of(command).and_then(|args| args.request()).expect("it is a run"));
    assert_success(&boot);
    Report::of(&boot).first.unwrap_or_else(|| panic!("{command}: no session"))
}

/// Exact count of an event, which must equal the truth.
fn exact(session: &SessionReport, name: &str) -> u64 {
    let event = session.events.iter().find(|event| event.name == name).expect(name);
    assert_eq!((event.kind, event.estimate), (Kind::Exact, event.truth), "{event:?}");
    event.truth.expect("there is the virtual PMU")
}

/// Panics with the outcome and all output unless every program ended with status 0.
fn assert_success(boot: &Boot) {
    assert!(boot.outcome.is_success(), "{}\n{}", boot.outcome, boot.transcript.text());
}

/// Panics unless the output contains `line`.
fn assert_output(boot: &Boot, line: &str) {
    let text = boot.transcript.text();
    assert!(text.contains(line), "no '{line}' in the output ({}):\n{text}", boot.outcome);
}

/// Panics unless every event that was counted all the time has exactly its true count.
fn assert_exact_counts_are_true(report: &Report) {
    for session in report.sessions() {
        for event in session.events.iter().filter(|event| event.kind == Kind::Exact) {
            assert_eq!(event.estimate, event.truth, "{}: {event:?}", session.program);
        }
    }
}

/// Bytes that the `index`th program of the command line wrote to the descriptor `fd`.
fn output_of(boot: &Boot, index: usize, fd: u8) -> String {
    let outputs = boot.transcript.output.iter();
    let own = outputs.filter(|output| output.pid as usize == index + 1 && output.fd == fd);
    String::from_utf8(own.flat_map(|output| output.bytes.clone()).collect()).unwrap()
}

/// Masks `text` for a snapshot: `#` for each number, one blank for several, and one line for equal
/// consecutive lines.
fn masked(text: &str) -> String {
    let word = |word: &str| {
        let is_part = |c: char| c.is_ascii_hexdigit() || "x,.".contains(c);
        let digits = word.trim_start_matches('(').trim_end_matches([',', ';']);
        let is_number =
            digits.starts_with(|c: char| c.is_ascii_digit()) && digits.chars().all(is_part);
        if is_number { word.replace(digits, "#") } else { word.to_owned() }
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ") + "\n";
    let mut lines: Vec<String> = text.lines().map(line).collect();
    lines.dedup();
    lines.concat()
}

/// Panics unless the kernel started `cpus` CPUs and uses at most 8 MiB, without programs and
/// ramdisk.
fn assert_small(boot: &Boot, cpus: u32) {
    let booted = boot.transcript.booted.as_ref().expect("the kernel reports its start");
    assert_eq!(booted.cpus, cpus);
    let memory_bytes = booted.memory_bytes;
    assert!(memory_bytes <= 8 << 20, "{memory_bytes} bytes for {cpus} CPUs");
}
