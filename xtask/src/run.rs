//! `cargo xtask run`: everything, from nothing to the table.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    explain::{self, Asked},
    job::Job,
    machine::{self, Accel, Artefacts, Boot, Outcome, Pmu, Request},
    output,
    project::{self, Project},
    ramdisk,
    report::{Report, table},
};

/// Options of `cargo xtask run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    job: Job,
    /// Whose PMU the machine shows
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// What executes the guest
    #[arg(long, value_enum, default_value_t)]
    accel: Accel,
    /// More options of the virtual PMU, such as series=FILE,every=1000000i (see qemu/README.md)
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    vpmu: Vec<String>,
    /// Say which event would be on which counter in which group, and boot nothing
    #[arg(long, conflicts_with = "trace")]
    explain: bool,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
    /// Write a record of every slice, threshold and sample to this file, for `cargo xtask trace`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Of the trace keep only each CPU's last 128 KiB, which go out when all programs have ended
    #[arg(long, requires = "trace")]
    trace_last: bool,
    /// Put a file of this machine into the ramdisk, under its own name: a static program, or what
    /// it reads
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// A program in the ramdisk and its arguments, instead of --program; --events counts around the
    /// whole of it. `stat -e EVENTS PROGRAM ARGUMENTS` counts as perf stat does
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "program")]
    command: Vec<String>,
    /// Stop the machine after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = machine::DEFAULT_TIME_LIMIT.as_secs(),
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// Let the machine wait for gdb, print the command that connects it and stops at the kernel's entry, and
    /// set no time limit
    #[arg(long)]
    gdb: bool,
    /// Hand this argument to QEMU, behind all others; as often as there are arguments
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    qemu_arg: Vec<String>,
}

/// Does the task.
///
/// # Errors
/// The machine cannot be built or started. However it ends otherwise is in the status.
pub fn main(project: &Project, args: &RunArgs) -> Result<u8> {
    args.job.check()?;
    args.accel.check()?;
    if let Some(missing) = args.file.iter().find(|file| !file.is_file()) {
        let why = format!("{}: there is no such file", missing.display());
        return Err(Failure::new(ExitStatus::ProgramNotFound, why));
    }
    ramdisk::check_names(&args.file)?;
    if args.accel == Accel::Tcg {
        machine::shown(args.pmu, &args.vpmu)?;
    }
    let options = match (&args.trace, args.trace_last) {
        (None, _) => "wire",
        (Some(_), false) => "wire trace",
        (Some(_), true) => "wire trace=last",
    };
    let line = args.job.around(options, &args.command)?;
    if args.explain {
        return explained(args);
    }
    if let Some(path) = &args.trace {
        project::check_writable(path)?;
    }
    let artefacts = Artefacts::make_for_run(project, &args.file)?;
    let request = Request {
        pmu: args.pmu,
        accel: args.accel,
        cpus: args.job.cpus.into(),
        time_limit: Duration::from_secs(args.time_limit),
        vpmu: args.vpmu.clone(),
        gdb: args.gdb.then(machine::gdb_socket),
        qemu_args: args.qemu_arg.clone(),
        ..Request::new(line)
    };
    if let Some(socket) = &request.gdb {
        let gdb = machine::in_shell(&machine::gdb(&artefacts.symbols, socket));
        output::note(format_args!("xtask: the machine waits for gdb; in another terminal:\n{gdb}"));
    }
    let mut boot = machine::boot_with_progress(&artefacts, &request)?;
    let folder = boot.folder.keep().to_owned();
    machine::keep_newest(project);
    // Whatever becomes of the one, the other is worth its place.
    let shown = show(&boot, args.json, &folder);
    if let Some(path) = &args.trace {
        if let Some(bad) = boot.transcript.bad_trace {
            output::note(format_args!("xtask: {}: {bad}", path.display()));
        }
        project::write(path, &boot.transcript.trace)?;
    }
    shown
}

/// The plan alone.
fn explained(args: &RunArgs) -> Result<u8> {
    if args.accel == Accel::Kvm {
        let why = "--explain is of the virtual PMU's machines; of a run with KVM the kernel's log tells \
                   the plan";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    let shown = machine::shown(args.pmu, &args.vpmu)?;
    let asked = Asked::of(&args.job, &args.command, shown.profile().signature)?;
    explain::main(&explain::detect(&shown)?, &asked, args.json)
}

fn show(boot: &Boot, json: bool, folder: &Path) -> Result<u8> {
    let report = Report::of(boot);
    output::print(json, &report, &table::render(&report))?;
    for ring in boot.transcript.rings.iter().filter(|ring| ring.lost > 0) {
        let (cpu, lost, written) = (ring.cpu, ring.lost, ring.written);
        output::note(format_args!("xtask: CPU {cpu}: {lost} of {written} trace records lost"));
    }
    // A program that ends with a status of its own has said why itself.
    if !matches!(boot.outcome, Outcome::Done(_)) {
        output::note(format_args!("xtask: {}", boot.outcome));
        output::note(format_args!("xtask: the kernel's log is in {}", folder.display()));
    }
    Ok(boot.outcome.status())
}
