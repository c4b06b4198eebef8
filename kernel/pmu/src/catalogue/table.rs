//! The entries of the event tables. `build.rs` makes the tables, and documents their format.

/// The events of a processor, and indices that find them.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The events, in the order of the text.
    pub entries: &'static [Entry<'static>],
    /// Indices of `entries`, sorted by the name in upper case, then by the index.
    pub by_name: &'static [u16],
    /// Event codes, each with the index of an entry that has it, or has it with its second
    /// register; sorted.
    pub by_code: &'static [(u16, u16)],
}

impl Table {
    /// The first entry of this name, in whatever case.
    pub fn find(&self, name: &str) -> Option<&'static Entry<'static>> {
        let upper = |text: &'static str| text.bytes().map(|byte| byte.to_ascii_uppercase());
        let wanted = || name.bytes().map(|byte| byte.to_ascii_uppercase());
        let name_of = |index: u16| upper(self.entries[usize::from(index)].name);
        let first = self.by_name.partition_point(|index| name_of(*index).lt(wanted()));
        let found = self.by_name.get(first).filter(|index| name_of(**index).eq(wanted()))?;
        self.entries.get(usize::from(*found))
    }

    /// The entries that have a code, or have it with their second register, in the order of the
    /// text.
    pub fn with_code(&self, code: u16) -> impl Iterator<Item = &'static Entry<'static>> + use<> {
        let first = self.by_code.partition_point(|(other, _)| *other < code);
        let entries = self.entries;
        let of_code = self.by_code[first..].iter().take_while(move |(other, _)| *other == code);
        of_code.filter_map(move |(_, index)| entries.get(usize::from(*index)))
    }
}

/// One event of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The vendor's name.
    pub name: &'a str,
    /// Event code, 8 bits on Intel's, 12 on AMD's processors.
    pub code: u16,
    /// Unit mask.
    pub umask: u8,
    /// Counter mask.
    pub cmask: u8,
    /// Whether the comparison with the counter mask is inverted.
    pub inv: bool,
    /// Whether edges are counted.
    pub edge: bool,
    /// Where it can be counted.
    pub counter: Counter,
    /// Whether it is counted alone, or not by this thread alone.
    pub flag: Flag,
    /// The extra register that it needs.
    pub extra: Option<ExtraRegister>,
}

/// What is special about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Nothing.
    None,
    /// No other event can be on a general counter at the same time.
    Alone,
    /// It counts the other thread of the core too.
    Threads,
}

/// A value that an event needs in an extra register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraRegister {
    /// The register's address.
    pub msr: u32,
    /// Another that will do, and the event's code with it.
    pub second: Option<(u32, u16)>,
    /// The value.
    pub value: u64,
}

/// Where an event can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// On general counters, as a mask.
    General(u8),
    /// On the fixed counter of this index.
    Fixed(u8),
}
