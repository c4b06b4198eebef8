//! `cargo xtask study breakdown`: whether what is named first is what the program would save most
//! without, by cores with perfect structures that run beside the machine's own; and how often the
//! bars contain the truth of the same quantity, and how wide they are: of the whole run, or by
//! function.

mod answer;
mod judge;
mod render;

use std::{ops::RangeInclusive, time::Duration};

use clap::{Args, ValueEnum, builder::PossibleValue};
use tally_abi::ExitStatus;

use self::{
    answer::Answer,
    judge::{Judged, Study},
};
use super::seeds;
use crate::{
    Failure, Result,
    build::programs::{
        Symbols,
        benchmarks::{self, Benchmark},
    },
    guest_files::GuestFile,
    machine::{Artefacts, Folder, Pmu, Request},
    output,
    project::Project,
    report::{Report, Rings, no_stack, stack_of},
    run::{RunArgs, by_function},
};

/// Of one machine: others may run at the same time.
const TIME_LIMIT: Duration = Duration::from_secs(1_800);

/// Options of `cargo xtask study breakdown`.
#[derive(Args, Clone, Debug)]
pub(super) struct BreakdownArgs {
    /// Run the seeds 1 to N, or A to B
    #[arg(long, value_name = "N|A..B", default_value = "20", value_parser = seeds::parse)]
    seeds: RangeInclusive<u64>,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// A program of tests/benchmarks/list.toml; repeatable [default: the eight that judge]
    #[arg(long, value_name = "NAME")]
    program: Vec<String>,
    /// Instructions of each program, about
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
    let all = Benchmark::all(project)?;
    let wanted = Benchmark::named(&all, &args.program)?;
    let symbols = if args.by_function { Symbols::Yes } else { Symbols::No };
    let files = benchmarks::make_with(project, &all, &wanted, symbols)?;
    let files = GuestFile::by_names(&files);
    let artefacts = Artefacts::make_for_run(project, &files)?;
    let seeds: Vec<u64> = args.seeds.clone().collect();
    let runs = (wanted.len() * seeds.len()) as u64;
    let judged = seeds::in_parallel("machines", 0..=runs - 1, |run| {
        let (program, seed) = (run as usize / seeds.len(), seeds[run as usize % seeds.len()]);
        let one = Run { project, artefacts: &artefacts, files: &files, args, seed };
        one.judge(&wanted[program])
    })?;
    let (bars, answers): (Vec<Vec<Judged>>, Vec<Option<Answer>>) = judged.into_iter().unzip();
    let (bars, answers) =
        (bars.into_iter().flatten().collect(), answers.into_iter().flatten().collect());
    let study = Study::of(args.pmu.profile().name, &seeds, bars, answers);
    output::print(args.json, &study, &render::render(&study))?;
    Ok(if study.holds { 0 } else { ExitStatus::CheckFailed.into() })
}

/// One run of a program.
struct Run<'a> {
    project: &'a Project,
    artefacts: &'a Artefacts,
    files: &'a [GuestFile],
    args: &'a BreakdownArgs,
    seed: u64,
}

impl Run<'_> {
    /// The bars of a program's run beside the truth, and what is named first beside what the
    /// program would save.
    fn judge(&self, program: &Benchmark) -> Result<(Vec<Judged>, Option<Answer>)> {
        let words = program.command(self.args.instructions).join(" ");
        let name = &program.name;
        if self.args.by_function {
            return Ok((self.functions(name, &words)?, None));
        }
        self.whole(name, &words)
    }

    /// The options of a run, as its command line has them.
    fn options(&self, rest: &str) -> Result<RunArgs> {
        let pmu = self.args.pmu.to_possible_value();
        let pmu = pmu.as_ref().map(PossibleValue::get_name).unwrap_or_default();
        RunArgs::of(&format!("cargo xtask run --pmu {pmu} --seed {} {rest}", self.seed))
    }

    fn whole(&self, program: &str, words: &str) -> Result<(Vec<Judged>, Option<Answer>)> {
        let rings = if self.args.rings == Rings::Both { "=both" } else { "" };
        let refine = if self.args.refine { " --refine" } else { "" };
        let what_if = "--what-if=pairs";
        let options = self.options(&format!("--breakdown{rings}{refine} {what_if} -- {words}"))?;
        let request = Request { time_limit: TIME_LIMIT, ..options.request()? };
        let boot = seeds::boot(self.artefacts, &request, self.seed)?;
        let report = Report::with(&boot, options.plan()?.as_ref(), &options.additions());
        let session = report.first.as_ref();
        let all =
            session.into_iter().flat_map(|it| it.breakdown.iter().chain(&it.kernel_breakdown));
        let bars = all.flat_map(|breakdown| Judged::of_whole(program, breakdown)).collect();
        let answer = session.and_then(|it| it.breakdown.as_ref().zip(it.what_if.as_ref()));
        Ok((bars, answer.map(|(breakdown, what_if)| Answer::of(program, breakdown, what_if))))
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
        let by = by_function(self.project, self.files, &boot, &report, asked)?;
        Ok(by.iter().flat_map(|by| Judged::of_functions(program, by)).collect())
    }
}
