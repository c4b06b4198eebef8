//! Reads a session's samples while the kernel takes them, each with its memory access and its
//! branches.

use alloc::vec::Vec;
use core::arch::x86_64::__cpuid;

use tally_abi::{Error, trace::Record};
pub use tally_abi::{
    access::{Access, Encoding, Source, is_of_stores},
    branches::{Branch, BranchFilter, BranchType},
    trace::{AccessRecord, SampleRecord},
};
use tally_ring::Item;

use crate::{Session, trace::TraceReader};

/// A sample with what the processor recorded for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The sample.
    pub record: SampleRecord,
    /// The memory access, in the processor's words: of a precise event that has one.
    pub access: Option<AccessRecord>,
    /// The branches that were taken last before the sample, the last one first, if the session
    /// samples with branches ([`Session::sample_with_branches`]).
    pub branches: Vec<Branch>,
}

impl Sample {
    /// The memory access. `encoding` is the processor's ([`encoding`]); `of_stores` is of the event
    /// ([`is_of_stores`]), and is used on Intel, whose records do not tell.
    pub fn access(&self, encoding: Encoding, of_stores: bool) -> Option<Access> {
        self.access.as_ref().map(|record| Access::of(record, encoding, of_stores))
    }

    /// Adds a record that belongs to the sample. Returns whether it does.
    fn add(&mut self, record: &Record) -> bool {
        match record {
            Record::Access(access) => {
                let is_own = access.tsc == self.record.tsc && access.event == self.record.event;
                if is_own {
                    self.access = Some(*access);
                }
                is_own
            }
            Record::Branches(part) => {
                let is_own = part.sample_tsc == self.record.tsc;
                if is_own && usize::from(part.first) == self.branches.len() {
                    self.branches.extend(part.branches());
                }
                is_own
            }
            Record::Registers(part) => part.sample_tsc == self.record.tsc,
            Record::Stack(part) => part.sample_tsc == self.record.tsc,
            _ => false,
        }
    }
}

/// A CPU's samples.
#[derive(Debug)]
struct OfCpu {
    reader: TraceReader,
    /// The last sample, whose parts may follow.
    last: Option<Sample>,
}

/// Reader of a session's samples in the trace rings of all CPUs. It affects neither the kernel nor
/// the host. Samples of one CPU are in the order of time.
#[derive(Debug)]
pub struct SampleReader {
    session: u32,
    cpus: Vec<OfCpu>,
    lost: u64,
}

impl SampleReader {
    /// Maps the rings, which stay mapped until the program ends. Reading starts with the session's
    /// oldest sample in them.
    ///
    /// # Errors
    /// `NotPermitted`: the kernel was booted without `paranoid=0`, and a ring has the records of
    /// all programs. `WrongState`: the kernel keeps no trace.
    pub fn open(session: &Session) -> Result<SampleReader, Error> {
        let mut cpus = Vec::new();
        loop {
            match TraceReader::open(cpus.len() as u16) {
                Ok(reader) => cpus.push(OfCpu { reader, last: None }),
                Err(Error::BadArgument) if !cpus.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        // The kernel numbers sessions with 32 bits.
        Ok(SampleReader { session: session.id() as u32, cpus, lost: 0 })
    }

    /// Calls `each` with the samples that are new. Each CPU's last one is kept until another record
    /// follows it, as its parts may not have been written yet.
    pub fn read(&mut self, mut each: impl FnMut(Sample)) {
        for cpu in &mut self.cpus {
            while let Some(item) = cpu.reader.take() {
                let record = match item {
                    Item::Record { kind, tsc, words } => Record::decode(kind, tsc, &words[1..]),
                    Item::Lost(records) => {
                        // Parts of the last sample may be among them.
                        self.lost += records + u64::from(cpu.last.take().is_some());
                        continue;
                    }
                };
                let Ok(record) = record else { continue };
                if cpu.last.as_mut().is_some_and(|last| last.add(&record)) {
                    continue;
                }
                cpu.last.take().into_iter().for_each(&mut each);
                if let Record::Sample(record) = record
                    && record.session == self.session
                {
                    cpu.last = Some(Sample { record, access: None, branches: Vec::new() });
                }
            }
        }
    }

    /// Calls `each` with the samples that are new, each CPU's last one among them: for a session
    /// that has stopped.
    pub fn read_to_the_end(&mut self, mut each: impl FnMut(Sample)) {
        self.read(&mut each);
        self.cpus.iter_mut().filter_map(|cpu| cpu.last.take()).for_each(each);
    }

    /// Records of all programs that the kernel overwrote before they were read.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// The encoding of memory accesses on this processor, by CPUID.
pub fn encoding() -> Encoding {
    let (first, version) = (__cpuid(0), __cpuid(1).eax);
    let mut vendor = [0; 12];
    for (part, word) in vendor.chunks_exact_mut(4).zip([first.ebx, first.edx, first.ecx]) {
        part.copy_from_slice(&word.to_le_bytes());
    }
    let [base, extended] = [version >> 8 & 0xf, version >> 20 & 0xff];
    let family = if base == 0xf { base + extended } else { base };
    let model = version >> 4 & 0xf | version >> 12 & 0xf0;
    Encoding::of(str::from_utf8(&vendor).unwrap_or_default(), family as u16, model as u8)
}
