//! The refusal of a name that a processor's table does not have: another processor's event, a
//! tracepoint, or a wrong name, with those near it.

use alloc::{format, string::String, vec::Vec};

use tally_abi::{Error, command::SOFTWARE, nearest::nearest};

use super::{
    Catalogue, Counter, Entry,
    aliases::{self, Alias, alias, aliases, exists},
    pack,
    perf_names::perf_name,
    processors::{Core, Processor, SETS},
    spelling::Spelling,
};

/// Number of processors that are named.
const NAMED: usize = 3;

/// Returns the error of a name that is neither an event of the catalogue nor an alias.
pub(super) fn unknown(catalogue: &Catalogue, spelling: &Spelling<'_>) -> (Error, String) {
    let name = spelling.full_name();
    if let Some(why) = of_others(catalogue, &name) {
        return (Error::UnknownEvent, why);
    }
    if is_tracepoint(catalogue, spelling) {
        let why = "the kernel has no tracepoints: `run --trace FILE --trace-events syscalls` records \
                   system calls";
        return (Error::EventNotSupported, why.into());
    }
    if let Some(why) = of_parts(catalogue, spelling) {
        return (Error::UnknownEvent, why);
    }
    let table = catalogue.name();
    let names = catalogue.entries().map(|entry| entry.name).chain(aliases(catalogue));
    let near = nearest(&name, names.chain(SOFTWARE.iter().map(|(software, _)| *software)));
    let rest = if near.is_empty() {
        ": `cargo xtask events TEXT` searches them".into()
    } else {
        format!("; nearest: {}", near.join(", "))
    };
    (Error::UnknownEvent, format!("the catalogue {table} has no such event{rest}"))
}

/// Returns the reason if the event exists, and what is behind its name is neither a unit mask nor a
/// modifier.
fn of_parts(catalogue: &Catalogue, spelling: &Spelling<'_>) -> Option<String> {
    let (wrong, name) = (spelling.unit_masks.first()?, spelling.name);
    exists(catalogue, name).then(|| {
        format!("'{wrong}' is no unit mask of {name}; modifiers are u for ring 3 and k for ring 0")
    })
}

/// Returns the reason if other processors have an event of this name.
fn of_others(catalogue: &Catalogue, name: &str) -> Option<String> {
    let (processors, counterpart) = of_vendors(catalogue, name).or_else(|| {
        let event_on = perf_name(name);
        let has = |of: &&Processor| event_on(of.core).is_some();
        let all: Vec<&Processor> = Processor::all().iter().filter(has).collect();
        let event = event_on(all.first()?.core)?;
        let entry = pack::named(event, SETS).map(|(entry, _)| entry);
        let counterpart = generic(catalogue, all[0].core, event, entry.as_ref());
        Some((all, counterpart))
    })?;
    let names: Vec<&str> = processors.iter().take(NAMED).map(|of| of.name).collect();
    let more = if processors.len() > NAMED { ", …" } else { "" };
    let counterpart = counterpart.map_or(String::new(), |name| format!("; here: {name}"));
    let plural = if processors.len() == 1 { "another processor" } else { "other processors" };
    let names = names.join(", ");
    Some(format!(
        "it is an event of {plural} ({names}{more}), not of {}{counterpart}",
        catalogue.name()
    ))
}

/// Processors that have an event, and this one's generic name of the same.
type Found = (Vec<&'static Processor>, Option<&'static str>);

/// Finds an event in the vendors' tables.
fn of_vendors(catalogue: &Catalogue, name: &str) -> Option<Found> {
    let (entry, set) = pack::named(name, SETS)?;
    let with_bits = Processor::all().iter().enumerate();
    let all: Vec<_> = with_bits.filter(|(bit, _)| set >> bit & 1 == 1).map(|(_, of)| of).collect();
    let core = all.first()?.core;
    Some((all, generic(catalogue, core, name, Some(&entry))))
}

/// Returns the generic name that means this event on `core`, if the catalogue's processor has an
/// event of it too.
fn generic(
    catalogue: &Catalogue,
    core: Core,
    name: &str,
    entry: Option<&Entry<'_>>,
) -> Option<&'static str> {
    const FIXED: [&str; 3] = ["instructions", "cycles", "ref-cycles"];
    let fixed = entry.and_then(|entry| match entry.counter {
        Counter::Fixed(index) => FIXED.get(usize::from(index)).copied(),
        Counter::General(_) => None,
    });
    let select = entry.map(select);
    let is_same =
        |event: &str| event.eq_ignore_ascii_case(name) || Some(event) == select.as_deref();
    let named = aliases::generic(core).filter(|(_, events)| events.split('|').any(is_same));
    let mut names = fixed.into_iter().chain(named.map(|(generic, _)| generic));
    names.find(|name| matches!(alias(catalogue, name), Some(Alias::Event(_))))
}

/// Spells an event by its select, as the generic names do.
fn select(entry: &Entry<'_>) -> String {
    let Entry { code, umask, cmask, .. } = entry;
    let low = u64::from(code & 0xff) | u64::from(umask & 0xff) << 8 | u64::from(*cmask) << 24;
    format!("r{:x}", low | u64::from(code >> 8) << 32)
}

/// Returns whether a spelling looks like `SUBSYSTEM:TRACEPOINT`.
fn is_tracepoint(catalogue: &Catalogue, spelling: &Spelling<'_>) -> bool {
    let is_word = |text: &str| {
        let is_letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
        !text.is_empty() && text.bytes().all(is_letter)
    };
    let [tracepoint] = spelling.unit_masks[..] else { return false };
    let has_event = |entry: Entry<'_>| {
        let (event, _) = entry.name.split_once('.').unwrap_or((entry.name, ""));
        event.eq_ignore_ascii_case(spelling.name)
    };
    let is_alias = || alias(catalogue, spelling.name).is_some();
    let is_known = || is_alias() || catalogue.entries().any(has_event);
    is_word(spelling.name) && is_word(tracepoint) && !is_known()
}
