//! Time by instruction, against the oracle of the virtual PMU: which instruction's latency each
//! cycle exposes.

use std::{collections::BTreeMap, fs};

use tally_abi::truth::RegionKind;
use xtask::{
    report::Report,
    run::{RunArgs, by_instruction},
    samples::TimeAt,
};

use crate::{assert_success, boot};

/// The program, sampled precisely with what corrects its samples.
const RECORD: &str = "--trace-halt -- record --budget 100 -b -e cycles:p,instructions:ppp -c 2003 \
                      rounds 1 3000";

/// Cycles by address in ring 3 of an address space, as the oracle has them.
fn oracle(rows: &str, space: u64) -> BTreeMap<u64, f64> {
    let mut by_address: BTreeMap<u64, f64> = BTreeMap::new();
    for row in rows.lines().skip(1) {
        let words: Vec<&str> = row.split(',').collect();
        if words[0].parse() == Ok(space) && words[1] == "user" {
            let time: f64 = words[5].parse().unwrap();
            *by_address.entry(words[2].parse().unwrap()).or_default() += time;
        }
    }
    by_address
}

/// The share of time that is at other instructions than the oracle's.
fn error(at: &[TimeAt], of: fn(&TimeAt) -> f64, oracle: &BTreeMap<u64, f64>) -> f64 {
    let (own, all): (f64, f64) = (at.iter().map(of).sum(), oracle.values().sum());
    let truth = |it: &TimeAt| oracle.get(&it.address).copied().unwrap_or_default();
    1.0 - at.iter().map(|it| (of(it) / own).min(truth(it) / all)).sum::<f64>()
}

#[test]
fn corrected_cycles_are_nearer_to_the_oracle_than_their_samples() {
    let folder = std::env::temp_dir().join(format!("tally-exposed-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (times, trace) = (path("instructions.csv"), path("trace"));
    let vpmu = format!("--vpmu pipeline=ooo,instructions={times}");
    let options = RunArgs::of(&format!("cargo xtask run {vpmu} --trace {trace} {RECORD}")).unwrap();
    let request = options.request().unwrap();
    let boot = boot(&request);
    let rows = fs::read_to_string(times).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_success(&boot);

    let session = boot.truth.as_ref().and_then(|it| it.region(RegionKind::Session, 1)).unwrap();
    let cycles = session.events["CPU_CLK_UNHALTED.THREAD"].user as f64;
    let space = boot.transcript.samples[0].address_space;
    let oracle = oracle(&rows, space);
    let all: f64 = oracle.values().sum();
    // The session begins in the program and ends with it.
    assert!((all / cycles - 1.0).abs() < 0.01, "{all} {cycles}");

    let report = Report::of(&boot);
    let at = by_instruction(&boot, &report, (&request.command_line, "cycles:p")).unwrap();
    let [sampled, exposed] =
        [error(&at, |it| it.sampled, &oracle), error(&at, |it| it.exposed, &oracle)];
    assert!(exposed < sampled, "{exposed} {sampled}");
    let [sampled, exposed]: [f64; 2] =
        [at.iter().map(|it| it.sampled).sum(), at.iter().map(|it| it.exposed).sum()];
    assert!((exposed / sampled - 1.0).abs() < 1e-9, "{exposed} {sampled}");
}
