//! What the kernel told, put together from the messages on the second UART.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    time::Duration,
};

use tally_abi::{
    Mode, Reading, SessionConfig, SessionStats,
    trace::{LostRecord, Record, SampleRecord, SliceRecord, ThresholdRecord},
    wire::Message,
};

use super::outcome::Outcome;
use crate::trace::file::{Bad, Trace};

/// A piece of what a program wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The program's number.
    pub pid: u32,
    /// The descriptor: 1 or 2.
    pub fd: u8,
    /// What it wrote.
    pub bytes: Vec<u8>,
    /// Processor time that QEMU had used when it was seen.
    pub seen_at: Duration,
}

/// A logical counter of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// The catalogue's name of what is counted, if there is one.
    pub native: Option<String>,
    /// At which privileges it was counted.
    pub mode: Mode,
    /// Its last value.
    pub reading: Reading,
}

/// A session that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The program that opened it.
    pub program: String,
    /// How it counted.
    pub config: SessionConfig,
    /// Its logical counters, in the order in which the kernel told them.
    pub readings: Vec<Event>,
    /// What the engine told of it.
    pub stats: Option<SessionStats>,
}

/// The PMU that the kernel found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// Its driver and version.
    pub name: String,
    /// Its catalogue.
    pub catalogue: String,
    /// General counters.
    pub general: u8,
}

/// The kernel as it came up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booted {
    /// Processors.
    pub cpus: u32,
    /// Memory that the kernel holds, in bytes.
    pub memory_bytes: u64,
    /// The seed.
    pub seed: u64,
    /// The PMU, if there is one.
    pub pmu: Option<Pmu>,
}

/// The state of a trace ring at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Its CPU.
    pub cpu: u16,
    /// Records that the engine offered.
    pub written: u64,
    /// Records that the host has.
    pub read: u64,
    /// Records for which there was no room.
    pub lost: u64,
}

/// Everything that was said.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The first message, if it came.
    pub booted: Option<Booted>,
    /// Nanoseconds from the kernel's entry to its first program, by the machine's clock.
    pub boot_ns: Option<u64>,
    /// Output of all programs.
    pub output: Vec<Output>,
    /// Sessions by number.
    pub sessions: BTreeMap<u32, Session>,
    /// The trace, if one was asked for: as it is in a file.
    pub trace: Vec<u8>,
    /// What is wrong with it.
    pub bad_trace: Option<Bad>,
    /// The slices in it, CPU by CPU in the order of time.
    pub slices: Vec<SliceRecord>,
    /// The thresholds that fired, in the same order.
    pub thresholds: Vec<ThresholdRecord>,
    /// The samples.
    pub samples: Vec<SampleRecord>,
    /// What was lost, where.
    pub losses: Vec<LostRecord>,
    /// Trace rings.
    pub rings: Vec<Ring>,
    /// Programs that ended by themselves, with their status.
    pub exits: Vec<(String, i32)>,
    /// Refusals and crashes, in the order in which they happened.
    pub troubles: Vec<Outcome>,
    /// The kernel's own mistake.
    pub panicked: Option<String>,
    /// The status with which everything ended.
    pub done: Option<u8>,
    /// Frames that could not be read.
    pub unreadable: u64,
    /// Processor time that QEMU has used by now.
    pub(super) now: Duration,
    /// The beginning of a frame whose end has not come yet.
    partial: Vec<u8>,
    /// The beginning of a block of the trace.
    block: Vec<u8>,
}

impl Transcript {
    /// Takes in what has come on `wire` since last time.
    pub(super) fn follow(
        &mut self,
        wire: &mut impl Read,
        listen: &mut dyn FnMut(&Output),
    ) -> io::Result<()> {
        let mut fresh = Vec::new();
        wire.read_to_end(&mut fresh)?;
        for byte in fresh {
            self.partial.push(byte);
            if byte == 0 {
                let mut frame = std::mem::take(&mut self.partial);
                let before = self.output.len();
                match Message::decode(&mut frame) {
                    Ok(message) => self.take(message),
                    // The firmware has written on this UART too; the kernel ends that by a zero.
                    Err(_) if self.booted.is_none() => {}
                    Err(_) => self.unreadable += 1,
                }
                self.output[before..].iter().for_each(&mut *listen);
            }
        }
        Ok(())
    }

    /// Whether the kernel has said its last word.
    pub(super) fn is_over(&self) -> bool {
        self.done.is_some() || self.panicked.is_some()
    }

    /// That not all of it was understood, for people.
    pub(super) fn complaint(&self) -> Option<String> {
        (self.unreadable > 0).then(|| {
            let unreadable = self.unreadable;
            format!("messages that could not be read: {unreadable}; not all is told of this run")
        })
    }

    /// The text that programs wrote, all together.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.output.iter().flat_map(|output| output.bytes.clone()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Takes the trace apart: all of it is there.
    pub(super) fn read_trace(&mut self) {
        if self.trace.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.trace);
        match Trace::open(&bytes) {
            Err(bad) => self.bad_trace = Some(bad),
            Ok(trace) => trace.for_each(|record| match record {
                Ok(raw) => match Record::decode(raw.kind, raw.tsc, &raw.words) {
                    Ok(Record::Slice(record)) => self.slices.push(record),
                    Ok(Record::Threshold(record)) => self.thresholds.push(record),
                    Ok(Record::Sample(record)) => self.samples.push(record),
                    Ok(Record::Lost(record)) => self.losses.push(record),
                    // The same as a message says.
                    Ok(Record::Ring(_)) => {}
                    Err(_) => self.unreadable += 1,
                },
                Err(bad) => self.bad_trace = Some(bad),
            }),
        }
        self.trace = bytes;
    }

    // Long because there is one arm a message.
    fn take(&mut self, message: Message<'_>) {
        match message {
            Message::Booted { cpus, memory_bytes, seed, pmu } => {
                let pmu = pmu.map(|pmu| Pmu {
                    name: pmu.name.into(),
                    catalogue: pmu.catalogue.into(),
                    general: pmu.general,
                });
                self.booted = Some(Booted { cpus, memory_bytes, seed, pmu });
            }
            Message::Ready { boot_ns } => self.boot_ns = Some(boot_ns),
            Message::Output { pid, fd, bytes } => {
                let seen_at = self.now;
                self.output.push(Output { pid, fd, bytes: bytes.into(), seen_at });
            }
            Message::Session { session, program, config, .. } => {
                let program = program.into();
                let fresh = Session { program, config, readings: Vec::new(), stats: None };
                self.sessions.insert(session, fresh);
            }
            Message::Reading { session, event, native, mode, reading } => {
                let (name, native) = (event.into(), native.map(String::from));
                match self.sessions.get_mut(&session) {
                    Some(known) => known.readings.push(Event { name, native, mode, reading }),
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
                    match lz4_flex::decompress_size_prepended(&std::mem::take(&mut self.block)) {
                        Ok(block) => self.trace.extend(block),
                        Err(_) => self.unreadable += 1,
                    }
                }
            }
            Message::Ring { cpu, written, read, lost } => {
                self.rings.push(Ring { cpu, written, read, lost });
            }
            Message::Exited { program, status, .. } => self.exits.push((program.into(), status)),
            Message::Faulted { program, fault, address, instruction, .. } => {
                self.troubles.push(Outcome::Faulted {
                    program: program.into(),
                    fault: fault.into(),
                    address,
                    instruction,
                });
            }
            Message::Refused { program, status, why } => {
                self.troubles.push(Outcome::Refused {
                    program: program.into(),
                    status,
                    why: why.into(),
                });
            }
            Message::Panicked { message } => self.panicked = Some(message.into()),
            Message::Done { status } => self.done = Some(status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_abi::wire::MAX_FRAME_BYTES;

    fn frame(message: Message<'_>) -> Vec<u8> {
        message.encode(&mut [0; MAX_FRAME_BYTES]).unwrap().to_vec()
    }

    #[test]
    fn frames_may_come_in_pieces_and_broken() {
        let mut bytes = b"firmware\0".to_vec();
        bytes.extend(frame(Message::Booted { cpus: 1, memory_bytes: 0, seed: 9, pmu: None }));
        bytes.extend(frame(Message::Output { pid: 1, fd: 1, bytes: b"hello " }));
        bytes.extend([7, 7, 7, 0]);
        bytes.extend(frame(Message::Output { pid: 1, fd: 2, bytes: b"there" }));
        bytes.extend(frame(Message::Done { status: 3 }));
        let (mut said, mut heard) = (Transcript::default(), Vec::new());
        for piece in bytes.chunks(5) {
            said.follow(&mut &*piece, &mut |output| heard.extend_from_slice(&output.bytes))
                .unwrap();
        }
        assert_eq!(heard, b"hello there");
        assert_eq!((said.text().as_str(), said.unreadable), ("hello there", 1));
        assert!(said.complaint().unwrap().contains("could not be read: 1;"));
        assert_eq!(Transcript::default().complaint(), None);
        assert_eq!((said.booted.unwrap().seed, said.done), (9, Some(3)));
    }
}
