//! `cargo xtask study unobserved`: unobserved values, compared with the truth of a run without
//! interrupts.
//!
//! Each program runs twice with a seed: with an event list of instructions alone and the longest
//! slices, of which only the first ones can end, and with `shares=paired`. The truth of the first
//! run is that of the program by itself; the excess of the second run's truth over it was added by
//! interrupts.

use std::{ops::RangeInclusive, path::PathBuf};

use clap::Args;
use serde::Serialize;
use tally_abi::{
    ExitStatus, Shares, Slice, events,
    session::MAX_SLICE,
    text::percent,
    truth::{Region, RegionKind},
};
use tally_engine::Plan;
use xtask::{
    Failure, Result,
    explain::{self, Asked},
    guest_files::GuestFile,
    job::{self, Job},
    machine::{self, Artefacts, Boot, Pmu, Request},
    output,
    project::Project,
    ramdisk,
    report::{EventReport, Kind, Report},
    setup,
};

use super::seeds::{self, CLAIMED};
use crate::median::median;

/// Default of `--program`: Tally's own programs, and Debian's busybox.
const PROGRAMS: [&str; 20] = [
    "rounds 3 60000",
    "rounds 1 200000",
    "busybox sha256sum corpus.txt",
    "busybox md5sum corpus.txt",
    "busybox sha1sum corpus.txt",
    "busybox wc corpus.txt",
    "busybox grep -c unsafe corpus.txt",
    "busybox sha512sum corpus.txt",
    "busybox strings -n 60 corpus.txt",
    "busybox cut -c 1-3 corpus.txt",
    "busybox sha3sum corpus.txt",
    "busybox cmp corpus.txt corpus.txt",
    "busybox crc32 corpus.txt",
    "busybox tail -n 3 corpus.txt",
    "busybox sed -n s/unsafe/safe/p corpus.txt",
    "busybox awk /unsafe/{n++}END{print(n)} corpus.txt",
    "busybox sort -u -o sorted corpus.txt",
    "busybox gzip -k corpus.txt",
    "busybox egrep -c [0-9]+,[0-9]+ corpus.txt",
    "busybox wc -l corpus.txt",
];

/// Maximum interrupts of a run that counts as one without: the first slices are shorter (decision
/// 25), 34 million cycles and each twice as long as the one before.
const MOST_INTERRUPTS: u64 = 4;

/// Options of `cargo xtask study unobserved`.
#[derive(Args, Clone, Debug)]
pub(super) struct UnobservedArgs {
    /// Run the seeds 1 to N, or A to B
    #[arg(long, value_name = "N|A..B", default_value = "2", value_parser = seeds::parse)]
    seeds: RangeInclusive<u64>,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// A program and its arguments, in one argument; repeatable [default: twenty programs]
    #[arg(long, value_name = "WORDS")]
    program: Vec<String>,
    /// Put a file of this machine into the ramdisk, under its name: a static program, or its input
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Events to count, separated by commas; without it, the default job's
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// Length of the short slices, in cycles
    #[arg(long, value_name = "CYCLES", default_value_t = 20_000, value_parser = job::slice)]
    slice: u64,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

impl UnobservedArgs {
    fn job(&self, seed: u64) -> Job {
        let list: Vec<&str> = match &self.events {
            Some(list) => events::words(list).collect(),
            None => events::words(events::default_list(self.pmu.signature())).collect(),
        };
        Job {
            seed,
            events: Some(list.join(",")),
            slice: Some(Slice::Cycles(self.slice)),
            budget: Some(100.0),
            shares: Some(Shares::Paired),
            ..Job::default()
        }
    }

    fn programs(&self) -> Vec<String> {
        match &*self.program {
            [] => PROGRAMS.map(str::to_owned).to_vec(),
            programs => programs.to_vec(),
        }
    }

    fn request(&self, job: &Job, options: &str, program: &str) -> Result<Request> {
        job.check()?;
        let words: Vec<String> = program.split_whitespace().map(str::to_owned).collect();
        Ok(Request { pmu: self.pmu, ..Request::new(job.around(options, &words)?) })
    }

    fn plan(&self) -> Result<Plan> {
        let pmu = machine::virtual_pmu_of(self.pmu, &[])?;
        let asked = Asked::of(&self.job(1), &["program".to_owned()], self.pmu.signature())?;
        explain::plan_of(&pmu, &asked).map(|(_, plan)| plan)
    }
}

/// An event in a run.
#[derive(Clone, Debug, Serialize)]
struct Judged {
    /// Name of the event.
    event: String,
    /// The truth of the run without interrupts.
    truth: u64,
    /// Part that interrupts added to the truth, relative to it.
    added: f64,
    /// Number of events that one interrupt added.
    per_interrupt: f64,
    /// The relative error of the unobserved value.
    error: f64,
    /// Half width relative to the value.
    half_width: f64,
    /// Whether the value's interval contains the truth of the run without interrupts.
    is_within: bool,
    /// Whether the plain estimate's interval contains it.
    is_plain_within: bool,
}

/// All events of a program, over all seeds.
#[derive(Clone, Debug, Serialize)]
struct ProgramResult {
    program: String,
    values: Vec<Judged>,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
struct UnobservedStudy {
    programs: Vec<ProgramResult>,
    /// Number of values, and the share of them whose interval contains the truth without
    /// interrupts.
    judged: usize,
    within: f64,
    claimed: [f64; 2],
    holds: bool,
}

pub(super) fn main(project: &Project, args: &UnobservedArgs) -> Result<u8> {
    ramdisk::check_files(&args.file, &[ramdisk::CORPUS])?;
    let plan = args.plan()?;
    let mut files = args.file.clone();
    if args.program.is_empty() {
        files.push(setup::linux(project)?.busybox);
    }
    let artefacts = Artefacts::make_for_run(project, &GuestFile::by_names(&files))?;
    let programs = args.programs();
    let (first, last) = args.seeds.clone().into_inner();
    let number = last - first + 1;
    let all = programs.len() as u64 * number;
    let runs = seeds::in_parallel("pairs of machines", 0..=all - 1, |index| {
        let program = &programs[(index / number) as usize];
        compare(&artefacts, args, &plan, program, first + index % number)
    })?;
    let by_program = programs.iter().zip(runs.chunks(number as usize));
    let study =
        judge(by_program.map(|(program, runs)| ProgramResult {
            program: program.clone(),
            values: runs.concat(),
        }));
    output::print(args.json, &study, &render(&study))?;
    Ok(if study.holds { 0 } else { ExitStatus::CheckFailed.into() })
}

/// Runs a program without and with interrupts.
fn compare(
    artefacts: &Artefacts,
    args: &UnobservedArgs,
    plan: &Plan,
    program: &str,
    seed: u64,
) -> Result<Vec<Judged>> {
    let job = args.job(seed);
    let alone = Job {
        events: Some("instructions".into()),
        slice: Some(Slice::Cycles(MAX_SLICE)),
        shares: None,
        ..job.clone()
    };
    let alone = seeds::boot(artefacts, &args.request(&alone, "wire", program)?, seed)?;
    let truth = session(&alone)?;
    if truth.pmi.count > MOST_INTERRUPTS {
        let why =
            format!("{program} is longer than a slice of {MAX_SLICE} cycles: use a shorter one");
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    let with = seeds::boot(artefacts, &args.request(&job, "wire trace", program)?, seed)?;
    let mut report = Report::of(&with);
    report.add_unobserved(&with, plan);
    let values = report.sessions().flat_map(|session| {
        let interrupts = session.pmis.unwrap_or_default();
        session.events.iter().filter_map(move |event| value(event, truth, interrupts))
    });
    Ok(values.collect())
}

fn session(boot: &Boot) -> Result<&Region> {
    let regions = boot.truth.iter().flat_map(|truth| &truth.regions);
    regions.clone().find(|region| region.kind == RegionKind::Session).ok_or_else(|| {
        Failure::new(ExitStatus::CheckFailed, "a run without interrupts has no truth")
    })
}

/// Compares an event that has an unobserved value and an interval with the truth without
/// interrupts, for a session with `interrupts` interrupts.
fn value(event: &EventReport, alone: &Region, interrupts: u64) -> Option<Judged> {
    let unobserved = event.unobserved.filter(|value| value.half_width_95 > 0.0)?;
    let truth = alone.events.get(&event.name)?.user;
    let relative = |count: f64| count / truth.max(1) as f64;
    let added = event.truth? as f64 - truth as f64;
    Some(Judged {
        event: event.name.clone(),
        truth,
        added: relative(added),
        per_interrupt: added / interrupts.max(1) as f64,
        error: relative(unobserved.estimate - truth as f64),
        half_width: relative(unobserved.half_width_95),
        is_within: unobserved.contains(truth),
        is_plain_within: match event.kind {
            Kind::Estimated => (event.low_95?..=event.high_95?).contains(&(truth as f64)),
            _ => event.estimate == Some(truth),
        },
    })
}

fn judge(programs: impl Iterator<Item = ProgramResult>) -> UnobservedStudy {
    let programs: Vec<ProgramResult> = programs.collect();
    let values: Vec<&Judged> = programs.iter().flat_map(|program| &program.values).collect();
    let within = share(&values, |value| value.is_within);
    UnobservedStudy {
        judged: values.len(),
        within,
        claimed: [*CLAIMED.start(), *CLAIMED.end()],
        holds: CLAIMED.contains(&within),
        programs,
    }
}

fn share(values: &[&Judged], is_one: impl Fn(&Judged) -> bool) -> f64 {
    let ones = values.iter().filter(|value| is_one(value)).count();
    if values.is_empty() { 0.0 } else { ones as f64 / values.len() as f64 }
}

/// Mean and standard error of a quantity.
fn mean(values: &[&Judged], of: impl Fn(&Judged) -> f64) -> [f64; 2] {
    let number = values.len() as f64;
    let mean = values.iter().map(|value| of(value)).sum::<f64>() / number;
    let squares = values.iter().map(|value| (of(value) - mean).powi(2)).sum::<f64>();
    [mean, (squares / (number - 1.0).max(1.0) / number).sqrt()]
}

fn median_of(values: &[&Judged], of: impl Fn(&Judged) -> f64) -> f64 {
    median(values.iter().map(|value| of(value)).collect()).unwrap_or_default()
}

fn render(study: &UnobservedStudy) -> String {
    let mut text =
        format!("{:<50}{:>7}{:>9}{:>9}{:>10}\n", "program", "values", "± 95 %", "within", "plain");
    for ProgramResult { program, values } in &study.programs {
        let values: Vec<&Judged> = values.iter().collect();
        text += &format!(
            "{program:<50}{:>7}{:>9}{:>9}{:>10}\n",
            values.len(),
            percent(median_of(&values, |value| value.half_width), false),
            percent(share(&values, |value| value.is_within), false),
            percent(share(&values, |value| value.is_plain_within), false),
        );
    }
    text += &render_events(study);
    text += &format!(
        "{}: the intervals of {} of {} unobserved values contain the truth without interrupts; \
         claimed are {:.0} to {:.0} %\n",
        if study.holds { "pass" } else { "FAIL" },
        percent(study.within, false),
        study.judged,
        100.0 * study.claimed[0],
        100.0 * study.claimed[1],
    );
    text
}

/// By event: the mean of what interrupts added, the median and the maximum of what one interrupt
/// added in all runs, and the mean error of the unobserved values, which is their bias, with its
/// standard error.
fn render_events(study: &UnobservedStudy) -> String {
    let all: Vec<&Judged> = study.programs.iter().flat_map(|program| &program.values).collect();
    let mut names: Vec<&str> = all.iter().map(|value| value.event.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut text = format!(
        "{:<34}{:>10}{:>8}{:>8}{:>19}\n",
        "event, of 1,000 or more", "interrupts", "of one", "most", "mean error"
    );
    for name in names {
        let of_event = all.iter().filter(|value| value.event == name && value.truth >= 1_000);
        let values: Vec<&Judged> = of_event.copied().collect();
        if values.is_empty() {
            continue;
        }
        let [added, _] = mean(&values, |value| value.added);
        let [error, deviation] = mean(&values, |value| value.error);
        let of_one = median_of(&values, |value| value.per_interrupt);
        let most = values.iter().map(|value| value.per_interrupt).fold(0.0, f64::max);
        // A longer name has its own line.
        let name = if name.len() > 33 { format!("{name}\n{:34}", "") } else { name.to_owned() };
        text += &format!(
            "{name:<34}{:>10}{of_one:>8.1}{most:>8.1}{:>9} ± {:>7}\n",
            percent(added, true),
            percent(error, true),
            percent(deviation, false)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(error: f64, is_within: bool) -> Judged {
        Judged {
            event: "E".into(),
            truth: 1_000,
            added: 0.07,
            per_interrupt: 3.5,
            error,
            half_width: 0.1,
            is_within,
            is_plain_within: false,
        }
    }

    #[test]
    fn the_share_within_decides_and_the_mean_error_is_the_bias() {
        let of = |within: usize| {
            let values = (0..20).map(|n| judged(if n % 2 == 0 { 0.03 } else { -0.01 }, n < within));
            judge([ProgramResult { program: "p".into(), values: values.collect() }].into_iter())
        };
        let study = of(19);
        let text = render(&study);
        assert!(study.holds && text.contains("pass") && text.contains("+1.00%"), "{text}");
        assert!(!of(18).holds && !of(20).holds && !judge([].into_iter()).holds);
    }
}
