//! `cargo xtask study precise`: time by instruction from samples, beside the oracle of the virtual
//! PMU, which charges each cycle to the instructions whose latency it exposes.

pub mod oracle;
mod render;
mod results;

use std::time::Duration;

use clap::Args;
use tally_abi::{ExitStatus, words::escape};
use xtask::{
    Result,
    build::programs::{
        Symbols,
        benchmarks::{self, Benchmark, Role},
    },
    guest_files::GuestFile,
    machine::{Artefacts, Boot, Folder, Pmu, Request},
    output,
    project::Project,
    report::Report,
    run::{RunArgs, by_instruction},
};

use self::{
    oracle::{Oracle, Profile},
    results::{PreciseStudy, Row},
};
use super::{named, seeds};

/// Time limit of a machine: others may run at the same time.
const TIME_LIMIT: Duration = Duration::from_secs(1_800);

/// Events that each machine samples: late samples of cycles, precise ones, and what corrects these.
const MACHINES: [(Pmu, &str); 2] =
    [(Pmu::Intel, "-b -e cycles,cycles:p,instructions:ppp"), (Pmu::Amd, "-b -e cycles,cycles:p")];

/// Options of `cargo xtask study precise`.
#[derive(Args, Clone, Debug)]
pub(super) struct PreciseArgs {
    /// Run only the programs of these names, of tests/benchmarks/list.toml
    names: Vec<String>,
    /// Instructions of each program, about
    #[arg(long, value_name = "N", default_value_t = 20_000_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    instructions: u64,
    /// Events from one sample to the next
    #[arg(long, value_name = "N", default_value_t = 4_001,
          value_parser = clap::value_parser!(u64).range(500..))]
    period: u64,
    /// Seed of every machine
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn main(project: &Project, args: &PreciseArgs) -> Result<u8> {
    let all = Benchmark::all(project)?;
    let wanted = selected(&all, &args.names)?;
    let files = benchmarks::make_with(project, &all, &wanted, Symbols::Yes)?;
    let artefacts = Artefacts::make_for_run(project, &GuestFile::by_names(&files))?;
    let run = Run { project, artefacts: &artefacts, args };
    let machines: Vec<(&Benchmark, (Pmu, &str))> = MACHINES
        .iter()
        .flat_map(|machine| wanted.iter().map(|program| (program, *machine)))
        .collect();
    let rows = seeds::in_parallel("machines", 0..=machines.len() as u64 - 1, |number| {
        let (program, machine) = machines[number as usize];
        run.judge(program, machine)
    })?;
    let study = PreciseStudy::of(rows);
    output::print(args.json, &study, &render::render(&study))?;
    Ok(if study.holds { 0 } else { ExitStatus::CheckFailed.into() })
}

/// The list's programs but for paper 002's; only the named ones, if there are names.
fn selected(all: &[Benchmark], names: &[String]) -> Result<Vec<Benchmark>> {
    let mut known = all.to_vec();
    known.retain(|it| it.role != Role::Paper002);
    named::check(&known.iter().map(|it| &*it.name).collect::<Vec<_>>(), names)?;
    known.retain(|it| names.is_empty() || names.contains(&it.name));
    Ok(known)
}

struct Run<'a> {
    project: &'a Project,
    artefacts: &'a Artefacts,
    args: &'a PreciseArgs,
}

impl Run<'_> {
    /// Samples a program and compares the profiles with the oracle's.
    fn judge(&self, program: &Benchmark, (pmu, events): (Pmu, &str)) -> Result<Row> {
        let folder = Folder::make(self.project)?;
        let times = folder.file("instructions.csv");
        let words = program.command(self.args.instructions);
        let words: Vec<String> = words.iter().map(|word| escape(word).to_string()).collect();
        let options = RunArgs::of(&format!(
            "cargo xtask run --pmu {} --vpmu pipeline=ooo,instructions={} --seed {} --trace {} \
             --trace-halt -- record --budget 100 {events} -c {} {}",
            pmu.name(),
            times.display(),
            self.args.seed,
            folder.file("trace").display(),
            self.args.period,
            words.join(" ")
        ))?;
        let request = Request { time_limit: TIME_LIMIT, ..options.request()? };
        let boot = seeds::boot(self.artefacts, &request, self.args.seed)?;
        let space = boot.transcript.samples.iter().find(|it| it.user).map(|it| it.address_space);
        let oracle = Oracle::read(&times, space.unwrap_or_default())?;
        let report = Report::with(&boot, options.plan()?.as_ref(), &options.additions());
        let at = by_instruction(&boot, &report, (&request.command_line, "cycles:p"))?;
        let profiles = [
            sampled(&boot, &report, "cycles"),
            sampled(&boot, &report, "cycles:p"),
            at.iter().map(|it| (it.address, it.sampled)).collect(),
            at.iter().map(|it| (it.address, it.exposed)).collect(),
        ];
        let samples = profiles[1].samples;
        Ok(Row::of(&program.name, pmu.profile().name, samples, &oracle, &profiles))
    }
}

/// The addresses of an event's samples in ring 3.
fn sampled(boot: &Boot, report: &Report, event: &str) -> Profile {
    let session = report.first.iter();
    let index = session.flat_map(|it| &it.events).position(|it| it.name == event);
    let samples = boot.transcript.samples.iter();
    let own = samples.filter(|it| it.user && Some(usize::from(it.event)) == index);
    own.map(|it| (it.address, 1.0)).collect()
}
