//! A machine whose virtual PMU records the work of overflow interrupt handlers.

use std::{
    fs,
    io::{BufRead as _, BufReader},
};

use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    machine::{self, Artefacts, Outcome, Pmu, Request},
};

use super::handlers::Recorded;

/// A run whose handlers were recorded.
pub(super) struct Recording {
    /// The first instruction of every handler.
    pub(super) entry: u64,
    /// The handlers' instructions and accesses, and the kernel's after each until ring 3 resumes.
    pub(super) events: Vec<Recorded>,
    /// The programs' output.
    pub(super) output: String,
}

/// Boots a machine with this command line.
///
/// # Errors
/// The machine or a program fails, or no overflow interrupt was raised.
pub(super) fn record(artefacts: &Artefacts, pmu: Pmu, line: String) -> Result<Recording> {
    let path = std::env::temp_dir().join(format!("tally-handlers-{}", std::process::id()));
    let vpmu = vec![format!("handlers={}", path.display())];
    let boot = machine::boot(artefacts, &Request { pmu, vpmu, ..Request::new(line) }, &mut |_| {})?;
    let file = fs::File::open(&path).map_err(|error| Failure::io("open", &path, &error))?;
    // The open file stays readable after its removal.
    let _ = fs::remove_file(&path);
    let lines = BufReader::new(file).lines().map_while(std::io::Result::ok);
    let events: Vec<_> = lines.filter_map(|line| Recorded::parse(&line)).collect();
    match (events.first(), &boot.outcome) {
        (Some(&Recorded::Instruction { address: entry, .. }), Outcome::Done(0)) => {
            Ok(Recording { entry, events, output: boot.transcript.text() })
        }
        _ => {
            let why = format!("the run of overflow interrupts failed: {}", boot.outcome);
            Err(Failure::new(ExitStatus::MachineFailed, why))
        }
    }
}
