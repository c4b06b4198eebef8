//! What a machine is to be: the processor's PMU, what executes it, what it boots.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueEnum;
use tally_abi::{ExitStatus, boot::CommandLine};

use super::profile::Pmu;
use crate::{Failure, Result, setup};

/// The time limit of a boot that nobody set another for.
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
    /// Where QEMU's gdb stub is to listen, if the machine is to wait for gdb: the path of a socket. There is no
    /// time limit then.
    pub gdb: Option<PathBuf>,
    /// More arguments for QEMU, behind all others.
    pub qemu_args: Vec<String>,
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
            gdb: None,
            qemu_args: Vec::new(),
        }
    }
}

/// One boot of Linux.
#[derive(Clone, Copy, Debug)]
pub struct Linux<'a> {
    /// QEMU.
    pub qemu: &'a setup::Qemu,
    /// The kernel and its programs.
    pub linux: &'a setup::Linux,
    /// The virtual PMU, unless the machine is to have none.
    pub plugin: Option<&'a Path>,
    /// More options of it.
    pub vpmu: &'a [String],
    /// Whose PMU.
    pub pmu: Pmu,
    /// Processors.
    pub cpus: usize,
    /// Whether the kernel speaks.
    pub verbose: bool,
    /// After this, the machine is killed.
    pub time_limit: Duration,
}

pub(super) fn kvm_unusable(why: &str) -> Failure {
    Failure::new(
        ExitStatus::KvmUnusable,
        format!(
            "KVM cannot run a guest here ({why}); run without `--accel kvm`, or on a machine \
             whose processor and permissions allow it"
        ),
    )
}
