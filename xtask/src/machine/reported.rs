//! The contents of the kernel's messages, by kind.

use std::time::Duration;

use tally_abi::{
    Mode, Reading, SessionConfig, SessionStats,
    boot::JobNumber,
    halt::{HaltTimer, Halts},
    registers::Registers,
    trace::SlicePlace,
};

use crate::symbols::Stack;

/// Bytes that a program wrote in one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutput {
    /// The program's number.
    pub pid: u32,
    /// The descriptor: 1 or 2.
    pub fd: u8,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// QEMU's processor time when the output was read.
    pub seen_at: Duration,
}

/// A logical counter of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct EventReading {
    /// Name of the counter.
    pub name: String,
    /// The catalogue's name of the event, if it has one.
    pub native: Option<String>,
    /// The privilege levels at which it was counted.
    pub mode: Mode,
    /// Place of its counts in the trace's records of slices.
    pub place: SlicePlace,
    /// Last value.
    pub reading: Reading,
    /// The counter unit's count, if the unit counted it too.
    pub unit: Option<u64>,
}

/// A session that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The number of the program that it measured.
    pub pid: u32,
    /// The program's name.
    pub program: String,
    /// The program's address space: CR3's page-table base, a physical address.
    pub address_space: u64,
    /// Configuration of the session.
    pub config: SessionConfig,
    /// The session's job, if the machine has several.
    pub job: Option<JobNumber>,
    /// Logical counters, in the order of the messages.
    pub readings: Vec<EventReading>,
    /// The engine's statistics.
    pub stats: Option<SessionStats>,
}

/// The PMU that the kernel detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedPmu {
    /// The processor's vendor, as in CPUID.
    pub vendor: String,
    /// The display family in CPUID.
    pub family: u16,
    /// The display model in CPUID.
    pub model: u8,
    /// Driver and version.
    pub name: String,
    /// Catalogue of events.
    pub catalogue: String,
    /// General counters.
    pub general: u8,
    /// Pinned events.
    pub pinned: u8,
    /// Width of a general counter, in bits.
    pub width_bits: u8,
}

/// The kernel's state after boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booted {
    /// Number of CPUs.
    pub cpus: u32,
    /// Memory that the kernel uses, in bytes.
    pub memory_bytes: u64,
    /// The seed.
    pub seed: u64,
    /// Frequency of the time-stamp counter, in Hz; 0 if the kernel does not know it.
    pub tsc_hz: u64,
    /// The PMU, if there is one.
    pub pmu: Option<ReportedPmu>,
}

/// The state of a trace ring at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingTotals {
    /// CPU of the ring.
    pub cpu: u16,
    /// Records that the engine wrote.
    pub written: u64,
    /// Records that the host has received.
    pub read: u64,
    /// Records lost because the ring was full.
    pub lost: u64,
    /// Times that the CPU waited until the host had all records (`trace=halt`).
    pub waits: u64,
}

/// The machine's halts, on all CPUs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halted {
    /// The requested halts.
    pub halts: Halts,
    /// State of the scheduler's timer during halts.
    pub timer: HaltTimer,
    /// Number of halts.
    pub count: u64,
    /// Core cycles of all halts.
    pub cycles: u64,
}

/// A panic of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panic {
    /// Message and source line.
    pub message: String,
    /// The processor at the exception, or in the panic handler.
    pub registers: Registers,
    /// The stack in use.
    pub stack: Stack,
}
