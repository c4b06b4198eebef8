//! What a switch adds to what is counted, or takes from it: the count of instructions, which every
//! slice has, less the truth of the region without the overflow handler's own, which nobody wants
//! counted.

use serde::Serialize;
use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    machine::{self, Artefacts, Outcome, Pmu, Request},
    report::Report,
};

/// Length of a slice: so short that there are many in little time.
pub(super) const SLICE_CYCLES: u64 = 10_000;
/// Overflow interrupts of a run: so many that its edges do not matter.
const SWITCHES: u64 = 2000;

/// The skew of one way to count.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Skew {
    pub(super) what: &'static str,
    /// Instructions too many for each switch; negative if some are lost.
    pub(super) instructions: f64,
}

/// Measures every way that the machine has.
pub(super) fn measure(artefacts: &Artefacts, pmu: Pmu, events: &str) -> Result<Vec<Skew>> {
    let ways: &[(&str, &str, &str)] = match pmu {
        Pmu::Amd => &[("user mode", "user", "fixed"), ("full mode, stopping", "full", "fixed")],
        _ => &[
            ("user mode", "user", "fixed"),
            ("full mode, stopping", "full", "fixed"),
            ("full mode, freezing, as NMIs", "full", "nmi"),
        ],
    };
    ways.iter()
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
        let why = format!("the run for the skew in {mode} mode failed: {}", boot.outcome);
        Failure::new(ExitStatus::MachineFailed, why)
    };
    let report = Report::of(&boot).first.filter(|_| boot.outcome == Outcome::Done(0));
    let session = report.ok_or_else(failed)?;
    let event = session.events.iter().find(|event| event.name == instructions);
    let (counted, truth) =
        event.and_then(|event| event.estimate.zip(event.truth)).ok_or_else(failed)?;
    let switches = session.pmis.filter(|pmis| *pmis > 0).ok_or_else(failed)?;
    // User mode's truth has nothing of the handler's.
    let own = if mode == "user" { Some(0.0) } else { session.instructions_per_switch };
    let own = own.ok_or_else(failed)?;
    Ok(Skew { what, instructions: (counted as f64 - truth as f64) / switches as f64 + own })
}
