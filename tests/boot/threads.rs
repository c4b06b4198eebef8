//! Programs with threads, signals and affinities behave as under Linux, and their counts are exact.

use std::{os::unix::process::ExitStatusExt, process::Command};

use xtask::{
    machine::{Boot, Pmu, Request},
    project::Project,
    ramdisk,
    report::Report,
};

use crate::{SharedBoot, artefacts, assert_success, on_host, output_of};

/// Output of a program on descriptors 1 and 2, and its status as shells report it.
type Run = ([String; 2], i32);

/// Runs a program of the ramdisk under Linux, in a folder with the ramdisk's text.
fn run_under_linux(words: &str) -> Run {
    let (name, arguments) = words.split_once(' ').unwrap_or((words, ""));
    let hosted = Project::here().target.join("guest/hosted");
    let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-");
    let folder = hosted.join(format!("run-{name}-{}-{thread}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = ramdisk::file(&artefacts().boot.ramdisk, ramdisk::CORPUS).unwrap();
    std::fs::write(folder.join(ramdisk::CORPUS), text).unwrap();
    let mut program = Command::new(hosted.join(name));
    let ran = on_host(program.args(arguments.split_whitespace()).current_dir(&folder));
    std::fs::remove_dir_all(&folder).unwrap();
    let status = ran.status.code().or(ran.status.signal().map(|signal| 128 + signal));
    let output = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output, status.unwrap())
}

/// Panics unless the `index`th program of the command line, `words`, behaved as under Linux.
fn assert_as_under_linux(boot: &Boot, index: usize, words: &str) {
    let (expected, status) = run_under_linux(words);
    let output = [1, 2].map(|fd| output_of(boot, index, fd));
    assert_eq!(output, expected, "{words}: {}", boot.outcome);
    let exit = (words.split(' ').next().unwrap().to_owned(), status);
    assert!(boot.transcript.exits.contains(&exit), "{exit:?}, {:?}", boot.transcript.exits);
}

/// Panics unless there are `sessions` sessions and each of their events has its true count.
fn assert_exact(boot: &Boot, sessions: usize) {
    let report = Report::of(boot);
    assert_eq!(report.sessions().count(), sessions);
    for session in report.sessions() {
        for event in &session.events {
            assert_eq!(event.estimate, event.truth, "{}: {event:?}", session.program);
        }
    }
}

/// Defines a boot that runs programs at the same time, with a session of the kernel on each of the
/// first `counted`. One test per program checks that its output is the same as under Linux; another
/// checks that the counts are exact.
macro_rules! as_under_linux {
    ($module:ident on $pmu:expr, $cpus:literal CPUs, first $counted:literal counted:
     $($test:ident: $program:literal,)*) => {
        mod $module {
            use super::*;

            const PROGRAMS: &[&str] = &[$($program),*];

            static BOOT: SharedBoot =
                SharedBoot::new(|| side_by_side($pmu, $cpus, $counted, PROGRAMS));

            $(
                #[test]
                fn $test() {
                    let index = PROGRAMS.iter().position(|other| *other == $program);
                    assert_as_under_linux(BOOT.get(), index.unwrap(), $program);
                }
            )*

            #[test]
            fn counts_of_threads_and_handlers_are_exact() {
                assert_exact(BOOT.get(), $counted);
            }
        }
    };
}

/// Machine with these programs. The kernel counts around the first `counted`.
fn side_by_side(pmu: Pmu, cpus: usize, counted: usize, programs: &[&str]) -> Request {
    let words = programs.iter().enumerate().map(|(index, program)| {
        if index < counted {
            format!("events=instructions,branches slice=50000 {program}")
        } else {
            (*program).to_owned()
        }
    });
    let line = format!("wire -- {}", words.collect::<Vec<_>>().join(" -- "));
    Request { pmu, cpus, ..Request::new(line) }
}

/// Defines the boots of programs with glibc on several machines.
macro_rules! with_glibc {
    ($($module:ident on $pmu:expr, $cpus:literal CPUs;)*) => {$(
        // `files` runs once, because the files that it creates have fixed names.
        as_under_linux! { $module on $pmu, $cpus CPUs, first 3 counted:
            glibc_threads: "threads 8",
            glibc_signals: "signals",
            glibc_text_math_and_memory: "libc corpus.txt word",
            glibc_text_math_and_memory_position_independent: "libc-pie corpus.txt word",
            glibc_threads_position_independent: "threads-pie 3",
            glibc_signals_position_independent: "signals-pie",
            exit_by_sigusr1: "endings 10",
            ignored_sigchld: "endings 17",
            rust_standard_library: "rust corpus.txt 5",
            glibc_files: "files",
            glibc_mappings: "mappings",
            glibc_folders: "folders",
            glibc_streams: "streams",
            glibc_queued_signals_timers_and_clocks: "queued",
            glibc_scheduling_barriers_and_limits: "sched",
        }
    )*};
}

with_glibc! {
    on_intel on Pmu::Intel, 1 CPUs;
    on_amd_with_two_cpus on Pmu::Amd, 2 CPUs;
}

// musl uses other system calls than glibc for much of this work.
as_under_linux! { with_musl on Pmu::Intel, 1 CPUs, first 1 counted:
    musl_threads: "threads-musl 8",
    musl_signals: "signals-musl",
    musl_text_math_and_memory: "libc-musl corpus.txt word",
    musl_threads_position_independent: "threads-musl-pie 3",
    musl_signals_position_independent: "signals-musl-pie",
    musl_text_math_and_memory_position_independent: "libc-musl-pie corpus.txt word",
    musl_affinity: "affinity-musl",
    musl_files: "files-musl",
    musl_mappings: "mappings-musl",
    musl_folders: "folders-musl",
    musl_streams: "streams-musl",
    musl_scheduling_barriers_and_limits: "sched-musl",
}

// Both make threads and wait for them by calls that C programs rarely make.
as_under_linux! { with_libraries_of_compilers on Pmu::Amd, 1 CPUs, first 1 counted:
    openmp: "openmp",
    cpp_streams_exceptions_and_folders: "iostreams",
}

as_under_linux! { with_a_changed_ramdisk on Pmu::Intel, 1 CPUs, first 1 counted:
    writes_to_a_file_of_the_ramdisk: "files corpus.txt",
}

/// Programs and threads with affinities, on `cpus` CPUs.
fn affinities(cpus: usize) -> Request {
    let line = "wire -- affinity -- pinned -- affinity-pie -- threads let-be";
    Request { cpus, ..Request::new(line) }
}

static ON_TWO_CPUS: SharedBoot = SharedBoot::new(|| affinities(2));
static ON_FOUR_CPUS: SharedBoot = SharedBoot::new(|| affinities(4));

#[test]
fn threads_run_on_the_cpus_of_their_affinity() {
    for boot in [&ON_TWO_CPUS, &ON_FOUR_CPUS] {
        let boot = boot.get();
        assert_success(boot);
        for index in [0, 2] {
            assert_eq!(output_of(boot, index, 1), "affinity: done\n");
        }
    }
}

#[test]
fn child_programs_run_on_the_cpus_of_their_affinity() {
    for (boot, cpus) in [(&ON_TWO_CPUS, 2), (&ON_FOUR_CPUS, 4)] {
        assert_eq!(output_of(boot.get(), 1, 1), format!("pinned: done on {cpus} CPUs\n"));
    }
}

#[test]
fn an_affinity_call_on_a_running_child_survives_that_its_argument_is_unmapped() {
    for boot in [&ON_TWO_CPUS, &ON_FOUR_CPUS] {
        let boot = boot.get();
        let output = output_of(boot, 3, 1);
        assert!(output.starts_with("threads: let be"), "{output}, {}", boot.outcome);
    }
}

/// Work done by each thread of two programs: one with four threads, one with a single thread.
fn work_of_threads() -> [Vec<f64>; 2] {
    static BOOT: SharedBoot =
        SharedBoot::new(|| Request::new("wire -- fair 4 1000 -- fair 1 1000"));
    let boot = BOOT.get();
    assert_success(boot);
    [0, 1].map(|index| {
        let output = output_of(boot, index, 1);
        output.split(' ').skip(1).map(|count| count.trim().parse().unwrap()).collect()
    })
}

#[test]
fn programs_have_equal_shares_of_a_cpu_however_many_threads_they_have() {
    let [four, one] = work_of_threads();
    assert_eq!((four.len(), one.len()), (4, 1));
    let ratio = four.iter().sum::<f64>() / one[0];
    assert!((0.85..1.15).contains(&ratio), "{four:?}, {one:?}");
}

/// Each thread has twelve or thirteen turns.
#[test]
fn threads_of_a_program_have_equal_shares_of_its_time() {
    let [four, _] = work_of_threads();
    let mean = four.iter().sum::<f64>() / 4.0;
    assert!(four.iter().all(|work| (0.85..1.15).contains(&(work / mean))), "{four:?}");
}
