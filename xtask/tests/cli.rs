//! Runs `cargo xtask` without a boot: what it refuses, and output that cannot be written.

use std::{
    fs::File,
    process::{Command, Stdio},
};

use tally_abi::ExitStatus;

/// A device on which every write fails as on a full disk.
fn full() -> File {
    File::options().write(true).open("/dev/full").expect("Linux has it")
}

/// The exit status of `cargo xtask` with these words; `_` stands for a blank within a word.
fn status(words: &str, stdout: Stdio, stderr: Stdio) -> Option<i32> {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let words = words.split(' ').map(|word| word.replace('_', " "));
    xtask.args(words).stdout(stdout).stderr(stderr).status().expect("it was built").code()
}

fn code(status: ExitStatus) -> Option<i32> {
    Some(u8::from(status).into())
}

#[test]
fn an_unwritable_standard_error_is_ignored() {
    let run = |words| status(words, Stdio::null(), full().into());
    assert_eq!(run("trace /nonexistent"), code(ExitStatus::HostError));
    assert_eq!(run("run --explain --events nonsense"), code(ExitStatus::UnknownEvent));
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
    for words in
        ["vpmu-events icelake-server", "trace --describe", "run --explain", "run --explain --json"]
    {
        assert_eq!(
            status(words, full().into(), Stdio::null()),
            code(ExitStatus::NoSpace),
            "{words}"
        );
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        drop(reader);
        assert_eq!(status(words, writer.into(), Stdio::null()), Some(0), "{words}");
    }
}

#[test]
fn explain_refuses_what_a_run_refuses() {
    for (words, refused) in [
        ("-- stat -e cycles hello", None),
        ("-- stat -a hello", Some(ExitStatus::Usage)),
        ("-- stat --no-big-num -x, hello", Some(ExitStatus::Usage)),
        ("-- stat --shares foo hello", Some(ExitStatus::Usage)),
        ("-- stat -e instructions", Some(ExitStatus::Usage)),
        ("-- stat --slice 9 hello", Some(ExitStatus::SliceOutOfRange)),
        ("--events nonsense -- stat -e cycles hello", Some(ExitStatus::Usage)),
        ("--events cycles --env A -- hello", Some(ExitStatus::Usage)),
        ("--events cycles --stdin /nonexistent -- hello", Some(ExitStatus::ProgramNotFound)),
        ("--events cycles --memory 100M -- hello", Some(ExitStatus::Usage)),
        ("--events cycles -- hello -- foo", Some(ExitStatus::Usage)),
        ("--events cycles --file /nonexistent -- hello", Some(ExitStatus::ProgramNotFound)),
        ("--events cycles --file Cargo.toml --file src/../Cargo.toml", Some(ExitStatus::Usage)),
        ("--program deflate -- stat -e cycles hello", Some(ExitStatus::Usage)),
        ("-- record -e cycles,instructions hello", Some(ExitStatus::Usage)),
        ("--vpmu profile=z80", Some(ExitStatus::Usage)),
        ("--slice 0", Some(ExitStatus::Usage)),
        ("--slice 9", Some(ExitStatus::SliceOutOfRange)),
        ("-- stat --slice 0 hello", Some(ExitStatus::Usage)),
        ("--budget 0", Some(ExitStatus::Usage)),
        ("--budget 51", Some(ExitStatus::Usage)),
        ("--events ,", Some(ExitStatus::Usage)),
    ] {
        let status = status(&format!("run --explain {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, refused.map_or(Some(0), code), "{words}");
    }
}

#[test]
fn studies_refuse_lists_of_events_before_they_boot() {
    for (words, refused) in [
        ("live --events nonsense", ExitStatus::UnknownEvent),
        ("live --events cycles,nonsense --pmu amd", ExitStatus::UnknownEvent),
        ("live --events instructions:k", ExitStatus::CallRefused),
        ("unobserved --events nonsense", ExitStatus::UnknownEvent),
        ("unobserved --events cycles --slice 1", ExitStatus::SliceOutOfRange),
    ] {
        let status = status(&format!("study {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, code(refused), "{words}");
    }
}

#[test]
fn unobserved_values_need_a_list_that_is_known_and_a_virtual_pmu() {
    for (words, refused) in [
        ("--unobserved --events nonsense", ExitStatus::UnknownEvent),
        ("--unobserved --shares planned", ExitStatus::Usage),
        ("--unobserved -- stat -e cycles hello", ExitStatus::Usage),
        ("--unobserved --repeat 2", ExitStatus::Usage),
    ] {
        let status = status(&format!("run {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, code(refused), "{words}");
    }
}

#[test]
fn files_of_a_run_need_an_empty_folder() {
    for words in ["--out src", "--out Cargo.toml/x", "--out x --explain", "--out x --repeat 2"] {
        let status = status(&format!("run {words}"), Stdio::null(), Stdio::null());
        let is_refused = [ExitStatus::Usage, ExitStatus::HostError].map(code).contains(&status);
        assert!(is_refused, "{words}: {status:?}");
    }
}

#[test]
fn linux_refuses_options_before_it_fetches_anything() {
    for (words, refused) in [
        ("--icount --cpus 2 -- true", ExitStatus::Usage),
        ("--file /nonexistent -- true", ExitStatus::ProgramNotFound),
        ("--file Cargo.toml --file src/../Cargo.toml -- true", ExitStatus::Usage),
        ("--icount", ExitStatus::Usage),
    ] {
        let status = status(&format!("linux {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, code(refused), "{words}");
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
        let status = status(&format!("compare {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, code(refused), "{words}");
    }
}

#[test]
fn repeat_refuses_options_before_it_builds_anything() {
    for words in [
        "--repeat 1",
        "--repeat 1001",
        "--repeat 2 --explain",
        "--repeat 2 --gdb",
        "--repeat 2 --trace x",
        "--repeat 2 --seed 18446744073709551615",
    ] {
        let status = status(&format!("run {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, code(ExitStatus::Usage), "{words}");
    }
}
