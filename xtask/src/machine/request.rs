//! Descriptions of the machines to boot.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueEnum;
use tally_abi::{ExitStatus, boot::CommandLine};

use super::{profile::Pmu, tables::Tables};
use crate::{Failure, Result, setup};

/// The default time limit of a boot.
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(120);

/// Executor of the guest's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Accel {
    /// QEMU's own translator, with Tally's virtual PMU
    #[default]
    Tcg,
    /// The host's processor and its PMU, by KVM
    Kvm,
}

impl Accel {
    /// Checks that the host supports it.
    ///
    /// # Errors
    /// With KVM: this user cannot open `/dev/kvm`.
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

/// The memory of a machine without large files, in MiB.
const MEMORY_MIB: u64 = 256;
/// The largest ramdisk for which `MEMORY_MIB` is enough, in MiB.
const SMALL_RAMDISK_MIB: u64 = 48;
/// Maximum memory of a machine, in MiB.
const MAX_MEMORY_MIB: u64 = 16 << 10;

/// The memory of a machine with a ramdisk of this size, in MiB. It leaves room for programs, and
/// for a second copy of the ramdisk that the UEFI boot loader has while it boots from a disk.
pub fn default_memory_mib(ramdisk_bytes: u64) -> u64 {
    match ramdisk_bytes >> 20 {
        0..SMALL_RAMDISK_MIB => MEMORY_MIB,
        mib => (MEMORY_MIB + 2 * mib).next_multiple_of(64),
    }
}

/// The memory in MiB that a program of a user can have: half of this host's, so that other programs
/// go on. The translator takes a page when the machine touches it.
pub fn memory_of_host() -> u64 {
    let host = rustix::system::sysinfo();
    let mib = (host.totalram as u64).saturating_mul(host.mem_unit.into()) >> 20;
    (mib / 2).clamp(MEMORY_MIB, MAX_MEMORY_MIB) / 64 * 64
}

/// Parses an amount of memory: MiB, or with the suffix `M` or `G`.
///
/// # Errors
/// The reason, for the user.
pub fn memory_mib(text: &str) -> std::result::Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['G', 'g']) {
        Some(digits) => (digits, 1024),
        None => (text.strip_suffix(['M', 'm']).unwrap_or(text), 1),
    };
    let mib = digits.parse::<u64>().ok().and_then(|amount| amount.checked_mul(unit));
    mib.filter(|mib| (MEMORY_MIB..=MAX_MEMORY_MIB).contains(mib))
        .ok_or(format!("use {MEMORY_MIB}M to {MAX_MEMORY_MIB}M"))
}

/// Parses a time limit.
///
/// # Errors
/// The reason, for the user.
pub fn limit_seconds(text: &str) -> std::result::Result<u64, String> {
    let seconds = text.parse::<u64>().ok().filter(|seconds| *seconds > 0);
    seconds.ok_or_else(|| "use a whole number of seconds, 1 or more".to_owned())
}

/// A boot.
#[derive(Clone, Debug)]
pub struct Request {
    /// The PMU.
    pub pmu: Pmu,
    /// Executor of the guest's instructions.
    pub accel: Accel,
    /// Number of CPUs.
    pub cpus: usize,
    /// The machine's memory, in MiB; `None`: [`default_memory_mib`] of its ramdisk.
    pub memory_mib: Option<u64>,
    /// The kernel's command line.
    pub command_line: String,
    /// Time after which the machine is killed.
    pub time_limit: Duration,
    /// Whether the machine has the virtual PMU; under TCG there is no other.
    pub virtual_pmu: bool,
    /// Further options of the virtual PMU, each `name=value` (qemu/README.md).
    pub vpmu: Vec<String>,
    /// Whether to boot the disk image, which has its own command line.
    pub from_disk: bool,
    /// Whether the firmware has five-level paging enabled when it starts the disk's boot loader.
    pub five_levels: bool,
    /// Destination of the trace.
    pub trace_port: TracePort,
    /// Whether the machine has serial ports: one for the log, one for messages.
    pub serial_ports: bool,
    /// Whether the kernel sends the files that programs created or changed.
    pub files: bool,
    /// ACPI tables in place of the firmware's.
    pub tables: Option<Tables>,
    /// A device that the machine lacks, by QEMU's name.
    pub lacks: Option<&'static str>,
    /// Whether TCG translates each instruction separately. Interrupts arrive between blocks of
    /// translated instructions, so they can then arrive between any two instructions, at a tenth of
    /// the speed.
    pub single_instructions: bool,
    /// Path of a socket for QEMU's gdb stub, if the machine waits for gdb.
    pub gdb: Option<PathBuf>,
    /// Further arguments of QEMU, after all others.
    pub qemu_args: Vec<String>,
}

impl Request {
    /// A machine with one CPU under TCG and Intel's virtual PMU.
    pub fn new(command_line: impl Into<String>) -> Request {
        let command_line = command_line.into();
        let line = CommandLine::parse(&command_line);
        let (traced, files) =
            line.map_or((false, false), |line| (line.trace.is_some(), line.send_files));
        Request {
            trace_port: if traced { TracePort::File } else { TracePort::None },
            pmu: Pmu::Intel,
            accel: Accel::Tcg,
            cpus: 1,
            memory_mib: None,
            command_line,
            time_limit: DEFAULT_TIME_LIMIT,
            virtual_pmu: true,
            vpmu: Vec::new(),
            from_disk: false,
            five_levels: false,
            serial_ports: true,
            files,
            tables: None,
            lacks: None,
            single_instructions: false,
            gdb: None,
            qemu_args: Vec::new(),
        }
    }
}

/// A boot of Linux.
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
    /// Files of the host, under their own names in the guest, in the folder in which the command
    /// runs.
    pub files: &'a [PathBuf],
    /// Whether the kernel's log is shown.
    pub verbose: bool,
    /// Time after which the machine is killed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_a_unit_and_a_range() {
        assert_eq!(
            (memory_mib("300"), memory_mib("300M"), memory_mib("2g")),
            (Ok(300), Ok(300), Ok(2048))
        );
        for bad in ["", "M", "255", "17G", "1.5G", "-1", "18446744073709551615G"] {
            assert_eq!(memory_mib(bad), Err("use 256M to 16384M".into()), "{bad}");
        }
    }

    #[test]
    fn a_time_limit_is_refused_in_plain_words() {
        assert_eq!((limit_seconds("1"), limit_seconds("600")), (Ok(1), Ok(600)));
        for bad in ["", "0", "-1", "1.5", "18446744073709551616"] {
            let why = Err("use a whole number of seconds, 1 or more".into());
            assert_eq!(limit_seconds(bad), why, "{bad}");
        }
    }

    #[test]
    fn large_files_get_a_larger_machine() {
        let default = |mib: u64| default_memory_mib(mib << 20);
        assert_eq!((default(10), default(48), default(300)), (256, 384, 896));
    }
}
