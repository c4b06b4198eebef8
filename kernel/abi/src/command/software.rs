//! Events of `tally stat` that no counter counts: the kernel's exact counts and times, by perf's
//! names.

use alloc::{format, string::String, vec::Vec};

use crate::events::{BadBraces, listed, with_modifiers_inside};

/// A count or time that the kernel keeps of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// Pages that the program touched for the first time.
    PageFaults,
    /// Number of times that a thread left the CPU.
    ContextSwitches,
    /// Number of times that it went on on another CPU than before.
    CpuMigrations,
    /// Event that never happens here, such as a page fault that reads a disk.
    Never,
    /// Time of the program's threads on CPUs, in nanoseconds.
    TaskClock,
    /// Time from the program's start to its end, in nanoseconds.
    Duration,
    /// The part of [`Self::TaskClock`] in ring 3.
    UserTime,
    /// The part of [`Self::TaskClock`] in ring 0.
    SystemTime,
}

/// perf's names of the software events. No page fault here reads a disk, so all faults are minor;
/// the kernel mends no unaligned access and emulates no instruction.
pub const SOFTWARE: [(&str, Software); 16] = [
    ("page-faults", Software::PageFaults),
    ("faults", Software::PageFaults),
    ("minor-faults", Software::PageFaults),
    ("context-switches", Software::ContextSwitches),
    ("cs", Software::ContextSwitches),
    ("cpu-migrations", Software::CpuMigrations),
    ("migrations", Software::CpuMigrations),
    ("major-faults", Software::Never),
    ("alignment-faults", Software::Never),
    ("emulation-faults", Software::Never),
    ("dummy", Software::Never),
    ("task-clock", Software::TaskClock),
    ("cpu-clock", Software::TaskClock),
    ("duration_time", Software::Duration),
    ("user_time", Software::UserTime),
    ("system_time", Software::SystemTime),
];

/// Source of the value of an event of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The kernel.
    Software(Software),
    /// The session: the index of its reading.
    Session(usize),
}

/// An event of a list, and the source of its value.
pub(super) type Column = (String, Source);

/// Splits a list into the events that a session counts, as a list, and all events in order with
/// their sources.
///
/// # Errors
/// Invalid braces, or a modifier on one of the kernel's events.
pub(super) fn split(list: &str) -> Result<(String, Vec<Column>), String> {
    let list = &with_modifiers_inside(list);
    let (mut counted, mut all, mut session, mut open) = (String::new(), Vec::new(), 0, None);
    for event in listed(list) {
        let (word, together) = event.map_err(|bad: BadBraces<'_>| format!("{bad}"))?;
        if let Some(software) = software(word)? {
            all.push((word.into(), Source::Software(software)));
            continue;
        }
        if open != together && open.is_some() {
            counted += "}";
        }
        if !counted.is_empty() {
            counted += ",";
        }
        if open != together && together.is_some() {
            counted += "{";
        }
        open = together;
        counted += word;
        all.push((word.into(), Source::Session(session)));
        session += 1;
    }
    if open.is_some() {
        counted += "}";
    }
    Ok((counted, all))
}

/// The kernel's event of this name; `None` if it has none.
fn software(word: &str) -> Result<Option<Software>, String> {
    let name = word.split([':', '/', '@']).next().unwrap_or(word);
    match SOFTWARE.iter().find(|(known, _)| *known == name) {
        Some((_, software)) if name == word => Ok(Some(*software)),
        Some(_) => Err(format!(
            "{word}: the kernel counts {name} in both rings: leave out '{}'",
            &word[name.len()..]
        )),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_counts_is_not_the_sessions() {
        let (counted, all) = split("task-clock,{a,cs,b},{faults},c,{d},{e,f}").unwrap();
        assert_eq!(counted, "{a,b},c,{d},{e,f}");
        assert_eq!(
            all[..3],
            [
                ("task-clock".into(), Source::Software(Software::TaskClock)),
                ("a".into(), Source::Session(0)),
                ("cs".into(), Source::Software(Software::ContextSwitches)),
            ]
        );
        assert_eq!(all.last(), Some(&("f".into(), Source::Session(5))));
        assert_eq!(split("page-faults,duration_time").unwrap().0, "");
        assert_eq!(split("{a,b},{c,d}").unwrap().0, "{a,b},{c,d}");
        assert_eq!(split("{a,b}:u").unwrap().0, "{a:u,b:u}");
        assert!(split("faults:u").unwrap_err().contains("leave out ':u'"));
        assert!(split("{a").is_err());
    }
}
