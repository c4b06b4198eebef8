//! Entries of the event tables. `build.rs` makes the tables, and documents their format.

/// Events of a processor, with indices for lookups.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Events, in the order of the text.
    pub entries: &'static [Entry<'static>],
    /// Indices into `entries`, sorted by the name in upper case, then by index.
    pub by_name: &'static [u16],
    /// Event codes, each with the index of an entry that has this code, also with its second
    /// register; sorted.
    pub by_code: &'static [(u16, u16)],
}

impl Table {
    /// Returns the first entry with this name, ignoring case.
    pub fn find(&self, name: &str) -> Option<&'static Entry<'static>> {
        let upper = |text: &'static str| text.bytes().map(|byte| byte.to_ascii_uppercase());
        let wanted = || name.bytes().map(|byte| byte.to_ascii_uppercase());
        let name_of = |index: u16| upper(self.entries[usize::from(index)].name);
        let first = self.by_name.partition_point(|index| name_of(*index).lt(wanted()));
        let found = self.by_name.get(first).filter(|index| name_of(**index).eq(wanted()))?;
        self.entries.get(usize::from(*found))
    }

    /// Returns the entries that have a code, also with their second register, in the order of the
    /// text.
    pub fn with_code(&self, code: u16) -> impl Iterator<Item = &'static Entry<'static>> + use<> {
        let first = self.by_code.partition_point(|(other, _)| *other < code);
        let entries = self.entries;
        let of_code = self.by_code[first..].iter().take_while(move |(other, _)| *other == code);
        of_code.filter_map(move |(_, index)| entries.get(usize::from(*index)))
    }
}

/// Event of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Name given by the vendor.
    pub name: &'a str,
    /// Event code: 8 bits on Intel's processors, 12 bits on AMD's.
    pub code: u16,
    /// Unit mask.
    pub umask: u8,
    /// Counter mask.
    pub cmask: u8,
    /// Whether the comparison with the counter mask is inverted.
    pub inv: bool,
    /// Whether edges are counted.
    pub edge: bool,
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
    /// Alternative register, with the event code that uses it.
    pub second: Option<(u32, u16)>,
    /// Value of the register.
    pub value: u64,
}

/// Counters that can count an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Mask of general counters.
    General(u8),
    /// Index of a fixed counter.
    Fixed(u8),
}
