//! `cargo xtask bench engine`: all figures of the engine in one command.
//!
//! The engine's examples measure the planner's times and the estimators' errors on the host. The
//! cost of a group switch is measured as in `cargo xtask bench switch`. The guest program `bank`
//! counts the instructions of its own readings. The engine's share of the time is measured in the
//! default job.

use std::fmt::Write as _;

use clap::Args;
use serde::{Deserialize, Serialize};
use tally_abi::{ExitStatus, text::percent};
use xtask::{
    Failure, Result,
    machine::{self, Artefacts, Boot, Pmu, Request},
    output,
    progress::Step,
    project::Project,
    report::Report,
};

use super::switch::{self, Switch};
use crate::study::estimators::{self, Study};

/// Options of `cargo xtask bench engine`.
#[derive(Args, Clone, Debug)]
pub struct EngineArgs {
    /// Number of synthetic programs for the estimators
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// Machines, each with the events whose readings are measured: a pinned one and multiplexed ones.
const MACHINES: [(Pmu, &str); 2] = [
    (
        Pmu::Intel,
        "INST_RETIRED.ANY MEM_INST_RETIRED.ALL_LOADS,MEM_INST_RETIRED.ALL_STORES,BR_INST_RETIRED.COND,\
         BR_INST_RETIRED.ALL_BRANCHES,BR_MISP_RETIRED.COND,L1D.REPLACEMENT",
    ),
    (
        Pmu::Amd,
        "RETIRED_INSTRUCTIONS LS_DISPATCH.LD_DISPATCH,LS_DISPATCH.STORE_DISPATCH,\
         RETIRED_BRANCH_INSTRUCTIONS,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,\
         RETIRED_TAKEN_BRANCH_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED",
    ),
];

#[derive(Debug, Serialize)]
struct Engine {
    planner: Planner,
    estimators: Study,
    switches: Vec<Switch>,
    machines: Vec<Machine>,
}

/// The output of the planner's example.
#[derive(Debug, Deserialize, Serialize)]
struct Planner {
    events: u64,
    mixes: Vec<Mix>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Mix {
    mix: String,
    groups: u64,
    /// Lower bound of the number of groups.
    least: u64,
    best_us: f64,
    median_us: f64,
}

/// The figures of one machine.
#[derive(Debug, Serialize)]
struct Machine {
    pmu: &'static str,
    /// Instructions to read a logical counter from the bank, for each event.
    reading_instructions: Vec<u64>,
    /// The default job with planned shares.
    planned: Overhead,
    /// The default job with adaptive shares.
    adaptive: Overhead,
}

/// The engine's overhead in the default job.
#[derive(Debug, Serialize)]
struct Overhead {
    /// The share of the job's time, 0 to 1.
    engine_share: Option<f64>,
    instructions_per_switch: Option<f64>,
    msr_accesses_per_switch: Option<f64>,
    pmis: Option<u64>,
}

/// Runs the bench.
///
/// # Errors
/// A crate does not build, or a machine's job fails.
pub fn main(project: &Project, args: &EngineArgs) -> Result<u8> {
    let step = Step::start("Planning mixes of events");
    let planner = project.example("tally-engine", "planner", &[])?;
    step.done();
    let estimators = estimators::run(project, args.runs, 0)?;
    let artefacts = Artefacts::make(project)?;
    let switches = switch::measure(&artefacts)?;
    let measure = |(pmu, events)| machine(&artefacts, pmu, events);
    let machines = MACHINES.into_iter().map(measure).collect::<Result<_>>()?;
    let engine = Engine { planner, estimators, switches, machines };
    output::print(args.json, &engine, &table(&engine))?;
    Ok(0)
}

fn machine(artefacts: &Artefacts, pmu: Pmu, events: &str) -> Result<Machine> {
    let step = Step::start(format!("Running programs on {}", switch::name(pmu)));
    let run = |job: &str| -> Result<Boot> {
        let request = Request { pmu, ..Request::new(format!("seed=1 wire -- {job}")) };
        let boot = machine::boot(artefacts, &request, &mut |_| {})?;
        if boot.outcome.is_success() {
            Ok(boot)
        } else {
            let why = format!("{job}: {}", boot.outcome);
            Err(Failure::new(ExitStatus::MachineFailed, why))
        }
    };
    let bank = run(&format!("bank {events}"))?;
    let reading_instructions = costs(&bank.transcript.text()).ok_or_else(|| {
        Failure::new(
            ExitStatus::MachineFailed,
            "the guest program bank printed no costs of readings",
        )
    })?;
    let overhead = |shares: &str| -> Result<Overhead> {
        let report = Report::of(&run(&format!("deflate --shares {shares}"))?).first;
        let session = report.as_ref();
        Ok(Overhead {
            engine_share: session.and_then(|session| session.engine_share),
            instructions_per_switch: session.and_then(|session| session.instructions_per_switch),
            msr_accesses_per_switch: session.and_then(|session| session.msr_accesses_per_switch),
            pmis: session.and_then(|session| session.pmis),
        })
    };
    let (planned, adaptive) = (overhead("planned")?, overhead("adaptive")?);
    step.done();
    Ok(Machine { pmu: switch::name(pmu), reading_instructions, planned, adaptive })
}

/// The costs in the line `… cost [16, 15] instructions` that `bank` prints, each less the one
/// instruction that moves the value.
fn costs(text: &str) -> Option<Vec<u64>> {
    let (_, costs) = text.split_once("cost [")?;
    let (costs, _) = costs.split_once("] instructions")?;
    costs.split(", ").map(|cost| cost.parse::<u64>().ok()?.checked_sub(1)).collect()
}

fn table(engine: &Engine) -> String {
    let mut text = format!("Planner: {} events; times of this host\n", engine.planner.events);
    // Writing to a string does not fail.
    for Mix { mix, groups, least, best_us, median_us } in &engine.planner.mixes {
        let _ = writeln!(
            text,
            "  {mix:<54} {groups:>4} groups, at least {least:>4}; {:>6.2} ms, best {:.2} ms",
            median_us / 1e3,
            best_us / 1e3
        );
    }
    let _ = write!(text, "\nEstimators: {}", estimators::table(&engine.estimators));
    let _ = write!(text, "\n{}", switch::table(&engine.switches));
    for Machine { pmu, reading_instructions, planned, adaptive } in &engine.machines {
        let _ = writeln!(
            text,
            "{pmu}: {reading_instructions:?} instructions per reading of a logical counter"
        );
        for (name, share) in [("planned", planned), ("adaptive", adaptive)] {
            let number =
                |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1}"));
            let _ = writeln!(
                text,
                "  default job, {name} shares: engine's share {}, {} instructions and {} MSR accesses \
                 per switch",
                share.engine_share.map_or("-".into(), |share| percent(share, false)),
                number(share.instructions_per_switch),
                number(share.msr_accesses_per_switch)
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_bank_is_parsed() {
        let line = "x\nbank: readings and a move of the value cost [18, 16] instructions\ny";
        assert_eq!(costs(line), Some(vec![17, 15]));
        assert_eq!(costs("nothing"), None);
    }
}
