//! QEMU's command line.

use std::{path::Path, process::Command};

use tally_abi::{
    ExitStatus,
    boot::{DEBUG_EXIT_PORT, FW_CFG_COMMAND_LINE},
    loader::{FILES_END, LoadedFile, LoadedFiles},
};

use tally_vpmu::QemuMachine;

use super::{
    artefacts::Artefacts,
    folder::Folder,
    profile::{Pmu, ProfileName},
    request::{Accel, LinuxGuest, Request, TracePort, default_memory_mib},
};
use crate::{Failure, Result, boot_files::BootFiles, project, setup::Qemu};

/// Bytes of a block of the ramdisk's archive.
const BLOCK: usize = 512;

/// Maximum number of CPUs of QEMU's machine `pc`.
const MAX_PC_CPUS: usize = 255;

/// Number of CPUs whose stacks and state take less than 64 MiB.
const MANY_CPUS: usize = 128;

/// Escapes a value of QEMU's option lists: a comma within it is written twice.
fn value(text: &str) -> String {
    text.replace(',', ",,")
}

fn path_value(path: &Path) -> String {
    value(&path.to_string_lossy())
}

/// QEMU's call for a machine without default devices and without `lacks`. Without a keyboard
/// controller the firmware does not wait for a keyboard, which took a sixth of the boot time.
fn plain(qemu: &Qemu, memory: &str, lacks: Option<&str>) -> Command {
    let mut qemu = qemu.command();
    qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    let lacks = lacks.map_or(String::new(), |part| format!(",{part}=off"));
    qemu.arg("-machine").arg(format!("pc,i8042=off{lacks}")).args(["-m", memory]);
    qemu
}

/// QEMU's call for Tally's kernel.
pub(super) fn qemu(
    artefacts: &Artefacts,
    ramdisk: &Path,
    request: &Request,
    folder: &Folder,
) -> Result<Command> {
    let machine = request.pmu.machine();
    let for_cpus = if request.memory_mib.is_some() { 0 } else { request.cpus / MANY_CPUS };
    let mib = memory_for(length(ramdisk)?, request.memory_mib)? + 64 * for_cpus as u64;
    let mut qemu = plain(&artefacts.qemu, &format!("{mib}M"), request.lacks);
    match request.accel {
        Accel::Tcg => {
            tcg(&mut qemu, request.cpus, request.single_instructions, machine);
            if request.virtual_pmu {
                let plugin = &artefacts.plugin;
                virtual_pmu(&mut qemu, plugin, request.pmu, folder, &request.vpmu);
            }
        }
        Accel::Kvm => {
            qemu.args(["-accel", "kvm", "-cpu", "host,pmu=on"]);
        }
    }
    gdb_socket(&mut qemu, request);
    qemu.arg("-smp").arg(request.cpus.to_string());
    if request.cpus > MAX_PC_CPUS {
        qemu.args(["-machine", "q35"]);
    }
    match &artefacts.disk {
        Some(disk) if request.from_disk => from_disk(&mut qemu, &artefacts.qemu.firmware, disk),
        _ => from_files(&mut qemu, &artefacts.boot, ramdisk, request, folder)?,
    }
    if let Some(application) = artefacts.five_levels.as_ref().filter(|_| request.five_levels) {
        // The firmware starts the application before any disk.
        qemu.arg("-kernel").arg(application);
    }
    if request.serial_ports {
        qemu.arg("-serial").arg(format!("file:{}", folder.log().display()));
        let [to, from] = [folder.wire(), folder.requests()].map(|path| path_value(&path));
        qemu.arg("-chardev").arg(format!("file,id=wire,path={to},input-path={from}"));
        qemu.args(["-serial", "chardev:wire"]);
    }
    ports(&mut qemu, request, folder)?;
    qemu.arg("-device").arg(format!("isa-debug-exit,iobase={DEBUG_EXIT_PORT:#x},iosize=4"));
    qemu.args(&request.qemu_args);
    Ok(qemu)
}

/// The memory of a machine whose ramdisk has `bytes` bytes, in MiB: as `given`, or the default.
///
/// # Errors
/// The memory cannot hold the ramdisk.
pub fn memory_for(bytes: u64, given: Option<u64>) -> Result<u64> {
    let needed = default_memory_mib(bytes);
    let mib = given.unwrap_or(needed);
    if mib < needed {
        let why = format!(
            "the machine's files have {} MiB, which {mib} MiB of memory cannot hold while it boots: \
             use --memory {needed}M or more",
            bytes >> 20,
        );
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    Ok(mib)
}

/// Adds the socket of the gdb stub.
fn gdb_socket(qemu: &mut Command, request: &Request) {
    if let Some(socket) = &request.gdb {
        let listen = format!("unix:{},server=on,wait=off", path_value(socket));
        qemu.arg("-S").arg("-gdb").arg(listen);
    }
}

/// Adds the ports of the trace and of files.
fn ports(qemu: &mut Command, request: &Request, folder: &Folder) -> Result<()> {
    let trace = trace_file(request.trace_port, folder)?;
    if trace.is_none() && !request.files {
        return Ok(());
    }
    // Without an event descriptor the vCPU's thread handles each notification before the guest's
    // next instruction, so that equal seeds give equal runs.
    qemu.args(["-device", "virtio-serial-pci,disable-legacy=on,ioeventfd=off,max_ports=3"]);
    let mut port = |name: &str, number: u8, kind: &str, path: &Path| {
        qemu.arg("-chardev").arg(format!("{kind},id={name},path={}", path_value(path)));
        let device = format!("virtserialport,chardev={name},nr={number},name=tally.{name}");
        qemu.arg("-device").arg(device);
    };
    if let Some(kind) = trace {
        port("trace", 1, kind, &folder.trace());
    }
    if request.files {
        port("files", 2, "file", &folder.files());
    }
    Ok(())
}

/// The kind of the trace port's file; `None` without a trace port.
fn trace_file(port: TracePort, folder: &Folder) -> Result<Option<&'static str>> {
    let path = folder.trace();
    Ok(Some(match port {
        TracePort::None => return Ok(None),
        TracePort::File => "file",
        TracePort::Unread => {
            let made = rustix::fs::mkfifoat(
                rustix::fs::CWD,
                &path,
                rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            );
            made.map_err(|error| Failure::io("make", &path, &error.into()))?;
            "pipe"
        }
    }))
}

fn from_disk(qemu: &mut Command, firmware: &Path, disk: &Path) {
    let firmware = path_value(firmware);
    qemu.arg("-drive").arg(format!("if=pflash,format=raw,readonly=on,file={firmware}"));
    qemu.arg("-drive")
        .arg(format!("if=none,id=disk,format=raw,snapshot=on,file={}", path_value(disk)));
    // QEMU starts a kernel by index 0.
    qemu.args(["-device", "virtio-blk-pci,drive=disk,bootindex=1"]);
}

/// Makes QEMU put the files into the machine's memory before it starts, so that nothing waits for
/// the host (docs/decisions/0032-boot-by-pvh.md).
fn from_files(
    qemu: &mut Command,
    boot: &BootFiles,
    ramdisk: &Path,
    request: &Request,
    folder: &Folder,
) -> Result<()> {
    let place = |ramdisk: &Path| {
        let files = LoadedFiles::place(length(&boot.kernel)?, length(ramdisk)?);
        files.ok_or_else(|| {
            let why = format!("the machine's files have more than {} MiB", FILES_END >> 20);
            Failure::new(ExitStatus::Usage, why)
        })
    };
    let mut files = place(ramdisk)?;
    let mut ramdisk = ramdisk.to_owned();
    if let Some(tables) = request.tables {
        // Append the tables after the ramdisk's end, where nothing reads them as an archive and
        // nothing else is placed.
        let mut bytes = project::read(&ramdisk)?;
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        let rsdp = files.ramdisk.start + bytes.len() as u64;
        bytes.extend(tables.make(rsdp));
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        ramdisk = folder.file("ramdisk-with-tables");
        project::write(&ramdisk, &bytes)?;
        files = LoadedFiles { rsdp: Some(rsdp), ..place(&ramdisk)? };
    }
    qemu.arg("-kernel").arg(&boot.loader).arg("-append").arg(files.to_string());
    let places = [(&*boot.kernel, files.kernel), (&*ramdisk, files.ramdisk)];
    for (path, LoadedFile { start, .. }) in places {
        let file = path_value(path);
        qemu.arg("-device").arg(format!("loader,force-raw=on,addr={start:#x},file={file}"));
    }
    let line = value(&request.command_line);
    qemu.arg("-fw_cfg").arg(format!("name={FW_CFG_COMMAND_LINE},string={line}"));
    Ok(())
}

/// The size of a file in bytes.
fn length(path: &Path) -> Result<u64> {
    Ok(std::fs::metadata(path).map_err(|error| Failure::io("read", path, &error))?.len())
}

/// QEMU's call for Linux, whose console goes to the log.
pub fn linux(guest: &LinuxGuest<'_>, initramfs: &Path, folder: &Folder) -> Command {
    let mut qemu = plain(guest.qemu, "1G", None);
    tcg(&mut qemu, guest.cpus, false, guest.pmu.machine());
    if let Some(plugin) = guest.plugin {
        virtual_pmu(&mut qemu, plugin, guest.pmu, folder, guest.vpmu);
    }
    qemu.arg("-smp").arg(guest.cpus.to_string());
    qemu.arg("-kernel").arg(&guest.linux.kernel).arg("-initrd").arg(initramfs);
    // The watchdog would use a counter; a panic must end the machine.
    let quiet = if guest.verbose { "" } else { " quiet" };
    qemu.arg("-append").arg(format!("console=ttyS0 panic=-1 nmi_watchdog=0{quiet}"));
    qemu.arg("-serial").arg(format!("file:{}", folder.log().display()));
    qemu
}

/// QEMU's call for the check guest, whose output goes to the log.
pub fn check_guest(
    qemu: &Qemu,
    plugin: &Path,
    guest: &Path,
    profile: ProfileName,
    options: &str,
    folder: &Folder,
) -> Command {
    let mut qemu = plain(qemu, "256M", None);
    qemu.args(["-accel", "tcg"]);
    qemu.arg("-cpu").arg(format!("max,vendor={}", profile.vendor()));
    let options = if options.is_empty() { String::new() } else { format!(",{options}") };
    qemu.arg("-plugin").arg(format!(
        "{},profile={},truth={},series={},every=10000i{options}",
        path_value(plugin),
        profile.name(),
        path_value(&folder.truth()),
        path_value(&folder.series())
    ));
    qemu.arg("-kernel").arg(guest);
    qemu.arg("-device").arg(format!("isa-debug-exit,iobase={DEBUG_EXIT_PORT:#x},iosize=4"));
    qemu.arg("-serial").arg(format!("file:{}", folder.log().display()));
    qemu
}

fn tcg(qemu: &mut Command, cpus: usize, single_instructions: bool, m: &QemuMachine) {
    let single = if single_instructions { ",one-insn-per-tb=on" } else { "" };
    if cpus == 1 {
        // One instruction is one nanosecond of virtual time, so that equal runs are identical.
        qemu.arg("-accel").arg(format!("tcg{single}")).args(["-icount", "shift=0,sleep=off"]);
        qemu.args(["-rtc", "base=2026-01-01,clock=vm"]);
        // With -icount, QEMU's x2APIC timer aborts QEMU ("Bad icount read").
        qemu.arg("-cpu").arg(format!("{},-x2apic", m.cpu));
    } else {
        // With all vCPUs on one thread, QEMU gives plugins wrong vCPU numbers.
        qemu.arg("-accel").arg(format!("tcg,thread=multi{single}"));
        qemu.arg("-cpu").arg(m.cpu);
    }
}

fn virtual_pmu(qemu: &mut Command, plugin: &Path, pmu: Pmu, folder: &Folder, options: &[String]) {
    let mut argument = format!(
        "{},profile={},counters={},truth={}",
        path_value(plugin),
        pmu.profile().name,
        pmu.machine().counters,
        path_value(&folder.truth())
    );
    for option in options {
        argument += &format!(",{}", value(option));
    }
    qemu.arg("-plugin").arg(argument);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_are_doubled() {
        assert_eq!(value("--events a,b"), "--events a,,b");
    }
}
