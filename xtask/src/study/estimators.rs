//! `cargo xtask study estimators`: linear scaling by time and the ratio estimate, side by side, on
//! synthetic streams. The engine's own example does the work, on the host.

use std::fmt::Write as _;

use clap::Args;
use serde::{Deserialize, Serialize};
use tally_abi::ExitStatus;

use crate::{Failure, Result, output, progress::Step, project::Project};

/// Options of `cargo xtask study estimators`.
#[derive(Args, Debug)]
pub(super) struct EstimatorsArgs {
    /// Programs to make up
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// What the example prints.
#[derive(Debug, Deserialize, Serialize)]
struct Study {
    runs: u64,
    groups: u64,
    slices: u64,
    streams: Vec<Stream>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Stream {
    name: String,
    linear: Errors,
    ratio: Errors,
    /// The share of the runs in which the ratio's 95 % interval held the truth.
    coverage: f64,
}

/// Relative errors of totals, and the distance of the rounds' distribution in nats.
#[derive(Debug, Deserialize, Serialize)]
struct Errors {
    median: f64,
    p99: f64,
    kl: f64,
}

pub(super) fn main(project: &Project, args: &EstimatorsArgs) -> Result<u8> {
    let step = Step::start("Estimating made-up programs");
    let mut example = project.cargo("run", &project.target);
    example.args(["--quiet", "--release", "--package", "tally-engine", "--example", "estimators"]);
    let output = example.arg("--").arg(args.runs.to_string()).output().map_err(|error| {
        Failure::new(ExitStatus::HostError, format!("cannot start cargo: {error}"))
    })?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::new(ExitStatus::HostError, format!("the study failed: {why}")));
    }
    let study: Study = serde_json::from_slice(&output.stdout).map_err(|error| {
        Failure::new(ExitStatus::HostError, format!("cannot read the study's results: {error}"))
    })?;
    step.done();
    output::print(args.json, &study, &table(&study))?;
    Ok(0)
}

fn table(study: &Study) -> String {
    let mut text = format!(
        "{} programs of {} slices, {} to a round; errors in percent\n",
        study.runs, study.slices, study.groups
    );
    // Writing to a string does not fail.
    let _ = writeln!(text, "                  linear scaling            ratio");
    let _ = writeln!(text, "stream         median    p99     KL   median    p99     KL  covered");
    for Stream { name, linear, ratio, coverage } in &study.streams {
        let side =
            |e: &Errors| format!("{:>7.3} {:>6.2} {:>6.3}", 100.0 * e.median, 100.0 * e.p99, e.kl);
        let _ = writeln!(
            text,
            "{name:<14}{}  {} {:>7.1}%",
            side(linear),
            side(ratio),
            100.0 * coverage
        );
    }
    text
}
