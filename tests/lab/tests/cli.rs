//! Runs the laboratory's program without a boot: refused requests, and its help.

use std::process::{Command, Stdio};

use tally_abi::ExitStatus;

/// Exit status of the laboratory's program with these words.
fn status(words: &str) -> Option<i32> {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_lab"));
    lab.args(words.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
    lab.status().expect("it was built").code()
}

fn code(status: ExitStatus) -> Option<i32> {
    Some(u8::from(status).into())
}

#[test]
fn help_has_the_words_that_users_type() {
    let help = Command::new(env!("CARGO_BIN_EXE_lab")).args(["study", "--help"]).output();
    let help = help.expect("it was built");
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(help.status.success() && text.contains("Usage: cargo xtask study "), "{text}");
    assert_eq!(status("run"), code(ExitStatus::Usage));
}

#[test]
fn studies_refuse_lists_of_events_before_they_boot() {
    for (words, refused) in [
        ("live --events nonsense", ExitStatus::UnknownEvent),
        ("live --events cycles,nonsense --pmu amd", ExitStatus::UnknownEvent),
        ("live --events instructions:k", ExitStatus::CallRefused),
        ("unobserved --events nonsense", ExitStatus::UnknownEvent),
        ("unobserved --events cycles --slice 1", ExitStatus::SliceOutOfRange),
        ("error --refine --events nonsense", ExitStatus::UnknownEvent),
        ("error --programs --program hello", ExitStatus::Usage),
        ("phases --classes nonsense", ExitStatus::Usage),
        ("phases --seeds 0", ExitStatus::Usage),
        ("phases --pmu zen3", ExitStatus::EventNotSupported),
    ] {
        assert_eq!(status(&format!("study {words}")), code(refused), "{words}");
    }
}

#[test]
fn linux_refuses_options_before_it_fetches_anything() {
    for (words, refused) in [
        ("--icount --cpus 2 -- true", ExitStatus::Usage),
        ("--file /nonexistent -- true", ExitStatus::ProgramNotFound),
        ("--file Cargo.toml --file src/../Cargo.toml -- true", ExitStatus::Usage),
        ("--icount", ExitStatus::Usage),
        ("--vpmu speed=1 -- true", ExitStatus::Usage),
    ] {
        assert_eq!(status(&format!("linux {words}")), code(refused), "{words}");
    }
}

#[test]
fn compare_refuses_options_before_it_builds_anything() {
    for (words, refused) in [
        ("--events cycles", ExitStatus::Usage),
        ("--file Cargo.toml", ExitStatus::Usage),
        ("--file /nonexistent --events cycles", ExitStatus::ProgramNotFound),
        ("--file Cargo.toml --events nonsense", ExitStatus::UnknownEvent),
        ("--file Cargo.toml --events ,", ExitStatus::Usage),
        ("--file Cargo.toml --events branches:k", ExitStatus::Usage),
        ("--file Cargo.toml --events cycles --slice 9", ExitStatus::SliceOutOfRange),
        ("--file Cargo.toml --events cycles --vpmu profile=z80", ExitStatus::Usage),
    ] {
        assert_eq!(status(&format!("compare {words}")), code(refused), "{words}");
    }
}
