//! `cargo xtask study cpi`: repeats paper 001's experiment.
//!
//! A run of each program gives the stacks of the five counter architectures and, by shadow cores
//! with perfect structures, those of both reference orders.

mod paper;
mod picture;
mod programs;
mod render;
mod results;
mod stack;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use tally_abi::{ExitStatus, truth::RegionKind, words::escape};
use xtask::{
    Failure, Result,
    build::programs::{self as built, list::List},
    machine::{Artefacts, Pmu, Request},
    output,
    project::{self, Project},
};

use self::{
    programs::Program,
    results::{CpiStudy, ProgramResult},
    stack::{Counted, shadows},
};
use super::seeds;

/// The tag of the truth's region of a whole program.
const REGION: u32 = 3;
/// Default of `--time-limit` in seconds: a program on twelve cores at once takes minutes.
const TIME_LIMIT_S: u64 = 1_500;

/// Options of `cargo xtask study cpi`.
#[derive(Args, Clone, Debug)]
pub(super) struct CpiArgs {
    /// Run only the programs of these names; tests/programs/cpi.toml has them
    names: Vec<String>,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// Stop each machine after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = TIME_LIMIT_S,
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// Write a picture of the stacks to this file, in SVG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn main(project: &Project, args: &CpiArgs) -> Result<u8> {
    let programs = programs::read(project, &args.names)?;
    let list = List::read(project)?;
    // Everything that boot tests need is built, so that the packages are the same.
    let is_built = programs.iter().any(|program| program.from.is_some());
    let on_demand = if is_built { built::make(project, &list, true)? } else { Vec::new() };
    let artefacts = Artefacts { on_demand, ..Artefacts::make(project)? };
    let results = seeds::in_parallel("programs", 1..=programs.len() as u64, |number| {
        let program = &programs[number as usize - 1];
        ProgramResult::of(program, &run(&artefacts, args, &list.environment, program)?)
    })?;
    let study = CpiStudy::of(args.pmu, results);
    if let Some(path) = &args.picture {
        project::write(path, picture::draw(&study.programs)?.as_bytes())?;
    }
    output::print(args.json, &study, &render::render(&study))?;
    Ok(0)
}

/// Runs a program on a machine with all cores.
fn run(
    artefacts: &Artefacts,
    args: &CpiArgs,
    environment: &[String],
    program: &Program,
) -> Result<Counted> {
    let mut line = format!("seed=1 wire -- region={REGION}");
    environment.iter().for_each(|variable| line += &format!(" env={}", escape(variable)));
    program.run.iter().for_each(|word| line += &format!(" {}", escape(word)));
    let vpmu = ["pipeline=ooo", "stacks=yes", &shadows()].map(str::to_owned).to_vec();
    let time_limit = Duration::from_secs(args.time_limit);
    let request = Request { pmu: args.pmu, vpmu, time_limit, ..Request::new(line) };
    let boot = seeds::boot(artefacts, &request, 1)?;
    let missing = || {
        let why = format!("the run of {} has no truth of its region", program.name);
        Failure::new(ExitStatus::CheckFailed, why)
    };
    let truth = boot.truth.as_ref().ok_or_else(missing)?;
    let own = truth.region(RegionKind::Marked, REGION).ok_or_else(missing)?;
    let shadows = truth
        .shadows
        .iter()
        .map(|shadow| Some((&*shadow.perfect, shadow.region(RegionKind::Marked, REGION)?)));
    Counted::of(own, &shadows.collect::<Option<Vec<_>>>().ok_or_else(missing)?)
}

#[cfg(test)]
mod tests {
    use super::{
        results::tests::result,
        stack::{METHODS, Method},
        *,
    };

    #[test]
    fn the_text_has_every_architecture_and_the_targets() {
        let text = render::render(&CpiStudy::of(Pmu::Intel, vec![result()]));
        for Method { name, .. } in METHODS {
            assert!(text.contains(name), "{name}: {text}");
        }
        assert!(text.contains("FMT               120.0"), "{text}");
        assert!(text.contains("reached") && !text.contains("MISSED"), "{text}");
    }
}
