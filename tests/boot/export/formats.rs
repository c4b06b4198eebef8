//! Exports checked against the definitions of their formats, that is, against the conditions that
//! the importers of Firefox Profiler and Perfetto assume. Neither importer is available as a
//! package, so the conditions are written down here. Sources: the types in `src/types/profile.ts`
//! of firefox-devtools/profiler, at the version that a profile names, and the description of the
//! Trace Event Format, with Perfetto's condition that the slices of a thread nest.

use std::collections::BTreeMap;

use serde_json::Value;

use super::exported;

/// Version of Firefox's format to which the rules apply.
const FIREFOX_VERSION: u64 = 55;
/// Tables of a thread with the columns that a reader needs.
const TABLES: [(&str, &[&str]); 7] = [
    ("samples", &["stack", "timeDeltas", "weight"]),
    ("markers", &["data", "name", "startTime", "endTime", "phase", "category"]),
    ("stackTable", &["frame", "prefix"]),
    (
        "frameTable",
        &[
            "address",
            "inlineDepth",
            "category",
            "subcategory",
            "func",
            "nativeSymbol",
            "innerWindowID",
            "line",
            "column",
        ],
    ),
    (
        "funcTable",
        &["name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"],
    ),
    ("resourceTable", &["lib", "name", "host", "type"]),
    ("nativeSymbols", &["libIndex", "address", "name", "functionSize"]),
];

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().unwrap_or_else(|| panic!("{name} is a list: {of}"))
}

/// Panics unless each number of a column is an index below `length`, or a permitted null.
fn assert_indices(table: &Value, name: &str, length: usize, may_be_null: bool) {
    for value in list(table, name) {
        let is_index = value.as_u64().is_some_and(|index| (index as usize) < length);
        assert!(is_index || may_be_null && value.is_null(), "{name}: {value} of {length}");
    }
}

fn assert_thread(thread: &Value, profile: &Value) {
    let strings = list(thread, "stringArray").len();
    let rows = |name: &str| thread[name]["length"].as_u64().expect("a table has a length") as usize;
    for (name, columns) in TABLES {
        for column in columns {
            assert_eq!(list(&thread[name], column).len(), rows(name), "{name}.{column}");
        }
    }
    assert!(thread["pid"].is_string() && thread["name"].is_string(), "{}", thread["pid"]);
    assert!(thread["registerTime"].is_number() && thread["isMainThread"].is_boolean());
    assert_eq!(thread["samples"]["weightType"], "samples");
    let deltas = list(&thread["samples"], "timeDeltas");
    assert!(deltas.iter().all(|delta| delta.as_f64().is_some_and(|it| it >= 0.0)), "in order");
    assert_indices(&thread["samples"], "stack", rows("stackTable"), true);
    assert_indices(&thread["stackTable"], "frame", rows("frameTable"), false);
    // A caller precedes its callees.
    for (at, prefix) in list(&thread["stackTable"], "prefix").iter().enumerate() {
        assert!(prefix.is_null() || prefix.as_u64().is_some_and(|it| (it as usize) < at));
    }
    assert_indices(&thread["frameTable"], "func", rows("funcTable"), false);
    assert_indices(
        &thread["frameTable"],
        "category",
        list(&profile["meta"], "categories").len(),
        true,
    );
    assert_indices(&thread["funcTable"], "name", strings, false);
    assert_markers(&thread["markers"], strings, &profile["meta"]);
}

/// Panics unless markers are intervals, and each has the fields of its schema.
fn assert_markers(markers: &Value, strings: usize, meta: &Value) {
    assert_indices(markers, "name", strings, false);
    assert_indices(markers, "category", list(meta, "categories").len(), false);
    let schemas: BTreeMap<&str, &Value> = list(meta, "markerSchema")
        .iter()
        .map(|schema| (schema["name"].as_str().expect("a schema has a name"), schema))
        .collect();
    let times = list(markers, "startTime").iter().zip(list(markers, "endTime"));
    for ((start, end), phase) in times.zip(list(markers, "phase")) {
        // Phase 1 is an interval, with a start and an end.
        assert_eq!(phase, 1);
        assert!(start.as_f64().unwrap() <= end.as_f64().unwrap(), "{start} to {end}");
    }
    for data in list(markers, "data") {
        let schema = schemas[data["type"].as_str().expect("data has a type")];
        for field in list(schema, "fields") {
            let value = &data[field["key"].as_str().expect("a field has a key")];
            let is_right = match field["format"].as_str().expect("a field has a format") {
                "unique-string" => value.as_u64().is_some_and(|it| (it as usize) < strings),
                "integer" => value.as_f64().is_some_and(|it| it.fract() == 0.0),
                "decimal" => value.is_number(),
                other => panic!("no rule for the format {other}"),
            };
            assert!(is_right, "{field}: {data}");
        }
    }
}

#[test]
fn a_firefox_profile_is_of_the_format_s_types() {
    let profile: Value = serde_json::from_slice(&exported(&["--to", "firefox"])).unwrap();
    let meta = &profile["meta"];
    assert_eq!(meta["preprocessedProfileVersion"], FIREFOX_VERSION);
    let numbers = ["interval", "startTime", "processType", "version"];
    assert!(numbers.iter().all(|name| meta[name].is_number()), "{meta}");
    assert!(meta["product"].is_string() && meta["symbolicated"] == true);
    for category in list(meta, "categories") {
        assert!(category["name"].is_string() && category["color"].is_string(), "{category}");
        assert_eq!(category["subcategories"][0], "Other");
    }
    let threads = list(&profile, "threads");
    assert!(threads.len() > 3, "{}", threads.len());
    threads.iter().for_each(|thread| assert_thread(thread, &profile));
    // A thread is identified by process and number.
    let mut numbers: Vec<_> =
        threads.iter().map(|of| (of["pid"].to_string(), of["tid"].to_string())).collect();
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), threads.len());
}

/// Panics unless the event has the fields that its phase requires.
fn assert_event(event: &Value) {
    let is_number = |name: &str| event[name].as_f64().is_some_and(|number| number >= 0.0);
    let numbers = ["pid", "tid", "ts"];
    assert!(event["name"].is_string() && numbers.iter().all(|name| is_number(name)), "{event}");
    let args = event["args"].as_object();
    let is_right = match event["ph"].as_str().expect("an event has a phase") {
        "X" => is_number("dur"),
        // The importers make a track of each number, and read no other value.
        "C" => args.is_some_and(|args| !args.is_empty() && args.values().all(Value::is_number)),
        "i" => ["t", "p", "g"].iter().any(|scope| event["s"] == *scope),
        "M" => {
            let known = ["process_name", "thread_name", "process_sort_index", "thread_sort_index"];
            let is_sort = event["name"].as_str().unwrap().ends_with("_sort_index");
            let value = &event["args"][if is_sort { "sort_index" } else { "name" }];
            known.iter().any(|name| event["name"] == *name)
                && if is_sort { value.is_number() } else { value.is_string() }
        }
        other => panic!("no rule for the phase {other}"),
    };
    assert!(is_right, "{event}");
}

#[test]
fn a_chrome_trace_is_of_the_format_and_its_slices_nest() {
    let trace: Value = serde_json::from_slice(&exported(&["--to", "chrome"])).unwrap();
    let events = list(&trace, "traceEvents");
    events.iter().for_each(assert_event);
    assert!(["ms", "ns"].iter().any(|unit| trace["displayTimeUnit"] == *unit));
    let mut threads: BTreeMap<[u64; 2], Vec<[i64; 2]>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        // Perfetto's times are whole nanoseconds.
        let ns = |name: &str| (event[name].as_f64().unwrap() * 1_000.0).round() as i64;
        let thread = ["pid", "tid"].map(|name| event[name].as_u64().unwrap());
        threads.entry(thread).or_default().push([ns("ts"), ns("ts") + ns("dur")]);
    }
    assert!(threads.len() > 2, "{}", threads.len());
    for (thread, mut slices) in threads {
        slices.sort_by_key(|[start, end]| (*start, -end));
        let mut open: Vec<i64> = Vec::new();
        for [start, end] in slices {
            open.retain(|outer| *outer > start);
            assert!(
                open.iter().all(|outer| end <= *outer),
                "{thread:?}: {start} to {end} {open:?}"
            );
            open.push(end);
        }
    }
}
