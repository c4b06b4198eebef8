//! Description of the run in a trace file: names that its records lack.
//!
//! The kernel writes numbers into records. `cargo xtask run` adds a line `run 1: {…}` to the file's
//! head, one JSON object with data from the kernel's messages and the virtual PMU's truth. A change
//! that older readers would misunderstand increments the number in that line. Fields may be added
//! without that: readers ignore unknown fields.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tally_abi::{ExitStatus, Mode, trace::SlicePlace};

use crate::{
    Failure, Result,
    code_files::{CodeFile, KernelFile},
    machine::{Boot, EventReading, Session},
    report::{EventReport, Report, SessionReport},
    trace_file::Trace,
    visible::visible,
};

/// The word that selects the description of the run among the kinds of records.
pub(super) const RUN_KIND: &str = "run";

/// The run of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The kernel's command line: options, programs, their arguments.
    pub command_line: String,
    /// The seed of every random order.
    pub seed: Option<u64>,
    /// Number of CPUs.
    pub cpus: Option<u32>,
    /// Frequency of the time-stamp counter in Hz, as the kernel calibrated it.
    pub tsc_hz: Option<u64>,
    /// The processor, if it has a PMU.
    pub processor: Option<Processor>,
    /// The programs that were measured or have ended.
    pub programs: Vec<Program>,
    /// The files with code that the machine had, if programs were sampled.
    pub code_files: Vec<CodeFile>,
    /// The kernel's file, if ring 0 was sampled.
    pub kernel: Option<KernelFile>,
    /// The sessions that have ended.
    pub sessions: Vec<TracedSession>,
}

/// The processor and its PMU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// The vendor, as in CPUID.
    pub vendor: String,
    /// The display family in CPUID.
    pub family: u16,
    /// The display model in CPUID.
    pub model: u8,
    /// The PMU's driver and version.
    pub pmu: String,
    /// The catalogue of events.
    pub catalogue: String,
}

impl Processor {
    /// Returns whether it is AMD's, whose precise samples are of ops (IBS).
    pub fn is_amd(&self) -> bool {
        self.vendor == "AuthenticAMD"
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Number of the program.
    pub program: u32,
    /// Name of the program.
    pub name: String,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedSession {
    /// Number of the session.
    pub session: u32,
    /// The number of the program that it measured.
    pub program: u32,
    /// The program's name.
    pub name: String,
    /// The program's address space.
    pub address_space: u64,
    /// Events, in the order of the session's list.
    pub events: Vec<TracedEvent>,
}

/// An event of a session, with the total that the run reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedEvent {
    /// The catalogue's name, if it has one.
    pub native: Option<String>,
    /// The privilege at which it was counted.
    pub mode: Mode,
    /// Place of its counts in records of slices.
    pub place: SlicePlace,
    /// Name and total, as in the run's report.
    #[serde(flatten)]
    pub report: EventReport,
}

impl Run {
    /// Makes the description of the run `boot`, whose report is `report` and whose kernel had this
    /// command line.
    pub fn of(boot: &Boot, report: &Report, command_line: &str) -> Run {
        let transcript = &boot.transcript;
        let booted = transcript.booted.as_ref();
        let processor = booted.and_then(|booted| booted.pmu.clone()).map(|pmu| Processor {
            vendor: pmu.vendor,
            family: pmu.family,
            model: pmu.model,
            pmu: pmu.name,
            catalogue: pmu.catalogue,
        });
        let program =
            |(program, name): (&u32, &String)| Program { program: *program, name: name.clone() };
        let sessions = transcript.sessions.iter().zip(report.sessions());
        Run {
            command_line: command_line.to_owned(),
            seed: booted.map(|booted| booted.seed),
            cpus: booted.map(|booted| booted.cpus),
            tsc_hz: booted.map(|booted| booted.tsc_hz).filter(|hz| *hz > 0),
            processor,
            programs: transcript.programs.iter().map(program).collect(),
            code_files: boot.code_files.ramdisk.clone(),
            kernel: boot.code_files.kernel.clone(),
            sessions: sessions
                .map(|((tag, of), report)| TracedSession::of(*tag, of, report))
                .collect(),
        }
    }

    /// Reads the run that a trace's head describes.
    ///
    /// # Errors
    /// The head describes none, or this version does not understand it.
    pub fn read(trace: &Trace<'_>) -> Result<Run> {
        let refused = |why: String| Failure::new(ExitStatus::BadTrace, why);
        let Some(json) = &trace.run else {
            let why = "the trace has no names of events: it is of an older version, or of a kernel \
                       that did not start; record it again with `cargo xtask run --trace`";
            return Err(refused(why.into()));
        };
        let mut run = Run::deserialize(json).map_err(|error| {
            let why = visible(&error.to_string()).into_owned();
            refused(format!("the trace's description of the run: {why}"))
        })?;
        run.make_visible();
        Ok(run)
    }

    /// Escapes characters that a terminal must not get, in texts that the tool prints within its
    /// lines.
    fn make_visible(&mut self) {
        let of_machine = self.processor.iter_mut();
        let of_machine = of_machine.flat_map(|of| [&mut of.vendor, &mut of.pmu, &mut of.catalogue]);
        let of_sessions = self.sessions.iter_mut().flat_map(|session| {
            let events = session.events.iter_mut().map(|event| &mut event.report.name);
            events.chain([&mut session.name])
        });
        let programs = self.programs.iter_mut().map(|of| &mut of.name);
        let files = self.code_files.iter_mut();
        let files = files.flat_map(|of| [&mut of.guest, &mut of.identity]);
        let files = files.chain(self.kernel.as_mut().map(|of| &mut of.identity));
        for text in programs
            .chain(files)
            .chain(of_sessions)
            .chain(of_machine)
            .chain([&mut self.command_line])
        {
            if let Cow::Owned(visible) = visible(text) {
                *text = visible;
            }
        }
    }

    /// The object in the trace's head.
    pub fn json(&self) -> Value {
        serde_json::to_value(self).expect("texts and finite numbers have a form in JSON")
    }
}

impl TracedSession {
    fn of(tag: u32, session: &Session, report: &SessionReport) -> TracedSession {
        let events = session.readings.iter().zip(&report.events);
        TracedSession {
            session: tag,
            program: session.pid,
            name: session.program.clone(),
            address_space: session.address_space,
            events: events.map(|(reading, report)| TracedEvent::of(reading, report)).collect(),
        }
    }
}

impl TracedEvent {
    fn of(reading: &EventReading, report: &EventReport) -> TracedEvent {
        TracedEvent {
            native: reading.native.clone(),
            mode: reading.mode,
            place: reading.place,
            report: report.clone(),
        }
    }
}
