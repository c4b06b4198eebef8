//! `cargo xtask run`: fetches, builds, boots, and prints the results.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, FromArgMatches};
use tally_abi::{
    ExitStatus, Shares,
    boot::{LogLevel, TraceEvents},
};
use tally_engine::Plan;

use crate::{
    Failure, Result,
    explain::{self, Asked},
    job::Job,
    machine::{self, Accel, Artefacts, Boot, Outcome, Pmu, Request, memory_mib},
    output,
    project::{self, Project},
    ramdisk,
    repeat::{self, Repeated},
    report::{Report, table},
};

/// Options of `cargo xtask run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    job: Job,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// What executes the guest's instructions
    #[arg(long, value_enum, default_value_t)]
    accel: Accel,
    /// Further options of the virtual PMU, such as series=FILE,every=1000000i (see qemu/README.md)
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    vpmu: Vec<String>,
    /// Print the plan, each event's group and counter, without a boot
    #[arg(long, conflicts_with = "trace")]
    explain: bool,
    /// Vary the slices' lengths, and print how often each event would have happened without
    /// interrupts
    #[arg(long, conflicts_with_all = ["shares", "explain", "repeat", "trace_last"])]
    unobserved: bool,
    /// Run the machine N times, with seeds from --seed on, and print one table of all runs
    #[arg(long, value_name = "N", conflicts_with_all = ["explain", "trace", "gdb"],
          value_parser = clap::value_parser!(u64).range(2..=1000))]
    repeat: Option<u64>,
    /// Print one JSON object, alone on standard output; what programs write there goes to standard
    /// error
    #[arg(long)]
    json: bool,
    /// Print nothing on standard output and error but what the programs write, or why the run
    /// failed
    #[arg(short, long, conflicts_with_all = ["explain", "gdb"])]
    quiet: bool,
    /// Write a record of every slice, threshold and sample to this file, for `cargo xtask trace`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Keep only the last 128 KiB of each CPU's trace, sent when all programs have ended
    #[arg(long, requires = "trace")]
    trace_last: bool,
    /// What to trace beside slices, thresholds and samples: syscalls, switches and signals, any of
    /// them
    #[arg(long, value_name = "KINDS", requires = "trace", value_parser = trace_events)]
    trace_events: Option<String>,
    /// The lowest level of messages in the kernel's log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log: LogLevel,
    /// Memory of the machine: MiB, or with the suffix M or G [default: 256M, more for large files]
    #[arg(long, value_name = "SIZE", value_parser = memory_mib)]
    memory: Option<u64>,
    /// Put a file of this machine into the ramdisk, under its name: a static program, or its input
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Write the files and folders that the programs created or changed into this folder, new or
    /// empty
    #[arg(long, value_name = "DIR", conflicts_with_all = ["explain", "repeat"])]
    out: Option<PathBuf>,
    /// A file of this machine that is the standard input of the programs
    #[arg(long, value_name = "PATH")]
    stdin: Option<PathBuf>,
    /// Date at which the machine starts, in seconds since 1970 [default: 2026-01-01]
    #[arg(long, value_name = "SECONDS")]
    date: Option<u64>,
    /// A program of the ramdisk and its arguments, in place of --program; --events counts its whole
    /// run. `stat -e EVENTS PROGRAM ARGUMENTS` counts as perf stat does
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "program")]
    command: Vec<String>,
    /// Stop the machine after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = machine::DEFAULT_TIME_LIMIT.as_secs(),
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// Stop the machine until gdb connects, print the gdb command, which runs to the kernel's
    /// entry, and set no time limit
    #[arg(long)]
    gdb: bool,
    /// Pass this argument to QEMU, after all others; repeatable
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    qemu_arg: Vec<String>,
}

impl RunArgs {
    /// The options of a command as pages quote it: `cargo xtask run OPTIONS`, words separated by
    /// blanks.
    ///
    /// # Errors
    /// It is another command, or has a wrong option.
    pub fn of(command: &str) -> Result<RunArgs> {
        let refused = |why: String| Failure::new(ExitStatus::Usage, format!("{command}: {why}"));
        let words = command.strip_prefix("cargo xtask ").unwrap_or_default().split(' ');
        if words.clone().next() != Some("run") {
            return Err(refused("it is no `cargo xtask run`".into()));
        }
        let parsed = RunArgs::augment_args(clap::Command::new("run")).try_get_matches_from(words);
        let parsed = parsed.and_then(|mut parsed| RunArgs::from_arg_matches_mut(&mut parsed));
        parsed.map_err(|error| refused(error.to_string()))
    }

    /// The machine for these options.
    ///
    /// # Errors
    /// An option is not valid.
    pub fn request(&self) -> Result<Request> {
        check(self)?;
        let stdin = self.stdin.as_deref().map(ramdisk::name);
        let job = Job { stdin, ..self.sampled_job() };
        let line = job.around(&options(self), &self.command)?;
        Ok(Request {
            pmu: self.pmu,
            accel: self.accel,
            cpus: self.job.cpus.into(),
            memory_mib: self.memory,
            time_limit: Duration::from_secs(self.time_limit),
            vpmu: self.vpmu.clone(),
            gdb: self.gdb.then(machine::gdb_socket),
            qemu_args: self.qemu_arg.clone(),
            ..Request::new(line)
        })
    }

    /// The job, with the shares that `--unobserved` needs.
    fn sampled_job(&self) -> Job {
        let shares = if self.unobserved { Some(Shares::Paired) } else { self.job.shares };
        Job { shares, ..self.job.clone() }
    }

    /// The plan of the job's events, if unobserved values are asked for.
    ///
    /// # Errors
    /// The list of events is unknown before the run, or refused.
    pub fn plan(&self) -> Result<Option<Plan>> {
        if !self.unobserved {
            return Ok(None);
        }
        let pmu = machine::virtual_pmu_of(self.pmu, &self.vpmu)?;
        let asked = Asked::of(&self.sampled_job(), &self.command, pmu.profile().signature)?;
        explain::plan_of(&pmu, &asked).map(Some)
    }

    /// The files that the machine gets: the programs, their files and their input.
    fn files(&self) -> Vec<PathBuf> {
        let input = self.stdin.iter().filter(|input| !self.file.contains(input));
        self.file.iter().chain(input).cloned().collect()
    }

    /// The machines of `--repeat`, one without it, each with the next seed.
    ///
    /// # Errors
    /// An option is not valid, or the last seed would exceed 64 bits.
    pub fn requests(&self) -> Result<Vec<Request>> {
        let (first, count) = (self.job.seed, self.repeat.unwrap_or(1));
        let Some(last) = first.checked_add(count - 1) else {
            let why = format!("--seed {first} leaves no {count} seeds: use a smaller one");
            return Err(Failure::new(ExitStatus::Usage, why));
        };
        let of = |seed| RunArgs { job: Job { seed, ..self.job.clone() }, ..self.clone() }.request();
        (first..=last).map(of).collect()
    }
}

/// Runs the machine and prints the results; the status is the outcome's.
///
/// # Errors
/// An option is not valid, or the machine cannot be built or started.
pub fn main(project: &Project, args: &RunArgs) -> Result<u8> {
    if args.quiet {
        output::silence_notes();
    }
    let request = args.request()?;
    if args.explain {
        return explained(args);
    }
    if args.repeat.is_some() {
        return repeated(project, args);
    }
    if let Some(path) = &args.trace {
        project::check_writable(path)?;
    }
    let plan = args.plan()?;
    if let Some(folder) = &args.out {
        machine::prepare_files(folder)?;
    }
    let artefacts = Artefacts::make_for_run(project, &args.files())?;
    if let Some(socket) = &request.gdb {
        let gdb = machine::in_shell(&machine::gdb(&artefacts.symbols, socket));
        output::note(format_args!("xtask: the machine waits for gdb; in another terminal:\n{gdb}"));
    }
    let mut boot = machine::boot_with_progress(&artefacts, &request, args.json)?;
    let folder = boot.folder.keep().to_owned();
    machine::keep_newest(project);
    // The trace is written also if the report cannot be printed.
    let shown = show(&boot, plan.as_ref(), args.json, &folder);
    if let Some(path) = &args.trace {
        if let Some(bad) = boot.transcript.bad_trace {
            output::note(format_args!("xtask: {}: {bad}", path.display()));
        }
        project::write(path, &boot.transcript.trace)?;
    }
    let status = shown?;
    if let Some(folder) = &args.out {
        write_files(&boot, folder)?;
    }
    Ok(status)
}

/// Writes the files of `--out`. Those of a machine that failed are lost, and its failure is shown.
fn write_files(boot: &Boot, folder: &Path) -> Result<()> {
    let written = boot.write_files(folder);
    if boot.transcript.done.is_some() {
        return written;
    }
    if let Err(failure) = written {
        output::error(format_args!("xtask: {failure}"));
    }
    Ok(())
}

/// Runs the machines of `--repeat` and prints their results together.
fn repeated(project: &Project, args: &RunArgs) -> Result<u8> {
    let requests = args.requests()?;
    let artefacts = Artefacts::make_for_run(project, &args.files())?;
    match repeat::repeat(&artefacts, &requests)? {
        Repeated::Merged(merged) => {
            output::print(args.json, &merged, &repeat::render(&merged))?;
            Ok(merged.status)
        }
        Repeated::Failed(mut boot) => {
            let folder = boot.folder.keep().to_owned();
            machine::keep_newest(project);
            show(&boot, None, args.json, &folder)
        }
    }
}

/// The kernel's options beside the job's.
fn options(args: &RunArgs) -> String {
    let mut options = "wire".to_owned();
    if args.log != LogLevel::default() {
        options += &format!(" log={}", args.log.name());
    }
    if let Some(seconds) = args.date {
        options += &format!(" date={seconds}");
    }
    if args.out.is_some() {
        options += " send-files";
    }
    if args.trace.is_some() || args.unobserved {
        options += if args.trace_last { " trace=last" } else { " trace" };
    }
    if let Some(events) = &args.trace_events {
        options += &format!(" trace-events={events}");
    }
    options
}

fn trace_events(list: &str) -> std::result::Result<String, String> {
    let why = || "a list of syscalls, switches and signals, with commas between them".to_owned();
    TraceEvents::parse(list).map(|_| list.to_owned()).ok_or_else(why)
}

fn level(name: &str) -> std::result::Result<LogLevel, String> {
    LogLevel::parse(name).ok_or_else(|| "error, warn, info, debug or trace".to_owned())
}

/// Checks the options before anything is built.
///
/// # Errors
/// One is not valid.
fn check(args: &RunArgs) -> Result<()> {
    args.job.check()?;
    args.accel.check()?;
    if args.unobserved && args.accel == Accel::Kvm {
        let why = "--unobserved needs a virtual PMU: omit --accel kvm";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    ramdisk::check_files(&args.files(), &[ramdisk::CORPUS])?;
    if args.accel == Accel::Tcg {
        machine::virtual_pmu_of(args.pmu, &args.vpmu)?;
    } else if !args.vpmu.is_empty() {
        let why = "--vpmu has no effect with --accel kvm: omit one of them";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    Ok(())
}

/// Prints the plan.
fn explained(args: &RunArgs) -> Result<u8> {
    if args.accel == Accel::Kvm {
        let why =
            "--explain needs a virtual PMU: omit --accel kvm, or read the plan in the kernel's log";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    let pmu = machine::virtual_pmu_of(args.pmu, &args.vpmu)?;
    let asked = Asked::of(&args.job, &args.command, pmu.profile().signature)?;
    explain::main(&explain::detect(&pmu)?, &asked, args.json)
}

/// Prints the report and why the run failed; returns the exit status.
fn show(boot: &Boot, plan: Option<&Plan>, json: bool, folder: &Path) -> Result<u8> {
    let mut report = Report::of(boot);
    if let Some(plan) = plan {
        report.add_unobserved(boot, plan);
    }
    if json {
        output::print(json, &report, "")?;
    } else if report.first.is_some() {
        output::note(table::render(&report).trim_end());
    }
    for ring in boot.transcript.rings.iter().filter(|ring| ring.lost > 0) {
        let (cpu, lost, written) = (ring.cpu, ring.lost, ring.written);
        output::note(format_args!("xtask: CPU {cpu}: {lost} of {written} trace records lost"));
    }
    for (program, calls) in &boot.transcript.refused_calls {
        output::note(format_args!("xtask: {program}: refused system calls: {calls}"));
    }
    for (program, status) in boot.transcript.exits.iter().filter(|(_, status)| *status != 0) {
        output::note(format_args!("xtask: {program}: ended with status {status}"));
    }
    for failure in boot.failures() {
        output::error(format_args!("xtask: {failure}"));
    }
    if !matches!(boot.outcome, Outcome::Done(_)) {
        output::note(format_args!("xtask: kernel log: {}", folder.display()));
    }
    Ok(boot.outcome.status())
}
