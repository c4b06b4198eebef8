//! `cargo xtask bench vpmu`: million guest instructions per second with each mode and model of the
//! virtual PMU, compared with an empty plugin and with none.
//!
//! The guest program `rounds` compresses and decompresses a text by deflate at level 6 repeatedly,
//! under Tally's kernel on one CPU. Only the rounds between its lines `begin` and `end` are timed,
//! to exclude booting, the start of the models and the first round.
//!
//! A round executes the same instructions on every machine. The models count them, as user-mode
//! instructions of region 1, and must agree; their count is used for all settings.
//!
//! Times are QEMU's processor time, so that other work on the host affects them only through the
//! caches.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tally_abi::{
    ExitStatus,
    truth::{RegionKind, Truth},
};
use xtask::{
    Failure, Result, build,
    machine::{self, Artefacts, Pmu, Request},
    output,
    progress::Step,
    project::Project,
};

use super::samples::Samples;

/// Bytes of text per round.
const ROUND_BYTES: usize = 256 << 10;
/// Instructions by which the region may exceed its rounds: the loop around them and the calls that
/// mark the region.
const AROUND_INSTRUCTIONS: u64 = 10_000;
/// Time limit of a job; the slowest takes half a minute.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Options of `cargo xtask bench vpmu`.
#[derive(Args, Clone, Debug)]
pub struct VpmuArgs {
    /// Measurements of each setting, alternating
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// Options of the virtual PMU where a model counts (qemu/README.md), such as prefetch=on
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    vpmu: Vec<String>,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// The plugin that QEMU runs with, and its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    None,
    Empty,
    Off,
    Interval,
    Ooo,
}

impl Setting {
    const ALL: [Setting; 5] =
        [Setting::None, Setting::Empty, Setting::Off, Setting::Interval, Setting::Ooo];

    fn name(self) -> &'static str {
        match self {
            Setting::None => "none",
            Setting::Empty => "empty",
            Setting::Off => "off",
            Setting::Interval => "interval",
            Setting::Ooo => "ooo",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Setting::None => "no plugin",
            Setting::Empty => "an empty plugin that receives every translation block",
            Setting::Off => "the virtual PMU, no counter started",
            Setting::Interval => "counting, interval pipeline",
            Setting::Ooo => "counting, out-of-order pipeline",
        }
    }

    /// Returns whether a model counts.
    fn counts(self) -> bool {
        matches!(self, Setting::Interval | Setting::Ooo)
    }

    /// The number of rounds, enough for some seconds.
    fn rounds(self) -> u64 {
        match self {
            Setting::None | Setting::Empty | Setting::Off => 60,
            Setting::Interval => 10,
            Setting::Ooo => 2,
        }
    }

    fn request(self, pmu: Pmu, options: &[String]) -> Request {
        let mark = if self.counts() { " mark" } else { "" };
        let job = format!("wire -- rounds {} {ROUND_BYTES}{mark}", self.rounds());
        let ooo = (self == Setting::Ooo).then(|| "pipeline=ooo".to_owned());
        let options = if self.counts() { options } else { &[] };
        Request {
            pmu,
            virtual_pmu: self != Setting::None,
            vpmu: ooo.into_iter().chain(options.iter().cloned()).collect(),
            time_limit: TIME_LIMIT,
            ..Request::new(job)
        }
    }
}

/// A run of the job.
#[derive(Clone, Copy, Debug)]
struct Run {
    setting: Setting,
    /// QEMU's processor time for the rounds, in seconds.
    seconds: f64,
    /// User-mode instructions of the rounds, if a model counts.
    instructions: Option<u64>,
}

/// Million instructions per second.
#[derive(Clone, Debug, Serialize)]
struct Speeds {
    none: f64,
    empty: f64,
    off: f64,
    interval: f64,
    ooo: f64,
}

/// Runs the bench.
///
/// # Errors
/// A crate does not build, a job fails, or the models disagree.
pub fn main(project: &Project, args: &VpmuArgs) -> Result<u8> {
    machine::check_vpmu(args.pmu, &args.vpmu, 1)?;
    let artefacts = Artefacts::make(project)?;
    let empty = Artefacts { plugin: build::empty_plugin(project)?, ..artefacts.clone() };
    let step = Step::start("Running the job with each setting");
    let mut runs = Vec::new();
    for repetition in 1..=args.repetitions {
        for setting in Setting::ALL {
            step.at(&format!("{}, {repetition} of {}", setting.name(), args.repetitions));
            let artefacts = if setting == Setting::Empty { &empty } else { &artefacts };
            runs.push(run(artefacts, setting, args.pmu, &args.vpmu)?);
        }
    }
    step.done();
    machine::keep_newest(project);
    let round_instructions = round_instructions(&runs)?;
    let samples = |setting| speeds(&runs, setting, round_instructions);
    let median = |setting| (samples(setting).median() * 10.0).round() / 10.0;
    let speeds = Speeds {
        none: median(Setting::None),
        empty: median(Setting::Empty),
        off: median(Setting::Off),
        interval: median(Setting::Interval),
        ooo: median(Setting::Ooo),
    };
    let table =
        render(&Setting::ALL.map(|setting| (setting, samples(setting))), round_instructions);
    output::print(args.json, &speeds, &table)?;
    Ok(0)
}

/// Boots a machine for the job and times its rounds.
fn run(artefacts: &Artefacts, setting: Setting, pmu: Pmu, options: &[String]) -> Result<Run> {
    let (mut printed, mut begin, mut end) = (Vec::new(), None, None);
    let mut boot = machine::boot(artefacts, &setting.request(pmu, options), &mut |output| {
        printed.extend_from_slice(&output.bytes);
        let has = |line: &str| String::from_utf8_lossy(&printed).lines().any(|known| known == line);
        if begin.is_none() && has("begin") {
            begin = Some(output.seen_at);
        }
        if end.is_none() && has("end") {
            end = Some(output.seen_at);
        }
    })?;
    let (Some(begin), Some(end), true) = (begin, end, boot.outcome.is_success()) else {
        let folder = boot.folder.keep().display();
        let why = format!("the job failed with '{}' ({folder}): {}", setting.name(), boot.outcome);
        return Err(Failure::new(ExitStatus::MachineFailed, why));
    };
    let instructions = boot.truth.as_ref().filter(|_| setting.counts()).and_then(rounds_counted);
    Ok(Run { setting, seconds: (end - begin).as_secs_f64(), instructions })
}

/// User-mode instructions of the region that contains the rounds.
fn rounds_counted(truth: &Truth) -> Option<u64> {
    let region = truth.region(RegionKind::Marked, 1)?;
    let name = ["INST_RETIRED.ANY", "RETIRED_INSTRUCTIONS"];
    name.iter().find_map(|name| region.events.get(*name)).map(|count| count.user)
}

/// The instructions of a round, on which all models must agree.
fn round_instructions(runs: &[Run]) -> Result<u64> {
    let failed = |why: String| Failure::new(ExitStatus::CheckFailed, why);
    let mut agreed: Option<(u64, Setting)> = None;
    for run in runs.iter().filter(|run| run.setting.counts()) {
        let name = run.setting.name();
        let all = run.instructions.ok_or_else(|| failed(format!("'{name}' has no count")))?;
        let round = all / run.setting.rounds();
        let (known, by) = *agreed.get_or_insert((round, run.setting));
        if known.abs_diff(round) > AROUND_INSTRUCTIONS {
            let by = by.name();
            return Err(failed(format!(
                "a round has {known} instructions with '{by}' and {round} with '{name}'"
            )));
        }
    }
    agreed.map(|(round, _)| round).ok_or_else(|| failed("no model counted".to_owned()))
}

fn speeds(runs: &[Run], setting: Setting, round_instructions: u64) -> Samples {
    let instructions = (setting.rounds() * round_instructions) as f64;
    let of_setting = runs.iter().filter(|run| run.setting == setting);
    Samples(of_setting.map(|run| instructions / run.seconds / 1e6).collect())
}

fn render(speeds: &[(Setting, Samples)], round_instructions: u64) -> String {
    let median = |wanted| {
        let found = speeds.iter().find(|(setting, _)| *setting == wanted);
        found.map_or(f64::NAN, |(_, samples)| samples.median())
    };
    let (none, empty) = (median(Setting::None), median(Setting::Empty));
    let mut text =
        format!("{:<9}{:>6}  {:<13}{:>9}{:>10}\n", "", "MIPS", "min..max", "of none", "of empty");
    for (setting, samples) in speeds {
        let speed = samples.median();
        let range = format!("{:.0}..{:.0}", samples.least(), samples.most());
        let (of_none, of_empty) = (100.0 * speed / none, 100.0 * speed / empty);
        text += &format!(
            "{:<9}{speed:>6.0}  {range:<13}{of_none:>8.0}%{of_empty:>9.0}%\n",
            setting.name()
        );
    }
    text += "\n";
    for setting in Setting::ALL {
        text += &format!("{:<9}{}\n", setting.name(), setting.sentence());
    }
    let millions = round_instructions as f64 / 1e6;
    text += &format!("A round of the job is {millions:.1} million instructions.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(setting: Setting, seconds: f64, instructions: Option<u64>) -> Run {
        Run { setting, seconds, instructions }
    }

    #[test]
    fn speeds_use_the_models_count() {
        let runs = [
            run(Setting::None, 6.0, None),
            run(Setting::Interval, 1.0, Some(10 * 100_000_000 + 300)),
            run(Setting::Ooo, 2.0, Some(2 * 100_000_000 + 300)),
        ];
        let round = round_instructions(&runs).unwrap();
        assert_eq!(round, 100_000_030);
        let none = speeds(&runs, Setting::None, round).median();
        assert!((none - 1000.0).abs() < 0.01, "{none}");
    }

    #[test]
    fn models_that_disagree_are_refused() {
        let interval = run(Setting::Interval, 1.0, Some(10 * 100_000_000));
        let ooo = run(Setting::Ooo, 1.0, Some(2 * 100_100_000));
        let failure = round_instructions(&[interval, ooo]).unwrap_err();
        assert_eq!(failure.status, ExitStatus::CheckFailed);
        assert!(round_instructions(&[run(Setting::Ooo, 1.0, None)]).is_err());
    }

    #[test]
    fn the_table_has_80_columns() {
        let samples = || Samples(vec![1000.0, 12000.0, 8.0]);
        let table = render(&Setting::ALL.map(|setting| (setting, samples())), 37_000_000);
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        assert!(table.contains("100%"), "{table}");
    }
}
