//! `tally stat` compared with `perf stat`: the same options, and the same columns, fields and keys.
//! Perf runs the same program under Linux on the same virtual PMU.

mod perf;

use std::collections::BTreeMap;

use crate::command::{guest, run, text};
use perf::perf;

/// Events that both tools count all the time, and counts made by both kernels.
const EVENTS: &str = "page-faults,cs,task-clock,duration_time,user_time,system_time,\
    instructions:u,cycles:u";
/// Number of [`EVENTS`].
const LISTED: usize = 8;
/// Metrics that Linux computes without PERF_METRICS, which the virtual PMU lacks.
const METRICS: &str = "tma_icache_misses,tma_divider";
/// Options that count each CPU.
const CPUS: &str = "-a -A -e instructions:u,cycles:u";
/// Width of the columns before an event's name: number and unit.
const NAME: usize = 24;
/// Column of the sign before a metric.
const SIGN: usize = 57;

/// Output of `tally stat` with these options for the program `phases`.
fn stat(options: &str, argument: &str) -> String {
    stat_of("phases", options, argument)
}

/// Output of `tally stat` with these options for a program.
fn stat_of(program: &str, options: &str, argument: &str) -> String {
    let file = guest(program);
    let mut words = vec!["-q", "--paranoid", "0", "--file", &file, "--", "stat"];
    words.extend(options.split_whitespace());
    words.extend([program, argument]);
    let output = run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stderr)
}

/// Lines of events, by name. A line counts if a number or a placeholder precedes the column of
/// names.
fn events(printed: &str) -> BTreeMap<String, String> {
    let lines = printed.lines().filter_map(|line| {
        let (before, behind) = line.split_at_checked(NAME)?;
        let number = before.split_whitespace().next()?;
        let is_number = number.starts_with('<') || number.parse::<f64>().is_ok();
        let is_number = is_number || number.replace(',', "").parse::<f64>().is_ok();
        let is_column = before[..18].starts_with(' ') && before[18..].starts_with(' ');
        let name = behind.split_whitespace().next()?;
        (is_number && is_column).then(|| (name.to_owned(), line.trim_end().to_owned()))
    });
    lines.collect()
}

/// Unit of a line, and unit and name of its metric after the sign.
fn shape(line: &str) -> (String, Vec<String>) {
    let unit = line[18..NAME].trim().to_owned();
    let metric = line.get(SIGN..).filter(|rest| rest.starts_with('#')).unwrap_or_default();
    let words = metric.split_whitespace().skip(2).map(String::from);
    (unit, words.take(2).collect())
}

/// Each event of perf's default list that `tally stat` counts too is in the same columns, followed
/// by the same metric, unless that is a rate of the model's clock.
#[test]
fn events_are_in_perfs_columns_with_perfs_metrics() {
    let (perf, tally) = (events(&perf().default), events(&stat("", "30")));
    let mut same = 0;
    for (name, line) in &perf {
        let own = if name == "cpu-cycles" { "cycles" } else { name };
        let Some(ours) = tally.get(own) else { continue };
        let (unit, mut metric) = shape(line);
        metric.retain(|_| !line.contains("/sec ") && !line.contains("GHz "));
        assert_eq!(shape(ours), (unit, metric), "{line}\n{ours}");
        same += 1;
    }
    assert!(same >= 6, "{perf:#?}\n{tally:#?}");
}

/// Lines of `text` with an event of [`EVENTS`], split at commas.
fn fields(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().map(|line| line.split(',').map(String::from).collect());
    let is_event = |fields: &Vec<String>| {
        fields.get(2).is_some_and(|name| EVENTS.split(',').any(|event| event == name))
    };
    lines.filter(is_event).collect()
}

/// Checks that Tally's lines have perf's fields in perf's positions, and one more field. With `-r`,
/// `spread` more fields precede the last three.
fn check_fields(perf: &str, tally: &str, spread: usize) {
    let (perf, tally) = (fields(perf), fields(tally));
    assert_eq!((perf.len(), tally.len()), (LISTED, LISTED), "{perf:?}\n{tally:?}");
    for (theirs, ours) in perf.iter().zip(&tally) {
        assert_eq!((theirs.len(), ours.len()), (7 + spread, 8 + spread), "{theirs:?}\n{ours:?}");
        assert_eq!(theirs[1..3], ours[1..3]);
        for position in [0, 3 + spread, 4 + spread] {
            let both = [theirs, ours].map(|of| of[position].parse::<f64>());
            assert!(both.iter().all(Result::is_ok), "{position}: {theirs:?}\n{ours:?}");
        }
        if spread == 1 {
            let both = [theirs, ours].map(|of| of[3].strip_suffix('%').map(str::parse::<f64>));
            assert!(both.iter().all(|of| matches!(of, Some(Ok(_)))), "{theirs:?}\n{ours:?}");
        }
    }
}

#[test]
fn fields_are_in_perfs_positions() {
    check_fields(&perf().fields, &stat(&format!("-x, -e {EVENTS}"), "9"), 0);
}

#[test]
fn fields_of_several_runs_are_in_perfs_positions() {
    check_fields(&perf().repeated_fields, &stat(&format!("-r 3 -x, -e {EVENTS}"), "9"), 1);
}

/// Nanoseconds on CPUs, in ring 3 and in ring 0, of a program of `file`.
fn times(file: &str, program: &[&str]) -> [f64; 3] {
    let before =
        ["-q", "--file", file, "--", "stat", "-x,", "-e", "task-clock,user_time,system_time"];
    let output = run(&[&before[..], program].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let fields: Vec<f64> = text(&output.stderr)
        .lines()
        .filter_map(|line| line.split(',').next()?.parse().ok())
        .collect();
    let [ran_ms, user, system] = fields[..] else { panic!("{output:?}") };
    [ran_ms * 1e6, user, system]
}

/// A program that computes spends its time in ring 3, one that copies kernel data spends it in
/// ring 0. The two times add up to the task clock, which is printed with two decimals of a
/// millisecond.
#[test]
fn time_is_of_the_ring_in_which_it_was_spent() {
    let [ran, user, system] = times(&guest("phases"), &["phases", "60"]);
    assert!((user + system - ran).abs() <= 5e3, "{user} + {system}, {ran}");
    assert!(user > 0.75 * ran, "{user} of {ran}");
    let copy = ["busybox", "dd", "if=/dev/zero", "of=/dev/null", "bs=4096", "count=5000"];
    let [ran, user, system] = times(&guest("busybox"), &copy);
    assert!((user + system - ran).abs() <= 5e3, "{user} + {system}, {ran}");
    assert!(system > 0.5 * ran && user > 0.01 * ran, "{user}, {system} of {ran}");
}

/// Keys of each JSON line, in order.
fn keys(text: &str) -> Vec<Vec<String>> {
    let objects = text.lines().filter(|line| line.starts_with('{'));
    let keys = objects.map(|line| {
        let _: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        line.split('"').skip(1).step_by(2).map(String::from).collect::<Vec<_>>()
    });
    let is_key = |word: &String| word.contains('-') || word == "unit" || word == "event";
    keys.map(|words| words.into_iter().filter(is_key).collect()).collect()
}

#[test]
fn json_has_perfs_keys() {
    let tally = stat(&format!("-j -e {EVENTS}"), "9");
    let (theirs, ours) = (keys(&perf().json), keys(&tally));
    assert_eq!((theirs.len(), ours.len()), (LISTED, LISTED), "{tally}");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        let known = ours.iter().filter(|key| theirs.contains(key));
        assert!(known.eq(theirs), "{theirs:?}\n{ours:?}");
        assert_eq!(ours.last().map(String::as_str), Some("half-width-95"));
    }
}

/// Lines of perf and Tally with the spread between runs, without their numbers.
fn spreads(text: &str) -> Vec<String> {
    let suffix = |line: &str| line.find("( +-").map(|at| line[at..].trim_end().to_owned());
    let without = |suffix: String| suffix.replace(|c: char| c.is_ascii_digit() || c == ' ', "");
    text.lines().filter_map(suffix).map(without).collect()
}

#[test]
fn several_runs_have_perfs_heading_and_suffix() {
    let tally = stat(&format!("-r 3 -e {EVENTS}"), "9");
    for text in [&perf().repeated, &tally] {
        assert!(text.contains("Performance counter stats for 'phases 9' (3 runs):"), "{text}");
        assert!(!spreads(text).is_empty(), "{text}");
        assert!(spreads(text).iter().all(|spread| spread == "(+-.%)"), "{text}");
        let elapsed = text.lines().find(|line| line.contains("seconds time elapsed"));
        let words: Vec<&str> = elapsed.unwrap().split_whitespace().collect();
        assert_eq!((words[1], &words[3..6]), ("+-", &["seconds", "time", "elapsed"][..]), "{text}");
    }
}

/// Seconds and count of each line of an interval.
fn intervals(text: &str) -> Vec<(f64, u64)> {
    let lines = text
        .lines()
        .filter(|line| line.ends_with("instructions:u") || line.contains("instructions:u "));
    let parse = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((words.first()?.parse().ok()?, words.get(1)?.replace(',', "").parse().ok()?))
    };
    lines.filter_map(parse).collect()
}

#[test]
fn intervals_have_perfs_columns_and_add_up_to_the_run() {
    let tally = stat("-I 100 -e instructions:u", "300");
    let heading = "#           time             counts unit events";
    for text in [&perf().intervals, &tally] {
        assert!(text.lines().any(|line| line == heading), "{text}");
        let line = text.lines().find(|line| line.contains("instructions:u")).unwrap();
        assert_eq!((line.find('.'), line.find("instructions:u")), (Some(6), Some(41)), "{text}");
    }
    let parts = intervals(&tally);
    assert!(parts.len() >= 3, "{tally}");
    assert!(parts.is_sorted_by(|a, b| a.0 < b.0), "{tally}");
    let whole = &fields(&stat("-x, -e instructions:u", "300"))[0][0];
    let sum: u64 = parts.iter().map(|(_, count)| count).sum();
    assert_eq!(sum, whole.parse::<u64>().unwrap(), "{tally}");
}

/// Column of the sign, unit and name of each metric of [`METRICS`].
fn metrics(text: &str) -> BTreeMap<String, (usize, String)> {
    let lines = text.lines().filter_map(|line| {
        let sign = line.find('#')?;
        let words: Vec<&str> = line[sign..].split_whitespace().collect();
        let [_, _, unit, name, ..] = words[..] else { return None };
        METRICS.split(',').any(|known| known == name).then(|| (name.into(), (sign, unit.into())))
    });
    lines.collect()
}

#[test]
fn metrics_are_in_perfs_columns() {
    let tally = stat(&format!("-M {METRICS}"), "30");
    let (theirs, ours) = (metrics(&perf().metrics), metrics(&tally));
    assert_eq!(theirs, ours, "{}\n{tally}", perf().metrics);
    assert_eq!(ours.len(), 2, "{tally}");
}

/// Applies the vendor's formula to the counts that are printed with the metric.
#[test]
fn metrics_are_the_formulas_of_the_counts() {
    let objects: Vec<serde_json::Value> = stat(&format!("-j -M {METRICS},TopdownL1"), "30")
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let number = |of: &serde_json::Value, key: &str| of[key].as_str().unwrap().parse::<f64>();
    let find = |key: &str, name: &str| {
        let is_it = |of: &&serde_json::Value| of[key].as_str().is_some_and(|at| at.ends_with(name));
        objects.iter().find(is_it).unwrap_or_else(|| panic!("no {name}: {objects:?}"))
    };
    let count = |name: &str| number(find("event", name), "counter-value").unwrap();
    let metric = |name: &str| number(find("metric-unit", name), "metric-value").unwrap();
    let cycles = count("CPU_CLK_UNHALTED.THREAD");
    for (name, want) in [
        ("tma_icache_misses", count("ICACHE_DATA.STALLS") / cycles),
        ("tma_divider", count("ARITH.DIVIDER_ACTIVE") / cycles),
        ("tma_retiring", count("UOPS_RETIRED.SLOTS") / 5.0 / cycles),
    ] {
        assert!((metric(name) - 100.0 * want).abs() < 1e-5, "{name}: {objects:?}");
    }
    let retiring = find("metric-unit", "tma_retiring");
    assert!(retiring["half-width-95"].as_f64().is_some_and(|bar| bar > 0.0), "{retiring}");
}

/// Metrics of LIKWID's group for a program whose operations are known.
#[test]
fn floating_point_operations_are_counted_by_width() {
    const ROUNDS: f64 = 300_000.0;
    let printed = stat_of("flops", "-x; -M FLOPS_DP", "300000");
    let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split(';').collect()).collect();
    for (label, factor) in [
        ("flops  flops_dp_scalar", 1.0),
        ("flops  flops_dp_128", 2.0),
        ("flops  flops_dp_256", 8.0),
        ("flops  flops_dp_512", 0.0),
        ("flops  flops_dp", 11.0),
    ] {
        let line = lines.iter().find(|line| line.contains(&label)).expect(label);
        let [.., value, _, bar] = line[..] else { panic!("{printed}") };
        assert_eq!(value.parse::<f64>().unwrap(), factor * ROUNDS, "{printed}");
        assert_eq!(bar.parse::<f64>().unwrap(), 0.0, "the events fit on the counters: {printed}");
    }
    assert!(printed.contains("flops/cycle  flops_dp_rate"), "{printed}");
    assert!(printed.contains(";75.0;%  vectorized_dp;"), "three of four instructions: {printed}");
}

/// The host computes the breakdown from other slices of the same program: the results may be at
/// most two bars apart.
#[test]
fn the_breakdown_is_that_of_the_host() {
    let printed = stat("--breakdown", "30");
    let host = run(&["--file", &guest("phases"), "--breakdown", "--", "phases", "30"]);
    let host = text(&host.stderr);
    let parts = |text: &str| -> BTreeMap<String, [f64; 2]> {
        let lines = text.lines().skip_while(|line| !line.starts_with("cycles in")).skip(1);
        let lines = lines.take_while(|line| !line.starts_with("most are lost to"));
        let part = |line: &str| {
            let (name, numbers) = line.split_at_checked(40)?;
            let shares = numbers.split_whitespace().filter_map(|word| word.strip_suffix('%'));
            let shares: Vec<f64> = shares.filter_map(|share| share.parse().ok()).collect();
            Some((name.trim_end().to_owned(), [*shares.first()?, *shares.get(1)?]))
        };
        lines.filter_map(part).collect()
    };
    let (ours, theirs) = (parts(&printed), parts(&host));
    assert!(ours.len() >= 8 && ours.keys().eq(theirs.keys()), "{printed}\n{host}");
    // Subordinate parts are indented.
    let first = ours.iter().filter(|(name, _)| !name.starts_with(' '));
    let sum: f64 = first.map(|(_, [share, _])| share).sum();
    assert!((sum - 100.0).abs() < 0.5, "{printed}");
    for (name, [share, bar]) in &ours {
        let [others, other_bar] = theirs[name];
        let most = 2.0 * (bar + other_bar) + 0.1;
        assert!((share - others).abs() < most, "{name}:\n{printed}\n{host}");
    }
}

#[test]
fn the_time_limit_ends_the_program_and_the_counts_are_printed() {
    let file = guest("phases");
    let words = ["-q", "--file", &file, "--", "stat", "--timeout", "50", "-x,", "-e", EVENTS];
    let output = run(&[&words[..], &["phases", "100000"]].concat());
    assert_eq!(output.status.code(), Some(137), "{output:?}");
    let fields = fields(&text(&output.stderr));
    let value =
        |name: &str| -> f64 { fields.iter().find(|of| of[2] == name).unwrap()[0].parse().unwrap() };
    assert!((50e6..200e6).contains(&value("duration_time")), "{fields:?}");
    assert!((40.0..200.0).contains(&value("task-clock")), "{fields:?}");
    assert!(value("instructions:u") > 1e6 && value("page-faults") > 0.0, "{fields:?}");
}

#[test]
fn the_output_goes_to_a_file_of_the_host() {
    let path = std::env::temp_dir().join(format!("tally-stat-{}", std::process::id()));
    let (file, path_word) = (guest("phases"), path.to_str().unwrap());
    let before = ["-q", "--file", &file, "--", "stat", "-o", path_word];
    let counted = |words: &[&str]| {
        let output = run(&[&before[..], words].concat());
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        std::fs::read_to_string(&path).unwrap()
    };
    let counts = counted(&["-x,", "-e", EVENTS, "phases", "9"]);
    assert_eq!(fields(&counts).len(), LISTED, "{counts}");
    let both = counted(&["--append", "-j", "-e", "cs", "phases", "9"]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        (both.strip_prefix(&counts).map(|more| keys(more).len()), fields(&both).len()),
        (Some(1), LISTED)
    );
}

/// With `-r`, as in perf, the intervals are those of each run: time begins at 0 again.
#[test]
fn intervals_of_several_runs_are_those_of_each() {
    let printed = stat("-r 3 -I 40 -x, -e instructions:u", "150");
    let lines = printed.lines().filter(|line| line.contains("instructions:u"));
    let times = lines.map(|line| line.split(',').next()?.trim().parse::<f64>().ok());
    let times: Vec<f64> = times.collect::<Option<_>>().expect(&printed);
    let begins = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(begins == 2 && times.len() >= 6, "{printed}");
}

/// Perf and `tally` both put the CPU before the event: in a column, in a field, by a key.
#[test]
fn each_cpu_is_where_perf_has_it() {
    let ours = ["", "-x,", "-j"].map(|form| stat(&format!("{form} {CPUS}"), "9"));
    let is_it = |line: &&String| line.contains("instructions:u");
    for (printed, more) in [(&perf().cpus, 0), (&ours, 1)] {
        assert!(
            printed[0].contains(" Performance counter stats for 'system wide':"),
            "{printed:?}"
        );
        let lines = printed.each_ref().map(|form| form.lines().map(String::from).collect());
        let lines = lines.map(|all: Vec<String>| all.iter().find(is_it).cloned());
        let [text, fields, json] = lines.map(|line| line.expect("it counts instructions"));
        assert!(text.starts_with("CPU0 "), "{text}");
        // The number ends in column 25, and the name begins in column 31.
        let name = text.find("instructions:u").unwrap();
        assert_eq!((text[..name].trim_end().len(), name), (25, 31), "{text}");
        let words: Vec<&str> = fields.split(',').collect();
        assert_eq!((words[0], words[3], words.len()), ("CPU0", "instructions:u", 8 + more));
        let object: serde_json::Value = serde_json::from_str(&json).expect(&json);
        assert_eq!(object["cpu"], "0", "{json}");
    }
}
