//! The cost of a mispredicted branch, measured from the branches before samples, beside what a core
//! with perfect prediction saves in the same program. That core runs without branch records.

use std::fs;

use serde_json::Value;
use xtask::{
    machine::{Pmu, Request},
    report::Report,
    run::RunArgs,
    trace::run::Run,
    trace_file::Trace,
};

use crate::{assert_success, boot, export::xtask_task};

/// The largest difference of the two, as a share of what is saved. One misprediction is measured
/// beside the others, which the core with perfect prediction does not have.
const TOLERANCE: f64 = 0.1;

/// Output of `report --branch-history --json` for the branch that costs most.
fn costliest(program: &str) -> Value {
    let job = format!("tally record -b -e cycles:P -c 10007 --budget 100 causes {program}");
    let vpmu = vec!["pipeline=ooo".to_owned()];
    let request = Request { vpmu, ..Request::new(format!("wire trace=halt -- {job}")) };
    let boot = boot(&request);
    assert_success(&boot);
    let run = Run::of(&boot, &Report::of(&boot), "a test");
    let trace = boot.folder.file("cost.trace");
    fs::write(&trace, Trace::with_run(&boot.transcript.trace, &run.json())).unwrap();
    let mut report = xtask_task("report");
    let output = report.args(["--branch-history", "--json"]).arg(&trace).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let history: Value = serde_json::from_slice(&output.stdout).unwrap();
    history["costs"][0].clone()
}

/// Cycles that perfect prediction saves for each misprediction, by what two cores counted.
fn saved_for_each(program: &str) -> f64 {
    let command = format!(
        "cargo xtask run --pmu {} --vpmu pipeline=ooo --breakdown --what-if=groups -- causes \
         {program}",
        Pmu::Intel.name()
    );
    let args = RunArgs::of(&command).unwrap();
    let boot = boot(&args.request().unwrap());
    assert_success(&boot);
    let mut report = Report::of(&boot);
    report.add_what_if(boot.truth.as_ref().expect("there is the virtual PMU"));
    let session = report.first.unwrap();
    let mut events = session.events.iter();
    let misses = events.find(|event| event.name == "BR_MISP_RETIRED.ALL_BRANCHES").unwrap();
    let what_if = session.what_if.expect("every core ran");
    let saving = what_if.groups.iter().find(|saving| saving.cause == "branches").unwrap();
    saving.saved_cycles as f64 / misses.truth.unwrap() as f64
}

#[test]
fn a_misprediction_costs_what_perfect_prediction_saves() {
    for program in ["random 100000", "indirect 100000"] {
        let (cost, saved) = (costliest(program), saved_for_each(program));
        let number = |name: &str| cost[name].as_f64().unwrap();
        let (cycles, half_width) = (number("cycles"), number("half_width_95"));
        let off = (cycles - saved).abs() - half_width;
        let what = format!("{program}: {cycles} ± {half_width} measured, {saved} saved");
        assert!(off < TOLERANCE * saved && half_width < saved / 2.0, "{what}");
    }
}
