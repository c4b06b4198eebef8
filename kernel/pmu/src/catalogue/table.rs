//! What a table says of an event. `build.rs` makes the tables, and has their format.

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
    pub extra: Option<Register>,
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
pub struct Register {
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
