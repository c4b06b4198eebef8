//! The file of `--jobs`: a job in each line.

use std::path::Path;

use clap::{Args, FromArgMatches, parser::ValueSource};
use tally_abi::ExitStatus;

use crate::{Failure, Result, job::Job, program_words, project};

/// Options of a job that belong to the whole machine.
const OF_THE_MACHINE: [&str; 5] = ["seed", "cpus", "paranoid", "overflows", "left_on"];

/// A line.
#[derive(Args, Debug)]
struct Line {
    #[command(flatten)]
    job: Job,
    #[arg(trailing_var_arg = true, conflicts_with = "program")]
    command: Vec<String>,
}

/// A job, and its programs after `--`, each with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JobPrograms {
    /// Place in the file of `--jobs`, for messages; empty without a file.
    pub(super) place: String,
    pub(super) job: Job,
    pub(super) programs: Vec<Vec<String>>,
}

impl JobPrograms {
    /// Adds the place of a refused job to the message.
    pub(super) fn at_its_place(&self, why: Failure) -> Failure {
        Failure::new(why.status, format!("{}{}", self.place, why.message))
    }
}

/// Reads the jobs of a file, whose other options are those of `machine`.
///
/// # Errors
/// The file cannot be read, has no job, or a line is no job.
pub(super) fn read(path: &Path, machine: &Job) -> Result<Vec<JobPrograms>> {
    let text = String::from_utf8_lossy(&project::read(path)?).into_owned();
    let is_job = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    let lines = text.lines().map(str::trim).enumerate().filter(is_job);
    let jobs = lines.map(|(index, line)| {
        let place = format!("{}:{}: ", path.display(), index + 1);
        let refused = |why| Failure::new(ExitStatus::Usage, format!("{place}{why}"));
        let (job, programs) = parse(line, machine).map_err(refused)?;
        Ok(JobPrograms { place, job, programs })
    });
    let jobs: Vec<JobPrograms> = jobs.collect::<Result<_>>()?;
    if jobs.is_empty() {
        let why = format!("{}: no job: write one in each line", path.display());
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    Ok(jobs)
}

/// Parses a job and its programs; the error is the reason why a line is no job.
fn parse(line: &str, machine: &Job) -> std::result::Result<(Job, Vec<Vec<String>>), String> {
    let words = shlex::split(line).ok_or("a quotation mark is missing")?;
    let command = Line::augment_args(clap::Command::new("job").no_binary_name(true));
    let parsed = command.disable_help_flag(true).try_get_matches_from(words);
    // The first line of clap's text has the error; the others are help.
    let reason = |error: clap::Error| {
        let text = error.to_string();
        let text = text.lines().next().unwrap_or_default();
        text.strip_prefix("error: ").unwrap_or(text).to_owned()
    };
    let mut parsed = parsed.map_err(reason)?;
    let given = |id: &&str| parsed.value_source(id) == Some(ValueSource::CommandLine);
    if let Some(id) = OF_THE_MACHINE.iter().find(|id| given(id)) {
        return Err(format!("--{id} is one of the whole machine: give it beside --jobs"));
    }
    let Line { job, command } = Line::from_arg_matches_mut(&mut parsed).map_err(reason)?;
    let &Job { seed, cpus, paranoid, overflows, left_on, .. } = machine;
    Ok((Job { seed, cpus, paranoid, overflows, left_on, ..job }, program_words::programs(&command)))
}
