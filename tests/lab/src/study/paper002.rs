//! `cargo xtask study paper002`: repeats the experiments of Salapura and others with their counter
//! unit (paper 002, section 8): Table 1, 31 events of BT on two processors in one session, and
//! Figure 7, the floating-point instructions of FT with and without vectors.
//!
//! Both programs are from NAS, written from its specification. The machine has two CPUs with a
//! program on each; the session counts both CPUs, each with its own truth. The paper's processor
//! has a counter for each of the events; here they share those of the PMU.

mod events;
mod render;
mod results;

use std::time::Duration;

use clap::Args;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    build::programs::benchmarks::{self, Benchmark, Role},
    guest_files::GuestFile,
    machine::{Artefacts, Boot, Outcome, Pmu, Request},
    output,
    project::Project,
    report::Report,
};

use self::{
    events::{FIGURE_7, TABLE_1, VECTORS},
    results::{Bar, Results, Row, Table},
};
use super::{programs::PMUS, seeds};

/// Time limit of a machine.
const TIME_LIMIT: Duration = Duration::from_secs(1_800);
/// The program of the table.
const TABLES: &str = "bt";
/// Programs of the figure: the same source, compiled with increasing optimization.
const FIGURES: [&str; 3] = ["ft-o1", "ft-scalar", "ft"];
/// Length of a slice in cycles, and the share of the time that the engine needs for it, in percent.
const SLICE_CYCLES: u64 = 20_000;
const BUDGET: u64 = 20;

/// Options of `cargo xtask study paper002`.
#[derive(Args, Clone, Debug)]
pub(super) struct Paper002Args {
    /// Runs of each program: of 60 steps, or of 6
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    runs: u64,
    /// Seed of every random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn main(project: &Project, args: &Paper002Args) -> Result<u8> {
    let all = Benchmark::all(project)?;
    let wanted: Vec<_> = all.iter().filter(|it| it.role == Role::Paper002).cloned().collect();
    let files = benchmarks::make(project, &all, &wanted)?;
    let artefacts = Artefacts::make_for_run(project, &GuestFile::by_names(&files))?;
    let tables = seeds::in_parallel("machines", 0..=PMUS.len() as u64 - 1, |machine| {
        table(&artefacts, PMUS[machine as usize].0, args)
    })?;
    let bars = seeds::in_parallel("programs", 0..=FIGURES.len() as u64 - 1, |program| {
        bar(&artefacts, FIGURES[program as usize], &wanted, args)
    })?;
    let results = Results { table_1: tables, figure_7: bars };
    output::print(args.json, &results, &render::render(&results))?;
    Ok(0)
}

/// The table of a machine: `tally stat` counts the CPUs while it waits for one of the programs, and
/// the other runs at the same time.
fn table(artefacts: &Artefacts, pmu: Pmu, args: &Paper002Args) -> Result<Table> {
    let (program, events) = (format!("{TABLES} {}", args.runs), TABLE_1.of(pmu).join(","));
    let line = format!(
        "wire paranoid=0 -- tally stat -C 0-1 --slice {SLICE_CYCLES} --budget {BUDGET} -e {events} \
         {program} -- {program}"
    );
    let request = Request { pmu, cpus: 2, time_limit: TIME_LIMIT, ..Request::new(line) };
    let boot = boot(artefacts, &request, args)?;
    let report = Report::of(&boot);
    let mut cpus = report.sessions().filter(|it| it.program.starts_with("CPU")).cloned();
    let (Some(first), Some(second)) = (cpus.next(), cpus.next()) else {
        return Err(Failure::new(ExitStatus::CheckFailed, "the run has no session of two CPUs"));
    };
    let both = first.events.into_iter().zip(second.events);
    let rows = both.map(|(one, other)| Row { name: one.name.clone(), cpus: [one, other] });
    Ok(Table { pmu: pmu.profile().name, rows: rows.collect() })
}

/// The bar of a program.
fn bar(
    artefacts: &Artefacts,
    program: &'static str,
    list: &[Benchmark],
    args: &Paper002Args,
) -> Result<Bar> {
    let line = format!(
        "wire -- events={} slice={SLICE_CYCLES} budget={BUDGET} {program} {}",
        VECTORS.join(","),
        args.runs
    );
    let request = Request { pmu: FIGURE_7, time_limit: TIME_LIMIT, ..Request::new(line) };
    let boot = boot(artefacts, &request, args)?;
    let Some(session) = Report::of(&boot).first else {
        return Err(Failure::new(ExitStatus::CheckFailed, "a run has no session"));
    };
    let of_list = list.iter().find(|it| it.name == program);
    let options = of_list.map(|it| it.from.options().join(" ")).unwrap_or_default();
    Ok(Bar { program, options, events: session.events })
}

/// Boots a machine, whose programs must verify their results.
fn boot(artefacts: &Artefacts, request: &Request, args: &Paper002Args) -> Result<Boot> {
    let boot = seeds::boot(artefacts, request, args.seed)?;
    if boot.outcome == Outcome::Done(0) {
        return Ok(boot);
    }
    let why = format!("{}: {}", boot.outcome, boot.transcript.text());
    Err(Failure::new(ExitStatus::MachineFailed, why))
}
