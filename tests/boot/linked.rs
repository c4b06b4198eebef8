//! Programs linked with the library from the folder of `cargo xtask sdk`: with glibc, musl, and the
//! standard libraries of C++ and Rust. Under Tally their counts are exact. On the machine that runs
//! the tests, each program reports that the kernel is not Tally, and continues.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use tally_abi::truth::RegionKind;
use xtask::{
    build::{
        HEADERS,
        archives::{self, Archives},
        hosted::{self, MUSL_KINDS},
    },
    docs::reference,
    machine::{self, Artefacts, Boot, Pmu, Request},
    project::Project,
    report::Report,
    sdk, setup,
};

use crate::{
    artefacts, assert_success, intervals::assert_errors_hold, machine_permit, on_host, output_of,
};

/// Message of the programs on another kernel.
const NOT_TALLY: &str = "this kernel is not Tally";

/// Runs a command and returns what it wrote to standard output.
fn output(command: &mut Command) -> String {
    let ran = on_host(command);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {}\n{errors}", ran.status);
    String::from_utf8(ran.stdout).unwrap()
}

/// Writes the library's folder outside the clone, as a user does, and builds with it. Returns the
/// programs, copied to a folder of the build, and removes the folder outside.
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

/// Builds the examples by their Makefile, the one in C also with other methods of linking.
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

/// Output of a program on this machine.
pub(crate) fn printed_here(program: &Path) -> String {
    output(&mut Command::new(program))
}

/// Boots a machine that runs these programs at the same time, each with these arguments.
pub(crate) fn boot_with(pmu: Pmu, programs: &[PathBuf], arguments: &str) -> Boot {
    boot_seeded(pmu, programs, arguments, 1)
}

/// Same as [`boot_with`], with another seed.
pub(crate) fn boot_seeded(pmu: Pmu, programs: &[PathBuf], arguments: &str, seed: u64) -> Boot {
    let command = |program: &PathBuf| format!(" -- {} {arguments}", name(program));
    let commands: String = programs.iter().map(command).collect();
    let artefacts = Artefacts { on_demand: programs.to_vec(), ..artefacts() };
    let request = Request { pmu, ..Request::new(format!("wire seed={seed}{commands}")) };
    let _permit = machine_permit();
    machine::boot(&artefacts, &request, &mut |_| {}).unwrap_or_else(|failure| panic!("{failure}"))
}

fn boot(pmu: Pmu, programs: &[PathBuf]) -> Boot {
    boot_with(pmu, programs, "")
}

/// The counts of each program's sessions are exact, threads included, and the program's result
/// equals that on this machine.
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
        assert!(printed.lines().any(|line| line.ends_with(" exact")), "{printed}");
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

/// Text of the README's first fenced block of this language that contains `words`.
fn snippet(language: &str, words: &str) -> String {
    let readme = fs::read_to_string(Project::here().root.join("README.md")).unwrap();
    let blocks = readme.split("```").skip(1).step_by(2);
    let mut texts = blocks.filter_map(|block| block.strip_prefix(&format!("{language}\n")));
    texts.find(|text| text.contains(words)).expect("the README has it").to_owned()
}

/// Builds the README's programs: in C by the commands there, in Rust in a new package.
fn build_snippets(folder: &Path) -> Vec<PathBuf> {
    let commands = snippet("sh", "-ltally");
    let compile = commands.lines().find(|line| line.starts_with("cc ")).unwrap();
    let word = |before: &str| compile.split(' ').skip_while(|word| *word != before).nth(1).unwrap();
    let source = compile.split(' ').find(|word| word.ends_with(".c")).unwrap();
    fs::write(folder.join(source), snippet("c", "main")).unwrap();
    // The home folder of the user who gave `~/tally` to `cargo xtask sdk`.
    fs::rename(folder.join("sdk"), folder.join("tally")).unwrap();
    output(Command::new("sh").args(["-c", compile]).current_dir(folder).env("HOME", folder));
    let example = folder.join("tally/examples/rust");
    fs::write(example.join("src/main.rs"), snippet("rust", "main")).unwrap();
    let target = Project::here().target.join("guest/sdk-rust");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(example).args(["build", "--release", "--target-dir"]).arg(&target);
    output(cargo.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS"));
    let rust = target.join("x86_64-unknown-linux-gnu/release/example-rust");
    vec![folder.join(word("-o")), rust]
}

#[test]
fn the_readme_s_programs_count_their_misses() {
    let programs = build("readme", build_snippets);
    let boot = boot(Pmu::Intel, &programs);
    assert_success(&boot);
    let sessions: Vec<_> = Report::of(&boot).sessions().cloned().collect();
    for (index, program) in programs.iter().enumerate() {
        let session = sessions.iter().find(|session| session.program == name(program)).unwrap();
        let printed = output_of(&boot, index, 1);
        let numbers = printed.split(|c: char| !c.is_ascii_digit());
        let misses = numbers.filter_map(|number| number.parse::<u64>().ok()).next().unwrap();
        let truth = session.events[0].truth.unwrap();
        assert!(misses > 0 && misses <= truth, "{printed}: {truth}");
        let here = on_host(&mut Command::new(program));
        let here = String::from_utf8([here.stdout, here.stderr].concat()).unwrap();
        assert!(here.contains(NOT_TALLY), "{here}");
    }
    let run = snippet("sh", "-ltally");
    let run = run.lines().find(|line| line.starts_with("cargo xtask run")).unwrap();
    let file = format!("./{}", name(&programs[0]));
    assert!(run.ends_with(&file), "{run} does not run what the line before it builds");
}

/// Functions declared by the headers: those of the archive, and the inline ones.
fn declared() -> (Vec<String>, Vec<String>) {
    let headers = Project::here().root.join(HEADERS);
    let read = |file| fs::read_to_string(headers.join(file)).unwrap();
    let header: String = reference::FILES.into_iter().map(read).collect();
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
    let Archives { tally, start, .. } = Archives::of(&Project::here());
    let mut found = archives::global_symbols(&tally).unwrap();
    found.sort();
    assert_eq!(found, declared().0);
    assert_eq!(archives::undefined_symbols(&tally).unwrap(), [""; 0]);
    assert!(archives::global_symbols(&start).unwrap().iter().any(|name| name == "_start"));
}

#[test]
fn the_reference_has_every_function_of_the_header() {
    let page = fs::read_to_string(Project::here().root.join(reference::PAGE)).unwrap();
    let (functions, inline) = declared();
    let documented =
        ["tally_counter", "tally_counter_error", "tally_counter_preload", "tally_preloaded"];
    assert!(documented.iter().all(|name| inline.iter().any(|of| of == name)), "{inline:?}");
    let names = functions.iter().map(String::as_str).chain(documented);
    let missing: Vec<_> =
        names.filter(|name| !page.contains(&format!("\n### `{name}`\n"))).collect();
    assert!(missing.is_empty(), "{} does not have {missing:?}", reference::PAGE);
}

/// Events for which the two processors have too few counters, instructions and branches first.
const MULTIPLEXED: &str = "instructions,branches,branch-misses,L1-dcache-loads,\
                           L1-dcache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-load-misses";

/// Compiles a C program of `tests/guests` with the library's folder.
fn compile_guest(source: &str) -> PathBuf {
    compile_with(source, "tally")
}

/// Compiles a C program of `tests/guests` with one of the folder's libraries.
pub(crate) fn compile_with(source: &str, library: &str) -> PathBuf {
    let compile = |folder: &Path| {
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-static"])
            .arg("-pthread")
            .arg(Project::here().root.join("tests/guests").join(source).with_extension("c"))
            .args(["-Isdk/include", "-Lsdk/lib", &format!("-l{library}"), "-o", source]);
        output(cc.current_dir(folder));
        vec![folder.join(source)]
    };
    build(source, compile).remove(0)
}

#[test]
fn regions_count_each_thread_and_each_rate_apart() {
    let program = compile_guest("regions");
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let boot = boot_with(pmu, std::slice::from_ref(&program), MULTIPLEXED);
        assert_success(&boot);
        let printed = output_of(&boot, 0, 1);
        let end = printed.split_once("regions: done\n").unwrap_or_else(|| panic!("{printed}")).1;
        assert!(!printed.contains("FAILED"), "{printed}");
        let regions = end.lines().filter(|line| line.starts_with("region ")).count();
        assert_eq!(regions, 8, "{printed}");
        assert_eq!(end.lines().count(), regions * (1 + MULTIPLEXED.split(',').count()));
    }
}

/// For each processor: more events than counters, by the vendor's names. The library itself causes
/// hardly any of them.
const RATES: [(Pmu, &str); 2] = [
    (
        Pmu::Intel,
        "BR_INST_RETIRED.COND_NTAKEN,BR_INST_RETIRED.COND_TAKEN,BR_MISP_RETIRED.ALL_BRANCHES,\
         MEM_LOAD_RETIRED.L1_MISS,MEM_LOAD_RETIRED.L2_MISS,MEM_LOAD_RETIRED.L2_HIT,\
         L1D.REPLACEMENT,LONGEST_LAT_CACHE.REFERENCE,L2_RQSTS.DEMAND_DATA_RD_MISS,\
         MEM_INST_RETIRED.ALL_LOADS,MEM_INST_RETIRED.ALL_STORES",
    ),
    (
        Pmu::Amd,
        "RETIRED_BRANCH_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED,\
         RETIRED_TAKEN_BRANCH_INSTRUCTIONS,RETIRED_OPS,REQUESTS_TO_L2_GROUP1.RD_BLK_L,\
         ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2,MAB_ALLOCATION_BY_TYPE.LS,\
         LS_DISPATCH.LD_DISPATCH,LS_DISPATCH.STORE_DISPATCH,L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT",
    ),
];

/// Upper bound of the library's own events at the ends of a region's visits, about 120 visits.
/// These events are in the region, but not in its truth. A visit has up to 160 instructions, 60
/// accesses and branches, and a few mispredicted branches and misses.
fn own_events(event: &str) -> f64 {
    let is_rare = |word: &&str| event.contains(*word);
    match event {
        "RETIRED_OPS" => 25_000.0,
        _ if ["MISP", "MISS", "HIT", "L1D", "L2", "REFERENCE", "ALLOC"].iter().any(is_rare) => {
            240.0
        }
        _ => 7200.0,
    }
}

/// Error of each value in half widths, in a boot with this seed.
fn errors(program: &Path, pmu: Pmu, events: &str, seed: u64) -> Vec<f64> {
    let boot = boot_seeded(pmu, &[program.to_owned()], events, seed);
    assert_success(&boot);
    let truth = boot.truth.as_ref().unwrap();
    let works = ["branch", "chase"];
    let tag = |region: &str| 1 + works.iter().position(|it| *it == region).unwrap_or(2) as u32;
    let error = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [region, event, kind, count, half_width] = words[..] else { panic!("{line}") };
        let truth = truth.region(RegionKind::Marked, tag(region)).unwrap().events[event].user;
        assert_eq!(kind, "estimated", "{line}");
        let (count, half_width): (f64, f64) = (count.parse().unwrap(), half_width.parse().unwrap());
        println!("seed {seed}: {line}, truth {truth}");
        let error = count - truth as f64;
        (-error).max(error - own_events(event)).max(0.0) / half_width
    };
    output_of(&boot, 0, 1).lines().map(error).collect()
}

/// Defines two tests of a program that counts three kinds of work separately, on each processor:
/// values are near the truth, and at least `$percent` % of several seeds' intervals contain it.
macro_rules! works {
    ($($module:ident: $source:literal, $percent:literal;)*) => {$(
        mod $module {
            use super::*;

            fn program() -> &'static Path {
                static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
                PROGRAM.get_or_init(|| compile_guest($source))
            }

            /// Counts credited to the wrong kind of work would make a value wrong by far more.
            #[test]
            fn values_of_one_run_hold_the_truth() {
                for (pmu, events) in RATES {
                    let errors = errors(program(), pmu, events, 1);
                    assert_errors_hold(&errors, 30);
                }
            }

            #[test]
            #[ignore = "long"]
            fn intervals_contain_the_truth() {
                for (pmu, events) in RATES {
                    let of_seed = |seed| errors(program(), pmu, events, seed);
                    let errors: Vec<f64> = (1..=3).flat_map(of_seed).collect();
                    let inside = errors.iter().filter(|error| **error <= 1.0).count();
                    let is_enough = inside * 100 >= errors.len() * $percent;
                    assert!(errors.len() >= 90 && is_enough, "{pmu:?}: {inside}");
                }
            }
        }
    )*};
}

works! {
    regions: "rates", 90;
    // Parts are reset, skipped and accumulated. Three threads have parts of one session, whose
    // instructions the program checks. Values of a run share its rounds, and three runs are few: 77
    // of 90 were observed.
    parts: "parts", 80;
}

#[test]
fn every_function_says_that_another_kernel_is_not_tally() {
    let source = Project::here().root.join("tests/guests/elsewhere.c");
    let text = fs::read_to_string(source).unwrap();
    let (functions, _) = declared();
    let unused = functions.iter().filter(|name| !text.contains(&format!("{name}(")));
    assert_eq!(unused.collect::<Vec<_>>(), [""; 0], "elsewhere.c does not call them");
    let program = compile_guest("elsewhere");
    let printed = printed_here(&program);
    assert!(printed.starts_with(&format!("elsewhere: {NOT_TALLY}")), "{printed}");
}
