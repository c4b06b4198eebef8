//! `cargo xtask events`: the events that a machine's processor counts, listed and searched as `perf
//! list` does.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use tally_abi::{ExitStatus, session::Mode};
use tally_pmu::catalogue::{Catalogue, Counter, Entry, Resolved};
use tally_vpmu::{Event, Need, Profile, VirtualPmu};

use crate::{
    Failure, Result, explain,
    machine::{self, Pmu, ProcessorArgs},
    output,
    project::Project,
};

/// Columns of the text.
const COLUMNS: usize = 80;
/// Columns before a definition.
const INDENT: usize = 6;
/// The definition of an event without a vendor's name.
const SEVERAL: &str = "Several of the vendor's events together, by their unit masks.";
/// The definition of a vendor's event that is one of the virtual PMU's by its encoding alone.
const BY_ENCODING: &str = "Counted by its encoding, from events of the virtual PMU.";
/// Text in place of the definition of an event that the virtual PMU does not count.
const NOT_MODELLED: &str = "Not modelled: the virtual PMU refuses it; the processor counts it.";

/// End of the kernel's answer to a name that is near no event.
const ADVICE: &str = "`cargo xtask events TEXT` searches them";

/// Options of `cargo xtask events`.
#[derive(Args, Clone, Debug)]
pub struct EventsArgs {
    /// Only events that have all of these texts in their name or definition, in whatever case
    pattern: Vec<String>,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    #[command(flatten)]
    processor: ProcessorArgs,
    /// Print one JSON array, with the events' encodings and counters
    #[arg(long)]
    json: bool,
    /// Print names alone, as --events takes them: the vendor's events that the virtual PMU counts
    /// without further options, off-core responses left out
    #[arg(long, conflicts_with = "json")]
    list: bool,
}

/// An event as it is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Listed {
    name: String,
    /// The vendor's name of the event, if the name is not the vendor's.
    #[serde(skip_serializing_if = "Option::is_none")]
    stands_for: Option<&'static str>,
    /// Fields of the event select, as perf takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// `general`, or `fixed` and its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<String>,
    /// Description of the virtual PMU's count; `None` if it does not model the event.
    definition: Option<&'static str>,
    /// The `--vpmu` options that the virtual PMU needs to count the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<&'static str>,
    /// Whether the event is Tally's own: no vendor has it, and only the virtual PMU counts it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_tallys: bool,
    /// Reason why no counter can count the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// Prints the events.
///
/// # Errors
/// No event matches: the message has similar names. Standard output cannot be written.
pub fn main(project: &Project, args: &EventsArgs) -> Result<u8> {
    let (pmu, shown) = args.processor.shown(project)?.unzip();
    let (catalogue, all) = listed(pmu.unwrap_or(args.pmu), &shown.unwrap_or_default())?;
    let count = all.len();
    let found: Vec<Listed> = all.into_iter().filter(|event| args.wants(event)).collect();
    if found.is_empty() {
        return Err(no_match(&catalogue, &args.pattern.join(" ")));
    }
    if args.list {
        output::print(false, &(), &names(&found)?)?;
        return Ok(0);
    }
    let mut text = String::new();
    found.iter().for_each(|event| text += &lines(event));
    let (shown, name) = (found.len(), catalogue.name());
    let _ = writeln!(text, "\n{shown} of {count} events of {name}; docs/guide/events.md: spelling");
    output::print(args.json, &found, &text)?;
    Ok(0)
}

/// All events that a run on this machine counts without further options, as a list of `--events`.
///
/// # Errors
/// The machine's profile has no catalogue.
pub fn list(pmu: Pmu) -> Result<String> {
    names(&listed(pmu, &[])?.1)
}

impl EventsArgs {
    fn wants(&self, event: &Listed) -> bool {
        let Listed { name, stands_for, definition, .. } = event;
        let text = format!("{name} {} {}", stands_for.unwrap_or(""), definition.unwrap_or(""));
        let text = text.to_lowercase();
        self.pattern.iter().all(|word| text.contains(&word.to_lowercase()))
    }
}

/// The names of the events that a run counts without further options, as a list of `--events`.
///
/// # Errors
/// There are no such events.
fn names(found: &[Listed]) -> Result<String> {
    let counted = found.iter().filter(|event| event.is_counted_by_default());
    let names: Vec<&str> = counted.map(|event| event.name.as_str()).collect();
    if names.is_empty() {
        let why = "no vendor's event is among these that the virtual PMU counts without options: \
                   leave out --list to see them";
        return Err(Failure::new(ExitStatus::UnknownEvent, why));
    }
    Ok(names.join(",") + "\n")
}

impl Listed {
    /// Returns whether a run counts the event without further options. Off-core responses are
    /// excluded: they are one event with many values of a register, of which only two can be used
    /// at a time. Events that are counted by their encoding alone are those of other names.
    fn is_counted_by_default(&self) -> bool {
        let is_named_once = self.stands_for.is_none() && self.encoding.is_some() && !self.is_tallys;
        let is_modelled = self.definition.is_some_and(|what| what != BY_ENCODING);
        let is_offcore = self.name.starts_with("OCR.") || self.name.starts_with("OFFCORE_RESPONSE");
        is_named_once && is_modelled && self.needs.is_none() && !is_offcore
    }
}

/// The failure that no event matches. Its text includes the kernel's answer to the pattern as an
/// event name, if that has more than the advice to use this command, such as similar names.
fn no_match(catalogue: &Catalogue, pattern: &str) -> Failure {
    let near = catalogue.resolve(pattern, Mode::User).err().map_or(String::new(), |w| w.detail);
    let near = if near.ends_with(ADVICE) { String::new() } else { format!("; as a name: {near}") };
    let table = catalogue.name();
    let why = format!("no event of {table} has '{pattern}' in its name or definition{near}");
    Failure::new(ExitStatus::UnknownEvent, why)
}

/// All events in this order: names that other tools use, the vendor's, encodings that the vendor's
/// table does not have, Tally's own.
fn listed(pmu: Pmu, shown: &[String]) -> Result<(Catalogue, Vec<Listed>)> {
    // Some events exist only with the out-of-order pipeline, with its CPI stacks, with a part of
    // the front end, or with large pages.
    let options = ["pipeline=ooo", "stacks=yes", "btb=yes", "uop-cache=yes", "large-pages=yes"];
    let options: Vec<String> =
        options.map(str::to_owned).into_iter().chain(shown.iter().cloned()).collect();
    let virtual_pmu = machine::virtual_pmu_of(pmu, &options)?;
    let found = explain::detect(&virtual_pmu)?;
    let catalogue = found.catalogue();
    let profile = virtual_pmu.profile();
    // An event without a definition, such as an off-core response, can consist of others.
    let plain = machine::virtual_pmu_of(pmu, shown)?;
    let vendors = catalogue.entries().map(|entry| {
        let listed = of_entry(&entry, profile);
        let is_counted = listed.definition.is_none() && explain::models(&plain, &found, entry.name);
        if is_counted { Listed { definition: Some(BY_ENCODING), ..listed } } else { listed }
    });
    let vendors: Vec<Listed> = vendors.collect();
    let generic = |name: &str| match catalogue.resolve(name, Mode::User) {
        Ok(resolved) => of_generic(name, &resolved, &vendors, &virtual_pmu),
        Err(why) => {
            Listed { name: name.to_owned(), refused: Some(why.detail), ..Listed::default() }
        }
    };
    let mut all: Vec<Listed> = catalogue.generic_names().map(generic).collect();
    let is_named = |event: &&Event| catalogue.generic_names().any(|name| name == event.name);
    let unlisted = profile.events().filter(|event| event.is_unlisted && !is_named(event));
    let unlisted: Vec<Listed> = unlisted.map(|event| of_unlisted(&catalogue, event)).collect();
    let tallys = profile.events().filter(|event| event.is_tallys());
    all.extend(vendors);
    all.extend(unlisted);
    all.extend(tallys.map(of_tallys));
    Ok((catalogue, all))
}

/// Lists a name that is not the vendor's, with the properties of its event.
fn of_generic(name: &str, events: &[Resolved], vendors: &[Listed], pmu: &VirtualPmu) -> Listed {
    let name = name.to_owned();
    let native = events.first().and_then(|event| event.native);
    if let Some(same) = native.and_then(|event| vendors.iter().find(|other| other.name == event)) {
        return Listed { name, stands_for: native, ..same.clone() };
    }
    if let Some(same) = pmu.profile().events().find(|event| event.name == name) {
        return Listed { name, definition: Some(same.about), ..Listed::default() };
    }
    let is_modelled = events.iter().all(|event| explain::is_modelled(pmu, event));
    Listed { name, definition: is_modelled.then_some(SEVERAL), ..Listed::default() }
}

fn of_unlisted(catalogue: &Catalogue, event: &Event) -> Listed {
    let (table, code, umask) = (catalogue.name(), event.code, event.umask);
    let why = format!("{table} has no such name, use cpu/event={code:#04x},umask={umask:#04x}/");
    Listed {
        name: event.name.to_owned(),
        refused: Some(why),
        definition: Some(event.about),
        needs: event.needs.map(Need::options),
        ..Listed::default()
    }
}

fn of_tallys(event: &Event) -> Listed {
    let Event { code, umask, .. } = event;
    Listed {
        name: event.name.to_owned(),
        encoding: Some(format!("event={code:#04x},umask={umask:#04x}")),
        counters: Some("general".to_owned()),
        definition: Some(event.about),
        needs: event.needs.map(Need::options),
        is_tallys: true,
        ..Listed::default()
    }
}

fn of_entry(entry: &Entry<'_>, profile: &Profile) -> Listed {
    let all = profile.fixed_events().iter().chain(profile.offcore_events()).chain(profile.events());
    let model = all.copied().find(|event| event.name.eq_ignore_ascii_case(entry.name));
    Listed {
        name: entry.name.to_owned(),
        encoding: Some(encoding(entry)),
        counters: Some(match entry.counter {
            Counter::General(_) => "general".to_owned(),
            Counter::Fixed(index) => format!("fixed {index}"),
        }),
        definition: model.map(|event| event.about),
        needs: model.and_then(|event| event.needs).map(Need::options),
        ..Listed::default()
    }
}

fn encoding(entry: &Entry<'_>) -> String {
    let mut text = format!("event={:#04x},umask={:#04x}", entry.code, entry.umask);
    if entry.cmask != 0 {
        let _ = write!(text, ",cmask={}", entry.cmask);
    }
    for (is_set, word) in [(entry.inv, ",inv"), (entry.edge, ",edge")] {
        text += if is_set { word } else { "" };
    }
    if let Some(extra) = entry.extra {
        let _ = write!(text, ",msr {:#x}={:#x}", extra.msr, extra.value);
    }
    text
}

/// A line with the name, and the description, indented.
fn lines(event: &Listed) -> String {
    let mut text = format!("{}\n", event.name);
    let mut what = match (event.stands_for, &event.refused) {
        (Some(event), _) => format!("{event}. "),
        (None, Some(why)) => format!("Refused: {why}. "),
        (None, None) => String::new(),
    };
    what += match event.definition {
        None if event.refused.is_some() => "",
        None => NOT_MODELLED,
        Some(definition) => definition,
    };
    if event.is_tallys {
        what += " Not the vendor's: the virtual PMU's own.";
    }
    if let Some(options) = event.needs {
        let _ = write!(what, " With --vpmu {options}.");
    }
    let mut line = String::new();
    for word in what.split_whitespace() {
        if INDENT + line.len() + 1 + word.len() > COLUMNS && !line.is_empty() {
            let _ = writeln!(text, "{:INDENT$}{line}", "");
            line.clear();
        }
        line += if line.is_empty() { "" } else { " " };
        line += word;
    }
    let _ = writeln!(text, "{:INDENT$}{line}", "");
    text
}

#[cfg(test)]
mod tests;
