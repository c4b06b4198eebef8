//! Entries of the event tables. `pack.rs` makes the tables.

use alloc::boxed::Box;

/// Events of a processor, with an index by code.
#[derive(Clone, Debug)]
pub struct Table {
    /// Events, in the order of the names in upper case.
    pub entries: Box<[Entry<'static>]>,
    /// Event codes, each with the index of an entry that has this code, also with its second
    /// register; sorted by code, later names of events last.
    pub by_code: Box<[(u16, u16)]>,
    /// Whether the processor's selects have a second unit mask.
    pub has_second_umask: bool,
}

impl Table {
    /// Returns the entry with this name, ignoring case.
    pub fn find(&self, name: &str) -> Option<&Entry<'static>> {
        fn upper(text: &str) -> impl Iterator<Item = u8> {
            text.bytes().map(|byte| byte.to_ascii_uppercase())
        }
        let compare = |entry: &Entry<'_>| upper(entry.name).cmp(upper(name));
        let found = self.entries.binary_search_by(compare).ok()?;
        self.entries.get(found)
    }

    /// Returns the entries that have a code, also with their second register; later
    /// names of events last.
    pub fn with_code(&self, code: u16) -> impl Iterator<Item = &Entry<'static>> {
        let first = self.by_code.partition_point(|(other, _)| *other < code);
        let of_code = self.by_code[first..].iter().take_while(move |(other, _)| *other == code);
        of_code.filter_map(|(_, index)| self.entries.get(usize::from(*index)))
    }
}

/// Event of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Name given by the vendor.
    pub name: &'a str,
    /// Event code: 8 bits on Intel's processors, 12 bits on AMD's.
    pub code: u16,
    /// Unit mask; the high byte is the second unit mask, bits 40 to 47 of the select.
    pub umask: u16,
    /// Counter mask.
    pub cmask: u8,
    /// Whether the comparison with the counter mask is inverted.
    pub inv: bool,
    /// Whether edges are counted.
    pub edge: bool,
    /// Whether the comparison with the counter mask is for equality (bit 36 of the select).
    pub equal: bool,
    /// Counters that can count the event.
    pub counter: Counter,
    /// Whether the event must be counted alone, or counts both threads of a core.
    pub flag: Flag,
    /// Extra register that the event needs.
    pub extra: Option<ExtraRegister>,
}

/// Restrictions of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// No restriction.
    None,
    /// No other event can be on a general counter at the same time.
    Alone,
    /// Counts the other thread of the core too.
    Threads,
}

/// Value that an event needs in an extra register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraRegister {
    /// Address of the register.
    pub msr: u32,
    /// Alternative register.
    pub second: Option<Second>,
    /// Value of the register.
    pub value: u64,
}

/// Alternative to an event's extra register, with the event that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    /// Address of the register.
    pub msr: u32,
    /// Event code.
    pub code: u16,
    /// Unit mask, as [`Entry::umask`].
    pub umask: u16,
}

/// Counters that can count an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Mask of general counters.
    General(u16),
    /// Index of a fixed counter.
    Fixed(u8),
}
