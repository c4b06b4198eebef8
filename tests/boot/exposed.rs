//! Time by instruction, against the oracle of the virtual PMU: which instruction's latency each
//! cycle exposes.

use std::{fs, path::Path};

use tally_abi::truth::RegionKind;
use tally_lab::study::precise::oracle::{Oracle, Profile};
use xtask::{
    report::Report,
    run::{RunArgs, by_instruction},
    samples::TimeAt,
};

use crate::{assert_success, boot};

/// The program, sampled precisely with what corrects its samples.
const RECORD: &str = "--trace-halt -- record --budget 100 -b -e cycles:p,instructions:ppp -c 2003 \
                      rounds 1 3000";

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
    assert_success(&boot);
    let space = boot.transcript.samples[0].address_space;
    let oracle = Oracle::read(Path::new(&times), space).unwrap();
    fs::remove_dir_all(&folder).unwrap();

    let session = boot.truth.as_ref().and_then(|it| it.region(RegionKind::Session, 1)).unwrap();
    let cycles = session.events["CPU_CLK_UNHALTED.THREAD"].user as f64;
    let all = oracle.exposed().total();
    // The session begins in the program and ends with it.
    assert!((all / cycles - 1.0).abs() < 0.01, "{all} {cycles}");

    let report = Report::of(&boot);
    let at = by_instruction(&boot, &report, (&request.command_line, "cycles:p")).unwrap();
    let profile =
        |of: fn(&TimeAt) -> f64| -> Profile { at.iter().map(|it| (it.address, of(it))).collect() };
    let profiles = [profile(|it| it.sampled), profile(|it| it.exposed)];
    let [sampled, exposed] = profiles.each_ref().map(|it| it.error(oracle.exposed()));
    assert!(exposed < sampled, "{exposed} {sampled}");
    let [sampled, exposed] = profiles.map(|it| it.total());
    assert!((exposed / sampled - 1.0).abs() < 1e-9, "{exposed} {sampled}");
}
