//! Tests of jobs from the command line and from a file, and of the kernel's command line for them.

use std::fs;

use clap::FromArgMatches;
use expect_test::expect;

use super::*;

/// The options of a command that has a trace, from these words.
fn workload(words: &[&str]) -> Workload {
    let command = Workload::augment_args(clap::Command::new("run").no_binary_name(true));
    let trace = clap::Arg::new("trace").long("trace").action(clap::ArgAction::SetTrue);
    let mut parsed = command.arg(trace).try_get_matches_from(words).unwrap();
    Workload::from_arg_matches_mut(&mut parsed).unwrap()
}

/// Calls `with` with the options for a file of jobs, in addition to `words`.
fn with_jobs<T>(name: &str, text: &str, words: &[&str], with: impl FnOnce(Workload) -> T) -> T {
    let path = std::env::temp_dir().join(format!("xtask-{name}-{}.jobs", std::process::id()));
    fs::write(&path, text).unwrap();
    let done = with(workload(&[&["--jobs", path.to_str().unwrap()], words].concat()));
    fs::remove_file(path).unwrap();
    done
}

#[test]
fn the_options_of_a_workload_are_on_the_kernel_s_command_line() {
    let words = ["--log", "warn", "--date", "7", "--trace", "--trace-last", "--events", "a,b"];
    let halt = ["--halt", "5,1000", "--env", "A=b c", "--", "prog", "x y", "--", "other"];
    let line = workload(&[&words[..], &halt].concat()).command_line("wire", true).unwrap();
    expect![[
        r#"seed=1 wire log=warn date=7 trace=last halt=5,1000,0 -- env=A=b\sc events=a,b prog x\sy -- env=A=b\sc events=a,b other"#
    ]]
    .assert_eq(&line);
}

#[test]
fn what_a_trace_does_where_its_reader_is_slow_is_on_the_kernel_s_command_line() {
    let line = |words: &[&str]| workload(words).command_line("wire", true).unwrap();
    let halting = line(&["--trace", "--trace-halt", "--trace-ring", "16", "--", "prog"]);
    assert!(halting.contains(" trace=halt trace-ring=16 "), "{halting}");
    let small = line(&["--trace", "--trace-ring", "2", "--", "prog"]);
    assert!(small.contains(" trace trace-ring=2 "), "{small}");
    assert!(workload(&["--trace", "--trace-halt", "--trace-ring", "15"]).tracing.error().is_some());
}

#[test]
fn jobs_of_a_file_follow_each_other() {
    let text = "# two jobs\n\n--program deflate,rounds --slice 9000\n \
                --events 'a,b' --env 'A=b c' -- prog \"x y\" -- stat -e c p\n-- stat -e c prog ---\n";
    let line = with_jobs("jobs", text, &["--seed", "7"], |jobs| {
        let read = jobs.read().unwrap();
        assert!(read.programs().is_empty());
        (read.command_line("wire", false), jobs.command_line("wire", false))
    });
    assert_eq!(line.0, line.1);
    let why = line.0.unwrap_err().message;
    assert!(why.contains(".jobs:4: --events, --slice, --budget"), "{why}");
    let text = text.replace(" -- stat -e c p\n", "\n");
    let line = with_jobs("two", &text, &["--seed", "7"], |jobs| jobs.command_line("wire", false));
    expect![[
        r#"seed=7 wire -- deflate --slice 9000 -- rounds --slice 9000 --- env=A=b\sc events=a,b prog x\sy --- tally stat -e c prog \--"#
    ]]
    .assert_eq(&line.unwrap());
}

#[test]
fn a_line_that_is_no_job_is_named() {
    for (text, why) in [
        ("# none\n", ": no job: write one in each line"),
        ("\n--seed 3 -- prog\n", ":2: --seed is one of the whole machine: give it beside --jobs"),
        ("-- prog 'x\n", ":1: a quotation mark is missing"),
        ("--what\n", ":1: unexpected argument '--what' found"),
        ("--program a -- b\n", ":1: the argument '--program <NAME>' cannot be used with "),
        ("--events ' '\n", ":1: --events names no event: name one, or omit the option"),
        ("--slice 5 -- prog\n", ":1: slice of 5 cycles is out of range: use "),
    ] {
        let refused = with_jobs("bad", text, &[], |jobs| jobs.check(None)).unwrap_err();
        let (_, rest) = refused.message.split_once(".jobs").unwrap();
        assert!(rest.starts_with(why), "{text}: {refused}");
    }
}

#[test]
fn events_that_a_processor_lacks_and_programs_that_are_none_are_refused_before_a_boot() {
    let pmu = crate::machine::virtual_pmu_of(crate::machine::Pmu::Intel, &[]).unwrap();
    let refused = with_jobs("events", "--events cycles\n--events cyclse\n", &[], |jobs| {
        jobs.check_events(&pmu, true).unwrap_err()
    });
    assert_eq!(refused.status, ExitStatus::UnknownEvent);
    assert!(refused.message.contains(".jobs:2: cyclse: "), "{refused}");
    let refused =
        with_jobs("programs", "-- deflate\n-- nobody\n", &[], |jobs| jobs.located().unwrap_err());
    assert_eq!(refused.status, ExitStatus::ProgramNotFound);
    assert!(refused.message.contains(".jobs:2: nobody: "), "{refused}");
}
