//! The virtual PMU's cache of decoded micro-operations: cached code is delivered by the cache,
//! other code by the decoders.

use tally_abi::ExitStatus;
use xtask::{
    report::{Report, SessionReport},
    run::RunArgs,
};

use crate::{
    assert_success, boot,
    command::{self, guest, text},
    exact,
    targets::run,
};

/// Intel's metrics of the decoders and of the cache.
const METRICS: &str = "tma_mite,tma_dsb,tma_dsb_switches";

/// 14,000 jumps, each of which begins a cache entry, exceed every cache; 200 fit.
#[test]
fn micro_operations_come_from_the_cache_or_from_the_decoders() {
    let intel = ["IDQ.DSB_UOPS", "IDQ.MITE_UOPS", "IDQ.MS_UOPS", "UOPS_RETIRED.SLOTS"];
    let amd = [
        "OPS_SOURCE_DISPATCHED_FROM_DECODER.OPCACHE",
        "OPS_SOURCE_DISPATCHED_FROM_DECODER.DECODER",
        "OP_CACHE_HIT_MISS.OC_MISS",
        "RETIRED_OPS",
    ];
    for (pmu, pipeline, names) in
        [("intel", "ooo", intel), ("sapphire-rapids", "interval", intel), ("amd", "ooo", amd)]
    {
        let of = |words: &str| {
            let vpmu = format!("pipeline={pipeline},uop-cache=yes");
            let list = names.join(",");
            let session = run(&format!("--pmu {pmu} --vpmu {vpmu} --events {list}"), words);
            let [cached, decoded, other, all] = names.map(|name| exact(&session, name));
            if pmu != "amd" {
                assert_eq!(cached + decoded + other, all, "{pmu}, {words}");
            }
            (cached as f64 / all as f64, decoded as f64 / all as f64)
        };
        let (cached, decoded) = of("50");
        assert!(cached < 0.1 && decoded > 0.9, "{pmu}: {cached}, {decoded}");
        let (cached, decoded) = of("2000 fewer");
        assert!(cached > 0.9 && decoded < 0.1, "{pmu}: {cached}, {decoded}");
    }
}

/// Value of a metric printed by `tally stat -j`, in percent, and half the width of its interval.
fn printed(output: &str, name: &str) -> (f64, f64) {
    let objects = output.lines().filter(|line| line.starts_with('{'));
    let metric = objects
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find(|of| of["metric-unit"].as_str().is_some_and(|unit| unit == format!("%  {name}")))
        .unwrap_or_else(|| panic!("no {name}: {output}"));
    let value = metric["metric-value"].as_str().and_then(|value| value.parse().ok());
    (value.expect("a number"), metric["half-width-95"].as_f64().expect("it is an estimate"))
}

/// Values of the expressions in Linux's files on the virtual PMU's counts, in percent.
fn expressions(session: &SessionReport) -> [(&'static str, f64); 3] {
    let truth = |name: &str| {
        let event = session.events.iter().find(|event| event.name == name).expect(name);
        event.truth.expect("there is the virtual PMU") as f64
    };
    let of_cycles = |count: f64| 100.0 * count / truth("CPU_CLK_UNHALTED.THREAD");
    let partly = |path: &str| {
        let [any, full] = ["ANY", "OK"].map(|cycles| truth(&format!("IDQ.{path}_CYCLES_{cycles}")));
        of_cycles(any - full) / 2.0
    };
    let switches = of_cycles(truth("DSB2MITE_SWITCHES.PENALTY_CYCLES"));
    [("tma_mite", partly("MITE")), ("tma_dsb", partly("DSB")), ("tma_dsb_switches", switches)]
}

/// The estimates come from two groups: they may be at most two bars from the truth.
#[test]
fn metrics_of_the_front_end_are_perfs_expressions_on_the_true_counts() {
    for (pmu, pipeline, words, largest) in [
        ("intel", "ooo", "50", "tma_mite"),
        ("sapphire-rapids", "interval", "2000 fewer", "tma_dsb"),
    ] {
        let command = format!(
            "cargo xtask run --pmu {pmu} --vpmu pipeline={pipeline},uop-cache=yes --file {} \
             -- stat -j -M {METRICS} jumps {words}",
            guest("jumps")
        );
        let boot = boot(&RunArgs::of(&command).and_then(|args| args.request()).unwrap());
        assert_success(&boot);
        let output = boot.transcript.text();
        let session = Report::of(&boot).first.expect("it counts");
        for (name, want) in expressions(&session) {
            let (value, bar) = printed(&output, name);
            assert!((value - want).abs() < 2.0 * bar + 0.1, "{want}: {name}, {output}");
            assert_eq!(value > 10.0, name == largest, "{pmu}, {words}: {output}");
        }
    }
}

#[test]
fn metrics_whose_events_the_machine_lacks_are_refused_and_are_in_no_level() {
    let jumps = guest("jumps");
    let stat = |metrics: &str| {
        command::run(&["-q", "--file", &jumps, "--", "stat", "-M", metrics, "jumps", "5"])
    };
    let refused = stat(METRICS);
    let why = text(&refused.stderr);
    assert_eq!(
        refused.status.code(),
        Some(u8::from(ExitStatus::EventNotSupported).into()),
        "{why}"
    );
    // A line for each of the five events of these metrics, with what says more.
    assert_eq!(why.lines().count(), 5, "{why}");
    for line in why.lines() {
        assert!([" events IDQ.", " events DSB2MITE_"].iter().any(|it| line.contains(it)), "{why}");
        assert!(line.contains("`cargo xtask events "), "{why}");
    }
    let level = stat("TopdownL3");
    let output = text(&level.stderr);
    assert_eq!(level.status.code(), Some(0), "{output}");
    assert!(output.contains("tma_itlb_misses") && !output.contains("tma_mite"), "{output}");
}
