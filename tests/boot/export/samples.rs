//! The commands that print samples: `report`, `script`, `annotate`.

use std::collections::BTreeMap;

use object::{Object, ObjectSymbol};
use serde_json::Value;
use tally_abi::ExitStatus;

use super::{rounds, trace, xtask_task};

/// Output of a command on the trace, with the symbols of the program.
fn print(task: &str, words: &[&str]) -> String {
    let mut command = xtask_task(task);
    let output = command.arg(trace().2).arg("--symbols").arg(rounds()).args(words).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(task: &str, words: &[&str]) -> Value {
    serde_json::from_str(&print(task, &[words, &["--json"]].concat())).unwrap()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}"))
}

fn sum(of: &Value, name: &str) -> u64 {
    of.as_array().unwrap().iter().map(|of| of[name].as_u64().unwrap()).sum()
}

#[test]
fn a_script_has_every_sample() {
    let (boot, _, _) = trace();
    let script = print("script", &["--json"]);
    let samples = &boot.transcript.samples;
    assert_eq!(script.lines().count(), samples.len());
    let mut last = 0;
    for (line, sample) in script.lines().zip(samples) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["period"], sample.count - last);
        assert_eq!(line["address"].as_u64().unwrap_or(0), sample.address);
        assert_eq!((text(&line, "event"), text(&line, "name")), ("branches", "rounds"));
        assert_eq!(line["user"], sample.user);
        last = sample.count;
    }
    let lines = print("script", &[]);
    assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
    assert!(lines.lines().count() == samples.len() && lines.contains("compress_inner"));
}

#[test]
fn a_report_has_every_event_and_intervals_around_the_shares() {
    let (boot, _, _) = trace();
    let samples = &boot.transcript.samples;
    let total = samples.last().unwrap().count;
    for words in [&[][..], &["--inlined"]] {
        let report = json("report", words);
        let [of] = &report.as_array().unwrap()[..] else { panic!("one event: {report}") };
        assert_eq!((text(of, "event"), &of["events"]), ("branches", &total.into()));
        let functions = &of["functions"];
        assert_eq!(sum(functions, "events"), total);
        assert_eq!(sum(functions, "samples"), samples.len() as u64);
        let functions = functions.as_array().unwrap();
        assert!(functions.len() > 2);
        assert!(functions.is_sorted_by(|a, b| a["events"].as_u64() >= b["events"].as_u64()));
        for function in functions {
            let number = |name: &str| function[name].as_f64().unwrap();
            let share = number("events") / total as f64;
            assert!((number("share") - share).abs() < 1e-12, "{function}");
            assert!(number("low_95") <= share && share <= number("high_95"), "{function}");
            assert!(number("low_95") < number("high_95"), "{function}");
        }
    }
    let lines = print("report", &[]);
    assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
}

#[test]
fn an_annotation_has_every_event_of_its_function() {
    let (boot, _, _) = trace();
    let annotated = json("annotate", &["--all", "deflate::core::compress_inner"]);
    let file = std::fs::read(rounds()).unwrap();
    let file = object::File::parse(&*file).unwrap();
    let symbol = file.symbols().find(|of| of.name().is_ok_and(|of| of.contains("compress_inner")));
    let symbol = symbol.unwrap();
    let code = symbol.address()..symbol.address() + symbol.size();
    let (mut expected, mut last) = (BTreeMap::<u64, u64>::new(), 0);
    for sample in &boot.transcript.samples {
        if code.contains(&sample.address) {
            *expected.entry(sample.address).or_default() += sample.count - last;
        }
        last = sample.count;
    }
    let instructions = annotated["instructions"].as_array().unwrap();
    let addresses: Vec<u64> =
        instructions.iter().map(|of| of["address"].as_u64().unwrap()).collect();
    assert!(addresses.is_sorted() && addresses.first() == Some(&code.start));
    let sampled = instructions.iter().filter(|of| of["samples"] != 0);
    let found = sampled.map(|of| (of["address"].as_u64().unwrap(), of["events"].as_u64().unwrap()));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected, "no sample is between instructions");
    assert_eq!(annotated["events"], expected.values().sum::<u64>());
    let names = instructions.iter().map(|of| text(of, "instruction"));
    assert!(names.clone().any(|of| of.starts_with("mov")) && names.clone().any(|of| of == "ret"));
    assert!(names.into_iter().all(|of| !of.contains("(bad)")));
    let lines = print("annotate", &[]);
    assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
}

#[test]
fn samples_that_cannot_be_shown_are_refused_with_what_there_is() {
    let (_, _, trace) = trace();
    let file = rounds();
    let symbols = ["--symbols", file.to_str().unwrap()];
    let cases: [(&str, &[&str], ExitStatus, &str); 4] = [
        ("annotate", &[], ExitStatus::BadTrace, "add --symbols"),
        ("annotate", &[symbols[0], symbols[1], "nothing"], ExitStatus::Usage, "compress_inner"),
        ("annotate", &[symbols[0], symbols[1], "core"], ExitStatus::Usage, "several functions"),
        ("report", &["--event", "cycles"], ExitStatus::Usage, "but of branches"),
    ];
    for (task, words, status, why) in cases {
        let output = xtask_task(task).arg(trace).args(words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(u8::from(status).into()), "{errors}");
        // The last message, of which names are lines of their own.
        let last = errors.rfind("xtask: ").map_or("", |at| &errors[at..]);
        let starts_line = errors.starts_with(last) || errors.contains(&format!("\n{last}"));
        assert!(starts_line && last.contains(why), "{errors}");
    }
    // Without symbols a report shows addresses, and suggests the option.
    let output = xtask_task("report").arg(trace).output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("0x"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("add --symbols FILE"));
}
