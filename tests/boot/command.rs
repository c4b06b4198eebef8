//! `cargo xtask run` as called by a user: its output, its files and its status.

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use tally_abi::ExitStatus;

use crate::{artefacts, machine_permit, on_host};

/// Runs `cargo xtask run` with these words.
pub fn run(words: &[&str]) -> Output {
    let _permit = machine_permit();
    tally("run", words)
}

/// Runs `cargo xtask TASK` with these words.
pub fn tally(task: &str, words: &[&str]) -> Output {
    on_host(Command::new(tool()).stdin(Stdio::null()).arg(task).args(words))
}

/// Path of the tool: the tests are in `deps`, next to it.
fn tool() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.ancestors().nth(2).unwrap().join("tally")
}

/// Path of a hosted guest.
pub fn guest(name: &str) -> String {
    let artefacts = artefacts();
    let path = artefacts.on_demand.iter().find(|path| path.ends_with(name)).unwrap();
    path.to_str().unwrap().to_owned()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_quiet_run_writes_what_the_program_writes_and_has_its_status() {
    let speaks = guest("speaks");
    let there = run(&["-q", "--file", &speaks, "--", "speaks", "64", "a b", ""]);
    let here = on_host(Command::new(&speaks).args(["64", "a b", ""]));
    assert_eq!(
        (text(&there.stdout), text(&there.stderr)),
        (text(&here.stdout), text(&here.stderr))
    );
    assert_eq!((there.stderr, there.status.code()), (here.stderr, Some(64)));
}

#[test]
fn a_run_says_whose_status_it_has() {
    let speaks = guest("speaks");
    let own = run(&["--file", &speaks, "--events", "instructions", "--", "speaks", "77"]);
    assert_eq!((text(&own.stdout), own.status.code()), ("[77]\nspeaks: done\n".into(), Some(77)));
    let notes = text(&own.stderr);
    assert!(notes.contains("\nxtask: speaks: ended with status 77\n"), "{notes}");
    assert!(notes.contains("exact  100.0%"), "the table: {notes}");

    let object = |output: &Output| -> serde_json::Value {
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
    };
    let own = run(&["-q", "--json", "--file", &speaks, "--", "speaks", "77"]);
    let json = object(&own);
    assert_eq!((&json["status"], &json["failures"]), (&77.into(), &serde_json::json!([])));
    assert_eq!(json["exits"], serde_json::json!([{ "program": "speaks", "status": 77 }]));
    assert!(text(&own.stderr).starts_with("[77]note"), "{own:?}");

    let little = ["-q", "--json", "--memory", "256M", "--file"];
    let failed = run(&[&little[..], &[&guest("mappings"), "--", "mappings", "300"]].concat());
    let json = object(&failed);
    assert_eq!(failed.status.code(), Some(u8::from(ExitStatus::OutOfMemory).into()));
    assert!(json["failures"][0].as_str().unwrap().starts_with("mappings crashed: "), "{json}");
    assert!(text(&failed.stderr).contains("xtask: mappings crashed: "), "{failed:?}");
}

#[test]
fn files_keep_their_paths_and_programs_have_their_arguments() {
    let folder = std::env::temp_dir().join(format!("tally-given-{}", std::process::id()));
    let long = format!("given/{}/x", "long".repeat(30));
    fs::create_dir_all(folder.join("given/sub")).unwrap();
    fs::create_dir_all(folder.join(&long).parent().unwrap()).unwrap();
    fs::write(folder.join(&long), "").unwrap();
    fs::create_dir(folder.join("given/empty")).unwrap();
    fs::write(folder.join("given/sub/in.txt"), "a line\n").unwrap();
    let (speaks, busybox) = (guest("speaks") + ":bin/speaks", guest("busybox"));
    let given = format!("{}:data", folder.join("given").display());
    let files = ["--file", &speaks, "--file", &busybox, "--file", &given];
    let programs = ["speaks", "0", "a b", "", "--", "speaks", "0", "\\--"];
    let more = ["--", "busybox", "find", "data", "--", "busybox", "cat", "data/sub/in.txt"];
    let there = run(&[&["-q"], &files[..], &["--"], &programs, &more].concat());
    fs::remove_dir_all(folder).unwrap();
    let output = text(&there.stdout);
    let long = long.replace("given", "data") + "\n";
    for part in ["[0][a b][]", "[0][--]", "data/empty\n", &long, "a line\n"] {
        assert!(output.contains(part), "{part}: {output}\n{}", text(&there.stderr));
    }
    assert_eq!(there.status.code(), Some(0));
}

/// Runs `tally stat` with these words and this text on a pipe as its input.
fn stat_with_input(words: &[&str], input: &str) -> Output {
    let _permit = machine_permit();
    let mut stat = Command::new(tool());
    stat.arg("stat").args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut stat = stat.stderr(Stdio::piped()).spawn().unwrap();
    stat.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    stat.wait_with_output().unwrap()
}

#[test]
fn stat_writes_its_file_here_and_programs_read_a_pipe() {
    let folder = std::env::temp_dir().join(format!("tally-stat-file-{}", std::process::id()));
    fs::create_dir_all(folder.join("sub")).unwrap();
    let (file, busybox) = (folder.join("sub/counts"), guest("busybox"));
    let path = file.to_str().unwrap();
    let out = folder.join("out");
    let words = ["-o", path, "-x,", "-e", "instructions", "--file", &busybox];
    let first = stat_with_input(&[&words[..], &["busybox", "cat"]].concat(), "text\nof a pipe\n");
    assert_eq!((text(&first.stdout), first.status.code()), ("text\nof a pipe\n".into(), Some(0)));
    let more = ["--append", "--out", out.to_str().unwrap(), "busybox", "touch", "made"];
    let second = stat_with_input(&[&words[..], &more].concat(), "");
    assert_eq!(second.status.code(), Some(0), "{second:?}");
    let counts = fs::read_to_string(&file).unwrap();
    assert_eq!(counts.matches(",instructions,").count(), 2, "{counts}");
    let made: Vec<_> = fs::read_dir(&out).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(made, ["made"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn counts_are_printed_also_where_a_program_s_output_cannot_be_written() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let _permit = machine_permit();
    let mut run = Command::new(tool());
    run.args(["run", "--events", "instructions", &guest("speaks"), "0"]);
    let run = run.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let ended = run.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(u8::from(ExitStatus::NoSpace).into()), "{said}");
    assert!(said.contains("exact  100.0%"), "{said}");
    assert!(said.lines().last().unwrap().contains("cannot write standard output"), "{said}");
}
