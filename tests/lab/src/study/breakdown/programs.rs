//! The programs of the study: those of `tests/benchmarks` that judge and tune, and others, with
//! which no parameter was chosen.

use std::path::PathBuf;

use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    build::programs::{
        self, Symbols,
        benchmarks::{self, Benchmark, Role},
        list::List,
    },
    project::Project,
};

/// Programs of `tests/programs/list.toml`, named before the study first ran them.
const OTHERS: [&str; 14] = [
    "bash-static",
    "zsh-static",
    "goawk",
    "gofmt",
    "goroutines",
    "pi",
    "luajit",
    "gc",
    "fft",
    "iostreams",
    "rust",
    "zstd",
    "b3sum",
    "redb",
];

/// A program to run.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) command: String,
}

/// Checks the names that are of no benchmark.
fn check_others(all: &[Benchmark], others: &[String], symbols: Symbols) -> Result<()> {
    if let Some(unknown) = others.iter().find(|name| !OTHERS.contains(&name.as_str())) {
        let known = all.iter().map(|it| &*it.name).chain(OTHERS).collect::<Vec<_>>().join(", ");
        let why = format!("no program is named {unknown}: use one of {known}");
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    if symbols == Symbols::Yes
        && let Some(without) = others.first()
    {
        let why = format!(
            "--by-function: {without} has no symbols here: use a program of \
             tests/benchmarks/list.toml"
        );
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    Ok(())
}

/// Makes the programs of these names, or all of the study; returns them and their files.
///
/// # Errors
/// No list has a program of a name, a package cannot be fetched, or a program does not build.
pub(super) fn make(
    project: &Project,
    names: &[String],
    instructions: u64,
    symbols: Symbols,
) -> Result<(Vec<Program>, Vec<PathBuf>)> {
    let (all, list) = (Benchmark::all(project)?, List::read(project)?);
    let is_benchmark = |name: &String| all.iter().any(|it| it.name == *name);
    let (own, mut others): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(is_benchmark);
    check_others(&all, &others, symbols)?;
    let judges = |it: &&Benchmark| it.role != Role::Paper002;
    let wanted: Vec<Benchmark> = match names {
        [] => all.iter().filter(judges).cloned().collect(),
        _ => all.iter().filter(|it| own.contains(&it.name)).cloned().collect(),
    };
    if names.is_empty() && symbols == Symbols::No {
        others = OTHERS.map(str::to_owned).to_vec();
    }
    let mut files = Vec::new();
    if !wanted.is_empty() {
        files.extend(benchmarks::make_with(project, &all, &wanted, symbols)?);
    }
    let mut made: Vec<Program> = wanted
        .iter()
        .map(|it| Program { name: it.name.clone(), command: it.command(instructions).join(" ") })
        .collect();
    if !others.is_empty() {
        let list = list.only(&others);
        files.extend(programs::make(project, &list, false)?);
        let run = |it: &programs::list::Listed| {
            Some(Program { name: it.name.clone(), command: it.run.first()?.join(" ") })
        };
        made.extend(list.wanted(false).filter_map(run));
    }
    files.sort();
    files.dedup();
    Ok((made, files))
}
