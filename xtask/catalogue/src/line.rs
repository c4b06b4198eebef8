//! A line of `events.tsv`, in the format that `kernel/pmu/build.rs` reads and documents.

use std::fmt;

/// Comment that names the columns.
pub(crate) const COLUMNS: &str =
    "# name\tcode\tumask\tcmask\tcounters\tflags\tregister\tvalue\tprocessors\n";

/// Event of a processor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    pub(crate) name: String,
    /// Event code, or two, one for each extra register.
    pub(crate) codes: Vec<u16>,
    /// Unit mask, or one for each extra register. The high byte is the second unit mask.
    pub(crate) umasks: Vec<u16>,
    pub(crate) cmask: u8,
    /// Mask of general counters, or `fixedN` for a fixed counter.
    pub(crate) counters: String,
    /// `i`: inverted, `e`: edges, `q`: equal, `a`: counted alone, `t`: counts the sibling thread,
    /// `l`: a later name of an event, which the vendor's table has under another name before.
    pub(crate) flags: String,
    /// Extra registers, of which the event needs one; empty if none.
    pub(crate) registers: Vec<u16>,
    /// Value of the extra register.
    pub(crate) value: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { name, codes, umasks, cmask, counters, flags, registers, value } = self;
        let list = |numbers: &[u16]| {
            let words: Vec<String> = numbers.iter().map(|number| format!("{number:x}")).collect();
            if words.is_empty() { "-".into() } else { words.join(",") }
        };
        let (codes, umasks, registers) = (list(codes), list(umasks), list(registers));
        let flags = if flags.is_empty() { "-" } else { flags };
        write!(
            f,
            "{name}\t{codes}\t{umasks}\t{cmask:x}\t{counters}\t{flags}\t{registers}\t{value:x}"
        )
    }
}

/// Marks the later names of events in a table.
pub(crate) fn mark_later_names(table: &mut [Event]) {
    let mut seen: Vec<Event> = Vec::new();
    for event in table {
        let nameless = Event { name: String::new(), counters: String::new(), ..event.clone() };
        if seen.contains(&nameless) {
            event.flags.push('l');
        } else {
            seen.push(nameless);
        }
    }
}
