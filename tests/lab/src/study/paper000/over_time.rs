//! Figure 7: cycles of a program by cause over time, with error bars, as `run --breakdown
//! --over-time` computes them.

use serde::Serialize;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    report::{Additions, Interval, Report, Rings, stack_of},
};

use crate::study::timed::{self, Machines, Program};

/// Intervals of the picture.
const INTERVALS: usize = 40;

/// Figure 7.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OverTimeStudy {
    /// The program.
    pub(super) program: String,
    /// The intervals with their parts.
    pub(super) intervals: Vec<Interval>,
}

/// Runs the program with the events of the processor's breakdown.
///
/// # Errors
/// The machine fails, the processor has no breakdown, or the program is too short.
pub(super) fn run(
    machines: &Machines,
    slice_cycles: u64,
    pipeline: &str,
    program: &Program,
    seed: u64,
) -> Result<OverTimeStudy> {
    let Some(stack) = stack_of(machines.pmu.signature()) else {
        let why = "this processor does not tell causes of stalls apart: use --pmu intel or amd";
        return Err(Failure::new(ExitStatus::NoBreakdown, why));
    };
    let events: Vec<String> = stack.events().iter().map(|event| (*event).to_owned()).collect();
    let plan = timed::plan_of(&timed::virtual_pmu(machines.pmu)?, &events)?;
    let job = timed::job(&events, slice_cycles, seed);
    let boot = machines.boot(&job, &program.command, vec![format!("pipeline={pipeline}")])?;
    let additions = Additions {
        unobserved: false,
        refined: false,
        stack: Some(stack),
        rings: Rings::default(),
        what_if: false,
        intervals: Some(INTERVALS),
        phases: None,
    };
    let report = Report::with(&boot, Some(&plan), &additions);
    let intervals = report.first.map(|first| first.intervals).unwrap_or_default();
    if intervals.iter().all(|interval| interval.parts.is_empty()) {
        let why = format!(
            "{}: none of {INTERVALS} intervals has two slices of each group: use more --instructions \
             or a shorter --slice",
            program.name
        );
        return Err(Failure::new(ExitStatus::TooShort, why));
    }
    Ok(OverTimeStudy { program: program.name.clone(), intervals })
}
