//! Boots a machine and tells how it ended.
//!
//! [`boot`] starts QEMU on the image, follows what the kernel says on the second UART, and gives a
//! [`Boot`]: a typed [`Outcome`], everything that was said, and the truth if the virtual PMU was
//! there. However the machine ends, QEMU is reaped, and every boot has a time limit.

mod artefacts;
mod command;
mod folder;
mod outcome;
mod transcript;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use clap::ValueEnum;
use tally_abi::{ExitStatus, boot::CommandLine, truth::Truth};

pub use artefacts::{ARTEFACTS_VARIABLE, Artefacts, DISK_COMMAND_LINE};
pub use command::{check_guest, linux, shown};
pub use folder::{Folder, keep_newest};
pub use outcome::Outcome;
pub(crate) use outcome::out_of_time;
pub use transcript::{Event, Output, Session, Transcript};

use crate::{
    Failure, Result, output,
    process::Child,
    progress::Step,
    project::{self, Project},
};

/// The time limit of a boot that nobody set another for.
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(120);
/// For how long a machine under KVM may be silent before KVM counts as unusable.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// For how long QEMU may live on after the kernel's last word.
const LAST_WORD: Duration = Duration::from_secs(10);
/// How often the machine is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Whose PMU the machine shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Pmu {
    /// Intel architectural performance monitoring, as on Ice Lake servers
    #[default]
    Intel,
    /// AMD PerfMonV2, as on Zen 4
    Amd,
    /// Intel's, as on Sapphire Rapids
    SapphireRapids,
    /// AMD's core extension, as on Zen 3
    Zen3,
}

impl Pmu {
    /// Its name here and in `qemu/machines.toml`.
    fn name(self) -> &'static str {
        match self {
            Pmu::Intel => "intel",
            Pmu::Amd => "amd",
            Pmu::SapphireRapids => "sapphire-rapids",
            Pmu::Zen3 => "zen3",
        }
    }
}

/// What executes the guest's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Accel {
    /// QEMU's own translator, with Tally's virtual PMU
    #[default]
    Tcg,
    /// This machine's processor and its PMU, by KVM
    Kvm,
}

impl Accel {
    /// Fails on what can be known before there is a machine.
    ///
    /// # Errors
    /// KVM, where this user has none.
    pub fn check(self) -> Result<()> {
        match fs::OpenOptions::new().read(true).write(true).open("/dev/kvm") {
            Err(error) if self == Accel::Kvm => Err(kvm_unusable(&format!("/dev/kvm: {error}"))),
            _ => Ok(()),
        }
    }
}

/// Where the machine has a trace go, if the kernel makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePort {
    /// Nowhere: the kernel keeps it, and sends it by the second UART at the end.
    None,
    /// Into a file, while the machine runs.
    File,
    /// Into a pipe that nobody reads.
    Unread,
}

/// One boot.
#[derive(Clone, Debug)]
pub struct Request {
    /// Whose PMU.
    pub pmu: Pmu,
    /// What executes.
    pub accel: Accel,
    /// Processors.
    pub cpus: usize,
    /// The kernel's command line.
    pub command_line: String,
    /// After this, the machine is killed.
    pub time_limit: Duration,
    /// Whether the virtual PMU is there; without it, TCG has none at all.
    pub virtual_pmu: bool,
    /// More options of the virtual PMU, `name=value` each (qemu/README.md).
    pub vpmu: Vec<String>,
    /// Whether to boot the disk image, with its own command line, as from a USB stick.
    pub from_disk: bool,
    /// Where a trace goes.
    pub trace_port: TracePort,
    /// A part that it lacks, by QEMU's name.
    pub lacks: Option<&'static str>,
    /// Where QEMU's monitor is to listen, if it is to: the path of a socket.
    pub monitor: Option<PathBuf>,
}

impl Request {
    /// One processor under TCG with Intel's virtual PMU.
    pub fn new(command_line: impl Into<String>) -> Request {
        let command_line = command_line.into();
        let line = CommandLine::parse(&command_line);
        let traced = line.is_ok_and(|line| line.trace.is_some());
        Request {
            trace_port: if traced { TracePort::File } else { TracePort::None },
            pmu: Pmu::Intel,
            accel: Accel::Tcg,
            cpus: 1,
            command_line,
            time_limit: DEFAULT_TIME_LIMIT,
            virtual_pmu: true,
            vpmu: Vec::new(),
            from_disk: false,
            lacks: None,
            monitor: None,
        }
    }
}

/// A machine that has ended.
#[derive(Debug)]
pub struct Boot {
    /// How.
    pub outcome: Outcome,
    /// What the kernel told.
    pub transcript: Transcript,
    /// What the virtual PMU saw.
    pub truth: Option<Truth>,
    /// The log and what else the run left; gone with this value unless it is kept.
    pub folder: Folder,
}

/// Who hears of a program's output while the machine runs.
pub type Listener<'a> = &'a mut dyn FnMut(&Output);

/// Boots a machine and waits for its end; `listen` hears of each output at once.
///
/// # Errors
/// QEMU cannot be started, KVM is not usable, or the host refuses a file. However the guest ends
/// is no error but a [`Boot::outcome`].
pub fn boot(artefacts: &Artefacts, request: &Request, listen: Listener<'_>) -> Result<Boot> {
    request.accel.check()?;
    let folder = Folder::make(&Project::here())?;
    let ramdisk = artefacts.ramdisk(&request.command_line, &folder)?;
    let mut command = command::qemu(artefacts, &ramdisk, request, &folder)?;
    File::create(folder.wire()).map_err(|e| Failure::io("write", &folder.wire(), &e))?;
    let mut qemu = start(&mut command, &folder)?;
    let mut transcript = Transcript::default();
    let end = follow(&mut qemu, request, &folder, &mut transcript, listen)?;
    drop(qemu);
    if request.trace_port == TracePort::File {
        transcript.trace = project::read(&folder.trace())?;
    }
    transcript.read_trace();
    let truth = read_truth(&folder)?;
    let outcome = Outcome::of(end, &transcript, request.time_limit, &folder);
    Ok(Boot { outcome, transcript, truth, folder })
}

/// Starts QEMU, whose complaints go to the folder.
///
/// # Errors
/// It cannot be started, or the host refuses the file.
pub fn start(qemu: &mut Command, folder: &Folder) -> Result<Child> {
    let errors = folder.errors();
    let stderr = File::create(&errors).map_err(|error| Failure::io("write", &errors, &error))?;
    Child::spawn(qemu.stdout(Stdio::null()).stderr(stderr)).map_err(|error| {
        Failure::new(ExitStatus::QemuUnavailable, format!("cannot start QEMU: {error}"))
    })
}

/// How the process ended, whatever the guest said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    ByItself,
    OutOfTime,
}

fn follow(
    qemu: &mut Child,
    request: &Request,
    folder: &Folder,
    transcript: &mut Transcript,
    listen: Listener<'_>,
) -> Result<End> {
    let wire = folder.wire();
    let mut wire = File::open(&wire).map_err(|error| Failure::io("read", &wire, &error))?;
    let start = Instant::now();
    let mut last_word: Option<Instant> = None;
    loop {
        let ended = qemu
            .try_wait()
            .map_err(|error| Failure::new(ExitStatus::HostError, format!("lost QEMU: {error}")))?;
        transcript.now = qemu.processor_time().unwrap_or(transcript.now);
        transcript
            .follow(&mut wire, listen)
            .map_err(|error| Failure::io("read", &folder.wire(), &error))?;
        if ended.is_some() {
            return Ok(End::ByItself);
        }
        if transcript.is_over() && last_word.get_or_insert_with(Instant::now).elapsed() > LAST_WORD
        {
            return Ok(End::ByItself);
        }
        if start.elapsed() > request.time_limit {
            return Ok(End::OutOfTime);
        }
        if request.accel == Accel::Kvm && start.elapsed() > SIGN_OF_LIFE && folder.is_log_empty() {
            return Err(kvm_unusable("a guest makes no progress under it"));
        }
        std::thread::sleep(LOOK);
    }
}

/// The truth, if the virtual PMU wrote it.
pub(crate) fn read_truth(folder: &Folder) -> Result<Option<Truth>> {
    let path = folder.truth();
    if !path.exists() {
        return Ok(None);
    }
    let truth: Truth = serde_json::from_slice(&project::read(&path)?).map_err(|error| {
        let why = format!("cannot read the truth in {}: {error}", path.display());
        Failure::new(ExitStatus::MachineFailed, why)
    })?;
    Ok(Some(truth))
}

fn kvm_unusable(why: &str) -> Failure {
    Failure::new(
        ExitStatus::KvmUnusable,
        format!(
            "KVM cannot run a guest here ({why}); run without `--accel kvm`, or on a machine \
             whose processor and permissions allow it"
        ),
    )
}

/// Boots behind a progress line; what programs write goes to standard error as it comes.
///
/// # Errors
/// As [`boot`].
pub fn boot_with_progress(artefacts: &Artefacts, request: &Request) -> Result<Boot> {
    let step = Step::start("Running the machine");
    let boot = boot(artefacts, request, &mut |output| {
        // Somebody who closes our standard error wants no output.
        let _ = io::stderr().write_all(&output.bytes);
    })?;
    step.done();
    if let Some(complaint) = boot.transcript.complaint() {
        output::note(format_args!("xtask: {complaint}"));
    }
    Ok(boot)
}
