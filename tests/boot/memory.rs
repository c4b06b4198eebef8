//! Samples of loads and stores with their addresses, sources and latencies. Programs that lose
//! their cycles to one level of memory by construction, and print where their data are, judge them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use xtask::{project::Project, setup};

use crate::{
    command::{guest, run, tally, text},
    on_host,
};

/// Takes samples of a program on a machine; returns the trace and what the program printed.
fn recorded(machine: &str, options: &[&str], program: &str, words: &[&str]) -> (PathBuf, String) {
    let name = format!("tally-memory-{machine}-{}-{}", words.join("-"), std::process::id());
    let trace = std::env::temp_dir().join(name);
    let file = guest(program);
    let head =
        ["--pmu", machine, "--trace", trace.to_str().unwrap(), "--file", &file, "--", "record"];
    let ran = run(&[&head, options, &[program], words].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    (trace, text(&ran.stdout))
}

/// JSON that a command prints of a trace.
fn shown(command: &str, trace: &Path) -> Value {
    let printed = tally(command, &["--json", trace.to_str().unwrap()]);
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    serde_json::from_slice(&printed.stdout).unwrap()
}

/// The processors' latencies in cycles beyond the first level, as far as the programs' data reach:
/// second level; last level, on Intel with the translation, on AMD without, where Zen 3's is 46.
const LEVELS: [(&str, &str, [f64; 2]); 2] =
    [("second", "L2", [10.0, 30.0]), ("memory", "L3", [40.0, 120.0])];

/// Options of `record` by machine, and the rounds of the program. Intel samples slow loads; AMD all
/// ops, of which a third are loads.
const RECORDED: [(&str, &str, [&str; 2], &str); 5] = [
    ("intel", "cpu/mem-loads,ldlat=8/P", ["-F", "40000"], "200000"),
    ("sapphire-rapids", "cpu/mem-loads,ldlat=8/P", ["-F", "40000"], "200000"),
    ("lunar-lake", "cpu/mem-loads,ldlat=8/P", ["-F", "40000"], "200000"),
    ("amd", "ex_ret_ops:P", ["-c", "50021"], "2000000"),
    ("zen3", "ex_ret_ops:P", ["-c", "50021"], "2000000"),
];

#[test]
fn loads_are_at_the_level_that_the_program_is_made_for() {
    for (machine, event, [option, value], rounds) in RECORDED {
        for (cause, level, [least, most]) in LEVELS {
            let options = ["--budget", "20", option, value, "-e", event];
            let (trace, _) = recorded(machine, &options, "causes", &[cause, rounds]);
            let events = shown("mem", &trace);
            assert_eq!(events[0]["is_store"], false, "{machine}: {events}");
            let first = &events[0]["by_source"][0];
            assert_eq!(first["name"], level, "{machine}: {events}");
            assert!(first["samples"].as_u64() > Some(20), "{machine}: {events}");
            // The share by its interval: some tens of samples have the level, and few another one.
            assert!(first["high_95"].as_f64().unwrap() > 0.9, "{machine}: {events}");
            let latency = first["latency_cycles"][0].as_f64().unwrap();
            assert!((least..most).contains(&latency), "{machine}, {cause}: {latency}");
            let at_one_place = events[0]["by_code"][0]["share"].as_f64();
            assert!(at_one_place > Some(0.9), "{machine}: {events}");
            assert_perf_reads(&trace, level);
            fs::remove_file(trace).unwrap();
        }
    }
}

/// Panics unless perf prints the address, latency and level of each access as `script` does, and
/// the address 0 for samples without an access.
fn assert_perf_reads(trace: &Path, level: &str) {
    let data = trace.with_extension("data");
    let options = ["--to", "perf", "--out", data.to_str().unwrap(), trace.to_str().unwrap()];
    assert!(tally("export", &options).status.success());
    let mut perf = setup::linux(&Project::here()).unwrap().perf_on_host();
    let words = ["script", "-F", "ip,addr,weight,data_src", "-i", data.to_str().unwrap()];
    let printed = text(&on_host(perf.env("HOME", trace.with_extension("home")).args(words)).stdout);
    let script = text(&tally("script", &["--json", trace.to_str().unwrap()]).stdout);
    assert_eq!(printed.lines().count(), script.lines().count(), "{printed}");
    let mut at_level = 0;
    for (line, sample) in printed.lines().zip(script.lines()) {
        let sample: Value = serde_json::from_str(sample).unwrap();
        let access = &sample["access"];
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, latency] = [&access["address"], &access["latency_cycles"]]
            .map(|number| number.as_u64().unwrap_or_default());
        assert_eq!(words[0], format!("{address:x}"), "{line}");
        assert!(words.contains(&&*latency.to_string()), "{line}: {latency}");
        if access["source"] == level.to_lowercase() && access["is_store"] == false {
            assert!(line.contains("OP LOAD") && line.contains(&format!("|LVL {level} hit|")));
            at_level += 1;
        }
    }
    assert!(at_level > 20, "{script}");
    fs::remove_file(data).unwrap();
}

/// Each thread's own line, and its stack, are not shared.
#[test]
fn the_line_that_two_threads_write_is_found_at_its_address() {
    assert_finds_the_shared_line("intel", "300000");
    assert_finds_the_shared_line("panther-lake", "300000");
    // Of all ops, few are stores to the line.
    assert_finds_the_shared_line("amd", "3000000");
}

fn assert_finds_the_shared_line(machine: &str, rounds: &str) {
    let (trace, printed) = recorded(machine, &["-d"], "neighbours", &[rounds]);
    let address = u64::from_str_radix(printed.trim().trim_start_matches("0x"), 16).unwrap();
    let found = shown("c2c", &trace);
    let lines = found["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 1, "{found}");
    let line = &lines[0];
    assert_eq!(line["address"].as_u64(), Some(address), "{found}");
    assert_eq!((line["threads"].as_u64(), line["is_false"].as_bool()), (Some(2), Some(true)));
    let offsets: Vec<_> =
        line["places"].as_array().unwrap().iter().map(|of| &of["offset"]).collect();
    assert!(offsets.iter().all(|of| [0, 8].map(Value::from).contains(of)), "{found}");
    fs::remove_file(trace).unwrap();
}

#[test]
fn what_has_no_addresses_is_refused_before_a_boot_or_said() {
    let file = guest("causes");
    let refused = |machine: &str, events: &str| {
        let head = ["--pmu", machine, "--file", &file, "--", "record", "-e", events, "causes"];
        let ran = run(&head);
        assert!(!ran.status.success() && ran.stdout.is_empty());
        text(&ran.stderr)
    };
    let two = "cpu/mem-loads,ldlat=30/P,cpu/mem-loads,ldlat=60/P";
    assert!(refused("intel", two).contains("a session has one latency"));
    assert!(refused("intel", "mem-loads").contains("with :pp"));
    assert!(refused("amd", "mem-loads:P").contains("record -d"));
    assert!(refused("amd", "branch-misses:p").contains("cycles:p, ex_ret_ops:p"));
    let (trace, _) = recorded("intel", &[], "causes", &["second", "1000"]);
    let said = tally("mem", &[trace.to_str().unwrap()]);
    assert!(text(&said.stderr).contains("record -d"), "{}", text(&said.stderr));
    fs::remove_file(trace).unwrap();
}
