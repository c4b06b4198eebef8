//! `cargo xtask study machines`: the default job on machines of many kinds. Each has to boot and
//! count, or to say why not.

use clap::Args;

use super::{
    programs::PMUS,
    verdict::{self, Candidate},
};
use crate::{
    Result,
    job::Job,
    machine::{Pmu, Request},
    project::Project,
};

/// Processors without a feature.
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

/// Memory of which the host gives only what is used.
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
/// The second CPU's APIC ID is that of the next but seven sockets of 32.
const ABOVE_255: [&str; 6] = [
    "-machine",
    "q35",
    "-device",
    "intel-iommu,intremap=on,eim=on",
    "-smp",
    "2,sockets=12,cores=17,threads=1,maxcpus=204",
];

/// A kind of machine.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    cpus: usize,
    /// Flags of the processor, after QEMU's name of it.
    flags: &'static str,
    /// Further arguments of QEMU.
    qemu: &'static [&'static str],
}

const fn kind(
    name: &'static str,
    cpus: usize,
    flags: &'static str,
    qemu: &'static [&'static str],
) -> Kind {
    Kind { name, cpus, flags, qemu }
}

const KINDS: [Kind; 17] = [
    kind("pc", 1, "", &[]),
    kind("q35", 1, "", &["-machine", "q35"]),
    kind("q35, 2 CPUs", 2, "", &["-machine", "q35"]),
    kind("16 CPUs", 16, "", &[]),
    kind("64 CPUs, of which 16 start", 64, "", &[]),
    kind("APIC IDs with holes", 6, "", &["-smp", "6,sockets=2,cores=3,threads=1"]),
    kind("APIC IDs above 255", 2, "", &ABOVE_255),
    kind("two NUMA nodes", 4, "", &NUMA),
    kind("no PIT", 1, "", &["-machine", "pit=off"]),
    kind("no HPET", 1, "", &["-machine", "hpet=off"]),
    kind("no ACPI", 1, "", &["-machine", "acpi=off"]),
    kind("no PIT, no ACPI", 1, "", &["-machine", "pit=off,acpi=off"]),
    kind("IOMMU", 1, "", &["-machine", "q35", "-device", "intel-iommu"]),
    kind("4 GiB", 1, "", &["-m", "4G"]),
    kind("1 TiB, 46 bits of address", 1, ",phys-bits=46", &SPARSE),
    kind("1 TiB, 52 bits of address", 1, ",phys-bits=52", &SPARSE),
    kind("five-level paging, not in use", 1, ",+la57", &[]),
];

/// All kinds, and machines whose processor lacks a feature.
fn kinds() -> impl Iterator<Item = (String, Kind, String)> {
    let named = |kind: Kind| (kind.name.to_owned(), kind, kind.flags.to_owned());
    let lacking = |flag| (format!("no {flag}"), kind("", 1, "", &[]), format!(",-{flag}"));
    KINDS.into_iter().map(named).chain(LACKING.into_iter().map(lacking))
}

/// Options of `cargo xtask study machines`.
#[derive(Args, Clone, Debug)]
pub struct MachinesArgs {
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

impl Kind {
    /// The machine, with these flags of the processor.
    fn request(&self, pmu: Pmu, flags: &str) -> Request {
        let line = Job::default().command_line("wire check-counters");
        let mut qemu_args: Vec<String> = self.qemu.iter().map(|word| (*word).to_owned()).collect();
        if !flags.is_empty() {
            // As of every machine with one CPU under the virtual PMU.
            qemu_args.extend(["-cpu".to_owned(), format!("{},-x2apic{flags}", pmu.qemu_cpu())]);
        }
        Request { pmu, cpus: self.cpus, qemu_args, ..Request::new(line) }
    }
}

pub(super) fn main(project: &Project, args: &MachinesArgs) -> Result<u8> {
    let of_vendor = |(pmu, machine)| {
        kinds().map(move |(with, kind, flags)| Candidate {
            machine,
            with,
            request: kind.request(pmu, &flags),
        })
    };
    let all: Vec<Candidate> = PMUS.into_iter().flat_map(of_vendor).collect();
    verdict::judge(project, &all, args.json)
}
