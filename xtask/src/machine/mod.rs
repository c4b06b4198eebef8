//! Boots a machine and tells how it ended.
//!
//! [`boot`] starts QEMU on the image, follows what the kernel says on the second UART, and gives a
//! [`Boot`]: a typed [`Outcome`], everything that was said, and the truth if the virtual PMU was
//! there. However the machine ends, QEMU is reaped, and every boot has a time limit.

mod artefacts;
mod command;
mod debugger;
mod end;
mod folder;
mod outcome;
mod profile;
mod request;
mod transcript;

use std::{
    fs::File,
    io::{self, Write},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use tally_abi::{ExitStatus, truth::Truth};

pub use artefacts::{ARTEFACTS_VARIABLE, Artefacts, DISK_COMMAND_LINE};
pub use command::{check_guest, linux, shown};
pub use debugger::{gdb, gdb_socket, in_shell};
pub use folder::{Folder, keep_newest};
pub use outcome::Outcome;
pub(crate) use outcome::out_of_time;
pub use profile::{Pmu, Profile};
pub use request::{Accel, DEFAULT_TIME_LIMIT, Linux, Request, TracePort};
pub use transcript::{Event, Output, Session, Transcript};

use end::End;

use crate::{
    Failure, Result, output,
    process::Child,
    progress::Step,
    project::{self, Project},
};

/// For how long a machine under KVM may be silent before KVM counts as unusable.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// For how long QEMU may live on after the kernel's last word.
const LAST_WORD: Duration = Duration::from_secs(10);
/// How often the machine is looked at.
const LOOK: Duration = Duration::from_millis(10);

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
    let mut folder = Folder::make(&Project::here())?;
    match boot_in(&folder, artefacts, request, listen) {
        Ok((outcome, transcript, truth)) => Ok(Boot { outcome, transcript, truth, folder }),
        Err(Failure { status, message }) => {
            let left = folder.keep().display();
            Err(Failure::new(
                status,
                format!("{message}; the log, the messages and the truth are in {left}"),
            ))
        }
    }
}

/// As [`boot`], with what the machine leaves in `folder`.
fn boot_in(
    folder: &Folder,
    artefacts: &Artefacts,
    request: &Request,
    listen: Listener<'_>,
) -> Result<(Outcome, Transcript, Option<Truth>)> {
    let ramdisk = artefacts.ramdisk(&request.command_line, folder)?;
    let mut command = command::qemu(artefacts, &ramdisk, request, folder)?;
    File::create(folder.wire()).map_err(|e| Failure::io("write", &folder.wire(), &e))?;
    let mut qemu = start(&mut command, folder)?;
    let mut transcript = Transcript::default();
    let end = follow(&mut qemu, request, folder, &mut transcript, listen)?;
    drop(qemu);
    check_options(folder)?;
    if request.trace_port == TracePort::File {
        transcript.trace = project::read(&folder.trace())?;
    }
    transcript.read_trace();
    let truth = read_truth(folder)?;
    let outcome = end::outcome(end, &transcript, request.time_limit, folder);
    Ok((outcome, transcript, truth))
}

/// Checks, when QEMU has ended, that the virtual PMU took its options.
///
/// # Errors
/// It refused one.
pub(crate) fn check_options(folder: &Folder) -> Result<()> {
    let refused = end::refused_options(folder);
    refused.map_or(Ok(()), |why| Err(Failure::new(ExitStatus::Usage, why)))
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
        // Under gdb the machine stands still for as long as its user likes.
        let running = if request.gdb.is_none() { start.elapsed() } else { Duration::ZERO };
        if running > request.time_limit {
            return Ok(End::OutOfTime);
        }
        if request.accel == Accel::Kvm && running > SIGN_OF_LIFE && folder.is_log_empty() {
            return Err(request::kvm_unusable("a guest makes no progress under it"));
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
