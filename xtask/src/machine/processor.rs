//! A machine that shows another processor than its profile's: that processor's CPUID and encodings
//! over the nearest profile.

use std::{fmt::Write as _, fs};

use clap::{
    Args,
    error::{ContextKind, ContextValue},
};
use tally_abi::{ExitStatus, Mode, nearest::nearest};
use tally_pmu::catalogue::{Catalogue, Counter, Entry};

use super::profile::Pmu;
use crate::{
    Failure, Result,
    project::{self, Project},
};

/// The option of commands on a machine.
#[derive(Args, Clone, Debug, Default)]
pub struct ProcessorArgs {
    /// Show the CPUID of this processor, by the name of the vendor's table such as emeraldrapids or
    /// zen5, over the nearest machine: its events by their names, as far as the virtual PMU models
    /// them; `list` prints the names
    #[arg(long, value_name = "NAME", conflicts_with = "pmu")]
    processor: Option<String>,
}

/// Names that other processors have for an event of the machines' profiles, by the vendor's
/// definitions.
const SAME: [(&str, &str); 5] = [
    ("UOPS_RETIRED.RETIRE_SLOTS", "UOPS_RETIRED.SLOTS"),
    ("BR_INST_RETIRED.CONDITIONAL", "BR_INST_RETIRED.COND"),
    ("BR_MISP_RETIRED.CONDITIONAL", "BR_MISP_RETIRED.COND"),
    ("BR_INST_RETIRED.NOT_TAKEN", "BR_INST_RETIRED.COND_NTAKEN"),
    ("CPU_CLK_UNHALTED.CORE_P", "CPU_CLK_UNHALTED.THREAD_P"),
];

impl ProcessorArgs {
    /// Makes the option for the processor with this table.
    pub fn of(name: &str) -> ProcessorArgs {
        ProcessorArgs { processor: Some(name.into()) }
    }

    /// Names of all processors that have a table.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Catalogue::all().map(|catalogue| catalogue.name())
    }

    /// Returns whether a processor is given.
    pub fn is_given(&self) -> bool {
        self.processor.is_some()
    }

    /// Returns the machine whose profile is nearest to the processor, and the options of the
    /// virtual PMU that make the machine show it; `None` without a processor.
    ///
    /// # Errors
    /// No table has the name, or the option's file cannot be written.
    pub fn shown(&self, project: &Project) -> Result<Option<(Pmu, Vec<String>)>> {
        let Some(name) = &self.processor else { return Ok(None) };
        let catalogue = Catalogue::named(name).ok_or_else(|| unknown(name))?;
        let folder = project.private().join("processors");
        fs::create_dir_all(&folder).map_err(|error| Failure::io("make", &folder, &error))?;
        let path = folder.join(format!("{}.tsv", catalogue.name()));
        project::write(&path, text(&catalogue).as_bytes())?;
        let mut options = vec![format!("processor={}", path.display()), counters(&catalogue)];
        options.extend(version(&catalogue));
        Ok(Some((like(&catalogue), options)))
    }
}

/// Adds to the error of a value of `--pmu` that is a processor's name which option shows it.
pub fn with_processor(mut error: clap::Error) -> clap::Error {
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let (option, value) = (of(ContextKind::InvalidArg), of(ContextKind::InvalidValue));
    if option.starts_with("--pmu ") && Catalogue::named(&value).is_some() {
        let tip = format!("the nearest machine shows this processor: --processor {value}");
        error.remove(ContextKind::SuggestedValue);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = ProcessorArgs::names().collect();
    let why = if name == "list" {
        format!("--processor takes one of {}", names.join(", "))
    } else {
        let near = nearest(name, names.iter().copied());
        let near = near.first().map_or(String::new(), |first| format!(" nearest: {first};"));
        format!("--processor {name}: no table has this name;{near} all: --processor list")
    };
    Failure::new(ExitStatus::Usage, why)
}

/// The machine of the same vendor with most of the processor's events.
fn like(catalogue: &Catalogue) -> Pmu {
    let has = |pmu: Pmu| {
        let events = pmu.profile().events().filter(|event| !event.is_tallys());
        events.filter(|event| catalogue.find(event.name).is_some()).count()
    };
    let all: &[Pmu] = if catalogue.is_intels() {
        &[Pmu::Intel, Pmu::SapphireRapids, Pmu::LunarLake]
    } else {
        &[Pmu::Amd, Pmu::Zen3]
    };
    all.iter().copied().rev().max_by_key(|pmu| has(*pmu)).unwrap_or_default()
}

/// The option for the number of counters that the processor's events use.
fn counters(catalogue: &Catalogue) -> String {
    let masks = catalogue.entries().map(|entry| match entry.counter {
        Counter::General(mask) => mask,
        Counter::Fixed(_) => 0,
    });
    let all = masks.fold(0, |all, mask| all | mask);
    format!("counters={}", u16::BITS - all.leading_zeros())
}

/// The option for the version of the architecture, of a processor whose events have second unit
/// masks.
fn version(catalogue: &Catalogue) -> Option<String> {
    let has_second = catalogue.is_intels() && catalogue.entries().any(|entry| entry.umask > 0xff);
    has_second.then(|| "version=6".to_owned())
}

/// The option's file (`qemu/vpmu/src/processor.rs`).
fn text(catalogue: &Catalogue) -> String {
    let [signature, kind] = catalogue.cpuid();
    let mut text = format!("signature\t{signature:x}\t{kind:x}\n");
    for entry in catalogue.entries() {
        let Entry { name, code, umask, cmask, inv, edge, counter, .. } = entry;
        let Counter::General(counters) = counter else { continue };
        if entry.extra.is_some() {
            continue;
        }
        let (inv, edge) = (u8::from(inv), u8::from(edge));
        // The name by which the kernel reports the event, if the table has several.
        let resolved = catalogue.resolve(name, Mode::User).ok();
        let first = resolved.and_then(|all| all.first()?.native).unwrap_or(name);
        let modelled = SAME.iter().find(|(other, _)| *other == name).map_or(name, |(_, it)| it);
        let _ = writeln!(
            text,
            "event\t{first}\t{modelled}\t{code:x}\t{umask:x}\t{cmask:x}\t{inv}\t{edge}\t\
             {counters:x}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{explain, machine};

    #[derive(Debug, Parser)]
    struct Options {
        #[arg(long, value_enum, default_value_t)]
        pmu: Pmu,
    }

    #[test]
    fn a_processor_in_place_of_a_machine_has_a_tip() {
        let error = |name: &str| {
            let refused = Options::try_parse_from(["run", "--pmu", name]).unwrap_err();
            with_processor(refused).to_string()
        };
        for name in ["zen5", "emeraldrapids", "skylake"] {
            let text = error(name);
            assert!(
                text.contains(&format!(
                    "tip: the nearest machine shows this processor: --processor {name}"
                )),
                "{text}"
            );
            assert!(!text.contains("a similar value"), "{text}");
        }
        assert!(!error("z80").contains("--processor"));
        assert_eq!(Options::parse_from(["run"]).pmu, Pmu::Intel);
    }

    /// Each table can be shown: the machine detects that processor, and counts what it models.
    #[test]
    fn every_processor_can_be_shown() {
        let project = Project::here();
        for catalogue in Catalogue::all() {
            let shown = ProcessorArgs::of(catalogue.name()).shown(&project).unwrap();
            let (pmu, mut options) = shown.unwrap();
            options.push("pipeline=ooo".to_owned());
            let machine = machine::virtual_pmu_of(pmu, &options).unwrap();
            let found = explain::detect(&machine).unwrap();
            assert_eq!(found.catalogue().name(), catalogue.name());
            let events = machine.profile().events().filter(|event| !event.is_tallys()).count();
            assert!(events >= 5, "{}: {events}", catalogue.name());
        }
        assert_eq!(ProcessorArgs::default().shown(&project).unwrap(), None);
        let of = |name: &str| ProcessorArgs::of(name).shown(&project);
        assert!(of("emeraldrapid").unwrap_err().to_string().contains("nearest: emeraldrapids"));
        assert!(of("list").unwrap_err().to_string().contains("icelakex"));
        assert_eq!(of("emeraldrapids").unwrap().unwrap().0, Pmu::SapphireRapids);
        assert_eq!(of("zen5").unwrap().unwrap().0, Pmu::Amd);
    }
}
