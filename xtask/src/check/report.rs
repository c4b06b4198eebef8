//! The contents of a report, and reading one from a file.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tally_abi::{
    ExitStatus,
    check::{Cost, Counter, Event, Refused, VERSION},
};

use crate::{
    Failure, Result,
    machine::{CheckedCpu, OfflineCpu},
    project,
};

/// The report of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Version of the report's form: [`VERSION`].
    pub tally_check: u32,
    /// The machine.
    pub machine: Machine,
    /// Processors that run no programs.
    pub offline: Vec<OfflineCpu>,
    /// Findings of the CPUs at their start.
    pub at_boot: Vec<CheckedCpu>,
    /// Each counter of each CPU.
    pub counters: Vec<Counter>,
    /// Costs of counting, and interrupts' effects on counts, for each CPU.
    pub costs: Vec<Cost>,
    /// Each event that was checked.
    pub events: Vec<Event>,
    /// Events that should be checked and that the machine refuses.
    pub refused: Vec<Refused>,
    /// Events of the catalogue that no loop raises reliably: nothing is known about them.
    pub not_checked: Vec<String>,
    /// Errors and notes.
    pub findings: Findings,
}

/// A machine, as far as its counters are concerned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's vendor, as in CPUID.
    pub vendor: String,
    /// The display family in CPUID.
    pub family: u16,
    /// The display model in CPUID.
    pub model: u8,
    /// The stepping in CPUID.
    pub stepping: u8,
    /// Whether CPUID reports a hypervisor.
    pub hypervisor: bool,
    /// CPUs that run programs.
    pub cpus: u32,
    /// Frequency of the time-stamp counter, in Hz.
    pub tsc_hz: u64,
    /// The driver and the PMU's version.
    pub pmu: String,
    /// The name of the catalogue of events.
    pub catalogue: String,
    /// General counters.
    pub general: u8,
    /// Pinned events.
    pub pinned: u8,
    /// Width of a general counter, in bits.
    pub width_bits: u8,
}

/// Findings on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Errors: reasons why counts are wrong.
    pub wrong: Vec<String>,
    /// Notes: hardware quirks that Tally handles, and that explain other observations.
    pub notes: Vec<String>,
}

impl CheckReport {
    /// Reads a file that `--json` wrote.
    ///
    /// # Errors
    /// The file cannot be read, is no report, or is one of another version.
    pub fn read(path: &Path) -> Result<CheckReport> {
        CheckReport::of_bytes(&project::read(path)?, path)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// As [`CheckReport::read`].
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path) -> Result<CheckReport> {
        let name = path.display().to_string();
        let no_report = |why: &str| {
            let why = format!(
                "{name}: not the report of a check: {why}; use what `run --check --json` or \
                 `import --json` printed"
            );
            Failure::new(ExitStatus::NoReport, why)
        };
        let json: Value =
            serde_json::from_slice(bytes).map_err(|error| no_report(&error.to_string()))?;
        let version = json.get("tally_check").and_then(Value::as_u64);
        let version = version.ok_or_else(|| no_report("it has no number `tally_check`"))?;
        refuse_other_version(&name, version)?;
        serde_json::from_value(json).map_err(|error| no_report(&error.to_string()))
    }
}

/// Refuses a report of another version; `name` is its source.
///
/// # Errors
/// The version is another one.
pub(super) fn refuse_other_version(name: &str, version: u64) -> Result<()> {
    if version == u64::from(VERSION) {
        return Ok(());
    }
    let why = format!(
        "{name}: a report of version {version}, but this tool reads version {VERSION}: use the \
         tool of the clone that made the report, or check the machine again"
    );
    Err(Failure::new(ExitStatus::OtherReport, why))
}
