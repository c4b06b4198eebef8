//! The records of a trace, by their types.

use tally_abi::trace::{
    AccessRecord, BranchesRecord, LostRecord, MapRecord, PhaseRecord, Record, RegistersRecord,
    SampleRecord, SignalRecord, SliceRecord, StackRecord, SwitchRecord, SyscallRecord,
    ThreadNameRecord, ThresholdRecord,
};

use super::file::{Bad, Trace};

/// The records of a trace; those of one CPU are in the order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// Slices.
    pub slices: Vec<SliceRecord>,
    /// Thresholds that fired.
    pub thresholds: Vec<ThresholdRecord>,
    /// Samples.
    pub samples: Vec<SampleRecord>,
    /// Memory accesses of samples.
    pub accesses: Vec<AccessRecord>,
    /// System calls.
    pub syscalls: Vec<SyscallRecord>,
    /// Context switches.
    pub switches: Vec<SwitchRecord>,
    /// Signals.
    pub signals: Vec<SignalRecord>,
    /// Code that programs mapped.
    pub maps: Vec<MapRecord>,
    /// Names of threads.
    pub thread_names: Vec<ThreadNameRecord>,
    /// Intervals whose phases were tracked.
    pub phases: Vec<PhaseRecord>,
    /// Registers of samples.
    pub registers: Vec<RegistersRecord>,
    /// Parts of the stacks of samples.
    pub stacks: Vec<StackRecord>,
    /// Parts of the branches of samples.
    pub branches: Vec<BranchesRecord>,
    /// Records of losses.
    pub losses: Vec<LostRecord>,
    /// Records that this version does not understand.
    pub unreadable: u64,
}

impl Records {
    /// The earliest time stamp of any record, if there is one.
    pub fn start_tsc(&self) -> Option<u64> {
        let starts = [
            self.slices.iter().map(|of| of.start_tsc).min(),
            self.thresholds.iter().map(|of| of.tsc).min(),
            self.samples.iter().map(|of| of.tsc).min(),
            self.syscalls.iter().map(|of| of.start_tsc).min(),
            self.switches.iter().map(|of| of.tsc).min(),
            self.signals.iter().map(|of| of.tsc).min(),
            self.maps.iter().map(|of| of.tsc).min(),
            self.thread_names.iter().map(|of| of.tsc).min(),
            self.phases.iter().map(|of| of.tsc).min(),
            self.registers.iter().map(|of| of.sample_tsc).min(),
            self.losses.iter().map(|of| of.tsc).min(),
        ];
        starts.into_iter().flatten().min()
    }

    /// Reads the rest of a trace: the records up to its end or its first error, and that error.
    pub fn read(trace: Trace<'_>) -> (Records, Option<Bad>) {
        let mut all = Records::default();
        for raw in trace {
            let raw = match raw {
                Ok(raw) => raw,
                Err(bad) => return (all, Some(bad)),
            };
            match Record::decode(raw.kind, raw.tsc, &raw.words) {
                Ok(Record::Slice(record)) => all.slices.push(record),
                Ok(Record::Threshold(record)) => all.thresholds.push(record),
                Ok(Record::Sample(record)) => all.samples.push(record),
                Ok(Record::Access(record)) => all.accesses.push(record),
                Ok(Record::Syscall(record)) => all.syscalls.push(record),
                Ok(Record::Switch(record)) => all.switches.push(record),
                Ok(Record::Signal(record)) => all.signals.push(record),
                Ok(Record::Map(record)) => all.maps.push(record),
                Ok(Record::ThreadName(record)) => all.thread_names.push(record),
                Ok(Record::Phase(record)) => all.phases.push(record),
                Ok(Record::Registers(record)) => all.registers.push(record),
                Ok(Record::Stack(record)) => all.stacks.push(record),
                Ok(Record::Branches(record)) => all.branches.push(record),
                Ok(Record::Lost(record)) => all.losses.push(record),
                // The kernel's messages have the same content.
                Ok(Record::Ring(_)) => {}
                Err(_) => all.unreadable += 1,
            }
        }
        (all, None)
    }
}
