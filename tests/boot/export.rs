//! Every format of `cargo xtask export`, read back from one trace by third-party readers and
//! compared with the records of the trace value by value.

mod ctf;
mod formats;
mod perf;
mod pprof;
mod samples;
mod tables;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use object::Object;
use serde_json::Value;
use tally_abi::{
    ExitStatus, syscall,
    trace::{SlicePlace, SliceRecord},
};
use xtask::{
    machine::{Boot, Request},
    project::Project,
    report::Report,
    trace::run::Run,
    trace_file::Trace,
};

use crate::{SharedBoot, assert_success};

/// Two programs that take turns: one is sampled, the other has slices of two groups.
static BOOT: SharedBoot = SharedBoot::new(|| {
    Request::new(
        "wire trace trace-events=syscalls,switches,signals -- \
         tally record --budget 100 -e branches -c 5000 rounds 1 20000 -- \
         switches instructions,r01c4,r02c4,r08c4,r10c4,r20c4,r40c4 20000 user 300",
    )
});

/// Trace as written by `cargo xtask run --trace`, in a folder that a later run removes.
static TRACE: OnceLock<PathBuf> = OnceLock::new();

fn trace() -> (&'static Boot, Run, &'static Path) {
    let boot = BOOT.get();
    let mut run = Run::of(boot, &Report::of(boot), "the command line \"of\" a test");
    run.code_files.clear(); // Names are from `--symbols` alone.
    let path = TRACE.get_or_init(|| {
        assert_success(boot);
        let path = boot.folder.file("exported");
        fs::write(&path, Trace::with_run(&boot.transcript.trace, &run.json())).unwrap();
        path
    });
    (boot, run, path)
}

/// Call of `cargo xtask TASK`.
pub fn xtask_task(task: &str) -> Command {
    let tests = std::env::current_exe().unwrap();
    // The tests are in `deps`, next to the tool.
    let mut xtask = Command::new(tests.ancestors().nth(2).unwrap().join("tally"));
    xtask.arg(task);
    xtask
}

/// Call of `cargo xtask export`.
fn xtask() -> Command {
    xtask_task("export")
}

/// Exports the trace with these further words.
fn export(trace: &Path, words: &[&str]) -> Output {
    xtask().arg(trace).args(words).output().unwrap()
}

/// Trace in a format.
fn exported(words: &[&str]) -> Vec<u8> {
    let output = export(trace().2, words);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{words:?}: {errors}");
    output.stdout
}

/// File of `rounds` with its symbols.
fn rounds() -> PathBuf {
    Project::here().target.join("guest/x86_64-unknown-linux-gnu/stripped/rounds")
}

/// Counts of each slice: slice, event, count, in the order of the records and of the event lists.
fn counted(run: &Run, slices: &[SliceRecord]) -> Vec<(SliceRecord, String, u64)> {
    let mut all = Vec::new();
    for slice in slices {
        let session = run.sessions.iter().find(|of| of.session == slice.session).unwrap();
        for event in &session.events {
            let count = match event.place {
                SlicePlace::Cycles => slice.cycles,
                SlicePlace::Instructions => slice.instructions,
                SlicePlace::List { group, index } if group == slice.group => {
                    slice.counts[usize::from(index)]
                }
                _ => continue,
            };
            all.push((*slice, event.report.name.clone(), count));
        }
    }
    all
}

/// Time stamp in nanoseconds since the first one of the trace.
fn ns(boot: &Boot, run: &Run, tsc: u64) -> f64 {
    let t = &boot.transcript;
    let starts = [
        t.slices.iter().map(|of| of.start_tsc).min(),
        t.syscalls.iter().map(|of| of.start_tsc).min(),
        t.switches.iter().map(|of| of.tsc).min(),
        t.samples.iter().map(|of| of.tsc).min(),
    ];
    let start = starts.into_iter().flatten().min().unwrap();
    (tsc - start) as f64 * 1e9 / run.tsc_hz.unwrap() as f64
}

fn assert_near(value: f64, expected: f64, unit: f64) {
    assert!((value - expected).abs() <= unit, "{value} is not {expected}");
}

/// Events of a kind in a Chrome trace.
fn of_kind<'a>(events: &'a [Value], ph: &str, cat: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == ph && event["cat"] == cat).collect()
}

#[test]
fn a_chrome_trace_has_every_slice() {
    let (boot, run, _) = trace();
    let json: Value = serde_json::from_slice(&exported(&["--to", "chrome"])).unwrap();
    assert_eq!(json["otherData"], run.json());
    let events = json["traceEvents"].as_array().unwrap();
    let times: Vec<f64> = events.iter().map(|event| event["ts"].as_f64().unwrap()).collect();
    assert!(times.is_sorted());
    let slices = &boot.transcript.slices;
    let spans = of_kind(events, "X", "slice");
    let mut expected: Vec<&SliceRecord> = slices.iter().collect();
    expected.sort_by_key(|slice| slice.start_tsc);
    assert_eq!(spans.len(), expected.len());
    for (span, slice) in spans.into_iter().zip(expected) {
        let args = &span["args"];
        assert_eq!(args["sequence"], slice.sequence);
        assert_eq!(
            (&args["cycles"], &args["instructions"]),
            (&slice.cycles.into(), &slice.instructions.into())
        );
        assert_near(span["ts"].as_f64().unwrap() * 1e3, ns(boot, &run, slice.start_tsc), 1.0);
        let end = span["ts"].as_f64().unwrap() + span["dur"].as_f64().unwrap();
        assert_near(end * 1e3, ns(boot, &run, slice.end_tsc), 1.0);
    }
}

#[test]
fn a_chrome_trace_has_every_rate() {
    let (boot, run, _) = trace();
    let json: Value = serde_json::from_slice(&exported(&["--to", "chrome"])).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let mut rates: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for rate in of_kind(events, "C", "rate") {
        let value = rate["args"]["per second"].as_f64().unwrap();
        rates.entry(rate["name"].as_str().unwrap().to_owned()).or_default().push(value);
    }
    let mut expected: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (slice, event, count) in counted(&run, &boot.transcript.slices) {
        let seconds = (slice.end_tsc - slice.start_tsc) as f64 / run.tsc_hz.unwrap() as f64;
        let name = format!("{event} (session {})", slice.session);
        expected.entry(name).or_default().push(count as f64 / seconds);
    }
    assert!(expected.len() >= 8, "{:?}", expected.keys());
    assert!(rates.keys().eq(expected.keys()));
    for (name, expected) in expected {
        assert_eq!(rates[&name].len(), expected.len(), "{name}");
        rates[&name].iter().zip(expected).for_each(|(rate, of)| assert_near(*rate, of, of * 1e-9));
    }
}

#[test]
fn a_chrome_trace_has_every_call_switch_and_sample() {
    let (boot, run, _) = trace();
    let symbols = rounds();
    let words = ["--to", "chrome", "--symbols", symbols.to_str().unwrap()];
    let json: Value = serde_json::from_slice(&exported(&words)).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let t = &boot.transcript;
    let (calls, mut expected) = (of_kind(events, "X", "syscall"), t.syscalls.clone());
    expected.sort_by_key(|call| call.start_tsc);
    assert!(calls.len() > 10 && calls.len() == expected.len());
    for (span, call) in calls.into_iter().zip(expected) {
        let name = syscall::name(call.call).unwrap().to_ascii_lowercase();
        assert_eq!((&span["name"], &span["pid"]), (&name.into(), &call.program.into()));
        assert_eq!(span["args"]["arguments"][0], format!("{:#x}", call.rdi));
        assert_near(span["ts"].as_f64().unwrap() * 1e3, ns(boot, &run, call.start_tsc), 1.0);
    }
    let on_cpu = t.switches.iter().filter(|switch| switch.program != 0).count();
    let switches = events.iter().filter(|event| event["cat"] == "switch");
    assert!(on_cpu > 2 && switches.count() == on_cpu);
    let samples = of_kind(events, "i", "sample");
    assert!(samples.len() > 50 && samples.len() == t.samples.len());
    let file = fs::read(rounds()).unwrap();
    let file = object::File::parse(&*file).unwrap();
    let functions = file.symbol_map();
    for (instant, sample) in samples.into_iter().zip(&t.samples) {
        assert_eq!(instant["args"]["count"], sample.count);
        assert_eq!(instant["args"]["address"], format!("{:#x}", sample.address));
        assert_near(instant["ts"].as_f64().unwrap() * 1e3, ns(boot, &run, sample.tsc), 1.0);
        // The beginning of the name does not depend on the method of demangling.
        let known = functions.containing(sample.address).filter(|_| sample.address != 0);
        let named = !instant["name"].as_str().unwrap().starts_with("0x");
        assert!(known.is_none() || named, "{instant} in {known:?}");
    }
    let named = |pid: u32| {
        let of_process = |event: &&Value| event["name"] == "process_name" && event["pid"] == pid;
        events.iter().find(of_process).unwrap()["args"]["name"].clone()
    };
    for program in &run.programs {
        assert_eq!(named(program.program), program.name);
    }
}

/// Events by the stacks of the samples, without symbols: program and address.
fn stacks(boot: &Boot, run: &Run) -> BTreeMap<String, u64> {
    let (mut stacks, mut last) = (BTreeMap::new(), 0);
    for sample in &boot.transcript.samples {
        let session = run.sessions.iter().find(|of| of.session == sample.session).unwrap();
        let frame = match sample.address {
            0 => "[no address]".to_owned(),
            address => format!("{address:#x}"),
        };
        *stacks.entry(format!("{};{frame}", session.name)).or_default() += sample.count - last;
        last = sample.count;
    }
    stacks
}

#[test]
fn folded_stacks_have_every_event_of_the_samples() {
    let (boot, run, _) = trace();
    let text = String::from_utf8(exported(&["--to", "folded"])).unwrap();
    let line = |line: &str| {
        let (stack, events) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), events.parse::<u64>().unwrap())
    };
    let expected = stacks(boot, &run);
    assert_eq!(text.lines().map(line).collect::<BTreeMap<_, _>>(), expected);
    let total: u64 = expected.values().sum();
    assert_eq!(total, boot.transcript.samples.last().unwrap().count);
    // With symbols the events are the same, and functions have names.
    let symbols = rounds();
    let words = ["--to", "folded", "--symbols", symbols.to_str().unwrap(), "--event", "branches"];
    let named = String::from_utf8(exported(&words)).unwrap();
    assert_eq!(named.lines().map(|of| line(of).1).sum::<u64>(), total);
    assert!(named.contains("miniz_oxide::deflate"), "{named}");
}

/// inferno draws the graph: its boxes show the stacks that it has read.
#[test]
fn a_flame_graph_has_every_stack() {
    let (boot, run, _) = trace();
    let svg = String::from_utf8(exported(&["--to", "flamegraph"])).unwrap();
    for (stack, events) in stacks(boot, &run) {
        let (_, frame) = stack.split_once(';').unwrap();
        let digits = events.to_string();
        let grouped: Vec<_> =
            digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
        let title = format!("<title>{frame} ({} branches, ", grouped.join(","));
        assert!(svg.contains(&title), "no {title} in {svg}");
    }
}

/// A Firefox profile, with accessors for its tables.
struct Profile(Value);

impl Profile {
    fn threads(&self) -> impl Iterator<Item = &Value> {
        self.0["threads"].as_array().unwrap().iter()
    }

    /// Thread whose name ends in `end`.
    fn thread(&self, end: &str) -> &Value {
        let is_it = |thread: &&Value| thread["name"].as_str().unwrap().ends_with(end);
        self.threads().find(is_it).unwrap_or_else(|| panic!("no thread {end}"))
    }

    /// Strings that the tables of a thread refer to.
    fn texts(&self, thread: &Value) -> Vec<String> {
        let own = &thread["stringArray"];
        let texts = if own.is_array() { own } else { &self.0["shared"]["stringArray"] };
        serde_json::from_value(texts.clone()).unwrap()
    }
}

/// Column of a table in a Firefox profile.
fn column(table: &Value, name: &str) -> Vec<usize> {
    serde_json::from_value(table[name].clone()).unwrap_or_else(|e| panic!("{name}: {e}: {table}"))
}

#[test]
fn a_firefox_profile_has_every_sample() {
    let (boot, _, _) = trace();
    let profile = Profile(serde_json::from_slice(&exported(&["--to", "firefox"])).unwrap());
    let thread = profile.thread("samples of branches");
    let (texts, samples) = (profile.texts(thread), &boot.transcript.samples);
    let weights = column(&thread["samples"], "weight");
    assert_eq!(weights.iter().sum::<usize>() as u64, samples.last().unwrap().count);
    let frames = column(&thread["stackTable"], "frame");
    let functions = column(&thread["frameTable"], "func");
    let names = column(&thread["funcTable"], "name");
    let stacks = column(&thread["samples"], "stack");
    assert_eq!(stacks.len(), samples.len());
    for (stack, sample) in stacks.into_iter().zip(samples) {
        let name = &texts[names[functions[frames[stack]]]];
        let expected = format!("{:#x}", sample.address);
        assert!(*name == expected || sample.address == 0, "{name} is not {expected}");
    }
}

#[test]
fn a_firefox_profile_has_every_rate_and_call() {
    let (boot, run, _) = trace();
    let profile = Profile(serde_json::from_slice(&exported(&["--to", "firefox"])).unwrap());
    for session in &run.sessions {
        let thread = profile.thread(&format!("session {}: rates", session.session));
        let (texts, markers) = (profile.texts(thread), &thread["markers"]);
        let mut found: Vec<(String, u64)> = column(markers, "name")
            .into_iter()
            .zip(markers["data"].as_array().unwrap())
            .map(|(name, data)| (texts[name].clone(), data["count"].as_f64().unwrap() as u64))
            .collect();
        let of_session = |of: &&SliceRecord| of.session == session.session;
        let slices: Vec<SliceRecord> =
            boot.transcript.slices.iter().filter(of_session).copied().collect();
        let mut expected: Vec<(String, u64)> =
            counted(&run, &slices).into_iter().map(|(_, event, count)| (event, count)).collect();
        found.sort();
        expected.sort();
        assert!(found == expected, "{} and {}", found.len(), expected.len());
    }
    let of_programs =
        profile.threads().filter(|thread| thread["name"].as_str().unwrap().starts_with("thread "));
    let calls = of_programs.map(|thread| thread["markers"]["length"].as_u64().unwrap());
    assert_eq!(calls.sum::<u64>() as usize, boot.transcript.syscalls.len());
}

/// The command leaves no file under the final name and prints one line with the reason.
#[test]
fn bad_input_is_refused_in_one_line() {
    let (boot, _, whole) = trace();
    let bytes = fs::read(whole).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = boot.folder.file(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let head = bytes.windows(2).position(|two| two == b"\n\n").unwrap();
    let old = &boot.transcript.trace;
    // The head, and the last chunk.
    let empty = [&bytes[..head + 2], &bytes[bytes.len() - 16..]].concat();
    let cases = [
        (file("empty", &empty), "folded", ExitStatus::BadTrace, "no samples"),
        (
            file("truncated", &bytes[..bytes.len() - 8]),
            "chrome",
            ExitStatus::BadTrace,
            "incomplete",
        ),
        (file("short", &bytes[..head]), "parquet", ExitStatus::BadTrace, "incomplete"),
        (file("foreign", b"{}"), "chrome", ExitStatus::BadTrace, "not a trace file"),
        (file("old", old), "openmetrics", ExitStatus::BadTrace, "record it again"),
        (boot.folder.file("missing"), "folded", ExitStatus::HostError, "cannot read"),
    ];
    let out = boot.folder.file("never");
    for (trace, format, status, why) in cases {
        let output = export(&trace, &["--to", format, "--out", out.to_str().unwrap()]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(u8::from(status).into()), "{errors}");
        assert!(errors.lines().count() == 1 && errors.contains(why), "{errors}");
        let entries = fs::read_dir(out.parent().unwrap()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(names.into_iter().all(|name| !name.starts_with("never")), "{format}");
    }
}

#[test]
fn a_closed_pipe_is_no_failure_and_a_full_disk_is() {
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let (reader, closed) = std::io::pipe().expect("there are pipes");
    drop(reader);
    for (stdout, status) in [(Stdio::from(closed), 0), (full.into(), ExitStatus::NoSpace.into())] {
        let mut export = xtask();
        export.arg(trace().2).args(["--to", "chrome"]).stdout(stdout).stderr(Stdio::null());
        assert_eq!(export.status().unwrap().code(), Some(u8::into(status)));
    }
}
