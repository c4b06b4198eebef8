//! `cargo xtask study programs`: runs the programs of the list under Tally and on the build machine
//! and compares output, files and statuses.

mod comparison;
mod here;
mod host;

use std::{fmt::Write as _, time::Duration};

use clap::Args;
use serde::Serialize;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    build::programs::{
        self,
        list::{List, Listed},
    },
    machine::{Artefacts, Pmu},
    output,
    project::Project,
};

pub use comparison::{Comparison, Difference, compare};
pub(super) use comparison::{command_line, failure_of, there};
pub(super) use here::Ended;

use super::seeds;

/// The profiles of the machines, one of each vendor.
pub(super) const PMUS: [(Pmu, &str); 2] = [(Pmu::Intel, "intel"), (Pmu::Amd, "amd")];

/// Options of `cargo xtask study programs`.
#[derive(Args, Clone, Debug)]
pub struct ProgramsArgs {
    /// Run only the programs of these names
    names: Vec<String>,
    /// Stop each machine after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// Result of a program on one machine.
#[derive(Clone, Debug, Serialize)]
struct Verdict {
    program: String,
    about: String,
    pmu: &'static str,
    same_output: bool,
    same_files: bool,
    same_status: bool,
    /// Differences, each as a line.
    differences: Vec<String>,
    /// System calls that the kernel refused.
    refused_calls: Vec<String>,
}

impl Verdict {
    fn of(program: &Listed, pmu: &'static str, comparison: &Comparison) -> Verdict {
        let has = |wanted: fn(&Difference) -> bool| comparison.differences.iter().any(wanted);
        // A machine that fails leaves nothing to compare.
        let failed = has(|difference| matches!(difference, Difference::Machine(_)));
        Verdict {
            program: program.name.clone(),
            about: program.about.clone(),
            pmu,
            same_output: !failed && !has(|other| matches!(other, Difference::Output(_))),
            same_files: !failed && !has(|other| matches!(other, Difference::Files(_))),
            same_status: !failed && !has(|other| matches!(other, Difference::Status(_))),
            differences: comparison.differences.iter().map(ToString::to_string).collect(),
            refused_calls: comparison.refused_calls.clone(),
        }
    }

    fn is_same(&self) -> bool {
        self.same_output && self.same_files && self.same_status
    }
}

/// A program that is not run.
#[derive(Clone, Debug, Serialize)]
struct NotRun {
    program: String,
    about: String,
    reason: String,
}

/// The study's result.
#[derive(Clone, Debug, Serialize)]
struct Study {
    /// Number of programs that were run.
    programs: usize,
    /// Number of programs with the same output, files and status on every machine.
    same: usize,
    runs: Vec<Verdict>,
    not_run: Vec<NotRun>,
}

pub(super) fn main(project: &Project, args: &ProgramsArgs) -> Result<u8> {
    let list = selected(List::read(project)?, &args.names)?;
    let made = programs::make(project, &list, false)?;
    let artefacts = Artefacts { on_demand: made, ..Artefacts::make(project)? };
    let wanted: Vec<&Listed> = list.wanted(false).filter(|program| host::has(program)).collect();
    let machines: Vec<(&Listed, Pmu, &'static str)> =
        wanted.iter().flat_map(|program| PMUS.map(|(pmu, name)| (*program, pmu, name))).collect();
    let limit = Duration::from_secs(args.time_limit);
    let runs = match machines.len() as u64 {
        0 => Vec::new(),
        count => seeds::in_parallel("machines", 1..=count, |number| {
            let (program, pmu, name) = machines[number as usize - 1];
            let compared = compare(&artefacts, &list.environment, &[program], pmu, limit)?;
            Ok(Verdict::of(program, name, &compared))
        })?,
    };
    let study = summarize(&list, runs);
    output::print(args.json, &study, &render(&study))?;
    let holds = study.same == study.programs;
    Ok(if holds { 0 } else { ExitStatus::CheckFailed.into() })
}

/// The list with the programs of these names, or with all.
fn selected(list: List, names: &[String]) -> Result<List> {
    let is_known = |name: &&String| list.programs.iter().any(|program| program.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = list.programs.iter().map(|it| it.name.as_str()).collect();
        let why = format!("the list has no program {unknown}: name one of {}", known.join(", "));
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    Ok(list.only(names))
}

fn summarize(list: &List, runs: Vec<Verdict>) -> Study {
    let wanted: Vec<&Listed> = list.wanted(false).filter(|program| host::has(program)).collect();
    let is_same = |program: &&&Listed| {
        runs.iter().filter(|run| run.program == program.name).all(Verdict::is_same)
    };
    let not_run = list.programs.iter().filter_map(|program| {
        let (name, about) = (program.name.clone(), program.about.clone());
        let absent = || (!host::has(program)).then(|| "this machine does not have it".to_owned());
        let reason = program.differs.clone().or_else(absent)?;
        Some(NotRun { program: name, about, reason })
    });
    Study {
        programs: wanted.len(),
        same: wanted.iter().filter(is_same).count(),
        not_run: not_run.collect(),
        runs,
    }
}

/// The name of a program without the folders of the build machine.
fn short(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn render(study: &Study) -> String {
    let mut text = format!("{:<22} {:<6} output files  status\n", "program", "PMU");
    let word = |is_same: bool| if is_same { "same" } else { "DIFFER" };
    for run in &study.runs {
        let words = [run.same_output, run.same_files, run.same_status].map(word);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<22} {:<6} {:<6} {:<6} {}",
            short(&run.program),
            run.pmu,
            words[0],
            words[1],
            words[2]
        );
        for line in &run.differences {
            let _ = writeln!(text, "    {line}");
        }
    }
    for NotRun { program, reason, .. } in &study.not_run {
        let program = short(program);
        let _ = writeln!(text, "{program:<22} not run: {reason}");
    }
    let Study { programs, same, .. } = study;
    let _ = writeln!(text, "{same} of {programs} programs do the same as on this machine");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(differences: Vec<Difference>) -> Study {
        let list = List::read(&Project::here()).unwrap().only(&["lua".into()]);
        let program = &list.programs[0];
        let comparison = Comparison { differences, refused_calls: Vec::new() };
        let same = Comparison { differences: Vec::new(), refused_calls: Vec::new() };
        let runs =
            vec![Verdict::of(program, "intel", &comparison), Verdict::of(program, "amd", &same)];
        summarize(&list, runs)
    }

    #[test]
    fn a_program_does_the_same_only_if_it_does_on_every_machine() {
        assert_eq!(study(Vec::new()).same, 1);
        let differs = study(vec![Difference::Files("x: not there".into())]);
        assert_eq!((differs.programs, differs.same), (1, 0));
        let run = &differs.runs[0];
        assert!(run.same_output && !run.same_files && run.same_status);
        assert!(render(&differs).contains("lua                    intel  same   DIFFER same\n"));
    }

    #[test]
    fn nothing_is_the_same_on_a_machine_that_fails() {
        let failed = study(vec![Difference::Machine("the kernel panicked".into())]);
        let run = &failed.runs[0];
        assert!(!run.same_output && !run.same_files && !run.same_status);
        assert_eq!(failed.same, 0);
    }
}
