//! `cargo xtask study machines`: the default job on machines of many kinds. Each must boot and
//! count, or report why it cannot.

use clap::Args;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    job::Job,
    machine::{self, Artefacts, Pmu, Request, Tables},
    project::Project,
};

use super::{
    programs::PMUS,
    verdict::{self, Candidate},
};

/// The kernel's options.
const OPTIONS: &str = "wire check-counters";

/// Features that processors lack, one each.
const LACKING: [&str; 12] = [
    "smep",
    "smap",
    "umip",
    "fsgsbase",
    "pcid",
    "invpcid",
    "xsave",
    "rdtscp",
    "pdpe1gb",
    "avx",
    "tsc-deadline",
    "nx",
];

/// Memory whose unused part takes no host memory.
const SPARSE: [&str; 6] = [
    "-object",
    "memory-backend-ram,id=m,size=1T,reserve=off",
    "-m",
    "1T",
    "-machine",
    "memory-backend=m",
];
const NUMA: [&str; 8] = [
    "-object",
    "memory-backend-ram,id=a,size=128M",
    "-object",
    "memory-backend-ram,id=b,size=128M",
    "-numa",
    "node,cpus=0-1,memdev=a",
    "-numa",
    "node,cpus=2-3,memdev=b",
];
/// The third CPU's APIC ID is 256, the first of the ninth socket of 32.
const ABOVE_255: [&str; 8] = [
    "-machine",
    "q35",
    "-device",
    "intel-iommu,intremap=on,eim=on",
    "-smp",
    "2,sockets=12,cores=17,threads=1,maxcpus=204",
    "-device",
    "max-x86_64-cpu,socket-id=8,core-id=0,thread-id=0",
];

/// Method of booting the kernel, and of getting its results.
#[derive(Clone, Copy, PartialEq)]
enum By {
    /// QEMU's loader; the second serial port.
    Files,
    /// UEFI firmware, from the disk image; the second serial port.
    Disk,
    /// UEFI firmware, from the disk image, with five-level paging enabled by the firmware.
    FiveLevels,
    /// UEFI firmware, from the disk image; codes on the screen, without a serial port.
    Codes,
}

/// A kind of machine.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    by: By,
    cpus: usize,
    /// Flags of the processor, after QEMU's name of it.
    flags: &'static str,
    /// Further arguments of QEMU.
    qemu: &'static [&'static str],
    /// Options of the virtual PMU, which a vendor may not support.
    vpmu: &'static [&'static str],
    /// ACPI tables, if they are not the firmware's.
    tables: Option<Tables>,
}

const fn kind(
    name: &'static str,
    cpus: usize,
    flags: &'static str,
    qemu: &'static [&'static str],
) -> Kind {
    Kind { name, by: By::Files, cpus, flags, qemu, vpmu: &[], tables: None }
}

const fn uefi(by: By, name: &'static str, cpus: usize, qemu: &'static [&'static str]) -> Kind {
    Kind { by, ..kind(name, cpus, "", qemu) }
}

const KINDS: [Kind; 28] = [
    kind("pc", 1, "", &[]),
    kind("q35", 1, "", &["-machine", "q35"]),
    kind("q35, 2 CPUs", 2, "", &["-machine", "q35"]),
    kind("16 CPUs", 16, "", &[]),
    kind("64 CPUs", 64, "", &[]),
    kind("80 CPUs", 80, "", &[]),
    kind("300 CPUs", 300, "", &[]),
    kind("APIC IDs with holes", 6, "", &["-smp", "6,sockets=2,cores=3,threads=1"]),
    kind("APIC IDs above 255", 2, "", &ABOVE_255),
    kind("two NUMA nodes", 4, "", &NUMA),
    kind("no PIT", 1, "", &["-machine", "pit=off"]),
    kind("no HPET", 1, "", &["-machine", "hpet=off"]),
    kind("no PIT, no HPET", 1, "", &["-machine", "pit=off,hpet=off"]),
    kind("no ACPI", 1, "", &["-machine", "acpi=off"]),
    kind("no PIT, no ACPI", 1, "", &["-machine", "pit=off,acpi=off"]),
    Kind {
        vpmu: &["tsc=1000000000"],
        ..kind("no clock, CPUID tells TSC", 1, "", &["-machine", "pit=off,acpi=off"])
    },
    kind("IOMMU", 1, "", &["-machine", "q35", "-device", "intel-iommu"]),
    kind("4 GiB", 1, "", &["-m", "4G"]),
    kind("4 GiB, a hole from 1 GiB", 1, "", &["-m", "4G", "-machine", "max-ram-below-4g=1G"]),
    kind("1 TiB, 46 bits of address", 1, ",phys-bits=46", &SPARSE),
    kind("1 TiB, 52 bits of address", 1, ",phys-bits=52", &SPARSE),
    kind("five levels, not in use", 1, ",+la57", &[]),
    uefi(By::Disk, "UEFI, no framebuffer", 1, &["-vga", "none"]),
    uefi(By::Disk, "UEFI, framebuffer, 4 CPUs", 4, &["-device", "VGA"]),
    uefi(By::Disk, "UEFI, q35", 2, &["-machine", "q35"]),
    Kind { flags: ",+la57", ..uefi(By::Disk, "UEFI, five levels, not in use", 1, &[]) },
    Kind { flags: ",+la57", ..uefi(By::FiveLevels, "UEFI, five levels, left on", 1, &[]) },
    uefi(By::Codes, "UEFI, no serial port", 1, &CODES),
];
/// The kernel's command line for a machine without serial ports, whose pages of codes follow each
/// other quickly.
const CODES: [&str; 2] =
    ["-fw_cfg", "name=opt/tally/cmdline,string=codes=100 check-counters -- deflate"];

/// All kinds, and machines whose processor lacks a feature.
fn kinds() -> impl Iterator<Item = (String, Kind, String)> {
    let named = |kind: Kind| (kind.name.to_owned(), kind, kind.flags.to_owned());
    let lacking = |flag| (format!("no {flag}"), kind("", 1, "", &[]), format!(",-{flag}"));
    let lying = |tables| {
        let kind = Kind { tables: Some(tables), ..kind("", 2, "", &[]) };
        (format!("ACPI: {tables:?}"), kind, String::new())
    };
    let all = KINDS.into_iter().map(named).chain(LACKING.into_iter().map(lacking));
    all.chain(Tables::ALL.into_iter().map(lying))
}

/// Options of `cargo xtask study machines`.
#[derive(Args, Clone, Debug)]
pub struct MachinesArgs {
    /// Boot only the machines with one of these texts in their names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

impl Kind {
    /// The options of the virtual PMU.
    fn options(&self) -> Vec<String> {
        self.vpmu.iter().map(|option| (*option).to_owned()).collect()
    }

    /// The machine, with these flags of the processor.
    fn request(&self, pmu: Pmu, flags: &str) -> Request {
        let line = Job::default().command_line(OPTIONS);
        let mut qemu_args: Vec<String> = self.qemu.iter().map(|word| (*word).to_owned()).collect();
        if !flags.is_empty() {
            // The x2APIC is off, as in every machine with one CPU under the virtual PMU.
            qemu_args.extend(["-cpu".to_owned(), format!("{},-x2apic{flags}", pmu.qemu_cpu())]);
        }
        let (from_disk, serial_ports) = (self.by != By::Files, self.by != By::Codes);
        let (cpus, tables) = (self.cpus, self.tables);
        let vpmu = self.options();
        Request {
            pmu,
            cpus,
            qemu_args,
            vpmu,
            tables,
            from_disk,
            five_levels: self.by == By::FiveLevels,
            serial_ports,
            ..Request::new(line)
        }
    }
}

pub(super) fn main(project: &Project, args: &MachinesArgs) -> Result<u8> {
    let of_vendor = |(pmu, machine)| {
        let can_have = move |(_, kind, _): &(String, Kind, String)| {
            machine::check_vpmu(pmu, &kind.options(), 1).is_ok()
        };
        kinds().filter(can_have).map(move |(with, kind, flags)| Candidate {
            machine,
            with,
            request: kind.request(pmu, &flags),
            by_codes: kind.by == By::Codes,
        })
    };
    let is_wanted = |candidate: &Candidate| {
        args.names.is_empty() || args.names.iter().any(|name| candidate.with.contains(name))
    };
    let all: Vec<Candidate> = PMUS.into_iter().flat_map(of_vendor).filter(is_wanted).collect();
    if all.is_empty() {
        let why = format!("no machine has {} in its name", args.names.join(" or "));
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    let artefacts = Artefacts::make_with_disk(project, &Job::default().command_line(OPTIONS))?;
    verdict::judge(&artefacts, &all, args.json)
}
