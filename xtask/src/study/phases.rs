//! `cargo xtask study phases`: what the kernel says of phases on line, beside the truth over time.
//!
//! Each program runs with `run --phases`, and the virtual PMU writes a series of the truth. The
//! true counts of an interval make the true vector (paper 004, section VI).

mod judge;
mod table;

use std::{ops::RangeInclusive, path::Path, time::Duration};

use clap::{Args, ValueEnum as _, builder::PossibleValue};
use tally_abi::{ExitStatus, phase::Classifier};

use self::judge::{Judgement, Study};
use super::seeds;
use crate::{
    Failure, Result,
    machine::{self, Artefacts, Pmu, Request},
    output, phases,
    project::Project,
    report::{Report, Series, stack_of},
    run::RunArgs,
    setup,
};

/// Of one machine: others may run at the same time.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// Instructions between two rows of the series.
const EVERY: u64 = 20_000;
/// Without `--program`: a program with planted phases, short and long ones, and programs to which
/// nothing of the phases was tuned.
const PROGRAMS: [&str; 10] = [
    "bottleneck 6 chase 300000 branch 300000 divide 150000",
    "bottleneck 6 chase 1200000 branch 1200000 divide 600000",
    "deflate",
    "rounds 5 200000",
    "busybox awk BEGIN{for(i=0;i<200000;i++)s+=i%7;print(s)}",
    "busybox bzip2 -k corpus.txt",
    "busybox gzip -k corpus.txt",
    "busybox sort corpus.txt -o sorted",
    "busybox sha256sum corpus.txt",
    "busybox awk {n+=NF;l[$1]++}END{print(n)} corpus.txt",
];

/// Options of `cargo xtask study phases`.
#[derive(Args, Clone, Debug)]
pub(super) struct PhasesArgs {
    /// Run the seeds 1 to N, or A to B
    #[arg(long, value_name = "N|A..B", default_value = "2", value_parser = seeds::parse)]
    seeds: RangeInclusive<u64>,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// A program and its arguments, in one argument; repeatable [default: ten programs]
    #[arg(long, value_name = "WORDS")]
    program: Vec<String>,
    /// The fewest instructions of an interval
    #[arg(long, value_name = "INSTRUCTIONS", default_value_t = 1_000_000)]
    interval: u64,
    /// What the classes are
    #[arg(long, value_name = "KIND", default_value = "centroid", value_parser = phases::classes)]
    classes: Classifier,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

impl PhasesArgs {
    fn programs(&self) -> Vec<&str> {
        match &*self.program {
            [] => PROGRAMS.to_vec(),
            programs => programs.iter().map(String::as_str).collect(),
        }
    }

    /// The run of a program with a seed, whose series goes to the file `series`.
    ///
    /// # Errors
    /// An option is not valid.
    fn run(&self, program: &str, seed: u64, series: &str) -> Result<RunArgs> {
        let pmu = self.pmu.to_possible_value();
        let pmu = pmu.as_ref().map(PossibleValue::get_name).unwrap_or_default();
        let (interval, classes) = (self.interval, self.classes.word());
        RunArgs::of(&format!(
            "cargo xtask run --pmu {pmu} --seed {seed} --phases={interval} --phase-classes \
             {classes} --slice 20000 --budget 50 --vpmu series={series},every={EVERY}i \
             -- {program}"
        ))
    }
}

pub(super) fn main(project: &Project, args: &PhasesArgs) -> Result<u8> {
    let programs = args.programs();
    // What is refused is refused before anything is built.
    args.run(programs[0], 1, "series")?.request()?;
    phases::costs(&machine::virtual_pmu_of(args.pmu, &[])?)?;
    let on_demand = vec![setup::linux(project)?.busybox];
    let artefacts = Artefacts { on_demand, ..Artefacts::make(project)? };
    let (first, last) = args.seeds.clone().into_inner();
    let number = last - first + 1;
    let runs = programs.len() as u64 * number;
    let judged = seeds::in_parallel("machines", 0..=runs - 1, |run| {
        let program = programs[(run / number) as usize];
        run_seed(&artefacts, args, program, first + run % number, run)
    })?;
    let by_program = programs.iter().zip(judged.chunks(number as usize));
    let study = Study::of(by_program.map(|(program, runs)| (*program, Judgement::sum(runs))));
    output::print(args.json, &study, &table::render(&study))?;
    Ok(if study.holds { 0 } else { ExitStatus::CheckFailed.into() })
}

fn run_seed(
    artefacts: &Artefacts,
    args: &PhasesArgs,
    program: &str,
    seed: u64,
    number: u64,
) -> Result<Judgement> {
    let name = format!("tally-study-phases-{}-{number}.csv", std::process::id());
    let path = std::env::temp_dir().join(name);
    let judged = judged(artefacts, args, program, seed, &path);
    for suffix in ["", "-metadata.json"] {
        // Nothing is there if the machine failed.
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    judged
}

fn judged(
    artefacts: &Artefacts,
    args: &PhasesArgs,
    program: &str,
    seed: u64,
    path: &Path,
) -> Result<Judgement> {
    let run = args.run(program, seed, &path.display().to_string())?;
    let request = Request { time_limit: TIME_LIMIT, ..run.request()? };
    let boot = seeds::boot(artefacts, &request, seed)?;
    let report = Report::with(&boot, run.plan()?.as_ref(), &run.additions());
    let lacks = |what: &str| {
        Failure::new(ExitStatus::CheckFailed, format!("{program}, seed {seed}: {what}"))
    };
    let found = report.first.and_then(|session| session.phases);
    let found = found.ok_or_else(|| lacks("the run has no phases"))?;
    let pmu = machine::virtual_pmu_of(args.pmu, &[])?;
    let stack = stack_of(args.pmu.signature()).ok_or_else(|| lacks("no CPI stack"))?;
    let series = Series::read(path, 1, stack.instructions)?;
    let events = phases::events(&pmu)?;
    let (model, events) = phases::costs(&pmu)?.model_of(|event| events.contains(&event));
    let truth = series.counted(&found.intervals, &events);
    let truth = truth.ok_or_else(|| lacks("the series lacks an event of the model"))?;
    Ok(Judgement::of(&found, &model, &truth))
}
