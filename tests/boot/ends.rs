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

#[test]
fn an_interrupt_leaves_the_mean_of_the_runs_done() {
    let speaks = guest("speaks");
    let words = ["stat", "-r", "99999", "-e", "instructions:u", &speaks, "0"];
    // The third run has begun.
    let lines = ["[0]", "speaks: done", "[0]", "speaks: done", "[0]"];
    let (_, said) = interrupted_at(&words, &lines, Duration::ZERO);
    let head = said.lines().find(|line| line.contains("Performance counter stats")).unwrap();
    let (_, runs) = head.split_once('(').unwrap();
    let runs: u64 = runs.split_once(" runs):").unwrap().0.parse().unwrap();
    assert!((2..99_999).contains(&runs), "{said}");
    assert!(said.contains("instructions:u"), "{said}");
    assert!(said.trim_end().ends_with("was stopped before its programs ended"), "{said}");
}

#[test]
fn an_interrupt_leaves_the_table_of_the_repeats_done() {
    let speaks = guest("speaks");
    let words = ["run", "--repeat", "999", "--events", "INST_RETIRED.ANY", &speaks, "0"];
    // Many times what two machines take on any host.
    let (table, said) = interrupted_at(&words, &[], Duration::from_secs(15));
    let head = table.lines().find_map(|line| line.split_once(" runs")).expect("a table of runs");
    let runs: u64 = head.0.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((2..999).contains(&runs), "{table}");
    assert!(table.lines().any(|line| line.starts_with("INST_RETIRED.ANY ")), "{table}");
    assert!(said.trim_end().ends_with("was stopped before its programs ended"), "{said}");
}

/// A limit of a file's size stands for a full disk: what is written meets an error in the middle.
#[test]
fn a_file_that_does_not_fit_leaves_no_part_of_itself() {
    let _permit = machine_permit();
    let folder = std::env::temp_dir().join(format!("tally-full-{}", std::process::id()));
    let tool = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("tally");
    // Of 512 or 1,024 bytes each, by the shell; the signal of the limit is ignored.
    let limited = "trap '' XFSZ; ulimit -f 20000; exec \"$0\" run --out \"$1\" \
        dd if=/dev/zero of=/tmp/large bs=1M count=24";
    let mut command = Command::new("sh");
    command.args(["-c", limited]).arg(tool).arg(&folder);
    let ended = command.stdin(Stdio::null()).output().unwrap();
    let stderr = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(u8::from(ExitStatus::HostError).into()), "{stderr}");
    assert!(stderr.lines().last().unwrap().contains("tmp/large: "), "{stderr}");
    let left = std::fs::read_dir(folder.join("tmp")).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(left, 0, "{stderr}");
}

/// Output of a command on a program that never ends, when it is interrupted.
fn interrupted(words: &[&str]) -> (String, String) {
    let endless = guest("endless");
    // It counts something before.
    interrupted_at(&[words, &[&endless]].concat(), &["working"], Duration::from_secs(1))
}

/// Output of a command that is interrupted some time after its programs have printed the lines
/// `first`.
fn interrupted_at(words: &[&str], first: &[&str], after: Duration) -> (String, String) {
    let _permit = machine_permit();
    let tool = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("tally");
    let mut command = Command::new(tool);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut ended = command.spawn().unwrap();
    let mut stdout = BufReader::new(ended.stdout.take().unwrap());
    let mut printed = String::new();
    for line in first {
        let before = printed.len();
        stdout.read_line(&mut printed).unwrap();
        assert_eq!(printed[before..].trim_end(), *line);
    }
    std::thread::sleep(after);
    let pid = ended.id().to_string();
    // Two at once are one: `timeout` sends its signal to the command and to the command's group.
    // One process sends both, because a busy host takes its time to start a second one.
    assert!(Command::new("kill").args(["-INT", &pid, &pid]).status().unwrap().success());
    let (mut rest, mut said) = (Vec::new(), Vec::new());
    stdout.read_to_end(&mut rest).unwrap();
    printed += &text(&rest);
    ended.stderr.take().unwrap().read_to_end(&mut said).unwrap();
    let said = text(&said);
    assert_eq!(ended.wait().unwrap().code(), Some(INTERRUPTED), "{said}");
    (printed, said)
}
