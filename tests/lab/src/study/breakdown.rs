//! `cargo xtask study breakdown`: whether the cause that is named first is the one that costs the
//! program most, compared with shadow cores that have perfect structures; and how often the error
//! bars contain the truth of the same quantity, and how wide they are: for the whole run, or by
//! function.

mod answer;
mod judge;
mod programs;
mod render;

use std::{ops::RangeInclusive, time::Duration};

use clap::Args;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    build::programs::Symbols,
    guest_files::GuestFile,
    machine::{Artefacts, Folder, Pmu, Request},
    output,
    project::Project,
    report::{Report, Rings, no_stack, stack_of},
    run::{RunArgs, by_function},
};

use self::{
    answer::Answer,
    judge::{Judged, Study},
    programs::Program,
};
use super::seeds;

/// Time limit of a machine: others may run at the same time.
const TIME_LIMIT: Duration = Duration::from_secs(1_800);

/// The pipelines of the virtual PMU.
const PIPELINES: [&str; 2] = ["interval", "ooo"];

/// Options of `cargo xtask study breakdown`.
#[derive(Args, Clone, Debug)]
pub(super) struct BreakdownArgs {
    /// Run the seeds 1 to N, or A to B
    #[arg(long, value_name = "N|A..B", default_value = "20", value_parser = seeds::parse)]
    seeds: RangeInclusive<u64>,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// A program of tests/benchmarks/list.toml or tests/programs/list.toml; repeatable [default:
    /// 24 of them]
    #[arg(long, value_name = "NAME")]
    program: Vec<String>,
    /// A pipeline of the virtual PMU; repeatable [default: both]
    #[arg(long, value_name = "NAME", value_parser = PIPELINES)]
    pipeline: Vec<String>,
    /// Instructions of each program of tests/benchmarks/list.toml, about
    #[arg(long, value_name = "N", default_value_t = 20_000_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    instructions: u64,
    /// Judge the ten functions with the most cycles of each run and their parts, as `record
    /// --breakdown` has them
    #[arg(long)]
    by_function: bool,
    /// The rings whose cycles are broken down
    #[arg(long, value_enum, value_name = "RINGS", default_value_t, conflicts_with = "by_function")]
    rings: Rings,
    /// Judge the estimates that `run --refine` makes after the run
    #[arg(long, conflicts_with = "by_function")]
    refine: bool,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn main(project: &Project, args: &BreakdownArgs) -> Result<u8> {
    if stack_of(args.pmu.signature()).is_none() {
        return Err(Failure::new(ExitStatus::NoBreakdown, no_stack()));
    }
    let symbols = if args.by_function { Symbols::Yes } else { Symbols::No };
    let (programs, files) = programs::make(project, &args.program, args.instructions, symbols)?;
    let files = GuestFile::by_names(&files);
    let artefacts = Artefacts::make_for_run(project, &files)?;
    let seeds: Vec<u64> = args.seeds.clone().collect();
    let pipelines: Vec<&str> = match &*args.pipeline {
        [] => PIPELINES.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let artefacts = &artefacts;
    let with = |pipeline| seeds.iter().map(move |seed| (pipeline, *seed));
    let machines: Vec<(&str, u64)> = pipelines.into_iter().flat_map(with).collect();
    let runs = (programs.len() * machines.len()) as u64;
    let judged = seeds::in_parallel("machines", 0..=runs - 1, |run| {
        let (program, machine) = (run as usize / machines.len(), run as usize % machines.len());
        let (pipeline, seed) = machines[machine];
        let program = &programs[program];
        let run = Run { project, artefacts, args, pipeline, seed };
        // A machine that fails takes nothing of the others with it.
        let failed =
            |why: Failure| format!("{}, {pipeline}, seed {seed}: {}", program.name, why.message);
        Ok(run.judge(program).map_err(failed))
    })?;
    let (judged, failed): (Vec<_>, Vec<_>) = judged.into_iter().partition(|run| run.is_ok());
    let failed: Vec<String> = failed.into_iter().filter_map(|run| run.err()).collect();
    let judged = judged.into_iter().flatten();
    let (bars, answers): (Vec<Vec<Judged>>, Vec<Option<Answer>>) = judged.unzip();
    let (bars, answers) =
        (bars.into_iter().flatten().collect(), answers.into_iter().flatten().collect());
    let mut study = Study::of(args.pmu.profile().name, &seeds, bars, answers);
    study.failed = failed;
    output::print(args.json, &study, &render::render(&study))?;
    Ok(if study.holds && study.failed.is_empty() { 0 } else { ExitStatus::CheckFailed.into() })
}

/// A run of a program.
struct Run<'a> {
    project: &'a Project,
    artefacts: &'a Artefacts,
    args: &'a BreakdownArgs,
    pipeline: &'a str,
    seed: u64,
}

impl Run<'_> {
    /// Compares the error bars of a program's run with the truth, and the cause that is named first
    /// with the program's savings.
    fn judge(&self, program: &Program) -> Result<(Vec<Judged>, Option<Answer>)> {
        let Program { name, command } = program;
        if self.args.by_function {
            return Ok((self.functions(name, command)?, None));
        }
        self.whole(name, command)
    }

    /// Makes the options of a run from a command line.
    fn options(&self, rest: &str) -> Result<RunArgs> {
        let pmu = self.args.pmu.name();
        let machine = format!("--pmu {pmu} --vpmu pipeline={} --seed {}", self.pipeline, self.seed);
        RunArgs::of(&format!("cargo xtask run {machine} {rest}"))
    }

    fn whole(&self, program: &str, words: &str) -> Result<(Vec<Judged>, Option<Answer>)> {
        let rings = if self.args.rings == Rings::Both { "=both" } else { "" };
        let refine = if self.args.refine { " --refine" } else { "" };
        let what_if = "--what-if=groups";
        let options = self.options(&format!("--breakdown{rings}{refine} {what_if} -- {words}"))?;
        let request = Request { time_limit: TIME_LIMIT, ..options.request()? };
        let boot = seeds::boot_with_any_status(self.artefacts, &request, self.seed)?;
        let report = Report::with(&boot, options.plan()?.as_ref(), &options.additions());
        let session = report.first.as_ref();
        let all =
            session.into_iter().flat_map(|it| it.breakdown.iter().chain(&it.kernel_breakdown));
        let bars = all.flat_map(|breakdown| Judged::of_whole(program, breakdown)).collect();
        let answer = session.and_then(|it| it.breakdown.as_ref().zip(it.what_if.as_ref()));
        let of = |(breakdown, what_if)| Answer::of(program, self.pipeline, breakdown, what_if);
        Ok((bars, answer.map(of)))
    }

    fn functions(&self, program: &str, words: &str) -> Result<Vec<Judged>> {
        let folder = Folder::make(self.project)?;
        let blocks = folder.file("blocks.csv");
        let vpmu = format!("--vpmu blocks={}", blocks.display());
        let options = self.options(&format!("{vpmu} -- record --breakdown {words}"))?;
        let request = Request { time_limit: TIME_LIMIT, ..options.request()? };
        let boot = seeds::boot(self.artefacts, &request, self.seed)?;
        let report = Report::with(&boot, options.plan()?.as_ref(), &options.additions());
        let asked = (&*request.command_line, Some(&*blocks));
        let by = by_function(&boot, &report, asked)?;
        Ok(by.iter().flat_map(|by| Judged::of_functions(program, by)).collect())
    }
}
