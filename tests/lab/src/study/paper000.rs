//! `cargo xtask study paper000`: the experiments of Azimi, Stumm and Wisniewski (paper 000, section
//! 6), repeated with free programs: Tables 2, 3 and 4, Figures 5, 6 and 7.
//!
//! Decision 60 has the rules that the paper leaves open.

mod distance;
mod figures;
mod grid;
mod over_time;
mod paper;
mod render;
mod results;
mod rounds;
mod sampled;
mod stalls;
mod sweep;

use std::{ops::RangeInclusive, path::PathBuf};

use clap::{Args, ValueEnum};
use tally_abi::session::MAX_SLICE;
use xtask::{
    Result,
    build::programs::benchmarks::{self, Benchmark, Role},
    guest_files::GuestFile,
    machine::{Artefacts, Pmu},
    output,
    project::{self, Project},
};

use self::{
    results::{Figure5, ProgramResult, Results, Table2},
    sampled::{EventList, SampledRun, Sampling},
};
use super::{
    overhead, seeds,
    timed::{Machines, Program},
    words,
};

/// The compiler of Figures 5 and 7, and the compressor of Figure 6; if they are not run, the first
/// program is used.
const COMPILER: &str = "tcc";
/// See [`COMPILER`].
const COMPRESSOR: &str = "bzip2";
/// Instructions of each program, by default and with `--quick`.
const INSTRUCTIONS: [u64; 2] = [1_000_000_000, 40_000_000];
/// Cycles of a slice, by default and with `--quick`: the paper's, and a quarter.
const SLICE_CYCLES: [u64; 2] = [200_000, 50_000];
/// The shortest slice. A tenth of it is run too; still shorter slices write more records between
/// two ticks of the scheduler's timer than a trace ring holds.
const LEAST_SLICE_CYCLES: u64 = 50_000;
/// Slices of a round: the paper's.
const RATIO: usize = 10;
/// Instructions of Table 3's intervals per cycle of a slice.
const INTERVAL: u64 = 5;

/// A table or a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Sampled beside full counts
    #[value(name = "table2")]
    Table2,
    /// Two events of a compiler over time
    #[value(name = "figure5")]
    Figure5,
    /// Distances over the length of slices and their number in a round
    #[value(name = "figure6")]
    Figure6,
    /// Where the cycles of a compiler went over time
    #[value(name = "figure7")]
    Figure7,
    /// Stalls in four modes of the pipeline
    #[value(name = "table3")]
    Table3,
    /// Overhead by sampling frequency
    #[value(name = "table4")]
    Table4,
}

/// How machines execute in the sampled runs.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum PipelineName {
    /// Penalties: fast
    #[default]
    Interval,
    /// Instruction by instruction, out of order
    Ooo,
}

/// Options of `cargo xtask study paper000`.
#[derive(Args, Clone, Debug)]
pub(super) struct Paper000Args {
    /// Tables and figures [default: all]
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
    /// A program of tests/benchmarks/list.toml; repeatable [default: the eight that judge]
    #[arg(long, value_name = "NAME")]
    program: Vec<String>,
    /// Instructions of each program, about [default: 1000000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    instructions: Option<u64>,
    /// Length of a slice in cycles [default: 200000]
    #[arg(long, value_name = "CYCLES",
          value_parser = clap::value_parser!(u64).range(LEAST_SLICE_CYCLES..=MAX_SLICE / 10))]
    slice: Option<u64>,
    /// Two programs of 40 million instructions, slices of 50,000 cycles: whether it works
    #[arg(long)]
    quick: bool,
    /// Run Table 2 with the seeds 1 to N, or A to B, and give the mean; the rest has the first
    #[arg(long, value_name = "N|A..B", default_value = "1", value_parser = seeds::parse)]
    seeds: RangeInclusive<u64>,
    /// PMU of the machines
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// Pipeline of all but Tables 3 and 4
    #[arg(long, value_enum, default_value_t)]
    pipeline: PipelineName,
    /// Machines that run at a time
    #[arg(long, value_name = "N", default_value_t = seeds::AT_ONCE as u64,
          value_parser = clap::value_parser!(u64).range(1..=64))]
    jobs: u64,
    /// Write the pictures of the figures into this folder, in SVG
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
    /// Print one JSON object, alone on standard output; with =FILE, write it there and print the
    /// tables
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "an option that may have a value")]
    json: Option<Option<PathBuf>>,
}

impl Paper000Args {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// Selects one of two defaults.
    fn of<T: Copy>(&self, [usual, quick]: [T; 2]) -> T {
        if self.quick { quick } else { usual }
    }

    /// The requested programs.
    fn benchmarks(&self, all: &[Benchmark]) -> Result<Vec<Benchmark>> {
        if self.quick && self.program.is_empty() {
            let mut quick = Benchmark::quick(all);
            quick.retain(|it| it.role == Role::Judge);
            return Ok(quick);
        }
        Benchmark::named(all, &self.program)
    }

    /// Approximate number of instructions of each program.
    fn instructions(&self) -> u64 {
        self.instructions.unwrap_or(self.of(INSTRUCTIONS))
    }

    /// The programs with their commands.
    fn programs(&self, wanted: &[Benchmark]) -> Vec<Program> {
        let program = |it: &Benchmark| Program {
            name: it.name.clone(),
            command: it.command(self.instructions()),
        };
        wanted.iter().map(program).collect()
    }

    /// The results without any part.
    fn nothing_yet(&self, programs: &[Program]) -> Results {
        let program = |Program { name, command }: &Program| ProgramResult {
            name: name.clone(),
            command: command.join(" "),
            instructions: None,
            rounds: None,
        };
        Results {
            pmu: self.pmu.profile().name,
            instructions: self.instructions(),
            programs: programs.iter().map(program).collect(),
            seeds: [*self.seeds.start(), *self.seeds.end()],
            slice_cycles: self.slice.unwrap_or(self.of(SLICE_CYCLES)),
            ratio: RATIO,
            pipeline: match self.pipeline {
                PipelineName::Interval => "interval",
                PipelineName::Ooo => "ooo",
            },
            table_2: None,
            figure_5: None,
            figure_6: None,
            figure_7: None,
            table_3: None,
            table_4: None,
        }
    }
}

pub(super) fn main(project: &Project, args: &Paper000Args) -> Result<u8> {
    let json = args.json.as_ref().and_then(Option::as_ref);
    if let Some(path) = json {
        project::check_writable(path)?;
    }
    if let Some(folder) = &args.pictures {
        project::make_folder(folder)?;
    }
    let all = Benchmark::all(project)?;
    let wanted = args.benchmarks(&all)?;
    let files = benchmarks::make(project, &all, &wanted)?;
    let artefacts = Artefacts::make_for_run(project, &GuestFile::by_names(&files))?;
    let machines = Machines { artefacts: &artefacts, pmu: args.pmu, jobs: args.jobs as usize };
    let results = run(&machines, args, &args.programs(&wanted))?;
    if let Some(folder) = &args.pictures {
        for (name, svg) in figures::draw(&results)? {
            project::write(&folder.join(name), svg.as_bytes())?;
        }
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&results);
        let text = text.expect("texts and finite numbers have a form in JSON");
        project::write(path, (text + "\n").as_bytes())?;
    }
    let alone = args.json.is_some() && json.is_none();
    output::print(alone, &results, &render::render(&results))?;
    Ok(0)
}

/// Runs the study of a command line's words on machines that have the programs; returns the JSON
/// object and the text.
///
/// # Errors
/// A word is wrong, or a machine fails.
pub fn run_words(
    project: &Project,
    artefacts: &Artefacts,
    words: &str,
) -> Result<(serde_json::Value, String)> {
    let args = words::parse::<Paper000Args>(words)?;
    let machines = Machines { artefacts, pmu: args.pmu, jobs: args.jobs as usize };
    let wanted = args.benchmarks(&Benchmark::all(project)?)?;
    let results = run(&machines, &args, &args.programs(&wanted))?;
    let json = serde_json::to_value(&results);
    Ok((json.expect("texts and finite numbers have a form in JSON"), render::render(&results)))
}

/// Runs the requested parts.
fn run(machines: &Machines, args: &Paper000Args, programs: &[Program]) -> Result<Results> {
    let mut results = args.nothing_yet(programs);
    let (sampling, seed) = (results.sampling(), *args.seeds.start());
    let named = |name: &str| programs.iter().position(|it| it.name == name).unwrap_or_default();
    let (compiler, compressor) = (named(COMPILER), named(COMPRESSOR));
    if args.wants(Part::Table2) || args.wants(Part::Figure5) {
        let is_table = args.wants(Part::Table2);
        let of = if is_table { 0..programs.len() } else { compiler..compiler + 1 };
        let runs = sample(machines, args, results.sampling(), &programs[of.clone()])?;
        let by_program: Vec<&[SampledRun]> = runs.chunks(args.seeds.clone().count()).collect();
        for (program, runs) in results.programs[of.clone()].iter_mut().zip(&by_program) {
            program.instructions = Some(runs[0].instructions);
            program.rounds = Some(runs[0].intervals.len());
        }
        if is_table {
            let short = sample(machines, args, results.short_sampling(), programs)?;
            let short: Vec<&[SampledRun]> = short.chunks(args.seeds.clone().count()).collect();
            results.table_2 = Some(Table2::of(&results.programs, &by_program, &short));
        }
        let figure = &by_program[compiler - of.start][0];
        results.figure_5 =
            args.wants(Part::Figure5).then(|| Figure5::of(&programs[compiler].name, figure));
    }
    if args.wants(Part::Figure6) {
        results.figure_6 = Some(sweep::run(machines, sampling, &programs[compressor], seed)?);
    }
    if args.wants(Part::Figure7) {
        let (slice, pipeline) = (sampling.slice_cycles, sampling.pipeline);
        let study = over_time::run(machines, slice, pipeline, &programs[compiler], seed)?;
        results.figure_7 = Some(study);
    }
    if args.wants(Part::Table3) {
        let interval = INTERVAL * sampling.slice_cycles;
        results.table_3 = Some(stalls::run(machines, programs, interval, seed)?);
    }
    if args.wants(Part::Table4) {
        results.table_4 = Some(overhead::measure(machines.artefacts)?);
    }
    Ok(results)
}

/// Runs each program with each seed.
fn sample(
    machines: &Machines,
    args: &Paper000Args,
    sampling: Sampling,
    programs: &[Program],
) -> Result<Vec<SampledRun>> {
    let list = EventList::of(args.pmu, sampling.ratio)?;
    let seeds: Vec<u64> = args.seeds.clone().collect();
    machines.each("machines for Table 2", programs.len() * seeds.len(), |number| {
        let (program, seed) = (&programs[number / seeds.len()], seeds[number % seeds.len()]);
        sampled::run(machines, &list, sampling, program, seed)
    })
}
