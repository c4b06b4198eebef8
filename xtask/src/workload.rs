//! The work of a machine: its jobs, their files, and the kernel's records. These are the options
//! that `cargo xtask run` and `cargo xtask image` share.

mod inputs;
mod list;
mod stdin;
mod tracing;

use std::path::PathBuf;

use clap::Args;
use tally_abi::{ExitStatus, boot::LogLevel, branches::BranchFilter};
use tally_vpmu::VirtualPmu;

use self::{
    list::{JobPrograms, read},
    stdin::Input,
    tracing::TracingArgs,
};
use crate::{
    Failure, Result,
    explain::{self, Asked},
    guest_files::GuestFile,
    halts::HaltArgs,
    job::{Job, counts_by_default, level},
    phases::PhaseArgs,
    program_words,
    stat_files::StatFile,
};

/// The work of a machine.
#[derive(Args, Clone, Debug)]
pub struct Workload {
    #[command(flatten)]
    pub(crate) job: Job,
    #[command(flatten)]
    pub(crate) phases: PhaseArgs,
    #[command(flatten)]
    pub(crate) halts: HaltArgs,
    #[command(flatten)]
    tracing: TracingArgs,
    /// The lowest level of messages in the kernel's log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log: LogLevel,
    /// Put a file or folder of this machine into the ramdisk, at the same relative path, or at
    /// another: a program's input, or a library that it loads later
    #[arg(long, value_name = "PATH|HOST:GUEST")]
    file: Vec<String>,
    /// The standard input of the programs: a file or pipe, or `-` for this command's own input,
    /// which is taken without the option if it is a file, or a pipe that has text within a second
    #[arg(long, conflicts_with = "check", value_name = "PATH")]
    stdin: Option<PathBuf>,
    /// Date at which the machine starts, in seconds since 1970 [default: 2026-01-01]
    #[arg(long, value_name = "SECONDS")]
    date: Option<u64>,
    /// Run the jobs of this file, one after another in one boot: a line has the options of a job,
    /// and programs behind `--`, as on this command line
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["program", "command", "events", "slice", "budget", "shares", "env",
                                "phases", "check"])]
    pub jobs: Option<PathBuf>,
    /// A program of this machine or of the ramdisk, in place of --program, and its arguments.
    /// `stat -e EVENTS PROGRAM ARGUMENTS` counts as perf stat does. `--` separates programs that
    /// run at the same time
    #[arg(trailing_var_arg = true, value_name = "PROGRAM ARGUMENTS",
          conflicts_with_all = ["program", "check"])]
    command: Vec<String>,
    /// The jobs, once they are read, or once their programs are found.
    #[arg(skip)]
    known: Option<Vec<JobPrograms>>,
    /// Files that programs need and that were not given, once the jobs are read.
    #[arg(skip)]
    implied: Vec<GuestFile>,
    /// The standard input, once it is read.
    #[arg(skip)]
    input: Option<Input>,
}

impl Workload {
    /// The jobs, one after another: of `--jobs`, or the one of the command line.
    ///
    /// # Errors
    /// The file of `--jobs` cannot be read, or has a line that is no job.
    fn all(&self) -> Result<Vec<JobPrograms>> {
        match (&self.known, &self.jobs) {
            // The options may have been changed since.
            (Some(known), None) => {
                let job = |one: &JobPrograms| JobPrograms { job: self.job.clone(), ..one.clone() };
                Ok(known.iter().map(job).collect())
            }
            (Some(known), Some(_)) => Ok(known.clone()),
            (None, Some(path)) => read(path, &self.job),
            (None, None) => {
                let programs = program_words::programs(&self.command);
                Ok(vec![JobPrograms { place: String::new(), job: self.job.clone(), programs }])
            }
        }
    }

    /// Replaces the job of the command line by another.
    pub fn with_job(&self, job: Job) -> Workload {
        Workload { job, ..self.clone() }
    }

    /// The virtual PMU's options, with the counter unit if a job counts with it, and the pipeline
    /// that knows the cycles of each branch if a program records branches.
    pub fn vpmu(&self, given: &[String]) -> Vec<String> {
        let jobs = self.known.iter().flatten().map(|one| &one.job);
        let has_unit = jobs.chain([&self.job]).any(|job| job.unit);
        let all = self.all().unwrap_or_default();
        let mut branches = all.iter().flat_map(|one| &one.programs).map(|words| {
            let asked = program_words::branches(words);
            !asked.is_empty() && !asked.has(BranchFilter::STACK)
        });
        let needs = [("unit=", "yes", has_unit), ("pipeline=", "ooo", branches.any(|it| it))];
        let is_given = |name: &str| given.iter().any(|option| option.starts_with(name));
        let added = needs.iter().filter(|(name, _, needed)| *needed && !is_given(name));
        let added = added.map(|(name, value, _)| format!("{name}{value}"));
        given.iter().cloned().chain(added).collect()
    }

    /// Reads the file of `--jobs` and the standard input, which may be pipes, and finds the files
    /// that the programs need.
    ///
    /// # Errors
    /// As [`Self::all`] and [`Self::files`]; the input cannot be read; or a library of a program is
    /// missing.
    pub fn read(&self) -> Result<Workload> {
        let (mut jobs, mut implied) = (self.all()?, Vec::new());
        let input = if self.job.check { None } else { Input::of(self.stdin.as_deref())? };
        let given = inputs::files(&self.file, input.as_ref())?.0;
        for one in &mut jobs {
            let more = inputs::implied(&given, &mut one.programs, &mut one.job);
            implied.extend(more.map_err(|why| one.at_its_place(why))?);
        }
        implied.sort();
        implied.dedup();
        let job = if self.jobs.is_some() { &self.job } else { &jobs[0].job };
        let (job, known) = (job.clone(), self.jobs.as_ref().map(|_| jobs));
        Ok(Workload { job, known, implied, input, ..self.clone() })
    }

    /// The options that the programs need to run as they do, as they are typed.
    pub(crate) fn needs(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let input = self.stdin.as_ref().map(|path| path.to_string_lossy().into_owned());
        let lists = [("--file", &self.file), ("--env", &self.job.env)];
        let all = lists.into_iter().flat_map(|(name, list)| list.iter().map(move |it| (name, it)));
        for (name, value) in all.chain(input.iter().map(|path| ("--stdin", path))) {
            words.extend([name.to_owned(), value.clone()]);
        }
        if self.job.jit {
            words.push("--jit".to_owned());
        }
        if self.job.cpus != 1 {
            words.extend(["--cpus".to_owned(), self.job.cpus.to_string()]);
        }
        words
    }

    /// The files of `stat -o FILE`.
    pub fn stat_files(&self) -> Vec<StatFile> {
        let programs = self.all().unwrap_or_default().into_iter().flat_map(|one| one.programs);
        StatFile::all(&programs.collect::<Vec<_>>())
    }

    /// The files that the programs need and that were not given.
    pub fn implied(&self) -> &[GuestFile] {
        &self.implied
    }

    /// Adds the paths of the programs on the machine.
    ///
    /// # Errors
    /// A program is missing or is not an x86-64 ELF file.
    pub fn located(&self) -> Result<Workload> {
        let (files, mut jobs) = (self.files()?, self.all()?);
        for one in &mut jobs {
            inputs::locate(&files, &mut one.programs, &mut one.job)
                .map_err(|why| one.at_its_place(why))?;
        }
        let job = if self.jobs.is_some() { &self.job } else { &jobs[0].job };
        Ok(Workload { job: job.clone(), known: Some(jobs), ..self.clone() })
    }

    /// The programs after `--`, each with its arguments; empty with `--jobs`.
    pub fn programs(&self) -> Vec<Vec<String>> {
        let all = if self.jobs.is_some() { Ok(Vec::new()) } else { self.all() };
        all.unwrap_or_default().into_iter().flat_map(|one| one.programs).collect()
    }

    /// Returns whether there is one program, which is counted by default: that of a command line
    /// without options, or one that is not Tally's own.
    pub fn is_counted_by_default(&self) -> bool {
        match self.programs().as_slice() {
            [] => self.job.program == Job::default().program,
            [words] => counts_by_default(words),
            _ => false,
        }
    }

    /// The first program after `--` with its arguments; empty without one.
    pub fn first(&self) -> Vec<String> {
        self.programs().into_iter().next().unwrap_or_default()
    }

    /// The files that the machine gets.
    ///
    /// # Errors
    /// A file is missing, or has no path on the machine.
    pub fn files(&self) -> Result<Vec<GuestFile>> {
        let given = inputs::files(&self.file, self.input.as_ref())?.0;
        Ok(given.into_iter().chain(self.implied.iter().cloned()).collect())
    }

    /// Checks the options before anything is built, for a machine with this memory in MiB.
    ///
    /// # Errors
    /// An option is not valid.
    pub fn check(&self, memory_mib: Option<u64>) -> Result<()> {
        for one in self.all()? {
            one.job.check().map_err(|why| one.at_its_place(why))?;
        }
        self.halts.check(self.job.overflows)?;
        if let Some(why) = self.tracing.error() {
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        if self.phases.config()?.is_some() && self.programs().is_empty() {
            let why = "--phases tracks a program behind `--`, as in `--phases -- PROGRAM`";
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        inputs::check(&self.files()?, memory_mib)
    }

    /// Checks the events as the kernel will on a machine with this PMU, if the command line names
    /// them; `is_virtual` says whether the machine has the virtual one, which models some events.
    ///
    /// # Errors
    /// Events or options of their session are refused.
    pub fn check_events(&self, pmu: &VirtualPmu, is_virtual: bool) -> Result<()> {
        for one in self.all()? {
            let of_job = one.programs.is_empty().then(Vec::new);
            for words in one.programs.iter().cloned().chain(of_job) {
                check_events(&one.job, &words, (pmu, is_virtual))
                    .map_err(|why| one.at_its_place(why))?;
            }
        }
        Ok(())
    }

    /// The kernel's command line, with `options`, and with the options of traces if `is_trace`.
    ///
    /// # Errors
    /// A word is not possible on it, `stat` or `record` refuses its arguments, or an option would
    /// have no effect.
    pub fn command_line(&self, options: &str, is_trace: bool) -> Result<String> {
        let stdin = inputs::files(&self.file, self.input.as_ref())?.1;
        let mut line = self.job.options(&format!("{options}{}", self.options(is_trace)));
        for (index, one) in self.all()?.into_iter().enumerate() {
            let default = self.job.default.clone();
            let job = Job { stdin: stdin.clone(), default, ..one.job.clone() };
            let words = job.words(&one.programs).map_err(|why| one.at_its_place(why))?;
            line += if index == 0 { " --" } else { " ---" };
            line += words.strip_prefix(" --").unwrap_or(&words);
        }
        Ok(line)
    }

    /// The kernel's options, each after a blank.
    fn options(&self, is_trace: bool) -> String {
        let mut options = String::new();
        if self.log != LogLevel::default() {
            options += &format!(" log={}", self.log.name());
        }
        if let Some(seconds) = self.date {
            options += &format!(" date={seconds}");
        }
        if is_trace {
            options += &self.tracing.options();
        }
        options + &self.halts.options()
    }
}

/// Checks that the processor has records of these branches.
fn check_branches(pmu: &VirtualPmu, asked: BranchFilter) -> Result<()> {
    let (profile, name) = (pmu.profile(), pmu.profile().name);
    let every = || BranchFilter::every(profile.has_call_stack());
    let filters = profile.has_branch_records().then(every).unwrap_or_default();
    if asked.is_within(filters) {
        return Ok(());
    }
    let why = if filters.is_empty() {
        format!(
            "record -b and -j: {name} records no branches; --pmu intel, sapphire-rapids and amd do"
        )
    } else {
        format!(
            "record --call-graph lbr: {name} records no stack of calls; --pmu intel and \
             sapphire-rapids do, and record -g copies the stack on each"
        )
    };
    Err(Failure::new(tally_abi::Error::EventNotSupported.exit_status(), why))
}

/// Checks the events of a job, or of a program after `--`.
fn check_events(job: &Job, words: &[String], (pmu, is_virtual): (&VirtualPmu, bool)) -> Result<()> {
    let is_known = job.events.is_some() || job.default.is_some() && counts_by_default(words);
    if !is_known && program_words::tally(words).is_none() {
        return Ok(());
    }
    let asked = Asked::of(job, words, pmu.profile().signature)?;
    if is_virtual {
        check_branches(pmu, program_words::branches(words))?;
    }
    // `stat` may be asked only for values that need no counters.
    match is_virtual {
        _ if asked.events.is_empty() => Ok(()),
        true => explain::check(pmu, &asked),
        false => explain::plan_of(pmu, &asked).map(drop),
    }
}

#[cfg(test)]
mod tests;
