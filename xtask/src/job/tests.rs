//! Tests of the command lines of jobs.

use super::*;
use expect_test::expect;
use tally_abi::{
    boot::{CommandLine, CounterCheck, Program, Tracing},
    words::unescape,
};

fn job() -> Job {
    Job {
        program: vec!["deflate".into(), "spin".into()],
        events: Some("A,B".into()),
        slice: Some(Slice::Cycles(MIN_SLICE)),
        budget: Some(0.5),
        shares: Some(Shares::Adaptive),
        seed: 7,
        cpus: 2,
        ..Job::default()
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn a_check_counts_in_direct_mode_and_reports_what_cpus_find() {
    let text = Job { check: true, ..Job::default() }.command_line("wire check-counters cpus=2");
    let line = CommandLine::parse(&text).unwrap();
    assert_eq!((line.paranoid, line.cpus), (0, 2));
    assert_eq!(line.check_counters, Some(CounterCheck::Report));
    let mut words = line.programs().flat_map(|program| program.unwrap().words);
    assert_eq!((words.next(), words.next()), (Some("tally-check"), None));
}

#[test]
fn the_kernel_parses_the_command_line() {
    let text = job().command_line("wire trace");
    let line = CommandLine::parse(&text).unwrap();
    assert_eq!((line.seed, line.wire, line.trace), (7, true, Some(Tracing::Stream)));
    let of = |program: Program<'_>| program.words.map(str::to_owned).collect::<Vec<_>>();
    let programs: Vec<_> = line.programs().map(|program| of(program.unwrap())).collect();
    let first = "deflate --events A,B --slice 1800 --budget 0.5 --shares adaptive";
    assert_eq!(programs[0], words(first));
    assert_eq!(programs[1][0], "spin");
}

#[test]
fn the_kernel_opens_a_session_around_a_command() {
    let command = ["prog", "-x", "y"].map(str::to_owned);
    let text = job().around("wire", &command).unwrap();
    let line = CommandLine::parse(&text).unwrap();
    let program = line.programs().next().unwrap().unwrap();
    assert_eq!(program.words.collect::<Vec<_>>(), ["prog", "-x", "y"]);
    let (events, config) = program.measure.unwrap();
    assert_eq!((events, config.slice.length(), config.budget_ppm), ("A,B", MIN_SLICE, 5_000));
    assert_eq!(config.shares, Shares::Adaptive);
    assert_eq!(job().around("", &[]), Ok(job().command_line("")));
}

#[test]
fn a_command_is_one_program() {
    let read = |command: &str| -> Vec<String> {
        let text = Job::default().around("", &words(command)).unwrap();
        let line = CommandLine::parse(&text).unwrap();
        let programs: Vec<_> = line.programs().map(|program| program.unwrap()).collect();
        assert_eq!(programs.len(), 1, "{text}");
        programs[0].words.clone().map(str::to_owned).collect()
    };
    let stat = words("tally stat -e a prog -x");
    assert_eq!(read("stat -e a -- prog -x"), stat);
    assert_eq!(read("tally stat -e a -- prog -x"), stat);
    assert_eq!(read("stat -e a prog -x"), stat);
    for (bad, word) in [
        ("prog --", "missing"),
        ("-- prog", "missing"),
        ("prog -- -- other", "missing"),
        ("stat -e a prog --", "missing"),
        ("stat --per-core prog", "--per-core: the kernel does not tell"),
        ("stat -e a", "name the program"),
    ] {
        let refused = Job::default().around("", &words(bad)).unwrap_err();
        assert_eq!(refused.status, ExitStatus::Usage);
        assert!(refused.message.contains(word), "{bad}: {refused}");
    }
}

#[test]
fn words_with_blanks_and_empty_words_arrive() {
    let job = Job { env: vec!["A=b c".into()], stdin: Some("in put".into()), ..Job::default() };
    let command = ["prog", "a b", "", "\\", "tab\t", "\\--"].map(str::to_owned);
    let text = job.around("", &command).unwrap();
    let line = CommandLine::parse(&text).unwrap();
    let program = line.programs().next().unwrap().unwrap();
    let words: Vec<_> = program.words.map(unescape).collect();
    let environment: Vec<_> = program.environment.map(unescape).collect();
    assert_eq!(words, ["prog", "a b", "", "\\", "tab\t", "--"]);
    assert_eq!(environment, ["A=b c"]);
    assert_eq!(program.input.map(unescape).as_deref(), Some("in put"));
    assert!(variable("A=").is_ok() && variable("=b").is_err() && variable("A").is_err());
}

#[test]
fn options_without_effect_are_refused() {
    let silent = || Job { events: None, ..job() };
    let refused = [(job(), "stat prog"), (silent(), "record prog"), (silent(), "prog")]
        .map(|(job, command)| job.around("", &words(command)).unwrap_err());
    assert!(refused.iter().all(|why| why.status == ExitStatus::Usage), "{refused:?}");
    let text = refused.map(|why| format!("{why}\n")).concat();
    expect![[r#"
        --events, --slice, --budget, --shares and --unit have no effect on `stat`: give it those that it has, as in `-- stat -e EVENTS --slice CYCLES PROGRAM`
        --events, --slice, --budget, --shares and --unit have no effect on `record`: give it those that it has, as in `-- stat -e EVENTS --slice CYCLES PROGRAM`
        --slice, --budget, --shares and --unit have no effect without --events: add --events, or give prog options of its own
    "#]].assert_eq(&text);
}

#[test]
fn options_are_in_the_session_s_configuration() {
    assert_eq!(Job::default().config(), SessionConfig::default());
    let config = job().config();
    assert_eq!((config.slice, config.budget_ppm), (Slice::Cycles(MIN_SLICE), 5_000));
    assert_eq!(config.shares, Shares::Adaptive);
}

#[test]
fn bad_options_are_refused() {
    assert_eq!(job().check(), Ok(()));
    let status = |job: Job| job.check().unwrap_err().status;
    for cycles in [1, MIN_SLICE - 1, MAX_SLICE + 1] {
        assert_eq!(
            status(Job { slice: Some(Slice::Cycles(cycles)), ..job() }),
            ExitStatus::SliceOutOfRange
        );
    }
    assert_eq!((slice("1"), slice("0").is_err(), slice("x").is_err()), (Ok(1), true, true));
    for list in ["A B", "", ",", " "] {
        let job = Job { events: Some(list.into()), ..job() };
        assert_eq!(status(job), ExitStatus::Usage, "{list:?}");
    }
    let empty = Job { events: Some(String::new()), ..job() }.check().unwrap_err();
    assert!(empty.message.contains("--events names no event"), "{empty}");
    for (budget, is_known) in
        [("0", false), ("0.0001", true), ("50", true), ("50.1", false), ("100", true)]
    {
        assert_eq!(percent(budget).is_ok(), is_known, "{budget}");
    }
    assert_eq!(status(Job { program: vec!["--".into()], ..job() }), ExitStatus::Usage);
}
