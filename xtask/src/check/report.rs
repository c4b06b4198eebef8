//! What a report has, from the messages of a run.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tally_abi::{
    ExitStatus, Mode,
    check::{Cost, Counter, Event, Line, PROGRAM, Refused, VERSION},
};
use tally_pmu::Catalogue;

use super::judge::{Findings, findings};
use crate::{
    Failure, Result,
    machine::{Boot, CheckedCpu, OfflineCpu},
    project,
};

/// The report of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckReport {
    /// [`VERSION`]: the form of the report.
    pub tally_check: u32,
    /// The machine.
    pub machine: Machine,
    /// Processors that run no programs.
    pub offline: Vec<OfflineCpu>,
    /// What CPUs found as they started.
    pub at_boot: Vec<CheckedCpu>,
    /// Each counter of each CPU.
    pub counters: Vec<Counter>,
    /// What counting costs, and what interrupts add, for each CPU.
    pub costs: Vec<Cost>,
    /// Each event that was checked.
    pub events: Vec<Event>,
    /// Events that were to be checked, and that the machine refuses.
    pub refused: Vec<Refused>,
    /// Events of the catalogue that no loop raises for certain: nothing is known of them.
    pub not_checked: Vec<String>,
    /// What is wrong, and what is to be known.
    pub findings: Findings,
}

/// A machine, as far as its counters go.
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
    /// Whether CPUID says that there is a hypervisor.
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

impl CheckReport {
    /// The report of a run.
    ///
    /// # Errors
    /// The run's messages are not all there.
    pub fn of(boot: &Boot) -> Result<CheckReport> {
        let transcript = &boot.transcript;
        let pid = transcript.programs.iter().find(|(_, name)| *name == PROGRAM).map(|(pid, _)| pid);
        let said = transcript.output.iter().filter(|it| Some(&it.pid) == pid && it.fd == 1);
        let text: Vec<u8> = said.flat_map(|it| it.bytes.iter().copied()).collect();
        let mut report = CheckReport {
            offline: transcript.offline.clone(),
            at_boot: transcript.checked.clone(),
            ..CheckReport::default()
        };
        report.take(&String::from_utf8_lossy(&text), boot)?;
        let CheckReport { events, refused, not_checked, .. } = &mut report;
        not_checked.retain(|name| {
            !events.iter().any(|of| of.event == *name)
                && !refused.iter().any(|of| of.event == *name)
        });
        report.findings = findings(&report);
        Ok(report)
    }

    /// Takes the program's lines.
    fn take(&mut self, text: &str, boot: &Boot) -> Result<()> {
        let incomplete = |why: String| {
            let why = format!("the check's output is incomplete: {why}; check the machine again");
            Failure::new(ExitStatus::MachineFailed, why)
        };
        let (mut lines, mut is_complete) = (0, false);
        for line in text.lines() {
            match Line::parse(line) {
                Some(Line::Machine(machine)) => self.take_machine(&machine, boot)?,
                Some(Line::Counter(counter)) => self.counters.push(counter),
                Some(Line::Cost(cost)) => self.costs.push(cost),
                Some(Line::Event(event)) => self.events.push(event),
                Some(Line::Refused(refused)) => self.refused.push(refused),
                Some(Line::Checked(checked)) => is_complete = checked.lines == lines,
                None => return Err(incomplete(format!("'{line}' is none of its lines"))),
            }
            lines += 1;
        }
        if is_complete { Ok(()) } else { Err(incomplete(format!("{lines} lines came"))) }
    }

    fn take_machine(&mut self, seen: &tally_abi::check::Machine, boot: &Boot) -> Result<()> {
        refuse_other_version(PROGRAM, seen.version.into())?;
        self.tally_check = seen.version;
        let booted = boot.transcript.booted.as_ref();
        let Some((booted, pmu)) = booted.and_then(|it| Some((it, it.pmu.as_ref()?))) else {
            let why = "the kernel's first message is missing: nothing is known of the machine";
            return Err(Failure::new(ExitStatus::MachineFailed, why));
        };
        let stepping = seen.signature as u8 & 0xf;
        self.machine = Machine {
            vendor: pmu.vendor.clone(),
            family: pmu.family,
            model: pmu.model,
            stepping,
            hypervisor: seen.hypervisor,
            cpus: seen.cpus,
            tsc_hz: booted.tsc_hz,
            pmu: pmu.name.clone(),
            catalogue: pmu.catalogue.clone(),
            general: pmu.general,
            pinned: pmu.pinned,
            width_bits: pmu.width_bits,
        };
        let catalogue = match pmu.vendor.as_str() {
            "AuthenticAMD" => Catalogue::amd(pmu.family, pmu.model),
            _ => Catalogue::intel(pmu.family, pmu.model, stepping),
        };
        // Pinned events have counters of their own, which are checked.
        let is_pinned = |event: &str| {
            let resolved = catalogue.resolve(event, Mode::User);
            resolved.is_ok_and(|all| all.iter().all(|event| event.demand.pinned.is_some()))
        };
        let names = catalogue.entries().map(|entry| entry.name);
        self.not_checked = names.filter(|name| !is_pinned(name)).map(str::to_owned).collect();
        Ok(())
    }

    /// Reads a file that `--json` wrote.
    ///
    /// # Errors
    /// It cannot be read, is no report, or is one of another version.
    pub fn read(path: &Path) -> Result<CheckReport> {
        let name = path.display().to_string();
        let no_report = |why: &str| {
            let why = format!(
                "{name}: not the report of a check: {why}; use what `run --check --json` or \
                 `import --json` printed"
            );
            Failure::new(ExitStatus::NoReport, why)
        };
        let bytes = project::read(path)?;
        let json: Value =
            serde_json::from_slice(&bytes).map_err(|error| no_report(&error.to_string()))?;
        let version = json.get("tally_check").and_then(Value::as_u64);
        let version = version.ok_or_else(|| no_report("it has no number `tally_check`"))?;
        refuse_other_version(&name, version)?;
        serde_json::from_value(json).map_err(|error| no_report(&error.to_string()))
    }
}

fn refuse_other_version(name: &str, version: u64) -> Result<()> {
    if version == u64::from(VERSION) {
        return Ok(());
    }
    let why = format!(
        "{name}: a report of version {version}, but this tool reads version {VERSION}: use the \
         tool of the clone that made the report, or check the machine again"
    );
    Err(Failure::new(ExitStatus::OtherReport, why))
}
