//! Collects the kernel's messages from the second UART.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    time::Duration,
};

use tally_abi::{
    boot::JobNumber,
    trace::{
        LostRecord, MapRecord, PhaseRecord, SampleRecord, SignalRecord, SliceRecord, SwitchRecord,
        SyscallRecord, ThreadNameRecord, ThresholdRecord,
    },
    wire::{MAX_FRAME_BYTES, Message},
};

use super::{
    checked::{CheckedCpu, OfflineCpu},
    files::SentNode,
    outcome::Outcome,
    reported::{
        Booted, EventReading, Halted, Panic, ProgramOutput, ReportedPmu, RingTotals, Session,
    },
};
use crate::{
    symbols::Stack,
    trace_file::{Bad, Records, Trace},
    visible::visible,
};

/// All messages of one boot.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The first message, if it came.
    pub booted: Option<Booted>,
    /// Virtual time from the kernel's entry to its first program, in nanoseconds.
    pub boot_ns: Option<u64>,
    /// Output of all programs.
    pub output: Vec<ProgramOutput>,
    /// Names of the programs that were measured or have ended, by number.
    pub programs: BTreeMap<u32, String>,
    /// Sessions by number.
    pub sessions: BTreeMap<u32, Session>,
    /// The trace file's bytes, if the run has a trace.
    pub trace: Vec<u8>,
    /// The trace's first error, if it has one.
    pub bad_trace: Option<Bad>,
    /// The trace's slices; those of one CPU are in the order of time.
    pub slices: Vec<SliceRecord>,
    /// The trace's thresholds that fired, in the order of `slices`.
    pub thresholds: Vec<ThresholdRecord>,
    /// The trace's samples.
    pub samples: Vec<SampleRecord>,
    /// The trace's system calls.
    pub syscalls: Vec<SyscallRecord>,
    /// The trace's context switches.
    pub switches: Vec<SwitchRecord>,
    /// The trace's signals.
    pub signals: Vec<SignalRecord>,
    /// The code that programs mapped.
    pub maps: Vec<MapRecord>,
    /// The names of threads.
    pub thread_names: Vec<ThreadNameRecord>,
    /// The trace's intervals whose phases were tracked.
    pub phases: Vec<PhaseRecord>,
    /// The trace's records of losses.
    pub losses: Vec<LostRecord>,
    /// Final states of the trace rings.
    pub rings: Vec<RingTotals>,
    /// The tree of files that programs created or changed, if the run sends it.
    pub files: Vec<SentNode>,
    /// Programs that ended by themselves, with their status.
    pub exits: Vec<(String, i32)>,
    /// Core cycles per cycle of the TSC's rate in the turns of programs that have ended, by number.
    pub frequencies: BTreeMap<u32, f64>,
    /// Programs whose system calls the kernel refused, and which calls.
    pub refused_calls: Vec<(String, String)>,
    /// Files that programs which failed had looked for in vain, each with the program.
    pub not_found: Vec<(String, String)>,
    /// Refusals and crashes, in order.
    pub failures: Vec<Outcome>,
    /// Results of CPUs' checks at boot.
    pub checked: Vec<CheckedCpu>,
    /// Processors that run no programs.
    pub offline: Vec<OfflineCpu>,
    /// The machine's halts, if the run has any.
    pub halted: Option<Halted>,
    /// The kernel's panic.
    pub panicked: Option<Panic>,
    /// The final status, if the run ended.
    pub done: Option<u8>,
    /// Messages for which codes on a screen had no room.
    pub omitted: u64,
    /// Frames and records that could not be decoded.
    pub unreadable: u64,
    /// The job that runs, if the machine has several.
    job: Option<JobNumber>,
    /// QEMU's processor time up to now.
    pub(super) now: Duration,
    /// The received part of an incomplete frame.
    partial: Vec<u8>,
    /// The received part of a block of the trace.
    block: Vec<u8>,
    /// The pieces of a stack that were received.
    stack: Stack,
}

impl Transcript {
    /// Reads and handles the new bytes of `wire`.
    pub(super) fn follow(
        &mut self,
        wire: &mut impl Read,
        listen: &mut dyn FnMut(&ProgramOutput),
    ) -> io::Result<()> {
        let mut fresh = Vec::new();
        wire.read_to_end(&mut fresh)?;
        for byte in fresh {
            // A frame that is too long is none. It is kept one byte too long.
            if self.partial.len() <= MAX_FRAME_BYTES {
                self.partial.push(byte);
            }
            if byte == 0 {
                let mut frame = std::mem::take(&mut self.partial);
                let (before, frame_bytes) = (self.output.len(), frame.len());
                match Message::decode(&mut frame) {
                    Ok(message) if frame_bytes <= MAX_FRAME_BYTES => self.handle(message),
                    // The firmware writes to this UART too; the kernel ends the firmware's text by
                    // a zero.
                    _ if self.booted.is_none() => {}
                    _ => self.unreadable += 1,
                }
                self.output[before..].iter().for_each(&mut *listen);
            }
        }
        Ok(())
    }

    /// Returns whether the kernel has sent its last message.
    pub(super) fn is_over(&self) -> bool {
        self.done.is_some() || self.panicked.is_some()
    }

    /// A warning if messages could not be decoded, or are missing.
    pub(super) fn warning(&self) -> Option<String> {
        let why = match (self.unreadable, self.omitted) {
            (0, 0) => return None,
            (0, omitted) => format!("{omitted} messages had no room on the machine's screen"),
            (unreadable, _) => format!("{unreadable} messages could not be decoded"),
        };
        Some(format!("report incomplete: {why}"))
    }

    /// The output of all programs as text.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.output.iter().flat_map(|output| output.bytes.clone()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The numbers of the trace's records that were received, and of those that the kernel sent.
    pub fn records(&self) -> (u64, u64) {
        let of_engine = self.slices.len() + self.thresholds.len() + self.samples.len();
        let of_kernel = self.syscalls.len() + self.switches.len() + self.signals.len();
        let of_programs = self.maps.len() + self.thread_names.len();
        let came = of_engine + of_kernel + self.phases.len() + of_programs;
        (came as u64, self.rings.iter().map(|ring| ring.read).sum())
    }

    /// Decodes the trace, which must be complete.
    pub(super) fn read_trace(&mut self) {
        if self.trace.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.trace);
        match Trace::open(&bytes) {
            Err(bad) => self.bad_trace = Some(bad),
            Ok(trace) => {
                let (records, bad) = Records::read(trace);
                self.bad_trace = bad;
                self.unreadable += records.unreadable;
                Records {
                    slices: self.slices,
                    thresholds: self.thresholds,
                    samples: self.samples,
                    syscalls: self.syscalls,
                    switches: self.switches,
                    signals: self.signals,
                    maps: self.maps,
                    thread_names: self.thread_names,
                    phases: self.phases,
                    losses: self.losses,
                    ..
                } = records;
            }
        }
        self.trace = bytes;
    }

    #[expect(clippy::too_many_lines, reason = "a match with one arm per message")]
    fn handle(&mut self, message: Message<'_>) {
        match message {
            Message::Booted { cpus, memory_bytes, seed, tsc_hz, pmu } => {
                let pmu = pmu.map(|pmu| ReportedPmu {
                    vendor: name(pmu.vendor),
                    family: pmu.family,
                    model: pmu.model,
                    name: name(pmu.name),
                    catalogue: name(pmu.catalogue),
                    general: pmu.general,
                    pinned: pmu.pinned,
                    width_bits: pmu.width_bits,
                });
                self.booted = Some(Booted { cpus, memory_bytes, seed, tsc_hz, pmu });
            }
            Message::RefusedCalls { program, calls } => {
                self.refused_calls.push((name(program), name(calls)));
            }
            Message::NotFound { program, path } => {
                self.not_found.push((name(program), name(path)));
            }
            Message::Ready { boot_ns } => self.boot_ns = Some(boot_ns),
            Message::Output { pid, fd, bytes } => {
                let seen_at = self.now;
                self.output.push(ProgramOutput { pid, fd, bytes: bytes.into(), seen_at });
            }
            Message::Session { session, pid, program, address_space, config, thread } => {
                let program = match thread {
                    Some(thread) => format!("{}-{thread}", name(program)),
                    None => name(program),
                };
                if thread.is_none() {
                    self.programs.insert(pid, program.clone());
                }
                let (readings, job) = (Vec::new(), self.job);
                let fresh =
                    Session { pid, program, address_space, config, job, readings, stats: None };
                self.sessions.insert(session, fresh);
            }
            Message::Reading { session, event, native, mode, place, reading, unit } => {
                let (name, native) = (name(event), native.map(name));
                match self.sessions.get_mut(&session) {
                    Some(known) => {
                        let event = EventReading { name, native, mode, place, reading, unit };
                        known.readings.push(event);
                    }
                    None => self.unreadable += 1,
                }
            }
            Message::Stats { session, stats } => match self.sessions.get_mut(&session) {
                Some(known) => known.stats = Some(stats),
                None => self.unreadable += 1,
            },
            Message::Trace { bytes, last } => {
                self.block.extend_from_slice(bytes);
                if last {
                    match decompressed(&std::mem::take(&mut self.block)) {
                        Some(block) => self.trace.extend(block),
                        None => self.unreadable += 1,
                    }
                }
            }
            Message::Ring { cpu, written, read, lost, waits } => {
                self.rings.push(RingTotals { cpu, written, read, lost, waits });
            }
            Message::Exited { pid, program, status } => {
                self.programs.insert(pid, name(program));
                // As of a process of Linux, the low byte is the status.
                self.exits.push((name(program), status & 0xff));
            }
            Message::Faulted { pid, program, fault, address, instruction } => {
                self.programs.insert(pid, name(program));
                self.failures.push(Outcome::Faulted {
                    program: name(program),
                    fault: name(fault),
                    address,
                    instruction,
                });
            }
            Message::Refused { program, status, why } => {
                self.failures.push(Outcome::Refused {
                    program: name(program),
                    status,
                    why: name(why),
                });
            }
            Message::Stack { address, bytes } => self.stack.push(address, bytes),
            Message::Panicked { message, registers } => {
                let (message, stack) = (message.into(), std::mem::take(&mut self.stack));
                self.panicked = Some(Panic { message, registers, stack });
            }
            Message::FolderBegins { .. } | Message::File { .. } | Message::FolderEnds => {
                self.files.extend(SentNode::of(&message));
            }
            Message::Halted { halts, timer, count, cycles } => {
                self.halted = Some(Halted { halts, timer, count, cycles });
            }
            Message::Done { status } => self.done = Some(status),
            Message::Omitted { messages } => self.omitted = messages,
            Message::Checked { cpu, failure, overcount, access_centicycles } => {
                let failure = failure.map(name);
                let of = CheckedCpu::of(cpu, failure, overcount, access_centicycles);
                self.checked.push(of);
            }
            Message::Offline { apic_id, why } => {
                self.offline.push(OfflineCpu { apic_id, why: name(why) });
            }
            Message::Frequency { pid, core, reference } => {
                self.frequencies.insert(pid, core as f64 / reference as f64);
            }
            Message::Job { job } => self.job = Some(job),
        }
    }
}

/// Escapes a text of the machine that the tool prints within its lines.
fn name(text: &str) -> String {
    visible(text).into_owned()
}

/// Decompresses a block of the trace.
fn decompressed(block: &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(*block.first_chunk()?) as usize;
    // In LZ4's format a byte yields at most 255.
    let is_possible = length <= 255 * block.len();
    is_possible.then(|| lz4_flex::decompress_size_prepended(block).ok()).flatten()
}

#[cfg(test)]
mod tests;
