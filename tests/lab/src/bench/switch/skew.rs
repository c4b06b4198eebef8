//! The skew of a switch: the session's count of instructions, a pinned event, less their truth,
//! which excludes the PMI handlers.

use serde::Serialize;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    machine::{self, Artefacts, Outcome, Pmu, Request},
    report::Report,
};

/// Length of a slice, short to get many switches in little time.
pub(super) const SLICE_CYCLES: u64 = 10_000;
/// PMIs of a run: enough to make its start and end negligible.
const SWITCHES: u64 = 2000;

/// The skew of one mode of counting.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Skew {
    pub(super) what: &'static str,
    /// Instructions counted in excess per switch; negative if instructions are lost.
    pub(super) instructions: f64,
}

/// Measures every mode that the machine supports.
pub(super) fn measure(artefacts: &Artefacts, pmu: Pmu, events: &str) -> Result<Vec<Skew>> {
    let modes: &[(&str, &str, &str)] = match pmu {
        Pmu::Amd => &[("user mode", "user", "fixed"), ("full mode, stopping", "full", "fixed")],
        _ => &[
            ("user mode", "user", "fixed"),
            ("full mode, stopping", "full", "fixed"),
            ("full mode, freezing, as NMIs", "full", "nmi"),
        ],
    };
    modes
        .iter()
        .map(|(what, mode, overflows)| one(artefacts, pmu, events, what, mode, overflows))
        .collect()
}

fn one(
    artefacts: &Artefacts,
    pmu: Pmu,
    events: &str,
    what: &'static str,
    mode: &str,
    overflows: &str,
) -> Result<Skew> {
    let instructions = match pmu {
        Pmu::Amd => "RETIRED_INSTRUCTIONS",
        _ => "INST_RETIRED.ANY",
    };
    let line = format!(
        "seed=1 wire paranoid=1 overflows={overflows} -- \
         switches {instructions},{events} {SLICE_CYCLES} {mode} {SWITCHES}"
    );
    let boot = machine::boot(artefacts, &Request { pmu, ..Request::new(line) }, &mut |_| {})?;
    let failed = || {
        let why = format!("the skew run in {mode} mode failed: {}", boot.outcome);
        Failure::new(ExitStatus::MachineFailed, why)
    };
    let report = Report::of(&boot).first.filter(|_| boot.outcome == Outcome::Done(0));
    let session = report.ok_or_else(failed)?;
    let event = session.events.iter().find(|event| event.name == instructions);
    let (counted, truth) =
        event.and_then(|event| event.estimate.zip(event.truth)).ok_or_else(failed)?;
    let switches = session.pmis.filter(|pmis| *pmis > 0).ok_or_else(failed)?;
    Ok(Skew { what, instructions: (counted as f64 - truth as f64) / switches as f64 })
}
