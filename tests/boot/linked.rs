//! Programs that are linked with the library from the folder of `cargo xtask sdk`: with glibc, musl,
//! C++'s and Rust's standard library. Under Tally their counts are exact; on the machine that the
//! tests run on, each says that the kernel is not Tally, and goes on.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use xtask::{
    build::{
        HEADERS,
        archives::{self, Archives},
        hosted::{self, MUSL_KINDS},
    },
    machine::{self, Artefacts, Boot, Pmu, Request},
    process,
    project::Project,
    report::Report,
    sdk, setup,
};

use crate::{artefacts, assert_success, machine_permit, output_of};

/// The sentence on another kernel.
const NOT_TALLY: &str = "this kernel is not Tally";

/// Runs a command and returns what it wrote to standard output.
fn output(command: &mut Command) -> String {
    let ran = process::output(command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {}\n{errors}", ran.status);
    String::from_utf8(ran.stdout).unwrap()
}

/// Writes the library's folder outside the clone, as a user does, and builds with it. Returns the
/// programs, copied to a folder of the build; the folder outside is removed.
fn build(name: &str, programs: impl FnOnce(&Path) -> Vec<PathBuf>) -> Vec<PathBuf> {
    let project = Project::here();
    let folder = std::env::temp_dir().join(format!("tally-{name}-{}", std::process::id()));
    sdk::write(&project, &Archives::of(&project), &folder.join("sdk")).unwrap();
    let to = project.target.join("guest").join(name);
    fs::create_dir_all(&to).unwrap();
    let copy = |program: PathBuf| {
        let copied = to.join(program.file_name().unwrap());
        fs::copy(&program, &copied).unwrap();
        copied
    };
    let copied = programs(&folder).into_iter().map(copy).collect();
    fs::remove_dir_all(&folder).unwrap();
    copied
}

/// The examples, built by their Makefile; the one in C also with other ways to link.
fn build_examples(folder: &Path) -> Vec<PathBuf> {
    let examples = folder.join("sdk/examples");
    let target = Project::here().target.join("guest/sdk-rust");
    let mut make = Command::new("make");
    make.current_dir(&examples).arg(format!("RUST_TARGET={}", target.display()));
    output(make.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS"));
    let built = ["example-c", "example-cpp", "example-rust"];
    let mut programs: Vec<PathBuf> = built.iter().map(|program| examples.join(program)).collect();
    let pie = examples.join("example-c-pie");
    let linked = ["-O2", "-pthread", "example.c", "-I../include", "-L../lib", "-ltally", "-o"];
    let mut cc = Command::new("cc");
    output(cc.current_dir(&examples).arg("-static-pie").args(linked).arg(&pie));
    programs.push(pie);
    let musl = setup::musl(&Project::here()).unwrap();
    for kind in MUSL_KINDS {
        let program = examples.join(format!("example-c{}", kind.suffix));
        let arguments = [
            examples.join("example.c"),
            format!("-I{}", folder.join("sdk/include").display()).into(),
            folder.join("sdk/lib/libtally.a"),
        ];
        hosted::compile_with_musl(&musl, kind, &arguments, &program).unwrap();
        programs.push(program);
    }
    programs
}

fn examples() -> &'static [PathBuf] {
    static EXAMPLES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    EXAMPLES.get_or_init(|| build("linked", build_examples))
}

fn name(program: &Path) -> &str {
    program.file_name().and_then(|name| name.to_str()).expect("names are text")
}

/// What a program prints on this machine.
fn printed_here(program: &Path) -> String {
    output(&mut Command::new(program))
}

/// Boots a machine that runs these programs at the same time.
fn boot(pmu: Pmu, programs: &[PathBuf]) -> Boot {
    let names: Vec<&str> = programs.iter().map(|program| name(program)).collect();
    let artefacts = Artefacts { on_demand: programs.to_vec(), ..artefacts() };
    let request = Request { pmu, ..Request::new(format!("wire -- {}", names.join(" -- "))) };
    let _permit = machine_permit();
    machine::boot(&artefacts, &request, &mut |_| {}).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Each program's sessions count exactly, threads included, and the program's result is the same as
/// on this machine.
fn check_examples(pmu: Pmu) {
    let boot = boot(pmu, examples());
    assert_success(&boot);
    let report = Report::of(&boot);
    for (index, program) in examples().iter().enumerate() {
        let session = report.sessions().find(|session| session.program == name(program));
        let session = session.unwrap_or_else(|| panic!("{} has a session", name(program)));
        let known: Vec<_> = session.events.iter().filter(|event| event.truth.is_some()).collect();
        assert!(known.len() >= 2 && known[0].truth > Some(1_000_000), "{:?}", session.events);
        for event in known {
            assert_eq!(event.estimate, event.truth, "{}: {event:?}", session.program);
        }
        let printed = output_of(&boot, index, 1);
        let result = |printed: &str| printed.lines().last().map(str::to_owned);
        assert_eq!(result(&printed), result(&printed_here(program)), "{}", name(program));
        assert!(printed.contains(" instructions") || printed.contains(" exact"), "{printed}");
    }
}

#[test]
fn linked_programs_are_counted_exactly_on_intel() {
    check_examples(Pmu::Intel);
}

#[test]
fn linked_programs_are_counted_exactly_on_amd() {
    check_examples(Pmu::Amd);
}

#[test]
fn on_another_kernel_linked_programs_say_so_and_go_on() {
    for program in examples() {
        let printed = printed_here(program);
        assert!(printed.contains(NOT_TALLY) && printed.lines().count() == 2, "{printed}");
    }
}

/// The functions that `tally.h` declares: those of the archive, and those that are inline.
fn declared() -> (Vec<String>, Vec<String>) {
    let header = Project::here().root.join(HEADERS).join("tally.h");
    let header = fs::read_to_string(header).unwrap();
    let name = |line: &str| {
        let before = line.split_once('(')?.0;
        let name = before.rsplit([' ', '*']).next()?;
        name.starts_with("tally_").then(|| name.to_owned())
    };
    let is_declaration = |line: &&str| line.starts_with(|c: char| c.is_ascii_alphabetic());
    let lines = header.lines().filter(is_declaration).filter(|line| !line.starts_with("typedef"));
    let (inline, others): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with("static "));
    let names = |lines: Vec<&str>| {
        let mut names: Vec<String> = lines.into_iter().filter_map(name).collect();
        names.sort();
        names.dedup();
        names
    };
    (names(others), names(inline))
}

#[test]
fn the_archive_has_the_functions_of_the_header_and_no_other_symbol() {
    let Archives { tally, start } = Archives::of(&Project::here());
    let mut found = archives::global_symbols(&tally).unwrap();
    found.sort();
    assert_eq!(found, declared().0);
    assert_eq!(archives::undefined_symbols(&tally).unwrap(), [""; 0]);
    assert!(archives::global_symbols(&start).unwrap().iter().any(|name| name == "_start"));
}

#[test]
fn every_function_says_that_another_kernel_is_not_tally() {
    let source = Project::here().root.join("tests/guests/elsewhere.c");
    let text = fs::read_to_string(&source).unwrap();
    let (functions, _) = declared();
    let unused: Vec<_> =
        functions.iter().filter(|name| !text.contains(&format!("{name}("))).collect();
    assert!(unused.is_empty(), "elsewhere.c does not call {unused:?}");
    let compile = |folder: &Path| {
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-static"])
            .arg(&source)
            .args(["-Isdk/include", "-Lsdk/lib", "-ltally", "-o", "elsewhere"]);
        output(cc.current_dir(folder));
        vec![folder.join("elsewhere")]
    };
    let program = build("elsewhere", compile).remove(0);
    let printed = printed_here(&program);
    assert!(printed.starts_with(&format!("elsewhere: {NOT_TALLY}")), "{printed}");
}
