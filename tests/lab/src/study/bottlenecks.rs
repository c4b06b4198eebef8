//! `cargo xtask study bottlenecks`: the cost model and the phases of Gao and Sair (paper 004,
//! sections V to VII), against the truth: Figures 4, 5, 7 and 8.
//!
//! Each program runs once, in pipeline `ooo`, with the truth over time. Decision 63 has the rules.
//! On request it also runs with perfect structures and with the table of section VIII (Figures 9
//! and 10).

mod adaptive;
mod fit;
mod interval;
mod judge;
mod nnls;
mod phases;
mod picture;
mod render;
mod results;
mod structures;
mod structures_text;
mod terms;

use std::path::PathBuf;

use clap::Args;
use tally_abi::ExitStatus;
use tally_model::Assist;
use tally_vpmu::VirtualPmu;
use xtask::{
    Failure, Result,
    build::programs::benchmarks::{self, Benchmark, Kind, Role},
    guest_files::GuestFile,
    machine::{self, Artefacts, Pmu},
    output,
    project::{self, Project},
    shadows::wrong,
};

use self::{
    interval::Interval,
    results::{INTERVAL, Run, Structures, Study},
    structures::STRUCTURES,
    terms::{CAUSES, Cause, Term},
};
use super::{
    seeds,
    timed::{self, Machines, Program, Ran, Recorded},
    words,
};

/// The pipeline that fills queues and distinguishes causes.
const PIPELINE: &str = "pipeline=ooo";
/// The seed of the machines; it has no effect, as nothing is multiplexed.
const SEED: u64 = 1;
/// The fewest programs: the penalties of each are fitted to the others.
const FEWEST_PROGRAMS: usize = 2;

/// Options of `cargo xtask study bottlenecks`.
#[derive(Args, Clone, Debug)]
pub(super) struct BottlenecksArgs {
    /// Programs of tests/benchmarks/list.toml, at least two, as penalties are fitted to the others
    /// [default: all that judge or tune]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    programs: Vec<String>,
    /// Instructions of each program, about
    #[arg(long, value_name = "N", default_value_t = 600_000_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    instructions: u64,
    /// PMU of the machines: one with a cost model
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// Also run each program with perfect structures, beside their costs, and with one table that
    /// serves the largest cost: Figures 9 and 10. Takes some ten times as long
    #[arg(long)]
    structures: bool,
    /// Machines that run at a time
    #[arg(long, value_name = "N", default_value_t = seeds::AT_ONCE as u64,
          value_parser = clap::value_parser!(u64).range(1..=64))]
    jobs: u64,
    /// Write the pictures of Figures 4, 5 and 7 into this folder, in SVG
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn main(project: &Project, args: &BottlenecksArgs) -> Result<u8> {
    // Checked before anything is built: not every processor has a cost model.
    terms::terms(&virtual_pmu(args.pmu)?)?;
    if let Some(folder) = &args.pictures {
        project::make_folder(folder)?;
    }
    let all = Benchmark::all(project)?;
    let wanted = benchmarks(&all, &args.programs)?;
    let files = benchmarks::make(project, &all, &wanted)?;
    let artefacts = Artefacts::make_for_run(project, &GuestFile::by_names(&files))?;
    let machines = Machines { artefacts: &artefacts, pmu: args.pmu, jobs: args.jobs as usize };
    let study = study(&machines, args, &wanted)?;
    if let Some(folder) = &args.pictures {
        for (name, svg) in picture::draw(&study)? {
            project::write(&folder.join(name), svg.as_bytes())?;
        }
    }
    output::print(args.json, &study, &render::render(&study))?;
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
    let args = words::parse::<BottlenecksArgs>(words)?;
    let machines = Machines { artefacts, pmu: args.pmu, jobs: args.jobs as usize };
    let study = study(&machines, &args, &benchmarks(&Benchmark::all(project)?, &args.programs)?)?;
    let json = serde_json::to_value(&study);
    Ok((json.expect("texts and finite numbers have a form in JSON"), render::render(&study)))
}

/// Runs the study with these programs.
fn study(machines: &Machines, args: &BottlenecksArgs, wanted: &[Benchmark]) -> Result<Study> {
    let virtual_pmu = virtual_pmu(args.pmu)?;
    let terms = terms::terms(&virtual_pmu)?;
    let profile = virtual_pmu.profile();
    let width = u32::from(profile.geometry.width);
    let runs = machines.each("programs", wanted.len(), |number| {
        let Benchmark { name, kind, .. } = &wanted[number];
        let command = wanted[number].command(args.instructions);
        let program = Program { name: name.clone(), command };
        let runner = Runner { machines, terms: &terms, width };
        runner.program(&program, *kind, args.structures)
    })?;
    Ok(Study::of(profile.name, width, terms, &runs))
}

/// The virtual PMU of the machines.
fn virtual_pmu(pmu: Pmu) -> Result<VirtualPmu> {
    machine::virtual_pmu_of(pmu, &[PIPELINE.to_owned()])
}

/// The requested programs.
fn benchmarks(all: &[Benchmark], names: &[String]) -> Result<Vec<Benchmark>> {
    let wanted = match names {
        [] => all.iter().filter(|it| it.role != Role::Paper002).cloned().collect(),
        names => Benchmark::named(all, names)?,
    };
    if wanted.len() < FEWEST_PROGRAMS {
        let why = "penalties are fitted to the other programs: name at least two with --programs";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    Ok(wanted)
}

/// The perfect structures of the shadow core for each cause.
fn causes() -> impl Iterator<Item = &'static str> {
    CAUSES.iter().map(Cause::perfect)
}

/// Runs programs with their truth over time.
struct Runner<'a> {
    machines: &'a Machines<'a>,
    terms: &'a [Term],
    width: u32,
}

impl Runner<'_> {
    /// Runs a program; on request also with perfect structures and with the table.
    fn program(&self, program: &Program, kind: Kind, structures: bool) -> Result<Run> {
        let (name, command) = (program.name.clone(), program.command.join(" "));
        if !structures {
            let (intervals, _) = self.run(program, &causes().collect::<Vec<_>>(), &[])?;
            return Ok(Run { name, command, kind, intervals, structures: None });
        }
        let more = STRUCTURES.iter().map(|it| it.perfect);
        let more = more.filter(|core| causes().all(|cause| cause != *core));
        let cores: Vec<&str> = causes().chain(more).collect();
        let (intervals, ran) = self.run(program, &cores, &[])?;
        let session = ran.boot.transcript.sessions.first_key_value().map(|(session, _)| *session);
        let truth = ran.boot.truth.as_ref().zip(session);
        let (truth, session) =
            truth.ok_or_else(|| wrong(format!("{name}: the run has no truth")))?;
        let cycles = structures::Cycles::of(truth, session)?;
        let assisted = |assist: Assist| {
            self.run(program, &[], &[format!("assist={}", assist.name())]).map(|(run, _)| run)
        };
        let [data, code, branch] = Assist::ALL;
        let with = [assisted(data)?, assisted(code)?, assisted(branch)?];
        Ok(Run { name, command, kind, intervals, structures: Some(Structures { cycles, with }) })
    }

    /// Runs a program with these shadow cores and these further options of the virtual PMU.
    fn run(
        &self,
        program: &Program,
        cores: &[&str],
        options: &[String],
    ) -> Result<(Vec<Interval>, Ran)> {
        let mut vpmu =
            vec![PIPELINE.to_owned(), "columns=signals".into(), format!("every={INTERVAL}i")];
        vpmu.extend_from_slice(options);
        if !cores.is_empty() {
            vpmu.push(format!("shadows={}", cores.join("/")));
        }
        let beside = causes().filter(|core| cores.contains(core)).collect();
        let recorded = Recorded { clock: "Instructions", vpmu, beside };
        let ran = self.machines.run(&timed::plain_job(SEED), &program.command, &recorded)?;
        let intervals = Interval::read(&ran.series, &ran.beside, self.terms, self.width, INTERVAL);
        let intervals = intervals.ok_or_else(|| {
            wrong("the virtual PMU's series lacks a signal of the cost model".into())
        })?;
        if intervals.len() < 2 {
            let why = format!(
                "{}: {} intervals of {INTERVAL} instructions, and 2 are needed: use more \
                 --instructions",
                program.name,
                intervals.len()
            );
            return Err(Failure::new(ExitStatus::TooShort, why));
        }
        Ok((intervals, ran))
    }
}
