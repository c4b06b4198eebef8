//! Dynamic programs: the interpreter and the libraries come with the program, and it does the same
//! as on the host.

use std::{
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, Output},
};

use tally_abi::ExitStatus;

use crate::{
    command::{guest, run, text},
    on_host,
};

/// Runs `words` on a machine of each vendor, with further options of the run, and compares output
/// and status with the host's.
fn compare(options: &[&str], words: &[&str]) {
    let [program, arguments @ ..] = words else { panic!("no program") };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let here = on_host(Command::new(program).args(arguments).env_clear().current_dir(folder));
    for pmu in ["intel", "amd"] {
        let there = run(&[&["-q", "--pmu", pmu][..], options, words].concat());
        let shown = |output: &Output| {
            let signal = output.status.signal().map(|signal| 128 + signal);
            (text(&output.stdout), text(&output.stderr), output.status.code().or(signal))
        };
        assert_eq!(shown(&there), shown(&here), "{words:?} on {pmu}");
    }
}

#[test]
fn programs_with_shared_libraries_do_the_same_as_on_the_host() {
    for name in ["libc-dynamic", "libc-fixed", "signals-dynamic", "threads-dynamic"] {
        compare(&[], &[&guest(name)]);
    }
}

#[test]
fn libraries_beside_the_program_and_loaded_ones_are_found() {
    let (opens, plugin) = (guest("opens"), guest("plugin.so"));
    let given = format!("{plugin}:{plugin}");
    compare(&["--file", &given], &[&opens, &plugin]);
}

/// The program ends with an error of its own, and one line says which option it lacked.
#[test]
fn a_file_of_the_host_that_a_program_looks_for_in_vain_is_named() {
    let (opens, plugin) = (guest("opens"), guest("plugin.so"));
    let failed = run(&[&opens, &plugin]);
    assert_ne!(failed.status.code(), Some(0));
    let why = text(&failed.stderr);
    let line = format!("looked for {plugin}, which the machine does not have: add --file {plugin}");
    assert!(why.contains(&line), "{why}");
}

#[test]
fn code_that_a_program_writes_runs_with_leave_and_is_refused_without() {
    let jit = guest("jit");
    compare(&["--jit"], &[&jit]);
    let refused = run(&[&jit]);
    let why = text(&refused.stderr);
    assert!(why.contains("execution of memory without execute permission: for code"), "{why}");
    assert_eq!(refused.status.code(), Some(u8::from(ExitStatus::ProgramFault).into()));
}

#[test]
fn programs_run_in_every_layout_that_linux_loads() {
    for name in ["layout-shared", "layout-aligned", "layout-unread"] {
        compare(&[], &[&guest(name)]);
    }
    let writable = guest("layout-writable");
    compare(&["--jit"], &[&writable]);
    let refused = run(&[&writable]);
    let why = text(&refused.stderr);
    assert!(why.contains("both writable and executable: separate the two, or add --jit"), "{why}");
    assert_eq!(refused.status.code(), Some(u8::from(ExitStatus::NotRunnable).into()));
}

#[test]
fn programs_of_the_host_do_the_same_here() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/guests/dynamic/opens.c");
    let file = format!("{data}:{data}");
    for words in [
        &["/usr/bin/sort", "-r", data][..],
        &["/usr/bin/sha256sum", data],
        &["/bin/ls", "/nonexistent"],
        &["/bin/ls", "-ln", "--time-style=+", "/dev/null"],
        &["/usr/bin/grep", "-n", "main", data],
        &["/usr/bin/cmp", data, "/dev/zero"],
        &["/usr/bin/awk", "{ n += NF } END { print n, sqrt(n) }", data],
        &["/usr/bin/perl", "-ne", "$n += tr/e//; END { print \"$n\\n\"; exit 5 }", data],
    ] {
        // Not every host has every program.
        if Path::new(words[0]).exists() {
            compare(&["--file", &file], words);
        }
    }
}

#[test]
fn a_compiler_and_an_interpreter_of_the_host_do_the_same_here() {
    let line = |command: &mut Command| text(&on_host(command).stdout).trim().to_owned();
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dynamic.i");
    std::fs::write(&source, "int f(int x) { return x * 3 + 1; }\n").unwrap();
    let source = source.to_str().unwrap();
    let file = format!("{source}:{source}");
    let compiler = line(Command::new("cc").arg("-print-prog-name=cc1"));
    if Path::new(&compiler).is_absolute() {
        let options = ["-quiet", "-O2", "-fpreprocessed", source, "-o", "/dev/stdout"];
        compare(&["--file", &file], &[&[&*compiler], &options[..]].concat());
    }
    let python = "/usr/bin/python3";
    if Path::new(python).exists() {
        let path = "import sysconfig; print(sysconfig.get_path('stdlib'))";
        let library = line(Command::new(python).args(["-c", path]));
        let script = "import hashlib, json, math, sys; print(json.dumps([math.pi]), \
                      hashlib.sha256(b'x').hexdigest()); sys.exit(4)";
        let file = format!("{library}:{library}");
        compare(&["--file", &file], &[python, "-c", script]);
    }
}
