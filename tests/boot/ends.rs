//! Runs that end before their programs do: the counts up to then are printed, and the reason last.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    time::Duration,
};

use tally_abi::ExitStatus;

use crate::{
    command::{guest, run, text},
    machine_permit,
};

/// Status of a command that a signal ended early.
const INTERRUPTED: i32 = 130;

/// Panics unless the last line is the reason, and the counts came before.
fn assert_ended(stderr: &str, reason: &str) {
    let mut lines = stderr.lines().filter(|line| line.starts_with("INST_RETIRED.ANY "));
    assert!(lines.any(|line| line.contains(" exact ")), "{stderr}");
    let last = stderr.lines().last().unwrap();
    assert!(last.contains(reason), "{stderr}");
}

#[test]
fn a_time_limit_leaves_the_counts_up_to_then() {
    let endless = guest("endless");
    // Longer than any host takes to start the machine.
    let ended = run(&["-v", "--time-limit", "20", &endless, "waits"]);
    let stderr = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(u8::from(ExitStatus::TimedOut).into()), "{stderr}");
    assert_ended(&stderr, "the machine did not end within 20 s");
    assert!(!stderr.contains("last lines of the log"), "{stderr}");
}

#[test]
fn an_interrupt_leaves_the_counts_up_to_then() {
    let (_, said) = interrupted(&["run", "-v"]);
    assert_ended(&said, "the machine was stopped before its programs ended");
    let (_, said) = interrupted(&["stat", "-e", "instructions:u"]);
    let counts = said.lines().find(|line| line.contains("instructions:u")).unwrap();
    let count: u64 = counts.split_whitespace().next().unwrap().replace(',', "").parse().unwrap();
    assert!(count > 1_000_000, "{said}");
}

/// Output of a command on a program that never ends, when it is interrupted.
fn interrupted(words: &[&str]) -> (String, String) {
    let _permit = machine_permit();
    let tool = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("tally");
    let mut command = Command::new(tool);
    command.args(words).arg(guest("endless")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut ended = command.spawn().unwrap();
    let mut stdout = BufReader::new(ended.stdout.take().unwrap());
    let mut printed = String::new();
    stdout.read_line(&mut printed).unwrap();
    assert_eq!(printed, "working\n");
    // It counts something before.
    std::thread::sleep(Duration::from_secs(1));
    let pid = ended.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let mut said = String::new();
    stdout.read_to_string(&mut printed).unwrap();
    ended.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(ended.wait().unwrap().code(), Some(INTERRUPTED), "{said}");
    (printed, said)
}
