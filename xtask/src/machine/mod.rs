//! Boots a machine and reports how it ended.
//!
//! [`boot`] starts QEMU, reads the kernel's messages from the second UART, and returns a [`Boot`]:
//! a typed [`Outcome`], all messages, and the truth if the machine has the virtual PMU. QEMU is
//! always reaped, and every boot has a time limit.

mod artefacts;
mod checked;
mod command;
mod debugger;
mod end;
mod files;
mod folder;
mod outcome;
mod processor;
mod profile;
mod reported;
mod request;
mod tables;
mod transcript;
mod vpmu;

use std::{
    fs::File,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use tally_abi::{ExitStatus, truth::Truth, wire::END_REQUEST};

pub use artefacts::{ARTEFACTS_VARIABLE, Artefacts, DISK_COMMAND_LINE};
pub use checked::{CheckedCpu, OfflineCpu};
pub use command::{check_guest, linux, memory_for};
pub use debugger::{gdb, gdb_socket, in_shell};
pub use files::{SentNode, prepare as prepare_files};
pub(crate) use folder::tail;
pub use folder::{Folder, keep_newest};
pub use outcome::{Outcome, out_of_time};
pub use processor::{ProcessorArgs, with_processor};
pub use profile::{Pmu, ProfileName};
pub use reported::{EventReading, Halted, ProgramOutput, Session};
pub use request::{
    Accel, DEFAULT_TIME_LIMIT, LinuxGuest, Request, TracePort, limit_seconds, memory_mib,
    memory_of_host,
};
pub use tables::Tables;
pub use transcript::Transcript;
pub use vpmu::{check_vpmu, virtual_pmu_of};

use end::QemuEnd;

use crate::{
    Failure, Result,
    code_files::CodeFiles,
    output::{self, ProgramWriter},
    process::{self, Child},
    progress::Step,
    project::{self, Project},
};

/// Time without output after which KVM counts as unusable.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Time that the kernel has to end all programs before their time.
const END_LIMIT: Duration = Duration::from_secs(20);
/// Time that QEMU has to exit after the kernel's last message.
const EXIT_LIMIT: Duration = Duration::from_secs(10);
/// Interval at which the machine is polled.
const POLL: Duration = Duration::from_millis(10);

/// A machine that has ended.
#[derive(Debug)]
pub struct Boot {
    /// The outcome.
    pub outcome: Outcome,
    /// The kernel's messages.
    pub transcript: Transcript,
    /// The truth, if the machine has the virtual PMU.
    pub truth: Option<Truth>,
    /// The files with code that the machine had, if programs were sampled.
    pub code_files: CodeFiles,
    /// The log and the machine's other files; removed with this value unless kept.
    pub folder: Folder,
    /// Why the programs' output was not written, if it was not.
    pub unwritten: Option<Failure>,
}

impl Boot {
    /// The failures of the run: programs that crashed or were refused, or the machine's failure.
    /// Empty if every program ended by itself.
    pub fn failures(&self) -> Vec<&Outcome> {
        match &self.outcome {
            Outcome::Done(_) => Vec::new(),
            Outcome::Refused { .. } | Outcome::Faulted { .. } => {
                self.transcript.failures.iter().collect()
            }
            // The kernel ended the programs when it was asked to.
            Outcome::TimedOut { .. } | Outcome::Stopped if self.transcript.done.is_some() => {
                vec![&self.outcome]
            }
            other => self.transcript.failures.iter().chain([other]).collect(),
        }
    }

    /// Writes the files that programs created or changed into an empty folder.
    ///
    /// # Errors
    /// The kernel did not send all files, or the host refuses one.
    pub fn write_files(&self, folder: &Path) -> Result<()> {
        files::write(&self.transcript.files, &self.folder.files(), folder)
    }
}

/// The boot of a machine elsewhere, whose kernel sent these messages. Nothing else is known about
/// it.
///
/// # Errors
/// The host refuses a file.
pub fn of_messages(messages: &[u8], listen: Listener<'_>) -> Result<Boot> {
    let folder = Folder::make_in(&std::env::temp_dir().join("tally-import"))?;
    project::write(&folder.wire(), messages)?;
    let mut transcript = Transcript::default();
    transcript
        .follow(&mut &*messages, listen)
        .map_err(|error| Failure::io("read", &folder.wire(), &error))?;
    transcript.read_trace();
    let (end, limit) = (QemuEnd::ByItself, Duration::ZERO);
    let outcome = end::outcome(end, &transcript, limit, &folder, Path::new(""));
    let (code_files, unwritten) = (CodeFiles::default(), None);
    Ok(Boot { outcome, transcript, truth: None, code_files, folder, unwritten })
}

/// Receives the programs' output while the machine runs.
pub type Listener<'a> = &'a mut dyn FnMut(&ProgramOutput);

/// Watches a machine while it runs.
pub trait Observer {
    /// Receives a program's output, at once.
    fn output(&mut self, output: &ProgramOutput);

    /// Receives the messages up to now and the machine's files, at intervals of some 10 ms. Returns
    /// whether the machine continues; otherwise it is asked to end, the second time stopped.
    ///
    /// # Errors
    /// The observer's own errors; the machine is stopped.
    fn poll(&mut self, transcript: &Transcript, folder: &Folder) -> Result<bool>;
}

/// Observes only output.
struct OutputOnly<'a>(Listener<'a>);

impl Observer for OutputOnly<'_> {
    fn output(&mut self, output: &ProgramOutput) {
        (self.0)(output);
    }

    fn poll(&mut self, _: &Transcript, _: &Folder) -> Result<bool> {
        Ok(true)
    }
}

/// Boots a machine and waits for its end; `listen` receives each output at once.
///
/// # Errors
/// QEMU cannot be started, KVM is not usable, the virtual PMU refuses an option, or the host
/// refuses a file. A guest that fails is no error but a [`Boot::outcome`].
pub fn boot(artefacts: &Artefacts, request: &Request, listen: Listener<'_>) -> Result<Boot> {
    observe(artefacts, request, &mut OutputOnly(listen))
}

/// Boots a machine as [`boot`] does, with an observer, which may stop the machine.
///
/// # Errors
/// As [`boot`], and the observer's.
pub fn observe(
    artefacts: &Artefacts,
    request: &Request,
    observer: &mut dyn Observer,
) -> Result<Boot> {
    request.accel.check()?;
    let mut folder = Folder::make(&Project::here())?;
    match boot_in(&folder, artefacts, request, observer) {
        Ok((outcome, transcript, truth, code_files)) => {
            Ok(Boot { outcome, transcript, truth, code_files, folder, unwritten: None })
        }
        Err(refused) if refused.status == ExitStatus::Usage => Err(refused),
        Err(Failure { status, message }) => {
            let kept = folder.keep().display();
            Err(Failure::new(status, format!("{message}; log, messages and truth: {kept}")))
        }
    }
}

/// Boots a machine as [`boot`] does, with the machine's files in `folder`.
fn boot_in(
    folder: &Folder,
    artefacts: &Artefacts,
    request: &Request,
    observer: &mut dyn Observer,
) -> Result<(Outcome, Transcript, Option<Truth>, CodeFiles)> {
    let ramdisk = artefacts.ramdisk(&request.command_line, folder)?;
    let mut command = command::qemu(artefacts, &ramdisk, request, folder)?;
    File::create(folder.wire()).map_err(|e| Failure::io("write", &folder.wire(), &e))?;
    let mut requests = folder.make_requests()?;
    let mut qemu = start(&mut command, folder)?;
    let mut transcript = Transcript::default();
    let end = follow(&mut qemu, &mut requests, request, folder, &mut transcript, observer)?;
    drop(qemu);
    check_options(folder)?;
    if request.trace_port == TracePort::File {
        transcript.trace = project::read(&folder.trace())?;
    }
    transcript.read_trace();
    let truth = read_truth(folder)?;
    let symbols = &artefacts.symbols;
    let outcome = end::outcome(end, &transcript, request.time_limit, folder, symbols);
    let code_files = artefacts.code_files(&request.command_line, &ramdisk, &transcript.samples)?;
    Ok((outcome, transcript, truth, code_files))
}

/// Checks, after QEMU has ended, that the virtual PMU accepted its options.
///
/// # Errors
/// The virtual PMU refused an option.
pub fn check_options(folder: &Folder) -> Result<()> {
    let refused = end::refused_options(folder);
    refused.map_or(Ok(()), |why| Err(Failure::new(ExitStatus::Usage, why)))
}

/// Starts QEMU; its standard error goes to a file of `folder`.
///
/// # Errors
/// QEMU cannot be started, or the host refuses the file.
pub fn start(qemu: &mut Command, folder: &Folder) -> Result<Child> {
    let errors = folder.errors();
    let stderr = File::create(&errors).map_err(|error| Failure::io("write", &errors, &error))?;
    Child::spawn(qemu.stdout(Stdio::null()).stderr(stderr)).map_err(|error| {
        Failure::new(ExitStatus::QemuUnavailable, format!("cannot start QEMU: {error}"))
    })
}

/// Reads the messages until QEMU has ended or its time is over.
fn follow(
    qemu: &mut Child,
    requests: &mut File,
    request: &Request,
    folder: &Folder,
    transcript: &mut Transcript,
    observer: &mut dyn Observer,
) -> Result<QemuEnd> {
    let wire = folder.wire();
    let mut wire = File::open(&wire).map_err(|error| Failure::io("read", &wire, &error))?;
    let start = Instant::now();
    let mut last_message: Option<Instant> = None;
    // Why and when the kernel was asked to end.
    let mut asked: Option<(QemuEnd, Instant)> = None;
    loop {
        let ended = qemu.try_wait().map_err(|error| {
            Failure::new(ExitStatus::HostError, format!("cannot wait for QEMU: {error}"))
        })?;
        transcript.now = qemu.processor_time().unwrap_or(transcript.now);
        transcript
            .follow(&mut wire, &mut |output| observer.output(output))
            .map_err(|error| Failure::io("read", &folder.wire(), &error))?;
        let is_over = transcript.is_over()
            && last_message.get_or_insert_with(Instant::now).elapsed() > EXIT_LIMIT;
        if ended.is_some() || is_over {
            return Ok(asked.map_or(QemuEnd::ByItself, |(why, _)| why));
        }
        let is_stopped = !observer.poll(transcript, folder)?;
        if is_stopped && asked.is_some() {
            return Ok(QemuEnd::Stopped);
        }
        let running = start.elapsed();
        let is_late = running > request.time_limit;
        let why = (is_stopped || process::signal_came()).then_some(QemuEnd::Stopped);
        let why = why.or_else(|| is_late.then_some(QemuEnd::OutOfTime));
        // Programs that have ended by themselves are not asked to.
        if let Some(why) = why.filter(|_| asked.is_none() && !transcript.is_over()) {
            asked = Some((why, Instant::now()));
            // A machine that cannot be asked is killed, as one that does not answer.
            let _ = requests.write_all(&[END_REQUEST]);
        }
        if let Some((why, since)) = asked
            && (transcript.booted.is_none() || since.elapsed() > END_LIMIT)
        {
            return Ok(why);
        }
        if request.accel == Accel::Kvm {
            check_kvm(folder, running)?;
        }
        std::thread::sleep(POLL);
    }
}

/// Checks that KVM runs a machine that was started `running` before.
///
/// # Errors
/// KVM has paused the machine, or its guest says nothing.
fn check_kvm(folder: &Folder, running: Duration) -> Result<()> {
    if let Some(error) = end::kvm_error(folder) {
        return Err(request::kvm_unusable(&error));
    }
    if running > SIGN_OF_LIFE && folder.is_log_empty() {
        return Err(request::kvm_unusable("the guest prints nothing"));
    }
    Ok(())
}

/// Reads the truth, if the virtual PMU wrote it.
///
/// # Errors
/// The file cannot be read, or has another form.
pub fn read_truth(folder: &Folder) -> Result<Option<Truth>> {
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

/// Boots with a progress line. Programs' output is printed at once: their standard output goes to
/// this process' standard output, unless that `is_taken`. If it cannot be written, [`Boot`] says
/// so, and has the results.
///
/// # Errors
/// As [`boot`].
pub fn boot_with_progress(
    artefacts: &Artefacts,
    request: &Request,
    is_taken: bool,
) -> Result<Boot> {
    let mut writer = ProgramWriter::new(is_taken);
    let write: Listener<'_> = &mut |output| writer.write(output.fd, &output.bytes);
    let boot = boot_listening(artefacts, request, write)?;
    Ok(Boot { unwritten: writer.end().err(), ..boot })
}

/// Boots with a progress line; `listen` receives the programs' output.
///
/// # Errors
/// As [`boot`].
pub fn boot_listening(
    artefacts: &Artefacts,
    request: &Request,
    listen: Listener<'_>,
) -> Result<Boot> {
    let step = Step::start("Running the machine");
    let boot = boot(artefacts, request, &mut |output| {
        step.hide();
        listen(output);
    })?;
    step.done();
    warn(&boot);
    Ok(boot)
}

/// Warns of messages that could not be decoded, if there were any.
pub(crate) fn warn(boot: &Boot) {
    if let Some(warning) = boot.transcript.warning() {
        output::note(format_args!("xtask: {warning}"));
    }
}
