//! Samples with their stacks: the callers found by the host, and the viewers that show them.

use std::fs;

use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::{Field, Row},
};
use serde_json::Value;
use xtask::{
    machine::{Pmu, Request},
    project::Project,
    report::Report,
    setup,
    trace::run::Run,
};

use crate::{export::xtask_task, recorded::Recorded};

/// Shares of the functions of `tests/guests/callers.c` with their callees. By its loops, `two` with
/// its callees has 6 of 10 instructions, `deep` 1 of 10, and `one`, which `main` and `deep` call, 4
/// of 10.
const SHARES: [(&str, f64); 5] =
    [("main", 1.0), ("two", 0.6), ("one", 0.4), ("deep", 0.1), ("leaf", 1.0)];
/// Permitted error of a share: samples of an event whose interrupt comes late may fall into the
/// function called next.
const TOLERANCE: f64 = 0.06;

/// Boots the program under `tally record`.
fn recorded(pmu: Pmu, words: &str) -> Recorded {
    let request = Request { pmu, ..Request::new("") };
    Recorded::of("callers", &format!("{words} callers"), request)
}

/// Functions of each sample's stack, innermost first.
fn stacks(script: &str) -> Vec<Vec<String>> {
    let stack = |line: &str| {
        let sample: Value = serde_json::from_str(line).unwrap();
        let levels = [&sample].into_iter().chain(sample["callers"].as_array().unwrap());
        let function = |level: &Value| level["functions"][0].as_str().unwrap().to_owned();
        levels.map(function).collect()
    };
    script.lines().map(stack).collect()
}

/// Panics unless the program can have this stack.
fn assert_possible(stack: &[String]) {
    let names: Vec<&str> = stack.iter().map(String::as_str).collect();
    let Some(main) = names.iter().position(|name| *name == "main") else { return };
    assert_eq!(names.last(), Some(&"_start"), "{names:?}");
    match names[..main] {
        [] | ["one" | "two"] | ["leaf", "one" | "two"] => {}
        ["leaf", "one", ref deep @ .., "deep"]
        | ["one", ref deep @ .., "deep"]
        | [ref deep @ .., "deep"] => {
            assert!(deep.len() <= 11 && deep.iter().all(|name| *name == "deep"), "{names:?}");
        }
        [.., outermost] => assert_eq!(outermost, "printf", "{names:?}"),
    }
}

#[test]
fn callers_have_their_shares_of_the_events() {
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let words = "-g -e instructions --budget 100 -c 30000";
        let of = recorded(pmu, words);
        let samples = of.boot.transcript.samples.len();
        assert!(samples > 100, "{samples} samples");
        let all = stacks(&of.print("script", &["--json"]));
        assert_eq!(all.len(), samples);
        all.iter().for_each(|stack| assert_possible(stack));
        let whole = all.iter().filter(|stack| stack.last().is_some_and(|of| of == "_start"));
        assert!(whole.count() * 100 >= 98 * samples, "stacks that end too early: {all:?}");

        let report = of.print("report", &["--children", "--json"]);
        let report: Value = serde_json::from_str(&report).unwrap();
        let functions = report[0]["functions"].as_array().unwrap();
        for (name, share) in SHARES {
            let found = functions.iter().find(|of| of["function"] == name);
            let found = found.unwrap_or_else(|| panic!("no {name} in {report}"));
            let of = found["share"].as_f64().unwrap();
            assert!((of - share).abs() < TOLERANCE, "{name} has {of}, not {share}");
        }
        let leaf = functions.iter().find(|of| of["function"] == "leaf").unwrap();
        assert!(leaf["own_share"].as_f64().unwrap() > 1.0 - TOLERANCE, "{leaf}");
        let text = of.print("report", &["--children"]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

/// Stacks in the Parquet table of samples, innermost function first.
fn stacks_of_table(of: &Recorded) -> Vec<Vec<String>> {
    let table = of.boot.folder.file("samples.parquet");
    let words = ["--to", "parquet", "--table", "samples", "--out", table.to_str().unwrap()];
    of.print("export", &words);
    let rows = SerializedFileReader::new(fs::File::open(&table).unwrap()).unwrap();
    let rows: Vec<Row> = rows.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let stack = |row: &Row| {
        let mut columns = row.get_column_iter();
        let (_, field) = columns.find(|(name, _)| name.as_str() == "stack").unwrap();
        match field {
            Field::Str(stack) => stack.split(';').rev().map(str::to_owned).collect(),
            other => panic!("{other:?}"),
        }
    };
    rows.iter().map(stack).collect()
}

#[test]
fn frame_pointers_lead_to_the_same_callers_and_viewers_show_them() {
    let of = recorded(Pmu::Intel, "-g -e instructions -c 50000");
    let by = |how| stacks(&of.print("script", &["--json", "--call-graph", how]));
    let (unwound, chained) = (by("dwarf"), by("fp"));
    assert!(unwound.len() > 10 && unwound.len() == chained.len());
    let agree = unwound.iter().zip(&chained).filter(|(unwound, chained)| {
        // The C library has no frame pointers, nor does a leaf function, such as `leaf`. The caller
        // of a leaf function is then left out.
        let main = unwound.iter().position(|name| name == "main");
        main.is_some_and(|main| {
            let (whole, last) = (&unwound[..=main], chained.len().min(main + 1));
            whole.ends_with(&chained[1..last]) && chained[0] == whole[0] && main <= chained.len()
        })
    });
    assert!(agree.count() * 100 >= 95 * unwound.len(), "{unwound:?}\n{chained:?}");

    let folded = of.print("export", &["--to", "folded"]);
    assert!(folded.lines().any(|line| line.contains(";main;two;leaf ")), "{folded}");

    // The table also has inlined functions.
    let tabled = stacks_of_table(&of);
    assert!(tabled.len() == unwound.len());
    assert!(tabled.iter().zip(&unwound).all(|(row, stack)| row.last() == stack.last()));

    let data = of.boot.folder.file("perf.data");
    of.print("export", &["--to", "perf", "--out", data.to_str().unwrap()]);
    let mut perf = setup::linux(&Project::here()).unwrap().perf_on_host();
    perf.env("HOME", of.boot.folder.file("home"));
    let output = perf.args(["script", "-F", "ip", "-i"]).arg(&data).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let script = of.print("script", &["--json"]);
    let addresses = |line: &str| {
        let sample: Value = serde_json::from_str(line).unwrap();
        let levels = [&sample].into_iter().chain(sample["callers"].as_array().unwrap());
        let levels = levels.map(|level| format!("{:x}", level["address"].as_u64().unwrap()));
        levels.collect::<Vec<_>>()
    };
    let ours: Vec<Vec<String>> = script.lines().map(addresses).collect();
    let of_perf = text.split("\n\n").filter(|stack| !stack.trim().is_empty());
    let of_perf: Vec<Vec<String>> =
        of_perf.map(|stack| stack.split_whitespace().map(str::to_owned).collect()).collect();
    assert_eq!(of_perf, ours);
}

#[test]
fn short_copies_of_stacks_and_several_events_are_recorded() {
    let words = "--stack 8 -e instructions,branches -c 50000";
    let of = recorded(Pmu::Intel, words);
    assert!(of.boot.transcript.samples.iter().any(|sample| sample.event == 0));
    assert!(of.boot.transcript.samples.iter().any(|sample| sample.event == 1));
    // One word is enough for the caller of a function without a frame, at most.
    let all = stacks(&of.print("script", &["--json"]));
    assert!(all.iter().all(|stack| stack.len() <= 2), "{all:?}");

    let of = recorded(Pmu::Intel, "-e instructions -c 50000");
    let output = xtask_task("report").arg(&of.trace).arg("--children").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("record -g"), "{errors}");
}

#[test]
fn a_rate_is_kept_whatever_happens_how_often() {
    for (pmu, event) in [(Pmu::Intel, "cycles"), (Pmu::Amd, "branches")] {
        const HZ: f64 = 20_000.0;
        let of = recorded(pmu, &format!("-F {HZ} --budget 100 -e {event}"));
        let run = Run::of(&of.boot, &Report::of(&of.boot), "callers");
        let samples = &of.boot.transcript.samples;
        let (first, last) = (samples.first().unwrap(), samples.last().unwrap());
        let seconds = (last.tsc - first.tsc) as f64 / run.tsc_hz.unwrap() as f64;
        let rate = samples.len() as f64 / seconds;
        // The first periods are guesses.
        assert!((0.6 * HZ..1.5 * HZ).contains(&rate), "{event}: {rate} Hz, {:?}", of.trace);
        assert!(samples.len() > 50, "{event}: {}", samples.len());
    }
}
