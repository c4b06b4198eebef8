//! The command line of the laboratory: commands that `cargo xtask` passes to this program.

use clap::{Parser, Subcommand};
use xtask::{Result, cli, project::Project};

use crate::{bench, compare, fuzz, linux, study, vpmu_check};

/// The command by which users start this program.
const TYPED: &str = "cargo xtask";

/// Tally's laboratory: study, compare, fuzz, measure.
#[derive(Debug, Parser)]
#[command(name = TYPED, bin_name = TYPED, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Compare estimates with the truth, over runs or synthetic streams; programs with Linux
    Study(study::StudyArgs),
    /// Count a program's events under Tally and under Linux with perf, both beside the truth
    Compare(compare::CompareArgs),
    /// Run a command under an unmodified Linux with perf on the virtual PMU
    Linux(linux::LinuxArgs),
    /// Check every rule of the virtual PMU, one line per check
    VpmuCheck(vpmu_check::CheckArgs),
    /// Make random system calls from many programs at the same time
    Fuzz(fuzz::FuzzArgs),
    /// Measure speeds: virtual PMU, engine, trace ring, group switch
    Bench(bench::BenchArgs),
}

/// Parses the command line and runs the task; returns the exit status.
pub fn main() -> u8 {
    cli::run(TYPED, |cli: &Cli| dispatch(&cli.task))
}

/// Returns whether the laboratory accepts these words.
pub fn accepts<'a>(words: impl IntoIterator<Item = &'a str>) -> bool {
    Cli::try_parse_from([TYPED].into_iter().chain(words)).is_ok()
}

fn dispatch(task: &Task) -> Result<u8> {
    let project = Project::here();
    project.check()?;
    match task {
        Task::Study(args) => study::main(&project, args),
        Task::Compare(args) => compare::main(&project, args),
        Task::Linux(args) => linux::main(&project, args),
        Task::VpmuCheck(args) => vpmu_check::main(&project, args),
        Task::Fuzz(args) => fuzz::main(&project, args),
        Task::Bench(args) => bench::main(&project, args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use xtask_start::LABORATORY;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_launcher_knows_the_commands() {
        let command = Cli::command();
        let names: Vec<&str> = command.get_subcommands().map(|of| of.get_name()).collect();
        assert_eq!(names, LABORATORY);
    }
}
