//! Command lines that are understood, and those that are refused.

use super::*;
use crate::CpuSet;

fn parse(text: &str) -> Result<Command<'_>, String> {
    Command::parse(&text.split(' ').collect::<Vec<_>>())
}

#[test]
fn options_end_where_the_program_begins() {
    let stat = parse("stat -e a,b --slice 9000 --kernel --event=c=d -- prog -e d -- e").unwrap();
    assert_eq!((stat.verb, stat.events()), (Verb::Stat, "a,b,c=d"));
    assert_eq!((stat.config.mode, stat.config.slice), (Mode::Full, Slice::Cycles(9000)));
    assert_eq!(stat.program, ["prog", "-e", "d", "--", "e"]);
    let record = parse("record -c 5 --budget 0.5 --shares adaptive prog").unwrap();
    assert_eq!((record.verb, record.period), (Verb::Record, 5));
    assert_eq!((record.config.budget_ppm, record.config.shares), (5_000, Shares::Adaptive));
    assert_eq!((record.stack_bytes, record.hz), (0, 0));
    let sampled = parse("record --breakdown prog").unwrap();
    assert_eq!((sampled.samples_breakdown, sampled.period), (true, BREAKDOWN_PERIOD));
    assert_eq!(parse("record --breakdown -c 7 prog").unwrap().period, 7);
    assert_eq!(parse("record -c 1e6 prog").unwrap().period, 1_000_000);
    assert!(parse("stat -M list").unwrap().stat.lists_metrics());
    assert_eq!(parse("record -F99 -g prog").unwrap().hz, 99);
    let stacks = |text| parse(text).unwrap().stack_bytes;
    assert_eq!((stacks("record -g prog"), stacks("record --stack 80 prog")), (4096, 80));
    assert_eq!(parse("record -e a,b -e c prog").unwrap().events(), "a,b,c");
    assert_eq!(parse("stat prog").unwrap().events(), DEFAULT_STAT);
    let detailed = parse("stat -ea -d -x, prog").unwrap();
    assert_eq!(detailed.events(), format!("a,{DETAILED_STAT}"));
    assert_eq!(
        (detailed.stat.separator, parse("stat prog").unwrap().stat.separator),
        (Some(","), None)
    );
    assert_eq!(parse("record prog").unwrap().events(), DEFAULT_RECORD);
}

#[test]
fn data_samples_loads_and_stores_at_a_rate() {
    let data = parse("record -d prog").unwrap();
    assert_eq!((data.events(), data.hz, data.config.budget_ppm), (DATA_RECORD, 20_000, 100_000));
    let both = parse("record -c 50 --budget 3 -e a --data prog").unwrap();
    assert_eq!((both.events(), both.period), (&*format!("a,{DATA_RECORD}"), 50));
    assert_eq!((both.hz, both.config.budget_ppm), (0, 30_000));
    assert_eq!(parse("record -d -F 900 prog").unwrap().hz, 900);
    for words in ["record -W prog", "record -d --weight prog"] {
        assert_eq!(parse(words).unwrap().events(), DATA_RECORD, "{words}");
    }
}

#[test]
fn what_is_not_understood_is_named() {
    for (text, why) in [
        ("stat --evnt=a prog", "unknown option --evnt; nearest: --event"),
        ("stat -Z prog", "unknown option -Z; --help prints all"),
        ("stat -dd prog", "-dd: -d has one level: give it once, and further events with -e"),
        ("stat -dv prog", "-dv: -d takes no value, and each option is a word"),
        ("stat -c 5 prog", "unknown option -c; --help prints all"),
        ("stat -e", "-e needs a value"),
        ("stat -e , prog", "-e names no event: name one, or omit the option"),
        ("stat --kernel=1 prog", "--kernel=1: --kernel takes no value, and each option is a word"),
        ("stat --shares=foo prog", "--shares cannot be foo"),
        ("stat -e cycles", "name the program to run"),
        ("stat --", "name the program to run"),
        ("stat -g prog", "unknown option -g; --help prints all"),
        ("stat --slice 0 prog", "--slice is at least 1"),
        ("stat --shares foo prog", "--shares cannot be foo"),
        ("stat --budget 101 prog", "--budget is more than 0 and at most 100"),
        ("stat -r 0 prog", "-r is at least 1"),
        ("stat -I 5 prog", "-I is at least 10"),
        ("stat --timeout=x prog", "--timeout cannot be x"),
        ("stat -e {a prog", "'{': the list ends before the braces: add '}'"),
        ("top prog", &usage()),
    ] {
        assert_eq!(parse(text).unwrap_err(), why, "{text}");
    }
}

#[test]
fn what_record_does_not_understand_is_named() {
    for (text, why) in [
        ("record -x, prog", "unknown option -x; --help prints all"),
        ("record --event= -e , prog", "-e names no event: name one, or omit the option"),
        ("record -F 0 prog", "-F is 1 to 1000000 Hz"),
        ("record -F 1000001 prog", "-F is 1 to 1000000 Hz"),
        ("record --stack 0 prog", "--stack is 8 to 32768 bytes"),
        ("record --stack 32769 prog", "--stack is 8 to 32768 bytes"),
        (
            "record -d --breakdown prog",
            "--breakdown samples events of its own: leave out -e and -d",
        ),
        ("record -c 0 prog", "-c is at least 1"),
        (
            "record --breakdown -e a prog",
            "--breakdown samples events of its own: leave out -e and -d",
        ),
        ("record -c few prog", "-c cannot be few"),
        (
            "record -c 99999999999999999999 prog",
            "-c cannot be 99999999999999999999: it is a whole number below 2^63",
        ),
        ("record -c 1.5 prog", "-c cannot be 1.5: it is a whole number below 2^63"),
    ] {
        assert_eq!(parse(text).unwrap_err(), why, "{text}");
    }
}

#[test]
fn stat_has_the_options_of_perf_stat() {
    let stat = parse("stat -r 3 -o out --append -j -v --timeout 50 -e cs,{a,b} prog -x").unwrap();
    let StatOptions { repeat, output, appends, is_json, is_verbose, timeout_ms, .. } = stat.stat;
    assert_eq!((repeat, output, timeout_ms), (3, Some("out"), Some(50)));
    assert!(appends && is_json && is_verbose);
    assert_eq!(stat.events(), "{a,b}");
    let sources: Vec<Source> = stat.columns.iter().map(|(_, source)| *source).collect();
    let cs = Source::Software(Software::ContextSwitches);
    assert_eq!(sources, [cs, Source::Session(0), Source::Session(1)]);
    assert_eq!(parse("stat -I100 prog").unwrap().stat.interval_ms, Some(100));
    assert_eq!(parse("stat -e task-clock prog").unwrap().events(), "");
    let scope = |text| parse(text).unwrap().config.scope;
    assert_eq!(scope("stat --per-thread prog"), Scope::Threads);
    assert_eq!(scope("stat prog"), Scope::Program);
    assert_eq!(scope("stat -a prog"), Scope::Cpus);
    let cpus = |text| parse(text).unwrap().stat.cpus;
    assert_eq!((cpus("stat prog"), cpus("stat -a prog")), (None, Some(CpuSet::default())));
    assert_eq!(cpus("stat -C 0,2-4,70 -a -A prog"), CpuSet::parse("0,2-4,70"));
    assert!(parse("stat -r2 --per-thread prog").unwrap_err().contains("leave out -r"));
    assert!(parse("stat -M x --per-thread prog").unwrap_err().contains("one of them"));
    assert!(parse("record -F 99 -c 7 prog").unwrap_err().contains("one of them"));
    assert!(parse("record -F 99 --breakdown prog").is_ok());
    let metrics = |text| {
        let mut stat = parse(text).unwrap();
        stat.count_too(&["a", "b"]).unwrap();
        (String::from(stat.events()), stat.prints_events())
    };
    assert_eq!(metrics("stat -M x,y prog"), ("a,b".into(), true));
    assert_eq!(metrics("stat --topdown --breakdown prog"), ("a,b".into(), false));
    assert_eq!(metrics("stat --topdown -e c,b prog"), ("c,b,a".into(), true));
}

#[test]
fn options_that_perf_has_and_tally_has_not_say_what_to_use() {
    for (option, remedy) in [("--per-core", "-a -A"), ("-p1", "name it")] {
        let text = format!("stat {option} prog");
        let why = parse(&text).unwrap_err();
        assert!(why.contains(remedy), "{option}: {why}");
    }
    let why = parse("record --call-graph dwarf prog").unwrap_err();
    assert!(why.contains("report --call-graph"), "{why}");
    let lbr = parse("record --call-graph lbr prog").unwrap();
    assert_eq!(lbr.branches, parse("record -j stack,u prog").unwrap().branches);
    for cpus in ["-A", "-C 3-2", "-C 1024", "-a --per-thread", "-a -A -r 2", "-a -A --topdown"] {
        let why = parse(&format!("stat {cpus} prog")).unwrap_err();
        let words = ["-a or -C LIST", "such as 0,2-3", "give one", "leave out one"];
        assert!(words.iter().any(|word| why.contains(word)), "{cpus}: {why}");
    }
    for both in ["-x, -j", "--append", "--td-level 2"] {
        let text = format!("stat {both} prog");
        let why = parse(&text).unwrap_err();
        assert!(["give one", "name it", "give that"].iter().any(|word| why.contains(word)));
    }
}

#[test]
fn help_names_every_option_of_the_verb() {
    let text = |line: &str| help(&line.split(' ').collect::<Vec<_>>());
    let stat = text("stat -e cycles --help").unwrap();
    assert!(stat.contains("  -I, --interval-print MS") && !stat.contains("--count"), "{stat}");
    assert!(text("record -h").unwrap().contains("  -c, --count PERIOD"));
    assert_eq!((text("stat prog --help"), text("stat"), text("stat -q")), (None, None, None));
}
