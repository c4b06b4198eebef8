//! `cargo xtask compare`: runs a static program under Tally and under Linux with perf, on the same
//! virtual PMU, and compares both with the truth.
//!
//! On both machines virtual time counts instructions. Each run has its own truth, in ring 3 of the
//! program: Tally's is the truth of the session around the program, Linux's that of the program's
//! address space ([`truth`]). They differ by what the two kernels leave in caches and predictors,
//! and by what the C library does on each.

mod comparison;
mod script;
mod truth;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use tally_abi::{ExitStatus, Mode, Slice, truth::RegionKind};
use tally_pmu::Resolved;
use tally_vpmu::Vendor;
use xtask::{
    Failure, Result,
    explain::{self, Asked},
    guest_files::GuestFile,
    job::{self, Job},
    machine::{self, Artefacts, Boot, Folder, LinuxGuest, Outcome, Pmu, Request},
    output, perf,
    progress::Step,
    project::Project,
    ramdisk,
    report::Report,
    setup,
};

pub use self::comparison::{ComparedEvent, Comparison, Instructions, Medians, Side, render};
use crate::linux;

/// Length of an interval that is longer than any run, in instructions.
const ONE_INTERVAL: u64 = 1 << 50;

/// Options of `cargo xtask compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArgs {
    /// The static program; further files are its input
    #[arg(long, value_name = "PATH", required = true)]
    file: Vec<PathBuf>,
    /// Events to count in ring 3, separated by commas
    #[arg(long, value_name = "LIST")]
    events: String,
    /// PMU of both machines
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// Seed of Tally's random orders, and of the delay of the program's start under Linux
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Length of Tally's time slices in cycles, or auto: the shortest that keep the budget
    /// [default: auto]
    #[arg(long, value_name = "CYCLES", value_parser = job::slice_option)]
    slice: Option<Slice>,
    /// Further options of the virtual PMU of both machines (see qemu/README.md)
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    vpmu: Vec<String>,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
    /// Stop each machine after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// The program's arguments
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// A comparison to make.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// PMU of both machines.
    pub pmu: Pmu,
    /// Further options of the machines' virtual PMUs.
    pub vpmu: Vec<String>,
    /// Tally's counting: events, slice and seed.
    pub job: Job,
    /// The program, which is in Tally's ramdisk, then its input.
    pub files: Vec<PathBuf>,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// Each machine is killed after this time.
    pub time_limit: Duration,
}

/// Runs the program on both systems and prints the comparison; the status is the program's.
///
/// # Errors
/// An option is not valid, a machine cannot be built or started, or the program does not do the
/// same on both systems.
pub fn main(project: &Project, args: &CompareArgs) -> Result<u8> {
    let job = Job {
        events: Some(args.events.clone()),
        slice: args.slice,
        seed: args.seed,
        ..Job::default()
    };
    let request = CompareRequest {
        pmu: args.pmu,
        vpmu: args.vpmu.clone(),
        job,
        files: args.file.clone(),
        arguments: args.arguments.clone(),
        time_limit: Duration::from_secs(args.time_limit),
    };
    ramdisk::check_files(&args.file, &[ramdisk::CORPUS])?;
    machine::check_vpmu(args.pmu, &args.vpmu, 1)?;
    request.resolve()?;
    request.job.around("", &request.command())?;
    let artefacts = Artefacts::make_for_run(project, &GuestFile::by_names(&args.file))?;
    let linux = setup::linux(project)?;
    let step = Step::start("Running under Tally and under Linux");
    let compared = compare(&artefacts, &linux, &request)?;
    step.done();
    match compared {
        Compared::Both(comparison) => {
            output::print(args.json, &comparison, &render(&comparison))?;
            Ok(comparison.status)
        }
        Compared::Failed(outcome) => {
            output::note(format_args!("xtask: under Tally: {outcome}"));
            Ok(outcome.status())
        }
    }
}

impl CompareRequest {
    /// Resolves the events for both systems.
    ///
    /// # Errors
    /// The list or the slice is refused as by `run`, or an event is not counted in ring 3 alone.
    fn resolve(&self) -> Result<(Vendor, Vec<Resolved>)> {
        self.job.check()?;
        let pmu = machine::virtual_pmu_of(self.pmu, &self.vpmu)?;
        let asked = Asked {
            events: self.job.events.clone().unwrap_or_default(),
            config: self.job.config(),
            paranoid: None,
        };
        let (resolved, _) = explain::plan_of(&pmu, &asked)?;
        match resolved.iter().find(|event| event.mode != Mode::User) {
            None => Ok((pmu.profile().vendor, resolved)),
            Some(event) => {
                let name = &event.name;
                let why = format!("{name}: compare counts ring 3 only: omit the modifier k");
                Err(Failure::new(ExitStatus::Usage, why))
            }
        }
    }

    /// The program and its arguments.
    fn command(&self) -> Vec<String> {
        let name = self.files[0].file_name().unwrap_or_default().to_string_lossy().into_owned();
        [name].into_iter().chain(self.arguments.iter().cloned()).collect()
    }
}

/// The end of a comparison.
#[derive(Debug)]
pub enum Compared {
    /// Both: the program ended by itself on both systems.
    Both(Comparison),
    /// Failure: the run under Tally ended otherwise.
    Failed(Outcome),
}

/// Runs the program under both systems.
///
/// # Errors
/// The events are refused, a machine fails, or the program does not do the same on both.
pub fn compare(
    artefacts: &Artefacts,
    linux: &setup::Linux,
    request: &CompareRequest,
) -> Result<Compared> {
    let (vendor, resolved) = request.resolve()?;
    let boot = under_tally(artefacts, request)?;
    if !matches!(boot.outcome, Outcome::Done(_)) {
        return Ok(Compared::Failed(boot.outcome));
    }
    let instructions = true_instructions(&boot, vendor)?;
    let folder = Folder::make(&Project::here())?;
    let script = script::of(&resolved, vendor, &request.command(), request.job.seed);
    let (status, printed) = under_linux(artefacts, linux, request, &script, &folder)?;
    check_status(boot.outcome.status(), status, &printed)?;
    let counts = perf::counts(&printed, resolved.len()).ok_or_else(|| {
        let why = format!("perf's output lacks an event:\n{printed}");
        Failure::new(ExitStatus::MachineFailed, why)
    })?;
    let name = instructions_name(vendor);
    let truth = truth::of_program(&folder.series(), name, instructions)?;
    let report = Report::of(&boot);
    let readings = report.first.iter().flat_map(|session| &session.events);
    let event = |((reading, resolved), count): ((_, &Resolved), _)| {
        let truth = resolved.native.and_then(|native| truth.get(native)).copied();
        let (tally, perf) = (Side::of_tally(reading), Side::of_perf(count, truth));
        ComparedEvent { name: resolved.name.clone(), tally, perf }
    };
    let events: Vec<_> = readings.zip(&resolved).zip(counts).map(event).collect();
    Ok(Compared::Both(Comparison {
        program: request.command().remove(0),
        pmu: report.pmu,
        seed: request.job.seed,
        status,
        instructions: Instructions { tally: instructions, linux: truth[name] },
        medians: Medians::of(&events),
        events,
    }))
}

/// Checks that the program ended with the same status on both systems.
fn check_status(tally: u8, linux: u8, printed: &str) -> Result<()> {
    if tally == linux {
        return Ok(());
    }
    let output = script::program_output(printed);
    let why = format!(
        "the program ends with status {tally} under Tally and {linux} under Linux, where it \
         printed:\n{output}"
    );
    Err(Failure::new(ExitStatus::CheckFailed, why))
}

/// The vendor's name of the event that counts instructions.
fn instructions_name(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Intel => "INST_RETIRED.ANY",
        Vendor::Amd => "RETIRED_INSTRUCTIONS",
    }
}

/// The program's run under Tally.
fn under_tally(artefacts: &Artefacts, request: &CompareRequest) -> Result<Boot> {
    let tally = Request {
        pmu: request.pmu,
        vpmu: request.vpmu.clone(),
        time_limit: request.time_limit,
        ..Request::new(request.job.around("wire", &request.command())?)
    };
    machine::boot(artefacts, &tally, &mut |_| {})
}

/// The program's true instructions under Tally.
fn true_instructions(boot: &Boot, vendor: Vendor) -> Result<u64> {
    let session = boot.transcript.sessions.keys().next();
    let region = session.and_then(|tag| boot.truth.as_ref()?.region(RegionKind::Session, *tag));
    let count = region.and_then(|region| region.events.get(instructions_name(vendor)));
    count.map(|count| count.user).ok_or_else(|| {
        Failure::new(ExitStatus::MachineFailed, "the virtual PMU wrote no truth of the session")
    })
}

/// Runs the program under Linux; returns its status, and its output with perf's. The series goes to
/// `folder`.
fn under_linux(
    artefacts: &Artefacts,
    linux: &setup::Linux,
    request: &CompareRequest,
    script: &str,
    folder: &Folder,
) -> Result<(u8, String)> {
    let mut vpmu = request.vpmu.clone();
    // One interval contains the counts of the whole run.
    vpmu.push(format!("series={}", folder.series().display()));
    vpmu.push(format!("every={ONE_INTERVAL}i"));
    let guest = LinuxGuest {
        qemu: &artefacts.qemu,
        linux,
        plugin: Some(&artefacts.plugin),
        vpmu: &vpmu,
        pmu: request.pmu,
        cpus: 1,
        files: &request.files,
        verbose: false,
        time_limit: request.time_limit,
    };
    let mut printed = String::new();
    let status = linux::run(&guest, script, &mut |line| printed += &format!("{line}\n"))?;
    Ok((status, printed))
}
