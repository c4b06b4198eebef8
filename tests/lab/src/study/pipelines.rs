//! `cargo xtask study pipelines`: the difference between the cycles of pipeline `interval` and
//! those of `ooo`.
//!
//! Each program runs on both pipelines of both vendors, with the same seed and without a session,
//! so that only time differs.

mod render;
mod results;

use std::time::Duration;

use clap::Args;
use tally_abi::{ExitStatus, truth::RegionKind, words::escape};
use xtask::{
    Failure, Result,
    build::programs::benchmarks::{self, Benchmark, Kind, Role},
    guest_files::GuestFile,
    machine::{Artefacts, Pmu, Request},
    output,
    project::Project,
};

use self::results::{Cycles, PipelinesStudy, Program, Row};
use super::{named, programs::PMUS, seeds};

/// The tag of the truth's region of a whole program.
const REGION: u32 = 3;
/// Time limit of a machine: others may run at the same time.
const TIME_LIMIT: Duration = Duration::from_secs(1_800);
/// Tally's own programs, with which pipeline `interval` may be tuned.
const OWN: [(&str, &str); 2] = [("deflate", "deflate --level 1"), ("rounds", "rounds 1 100000")];

/// Options of `cargo xtask study pipelines`.
#[derive(Args, Clone, Debug)]
pub(super) struct PipelinesArgs {
    /// Run only the programs of these names: deflate, rounds, and those of
    /// tests/benchmarks/list.toml
    names: Vec<String>,
    /// Instructions of each program of the list, about
    #[arg(long, value_name = "N", default_value_t = 40_000_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    instructions: u64,
    /// Seed of every machine
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn main(project: &Project, args: &PipelinesArgs) -> Result<u8> {
    let all = Benchmark::all(project)?;
    let programs = selected(&all, args)?;
    let is_wanted = |it: &&Benchmark| programs.iter().any(|program| program.name == it.name);
    let wanted: Vec<Benchmark> = all.iter().filter(is_wanted).cloned().collect();
    let files = match &*wanted {
        [] => Vec::new(),
        wanted => benchmarks::make(project, &all, wanted)?,
    };
    let artefacts = Artefacts::make_for_run(project, &GuestFile::by_names(&files))?;
    let pairs: Vec<(&Program, Pmu)> =
        programs.iter().flat_map(|program| PMUS.map(|(pmu, _)| (program, pmu))).collect();
    let rows = seeds::in_parallel("pairs of machines", 0..=pairs.len() as u64 - 1, |number| {
        let (program, pmu) = pairs[number as usize];
        let of = |pipeline| run(&artefacts, args.seed, program, pmu, pipeline);
        let profile = pmu.profile().name;
        Row::of(program, profile, of("interval")?, of("ooo")?)
    })?;
    let study = PipelinesStudy::of(rows);
    output::print(args.json, &study, &render::render(&study))?;
    Ok(if study.holds { 0 } else { ExitStatus::CheckFailed.into() })
}

/// Tally's own programs and the list's; only the named ones, if there are names.
fn selected(all: &[Benchmark], args: &PipelinesArgs) -> Result<Vec<Program>> {
    let own = OWN.map(|(name, command)| Program {
        name: name.to_owned(),
        kind: Kind::Integer,
        tunes: true,
        command: command.split_whitespace().map(str::to_owned).collect(),
    });
    // Programs of paper 002 have at least some hundred million instructions.
    let listed = all.iter().filter(|it| it.role != Role::Paper002).map(|it| Program {
        name: it.name.clone(),
        kind: it.kind,
        tunes: it.role == Role::Tune,
        command: it.command(args.instructions),
    });
    let mut programs: Vec<Program> = own.into_iter().chain(listed).collect();
    named::check(&programs.iter().map(|it| &*it.name).collect::<Vec<_>>(), &args.names)?;
    programs.retain(|program| args.names.is_empty() || args.names.contains(&program.name));
    // Programs that judge come last, next to their result.
    programs.sort_by_key(|program| !program.tunes);
    Ok(programs)
}

/// Runs a program on one pipeline.
fn run(
    artefacts: &Artefacts,
    seed: u64,
    program: &Program,
    pmu: Pmu,
    pipeline: &str,
) -> Result<Cycles> {
    let words: Vec<String> = program.command.iter().map(|word| escape(word).to_string()).collect();
    let line = format!("seed={seed} wire -- region={REGION} {}", words.join(" "));
    let vpmu = vec![format!("pipeline={pipeline}")];
    let request = Request { pmu, vpmu, time_limit: TIME_LIMIT, ..Request::new(line) };
    let boot = seeds::boot(artefacts, &request, seed)?;
    let region = boot.truth.as_ref().and_then(|it| it.region(RegionKind::Marked, REGION));
    let region = region.ok_or_else(|| {
        let why = format!("the run of {} has no truth of its region", program.name);
        Failure::new(ExitStatus::CheckFailed, why)
    })?;
    Cycles::of(region)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::words::parse;

    fn names(words: &str) -> Result<Vec<String>> {
        let all = Benchmark::all(&Project::here())?;
        let programs = selected(&all, &parse(words)?)?;
        Ok(programs.into_iter().map(|program| program.name).collect())
    }

    #[test]
    fn at_least_ten_programs_run_and_most_judge() {
        let all = Benchmark::all(&Project::here()).unwrap();
        let programs = selected(&all, &parse("").unwrap()).unwrap();
        assert!(programs.len() >= 10);
        let judges = programs.iter().filter(|program| !program.tunes).count();
        assert!(2 * judges > programs.len(), "{judges}");
        for kind in [Kind::Integer, Kind::Floating] {
            assert!(programs.iter().any(|it| it.tunes && it.kind == kind), "{kind:?}");
        }
    }

    #[test]
    fn programs_are_selected_by_name() {
        assert_eq!(names("gsl deflate").unwrap(), ["deflate", "gsl"]);
        let refused = names("bt").unwrap_err();
        assert_eq!(refused.status, ExitStatus::Usage);
        assert!(refused.to_string().contains("deflate, rounds, "), "{refused}");
    }
}
