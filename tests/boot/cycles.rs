//! Cycles by function, and the breakdown that a program reads while it runs, against the truth of
//! the virtual PMU.

use std::{collections::BTreeMap, fs};

use serde_json::Value;
use tally_abi::{ExitStatus, truth::RegionKind};
use tally_breakdown::{Count, INDEPENDENT, Stack, slot_tree};
use xtask::{
    build,
    machine::{Pmu, Request},
    project::Project,
    report::{
        CyclePart, Report, stack_of,
        table::{self, Detail},
    },
    run::RunArgs,
};

use crate::{
    assert_success, boot,
    command::{run, tally, text},
    estimates::{default_job_on_amd, default_job_on_intel, reported},
    intervals::assert_hold,
};

/// Largest permitted distance of a function's share of the cycles from the truth, besides six
/// standard errors of its samples.
const MOST_POINTS: f64 = 0.02;
/// Cycles by which a session begins after the truth's first region, and by which the readings of a
/// moment, one after another, follow the moment.
const READ_CYCLES: f64 = 5_000.0;
/// Number of functions that are judged.
const FUNCTIONS: usize = 10;

/// Share, half width and truth of a part or a function.
fn shares(of: &Value, whole: f64) -> [f64; 3] {
    let number = |name: &str| of[name].as_f64().unwrap_or_else(|| panic!("{name}: {of}"));
    if of["share"].is_number() && of["cycles"].is_null() {
        return ["share", "half_width_95", "truth"].map(number);
    }
    ["cycles", "half_width_95", "truth"].map(|name| number(name) / whole)
}

/// First functions of a program, as given by `report --breakdown`.
fn by_function(machine: &str, words: &[&str]) -> Value {
    let folder =
        std::env::temp_dir().join(format!("tally-cycles-{}-{machine}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (trace, blocks) = (path("trace"), path("blocks.csv"));
    let symbols = build::program_symbols(&Project::here(), "deflate");
    let (file, option) = (symbols.to_str().unwrap(), format!("blocks={blocks}"));
    let head = ["-q", "--pmu", machine, "--trace", &trace, "--vpmu", &option];
    let ran = run(&[&head[..], &["--", "record", "--breakdown"], words].concat());
    assert!(ran.status.success(), "{ran:?}");
    let asked = [&trace, "--symbols", file, "--breakdown", "--blocks", &blocks, "--json"];
    let report = tally("report", &asked);
    let annotated = tally("annotate", &[&trace, "--symbols", file, "--breakdown", "--json"]);
    fs::remove_dir_all(&folder).unwrap();
    let read = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).unwrap() };
    let (report, lines) = (read(&report.stdout), read(&annotated.stdout));
    let first = report["code"][0]["share"].as_f64().unwrap();
    let sum: f64 =
        lines["code"].as_array().unwrap().iter().map(|line| line["share"].as_f64().unwrap()).sum();
    assert!((sum - first).abs() < 1e-6, "the lines of a function are the function: {lines}");
    report
}

fn check_functions(machine: &str) {
    let report = by_function(machine, &["deflate", "--level", "6", "--kib", "900"]);
    let all = report["cycles"].as_f64().unwrap();
    let code = report["code"].as_array().unwrap();
    let total: f64 = code.iter().map(|of| of["share"].as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-6, "{machine}: {total}");
    let samples: u64 = code.iter().map(|of| of["samples"].as_u64().unwrap()).sum();
    let (mut judged, mut outside) = (0, 0);
    for of in code.iter().take(FUNCTIONS) {
        let [share, half_width, truth] = shares(of, all);
        let stderr = (truth * (1.0 - truth) / samples as f64).sqrt();
        assert!((share - truth).abs() < MOST_POINTS + 6.0 * stderr, "{machine}: {of}");
        let parts = of["parts"].as_array().unwrap();
        let sum: f64 = parts.iter().map(|part| part["cycles"].as_f64().unwrap()).sum();
        assert!((sum / all - share).abs() < 1e-6, "the parts close: {machine}: {of}");
        let of_parts = parts.iter().map(|part| shares(part, all));
        for [share, half_width, truth] in of_parts.chain([[share, half_width, truth]]) {
            judged += 1;
            outside += u32::from((share - truth).abs() > half_width + 1e-5);
        }
    }
    // The study judges how many intervals contain the truth: 84 to 91 %, as they do not include the
    // skid. One run has 98 to 78 %, by seed.
    assert!(judged >= 30 && outside * 2 <= judged, "{machine}: {outside} of {judged}");
    let skid = report["skid"]["instructions"][1].as_u64().expect("it is measured");
    assert!((1..100).contains(&skid), "{machine}: {skid}");
}

#[test]
fn functions_have_their_share_of_the_cycles_and_their_causes() {
    check_functions("intel");
}

#[test]
#[ignore = "long"]
fn functions_have_their_share_of_the_cycles_and_their_causes_on_amd() {
    check_functions("amd");
}

#[test]
fn what_is_asked_of_a_run_that_is_too_short_is_named_with_what_can_be_had() {
    let short = run(&["--breakdown", "--", "rounds", "1", "10"]);
    let why = text(&short.stderr);
    assert_eq!(short.status.code(), Some(i32::from(u8::from(ExitStatus::TooShort))), "{why}");
    assert!(why.contains("ran too short") && why.contains("--events cycles,instructions"), "{why}");
    let sampled = run(&["--", "record", "--breakdown", "rounds", "1", "10"]);
    let why = text(&sampled.stderr);
    assert!(why.contains("samples of cycles") && why.contains("-c 1000"), "{why}");
}

#[test]
fn what_the_processor_cannot_tell_is_named_with_what_can_be_had() {
    for words in [&["--breakdown"][..], &["--", "record", "--breakdown", "rounds", "1", "10"]] {
        let refused = run(&[&["--pmu", "zen3"], words].concat());
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(i32::from(u8::from(ExitStatus::NoBreakdown))));
        assert!(why.contains("record -e cycles") && why.contains("Zen 4"), "{why}");
    }
}

/// Report of the default run.
fn by_default(machine: &str) -> Report {
    match machine {
        "intel" => default_job_on_intel::report(),
        "amd" => default_job_on_amd::report(),
        other => {
            let command = format!("cargo xtask run --pmu {other}");
            let args = RunArgs::of(&command).unwrap();
            let boot = boot(&args.request().unwrap());
            assert_success(&boot);
            reported(&command, &boot)
        }
    }
}

/// Place of the line that names the main cause of lost cycles; it precedes the counts.
fn place_of_losses(text: &str) -> usize {
    let place = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line}: {text}"));
    let named = place("most are lost to: ");
    assert!(place("cycles in ") < named && named < place(" events, "), "{text}");
    named
}

#[test]
fn a_default_run_says_how_to_ask_for_more_of_the_cycles() {
    let ran = run(&["--pmu", "intel"]);
    let text = text(&ran.stderr);
    assert!(ran.status.success() && text.contains("run --breakdown"), "{text}");
    place_of_losses(&text);
}

#[test]
fn the_default_run_says_where_the_cycles_go_before_its_counts() {
    let (mut judged, mut outside) = (0, Vec::new());
    for machine in ["intel", "sapphire-rapids", "amd"] {
        let report = by_default(machine);
        let text = table::render(&report, Detail::Answer);
        let named = place_of_losses(&text);
        let breakdown = report.first.unwrap().breakdown.expect("it is in the default run");
        let all = breakdown.cycles as f64;
        let sum: f64 = breakdown.parts.iter().map(|part| part.cycles).sum();
        assert!((sum - all).abs() < 1.0, "{machine}: {breakdown:?}");
        let losses = breakdown.parts.iter().filter(|part| !part.is_work());
        let truth = |part: &CyclePart| part.truth.expect("there is the virtual PMU");
        let largest = losses.max_by(|a, b| truth(a).total_cmp(&truth(b))).unwrap();
        let rest = text[named..].lines().next().unwrap();
        assert!(rest.contains(&*largest.name), "{rest}: {breakdown:?}");
        for part in &breakdown.parts {
            let error = (part.cycles - truth(part)).abs() / all;
            assert!(error < MOST_POINTS, "{machine}: {part:?}");
            judged += 1;
            if error > part.half_width_95 / all + 1e-5 {
                outside.push(format!("{machine}: {part:?}"));
            }
        }
    }
    assert_eq!(judged, 13);
    assert_hold(judged, &outside);
}

#[test]
fn a_default_run_on_a_processor_without_causes_says_so() {
    let ran = run(&["--pmu", "zen3"]);
    let text = text(&ran.stderr);
    assert!(ran.status.success() && !text.contains("cycles in "), "{text}");
    let mut lines = text.lines().skip_while(|it| !it.starts_with("no breakdown: "));
    let said: Vec<&str> = lines.by_ref().take(2).collect();
    assert!(said.len() == 2 && said[1].contains("record -e cycles"), "{text}");
    assert!(said.iter().all(|line| line.len() <= 80), "{text}");
}

/// True parts of a stack up to each moment.
struct Truth<'a> {
    truth: &'a tally_abi::truth::Truth,
    stack: &'static Stack,
    moment: u32,
    sums: BTreeMap<String, u64>,
}

impl Truth<'_> {
    /// Parts by name, with level and cycles. Moments must be in order.
    fn at(&mut self, moment: u32) -> BTreeMap<String, (u8, f64)> {
        while self.moment < moment {
            self.moment += 1;
            let region = self.truth.region(RegionKind::Marked, self.moment).expect("it is closed");
            for (name, count) in &region.events {
                *self.sums.entry(name.clone()).or_default() += count.user;
            }
        }
        let counts = |name: &str| {
            let estimate = *self.sums.get(name)? as f64;
            Some(Count { estimate, half_width_95: 0.0, truth: None })
        };
        let parts = slot_tree(&counts, INDEPENDENT, self.stack);
        parts.into_iter().map(|part| (part.name.to_string(), (part.level, part.cycles))).collect()
    }
}

#[test]
fn a_program_reads_where_its_cycles_go_while_it_runs() {
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let (mut judged, mut outside, mut moments) = (0, 0, 0);
        for seed in 1..=2 {
            let line = format!("seed={seed} wire -- cycles {seed} 30");
            let boot = boot(&Request { pmu, ..Request::new(line) });
            assert_success(&boot);
            let truth = boot.truth.as_ref().expect("there is the virtual PMU");
            let stack = stack_of(pmu.signature()).expect("it has one");
            let mut truth = Truth { truth, stack, moment: 0, sums: BTreeMap::new() };
            let printed = boot.transcript.text();
            let mut lines = printed.lines().peekable();
            while let Some(first) = lines.peek() {
                let moment: u32 = first.split(' ').next().unwrap().parse().unwrap();
                let parts = truth.at(moment);
                let of_level_1 = parts.values().filter(|(level, _)| *level == 1);
                let (mut sum, all) = (0.0, of_level_1.map(|(_, cycles)| cycles).sum::<f64>());
                moments += 1;
                for _ in 0..parts.len() {
                    let words: Vec<&str> = lines.next().unwrap().splitn(4, ' ').collect();
                    let [cycles, bar]: [f64; 2] = [1, 2].map(|at| words[at].parse().unwrap());
                    let (level, truth) = parts[words[3]];
                    sum += if level == 1 { cycles } else { 0.0 };
                    // Parts below a hundredth occur mostly in a few slices.
                    if truth.max(cycles) >= 0.01 * all {
                        judged += 1;
                        let is_outside = (cycles - truth).abs() > bar + READ_CYCLES;
                        outside += u32::from(is_outside);
                        if is_outside {
                            println!("{pmu:?} {words:?}: {truth} of {all}");
                        }
                    }
                }
                // The counters are read one after the other, after the end of the region.
                assert!((sum - all).abs() < READ_CYCLES, "{sum} of {all} at {moment}");
            }
        }
        assert!(moments >= 50 && judged >= 150, "{pmu:?}: {judged} at {moments} moments");
        // Readings of one run share its slices: an error of one estimate also affects the next.
        assert!(outside * 6 <= judged, "{pmu:?}: {outside} of {judged} parts");
    }
}
