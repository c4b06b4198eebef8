//! The command line: the tasks, and their exit status.
//!
//! Used by `cargo xtask` and by `tally`, the same program installed by `cargo install --path
//! xtask`. The commands in [`LABORATORY`] are another program's, to which `cargo xtask` passes
//! them; `tally` only names it.

use std::env;

use clap::{Command, CommandFactory, Parser, Subcommand};
use tally_abi::{ExitStatus, command::Verb};
use xtask_start::{LABORATORY, laboratory_word};

use crate::{
    Failure, Result, build, check, diff, docs, events, export, image, import, lint, machine,
    output, project::Project, run, samples, sdk, setup, shell, test, trace,
};

/// Tally's tasks: set up, build, run, test.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true, version)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Fetch what is missing into .tally/: sources of core, QEMU 11.1, OVMF
    Setup,
    /// Build kernel, loader, programs and virtual PMU
    Build,
    /// Write a UEFI disk image for a USB stick; results go to the log on COM1 and on the screen
    Image(Box<image::ImageArgs>),
    /// Print the results of a machine without a serial port, from photographs of its screen
    Import(import::ImportArgs),
    /// Boot a machine, run programs on it, and print the counts
    Run(Box<run::RunArgs>),
    /// Run a program of this machine and print counts as perf stat does
    #[command(disable_help_flag = true)]
    Stat(run::VerbArgs),
    /// Run a program of this machine and take samples as perf record does
    #[command(disable_help_flag = true)]
    Record(run::VerbArgs),
    /// Compare two runs with each other: what differs by more than the intervals allow
    Diff(diff::DiffArgs),
    /// Compare two reports of `run --check`: what is right in one and not in the other
    CheckDiff(check::diff::CheckDiffArgs),
    /// Print a trace file that a run wrote
    Trace(trace::TraceArgs),
    /// Print the functions with the most events in a trace's samples, as perf report
    Report(samples::report::ReportArgs),
    /// Print a line for each sample of a trace, as perf script
    Script(samples::script::ScriptArgs),
    /// Print a function's instructions with the share of events at each, as perf annotate
    Annotate(samples::annotate::AnnotateArgs),
    /// Print where the loads and stores of `record -d` went: levels, latencies, code, cache lines
    Mem(samples::memory::MemArgs),
    /// Print the cache lines that a thread writes and another accesses, as perf c2c
    C2c(samples::sharing::C2cArgs),
    /// Write a trace file in the format of another viewer: Perfetto, perf, pprof, Parquet, …
    Export(export::ExportArgs),
    /// List or search the events of a machine's processor, with the definition of each
    #[command(alias = "list")]
    Events(events::EventsArgs),
    /// Write a folder with the library: headers, archives, a Rust crate, examples
    Sdk(sdk::SdkArgs),
    /// Run all tests, including those that boot
    Test(test::TestArgs),
    /// Check formatting and lints of all crates
    Lint,
    /// Draw the diagrams of docs/diagrams, write docs/guide/c.md; renew or list measured figures
    Docs(docs::DocsArgs),
    /// Print the script by which a shell completes the commands of `tally`
    Completions(shell::CompletionsArgs),
    /// Write the manual pages of `tally`
    Man(shell::ManArgs),
}

impl Task {
    /// Returns whether the task uses the sources, or files that are fetched or built next to them.
    fn needs_checkout(&self) -> bool {
        !matches!(
            self,
            Task::Diff(_)
                | Task::CheckDiff(_)
                | Task::Import(_)
                | Task::Trace(_)
                | Task::Report(_)
                | Task::Script(_)
                | Task::Annotate(_)
                | Task::Mem(_)
                | Task::C2c(_)
                | Task::Export(_)
                | Task::Events(_)
                | Task::Completions(_)
                | Task::Man(_)
        )
    }
}

/// The commands by what they are for, in the order of the help.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["run", "stat", "record"]),
    ("Look", &["report", "annotate", "mem", "c2c", "script", "export", "trace", "diff"]),
    ("Events", &["events"]),
    ("Hardware", &["image", "import", "check-diff"]),
    ("Develop", &["sdk", "setup", "build", "test", "lint", "docs", "completions", "man", "help"]),
];

/// The command with its commands in groups in the help, and those of the laboratory at the end.
fn grouped(mut command: Command) -> Command {
    command.build();
    let mut text = String::new();
    for (group, names) in GROUPS {
        text += &format!("{group}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            text += &format!("  {name:<12} {}\n", about.cloned().unwrap_or_default());
        }
        text.push('\n');
    }
    text += &format!("The laboratory, with cargo xtask only: {}", LABORATORY.join(", "));
    let template = "{about}\n\n{usage-heading} {usage}\n\n{after-help}\n\nOptions:\n{options}\n";
    Cli::command().after_help(text).help_template(template)
}

/// Parses the command line and runs the task; returns the exit status.
pub fn main() -> u8 {
    match laboratory_word(env::args()) {
        Some(word) => {
            let why = format!("{word} is a command of the laboratory: use cargo xtask {word}");
            status(Err(Failure::new(ExitStatus::Usage, why)))
        }
        None => {
            run_command(grouped(Cli::command()), output::typed(), |cli: &Cli| dispatch(&cli.task))
        }
    }
}

/// Parses the words that started this program, whose command is `name`, and runs `dispatch` with
/// them. Prints the reason of a failure; returns the exit status.
pub fn run<C: Parser>(name: &'static str, dispatch: impl FnOnce(&C) -> Result<u8>) -> u8 {
    run_command(C::command(), name, dispatch)
}

fn run_command<C: Parser>(
    command: Command,
    name: &'static str,
    dispatch: impl FnOnce(&C) -> Result<u8>,
) -> u8 {
    let command = command.name(name).bin_name(name);
    match command.try_get_matches().and_then(|words| C::from_arg_matches(&words)) {
        Ok(parsed) => status(dispatch(&parsed)),
        Err(error) => {
            // If standard error cannot be written, the exit status remains.
            let error = run::with_verbs(machine::with_processor(error));
            let _ = error.print();
            if error.use_stderr() { ExitStatus::Usage.into() } else { 0 }
        }
    }
}

/// The exit status of a task. Prints the reason of its failure.
fn status(result: Result<u8>) -> u8 {
    result.unwrap_or_else(|failure| {
        output::error(format_args!("xtask: {failure}"));
        failure.status.into()
    })
}

/// Returns whether `tally` accepts these words.
pub fn accepts<'a>(words: impl IntoIterator<Item = &'a str>) -> bool {
    Cli::try_parse_from(["cargo xtask"].into_iter().chain(words)).is_ok()
}

fn dispatch(task: &Task) -> Result<u8> {
    let project = Project::here();
    if task.needs_checkout() {
        project.check()?;
    }
    match task {
        Task::Setup => setup::main(&project),
        Task::Build => build::main(&project),
        Task::Image(args) => image::main(&project, args),
        Task::Import(args) => import::main(args),
        Task::Run(args) => run::main(&project, args),
        Task::Stat(args) => run::of_verb(&project, Verb::Stat, args),
        Task::Record(args) => run::of_verb(&project, Verb::Record, args),
        Task::Diff(args) => diff::main(args),
        Task::CheckDiff(args) => check::diff::main(args),
        Task::Trace(args) => trace::main(args),
        Task::Report(args) => samples::report::main(args),
        Task::Script(args) => samples::script::main(args),
        Task::Annotate(args) => samples::annotate::main(args),
        Task::Mem(args) => samples::memory::main(args),
        Task::C2c(args) => samples::sharing::main(args),
        Task::Export(args) => export::main(args),
        Task::Events(args) => events::main(&project, args),
        Task::Sdk(args) => sdk::main(&project, args),
        Task::Test(args) => test::main(&project, args),
        Task::Lint => lint::main(&project),
        Task::Docs(args) => docs::main(&project, args),
        Task::Completions(args) => shell::completions(args, Cli::command()),
        Task::Man(args) => shell::man(args, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut command = Cli::command();
        command.build();
        let mut all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn an_option_of_stat_before_the_program_of_run_is_said_to_be_one() {
        let said = |words: [&str; 5]| {
            let error = Cli::try_parse_from(["cargo xtask"].into_iter().chain(words)).unwrap_err();
            run::with_verbs(error).to_string()
        };
        let events = said(["run", "-e", "cycles", "./hello", "1"]);
        assert!(
            events.contains("tip: `run` takes --events LIST; -e is an option of `"),
            "{events}"
        );
        assert!(events.contains(" stat` and `") && !events.contains("-- -e"), "{events}");
        let rate = said(["run", "-F", "99", "./hello", "1"]);
        assert!(rate.contains("tip: -F is an option of `") && rate.contains(" record`"), "{rate}");
        let threads = said(["run", "--per-thread", "./hello", "1", "2"]);
        assert!(!threads.contains("--repeat'"), "{threads}");
        for words in [["report", "-e", "cycles", "t", "1"], ["run", "-Z", "1", "2", "3"]] {
            assert!(!said(words).contains("is an option of"), "{words:?}");
        }
    }

    #[test]
    fn help_is_not_an_error_and_bad_options_are() {
        assert!(!Cli::try_parse_from(["cargo xtask", "run", "--help"]).unwrap_err().use_stderr());
        for bad in [["run", "--pmu", "arm"], ["run", "--cpus", "0"], ["run", "--cpus", "1025"]] {
            let line = ["cargo xtask"].into_iter().chain(bad);
            assert!(Cli::try_parse_from(line).unwrap_err().use_stderr());
        }
    }
}
