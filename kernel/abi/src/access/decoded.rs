//! A memory access, in words of no processor.

use serde::Serialize;

/// The level that served an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The first-level data cache.
    L1,
    /// The first-level cache, into which another access had requested the line before.
    FillBuffer,
    /// The second-level cache.
    L2,
    /// The last-level cache.
    L3,
    /// Another core's cache.
    OtherCore,
    /// Memory of the socket.
    Memory,
    /// Another socket's memory or cache.
    Remote,
    /// A device, or memory that is not cached.
    Uncached,
    /// A level behind the first-level cache.
    NotL1,
    /// Unknown.
    Unknown,
}

impl Source {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Source::L1 => "L1",
            Source::FillBuffer => "L1 fill buffer",
            Source::L2 => "L2",
            Source::L3 => "L3",
            Source::OtherCore => "another core's cache",
            Source::Memory => "memory",
            Source::Remote => "another socket",
            Source::Uncached => "a device, or uncached memory",
            Source::NotL1 => "behind the L1",
            Source::Unknown => "unknown",
        }
    }
}

/// A memory access of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Access {
    /// The data's address.
    pub address: u64,
    /// Whether the instruction stored.
    pub is_store: bool,
    /// The level that served the access.
    pub source: Source,
    /// Whether the translation missed both levels of the TLB.
    pub missed_tlb: bool,
    /// Whether the instruction was locked.
    pub is_locked: bool,
    /// Cycles until a load had its data, where they were measured.
    pub latency_cycles: Option<u64>,
}
