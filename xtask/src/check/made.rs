//! Construction of a report from the messages of a run.

use tally_abi::{
    ExitStatus, Mode,
    check::{Line, PROGRAM},
};
use tally_pmu::Catalogue;

use super::{
    judge::findings,
    report::{CheckReport, Machine, refuse_other_version},
};
use crate::{Failure, Result, machine::Boot};

impl CheckReport {
    /// Makes the report of a run.
    ///
    /// # Errors
    /// Messages of the run are missing.
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

    /// Adds the program's lines to the report.
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
        let catalogue = Catalogue::named(&pmu.catalogue).unwrap_or_else(|| match &*pmu.vendor {
            "AuthenticAMD" => Catalogue::amd(pmu.family, pmu.model),
            _ => Catalogue::intel(pmu.family, pmu.model, stepping, 0),
        });
        // Pinned events have separate counters, which are checked.
        let is_pinned = |event: &str| {
            let resolved = catalogue.resolve(event, Mode::User);
            resolved.is_ok_and(|all| all.iter().all(|event| event.demand.pinned.is_some()))
        };
        let names = catalogue.entries().map(|entry| entry.name);
        self.not_checked = names.filter(|name| !is_pinned(name)).map(str::to_owned).collect();
        Ok(())
    }
}
