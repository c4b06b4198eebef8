//! The Common Trace Format, read by babeltrace2.

use std::fs;

use serde_json::Value;
use xtask::{project::Project, setup};

use super::{export, trace, xtask_task};

/// Value of the first field of this name in babeltrace2's text of an event.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let from = line.find(&format!(" {name} = ")).unwrap_or_else(|| panic!("no {name} in {line}"));
    let value = &line[from + name.len() + 4..];
    &value[..value.find([',', ' ']).unwrap_or(value.len())]
}

fn number(text: &str) -> i128 {
    let hexadecimal = text.strip_prefix("0x").map(|digits| i128::from_str_radix(digits, 16));
    hexadecimal.unwrap_or_else(|| text.parse()).unwrap_or_else(|_| panic!("{text} is no number"))
}

fn integer(value: &Value) -> i128 {
    value.as_u64().map(i128::from).or(value.as_i64().map(i128::from)).unwrap()
}

/// Panics unless the event has this value in this field.
fn assert_field(line: &str, name: &str, value: &Value) {
    match value {
        Value::Bool(is) => assert_eq!(number(field(line, name)), i128::from(*is), "{line}"),
        Value::Number(of) => {
            assert_eq!(number(field(line, name)), integer(value), "{name} {of} in {line}");
        }
        Value::String(of) if name == "signal" || name == "result" => assert!(!of.is_empty()),
        Value::String(of) => {
            assert!(line.contains(&format!(" {name} = ( \"{of}\" : ")), "no {name} {of} in {line}");
        }
        Value::Array(of) => {
            assert_eq!(number(field(line, &format!("{name}_length"))), of.len() as i128, "{line}");
            let (_, list) = line.split_once(&format!(" {name} = [ ")).unwrap();
            let counts = list.split(" count = ").skip(1);
            let counts: Vec<i128> =
                counts.map(|rest| number(rest.split(' ').next().unwrap())).collect();
            let expected: Vec<i128> = of.iter().map(integer).collect();
            assert_eq!(counts, expected, "{line}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn babeltrace2_reads_every_record() {
    let (boot, run, trace) = trace();
    let folder = boot.folder.file("ctf");
    let output = export(trace, &["--to", "ctf", "--out", folder.to_str().unwrap()]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let again = export(trace, &["--to", "ctf", "--out", folder.to_str().unwrap()]);
    assert!(!again.status.success(), "the folder is not replaced");
    let mut babeltrace = setup::babeltrace2(&Project::here()).unwrap();
    let words = ["--clock-cycles", "--no-delta", "--color=never", "--names=payload,context"];
    let read = babeltrace.args(words).arg(&folder).output().unwrap();
    let errors = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{errors}");
    let text = String::from_utf8(read.stdout).unwrap();
    let printed = xtask_task("trace").arg(trace).arg("--json").output().unwrap();
    let records = String::from_utf8(printed.stdout).unwrap();
    let records = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut records: Vec<Value> = records.filter(|record| record["kind"] != "run").collect();
    let stamp =
        |record: &Value| ["end_tsc", "tsc"].iter().find_map(|name| record[name].as_u64()).unwrap();
    records.sort_by_key(stamp);
    let lines: Vec<&str> = text.lines().collect();
    assert!(records.len() > 500 && lines.len() == records.len(), "{} lines", lines.len());
    for (line, record) in lines.into_iter().zip(&records) {
        let kind = record["kind"].as_str().unwrap();
        let (time, rest) = line.split_once("] ").unwrap();
        assert_eq!(number(time.trim_start_matches(['[', '0'])), stamp(record).into(), "{line}");
        assert!(rest.starts_with(&format!("{kind}: ")), "no {kind}: {line}");
        for (name, value) in record.as_object().unwrap() {
            if !["kind", "tsc", "end_tsc"].contains(&name.as_str()) {
                assert_field(line, name, value);
            }
        }
    }
    let metadata = fs::read_to_string(folder.join("metadata")).unwrap();
    assert!(metadata.contains(&format!("freq = {};", run.tsc_hz.unwrap())), "{metadata}");
    for event in run.sessions.iter().flat_map(|session| &session.events) {
        assert!(text.contains(&event.report.name) || metadata.contains(&event.report.name));
    }
}
