//! Thread numbers of samples: in the trace, in the host's output and in the exports.

use std::collections::{BTreeMap, BTreeSet};

use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::Field,
};
use serde_json::Value;
use xtask::{
    machine::{Pmu, Request},
    project::Project,
    setup,
};

use crate::{output_of, recorded::Recorded};

/// Iterations of the thread with fewer; the other makes twice as many.
const ROUNDS: u64 = 2_000_000;

/// Samples the program and returns it with the numbers of its threads, by the functions that they
/// execute.
fn recorded(pmu: Pmu, cpus: usize) -> (Recorded, BTreeMap<String, u64>) {
    let words = format!("-e instructions -c 50000 halves {ROUNDS}");
    let of = Recorded::of("halves", &words, Request { pmu, cpus, ..Request::new("") });
    let text = output_of(&of.boot, 1, 1);
    let named = text.lines().map(|line| {
        let (function, thread) = line.split_once(' ').unwrap();
        (function.to_owned(), thread.parse().unwrap())
    });
    let threads: BTreeMap<String, u64> = named.collect();
    assert!(threads.len() == 2, "{text}");
    (of, threads)
}

#[test]
fn samples_have_the_thread_that_executed_the_function() {
    for (pmu, cpus) in [(Pmu::Intel, 1), (Pmu::Amd, 1), (Pmu::Intel, 2)] {
        let (of, threads) = recorded(pmu, cpus);
        let mut found: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
        for line in of.print("script", &["--json"]).lines() {
            let sample: Value = serde_json::from_str(line).unwrap();
            let function = sample["functions"][0].as_str().unwrap().to_owned();
            let of_thread = found.entry(function).or_default();
            *of_thread.entry(sample["thread"].as_u64().unwrap()).or_default() +=
                sample["period"].as_u64().unwrap();
        }
        // A loop through memory has five or six instructions per iteration.
        for (function, rounds) in [("odd", ROUNDS), ("even", 2 * ROUNDS)] {
            let samples = &found[function];
            assert_eq!(samples.keys().collect::<Vec<_>>(), [&threads[function]], "{found:?}");
            assert!((3 * rounds..8 * rounds).contains(&samples[&threads[function]]), "{found:?}");
        }
    }
}

/// Functions of the two threads, with the thread that executes each.
type Found = BTreeSet<(String, u64)>;

fn of_threads(all: impl Iterator<Item = (String, u64)>) -> Found {
    all.filter(|(function, _)| function == "odd" || function == "even").collect()
}

#[test]
fn perf_a_table_and_a_report_tell_the_threads_apart() {
    let (of, threads) = recorded(Pmu::Intel, 1);
    let expected: Found = threads.into_iter().collect();
    assert_eq!(of_report(&of), expected);
    assert_eq!(of_table(&of), expected);
    assert_eq!(of_perf(&of), expected);
}

fn of_report(of: &Recorded) -> Found {
    let text = of.print("report", &["--threads"]);
    assert!(text.contains("Thread  Symbol"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let report: Value =
        serde_json::from_str(&of.print("report", &["--threads", "--json"])).unwrap();
    let functions = report[0]["functions"].as_array().unwrap().iter();
    of_threads(
        functions.map(|of| {
            (of["function"].as_str().unwrap().to_owned(), of["thread"].as_u64().unwrap())
        }),
    )
}

fn of_table(of: &Recorded) -> Found {
    let table = of.boot.folder.file("samples.parquet");
    let out = table.to_str().unwrap();
    of.print("export", &["--to", "parquet", "--table", "samples", "--out", out]);
    let rows = SerializedFileReader::try_from(table.as_path()).unwrap();
    let rows = rows.get_row_iter(None).unwrap().map(Result::unwrap);
    of_threads(rows.map(|row| {
        let field = |name: &str| {
            row.get_column_iter().find(|(column, _)| *column == name).unwrap().1.clone()
        };
        match (field("function"), field("thread")) {
            (Field::Str(function), Field::UInt(thread)) => (function, thread.into()),
            other => panic!("{other:?}"),
        }
    }))
}

fn of_perf(of: &Recorded) -> Found {
    let data = of.boot.folder.file("perf.data");
    of.print("export", &["--to", "perf", "--out", data.to_str().unwrap()]);
    let mut perf = setup::linux(&Project::here()).unwrap().perf_on_host();
    perf.env("HOME", of.boot.folder.file("home"));
    perf.args(["report", "--stdio", "-q", "-t", "|", "-F", "comm,pid,sym", "-i"]).arg(&data);
    let output = perf.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    of_threads(text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let words: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["halves", thread, symbol] = words[..] else { panic!("{line}") };
        let (thread, _) = thread.split_once(':').unwrap();
        (symbol.trim_start_matches("[.] ").to_owned(), thread.parse().unwrap())
    }))
}
