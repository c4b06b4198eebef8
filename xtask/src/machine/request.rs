//! Descriptions of the machines to boot.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueEnum;
use tally_abi::{ExitStatus, boot::CommandLine};

use super::profile::Pmu;
use crate::{Failure, Result, setup};

/// The default time limit of a boot.
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(120);

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
    /// Checks that the host supports it.
    ///
    /// # Errors
    /// KVM, if this user cannot open `/dev/kvm`.
    pub fn check(self) -> Result<()> {
        match fs::OpenOptions::new().read(true).write(true).open("/dev/kvm") {
            Err(error) if self == Accel::Kvm => Err(kvm_unusable(&format!("/dev/kvm: {error}"))),
            _ => Ok(()),
        }
    }
}

/// Destination of the kernel's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePort {
    /// No port: the kernel keeps the trace in memory and sends it over the second UART at the end.
    None,
    /// A port whose data goes to a file while the machine runs.
    File,
    /// A port whose data goes to a pipe without a reader.
    Unread,
}

/// One boot.
#[derive(Clone, Debug)]
pub struct Request {
    /// The PMU.
    pub pmu: Pmu,
    /// What executes the guest's instructions.
    pub accel: Accel,
    /// Number of CPUs.
    pub cpus: usize,
    /// The kernel's command line.
    pub command_line: String,
    /// The machine is killed after this time.
    pub time_limit: Duration,
    /// Whether the machine has the virtual PMU; under TCG there is no other.
    pub virtual_pmu: bool,
    /// Further options of the virtual PMU, each `name=value` (qemu/README.md).
    pub vpmu: Vec<String>,
    /// Whether to boot the disk image, which has its own command line.
    pub from_disk: bool,
    /// Destination of the trace.
    pub trace_port: TracePort,
    /// A device that the machine lacks, by QEMU's name.
    pub lacks: Option<&'static str>,
    /// Path of a socket for QEMU's gdb stub, if the machine waits for gdb; then it has no time
    /// limit.
    pub gdb: Option<PathBuf>,
    /// Further arguments of QEMU, after all others.
    pub qemu_args: Vec<String>,
}

impl Request {
    /// A machine with one CPU under TCG and Intel's virtual PMU.
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
            gdb: None,
            qemu_args: Vec::new(),
        }
    }
}

/// One boot of Linux.
#[derive(Clone, Copy, Debug)]
pub struct LinuxGuest<'a> {
    /// QEMU.
    pub qemu: &'a setup::Qemu,
    /// The kernel and its programs.
    pub linux: &'a setup::Linux,
    /// The virtual PMU, if the machine has one.
    pub plugin: Option<&'a Path>,
    /// Further options of the virtual PMU.
    pub vpmu: &'a [String],
    /// The PMU.
    pub pmu: Pmu,
    /// Number of CPUs.
    pub cpus: usize,
    /// Files of the host that the guest has under their own names, in the folder in which the
    /// command runs.
    pub files: &'a [PathBuf],
    /// Whether the kernel's log is shown.
    pub verbose: bool,
    /// The machine is killed after this time.
    pub time_limit: Duration,
}

/// The failure that KVM is not usable.
pub(super) fn kvm_unusable(why: &str) -> Failure {
    Failure::new(
        ExitStatus::KvmUnusable,
        format!(
            "KVM cannot run a guest here ({why}): run without `--accel kvm`, or on a machine whose \
             processor and permissions support it"
        ),
    )
}
