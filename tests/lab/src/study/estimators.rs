//! `cargo xtask study estimators`: compares linear scaling with ratio estimates, and planned with
//! adaptive shares, on synthetic streams. The engine's example `estimators` computes them on the
//! host.

use std::fmt::Write as _;

use clap::Args;
use serde::{Deserialize, Serialize};
use xtask::{Result, output, progress::Step, project::Project};

/// Options of `cargo xtask study estimators`.
#[derive(Args, Debug)]
pub(super) struct EstimatorsArgs {
    /// Number of synthetic programs
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Seed of the first program; the estimator was tuned with seeds below 10000
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// The example's output.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Study {
    runs: u64,
    groups: u64,
    slices: u64,
    /// The median of the runs' largest relative errors.
    largest: Largest,
    streams: Vec<Stream>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Largest {
    planned: f64,
    adaptive: f64,
}

#[derive(Debug, Deserialize, Serialize)]
struct Stream {
    name: String,
    linear: Errors,
    ratio: Errors,
    /// Errors of the ratio estimate with adaptive shares.
    adaptive: Errors,
}

/// Relative errors of totals.
#[derive(Debug, Deserialize, Serialize)]
struct Errors {
    median: f64,
    p99: f64,
    /// Kullback-Leibler distance of the rounds' distribution, in nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    kl: Option<f64>,
    /// The share of runs whose 95 % interval contains the truth; `None` for linear scaling, which
    /// has no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<f64>,
}

pub(super) fn main(project: &Project, args: &EstimatorsArgs) -> Result<u8> {
    let study = run(project, args.runs, args.first)?;
    output::print(args.json, &study, &table(&study))?;
    Ok(0)
}

/// Simulates `runs` programs, with seeds from `first` on, and estimates their events.
///
/// # Errors
/// The example cannot be built or run.
pub(crate) fn run(project: &Project, runs: u64, first: u64) -> Result<Study> {
    let step = Step::start("Estimating synthetic programs");
    let arguments = [runs, first].map(|number| number.to_string());
    let arguments = arguments.each_ref().map(String::as_str);
    let study = project.example("tally-engine", "estimators", &arguments)?;
    step.done();
    Ok(study)
}

/// The study as a table of 80 columns.
pub(crate) fn table(study: &Study) -> String {
    let mut text = format!(
        "{} programs of {} slices, {} groups; errors and coverage in percent\n\
         {:<15}{:<20}{:<26}adaptive shares\n\
         {:<14} median   p99    KL  median   p99    KL  held  median   p99  held\n",
        study.runs, study.slices, study.groups, "", "linear scaling", "ratio", "stream"
    );
    for Stream { name, linear, ratio, adaptive } in &study.streams {
        let [linear, ratio, adaptive] = [linear, ratio, adaptive].map(Errors::cells);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<14}{linear} {ratio} {adaptive}");
    }
    let Largest { planned, adaptive } = study.largest;
    let _ = writeln!(
        text,
        "a program's largest error, median: {:.2} planned, {:.2} adaptive shares",
        100.0 * planned,
        100.0 * adaptive
    );
    text
}

impl Errors {
    fn cells(&self) -> String {
        let mut text = format!("{:>7.3}{:>6.1}", 100.0 * self.median, 100.0 * self.p99);
        if let Some(kl) = self.kl {
            text += &format!("{kl:>6.3}");
        }
        if let Some(coverage) = self.coverage {
            text += &format!("{:>6.1}", 100.0 * coverage);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_80_columns() {
        let errors = |kl, coverage| Errors { median: 0.12345, p99: 0.987, kl, coverage };
        let stream = Stream {
            name: "the first five".into(),
            linear: errors(Some(1.005), None),
            ratio: errors(Some(1.005), Some(0.95)),
            adaptive: errors(None, Some(1.0)),
        };
        let largest = Largest { planned: 0.1234, adaptive: 0.1234 };
        let text =
            table(&Study { runs: 6000, groups: 20, slices: 2000, largest, streams: vec![stream] });
        let expected = "\
6000 programs of 2000 slices, 20 groups; errors and coverage in percent
               linear scaling      ratio                     adaptive shares
stream         median   p99    KL  median   p99    KL  held  median   p99  held
the first five 12.345  98.7 1.005  12.345  98.7 1.005  95.0  12.345  98.7 100.0
a program's largest error, median: 12.34 planned, 12.34 adaptive shares
";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
