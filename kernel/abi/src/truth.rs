//! The truth file: the virtual PMU's counts of all events all the time, as one JSON object.
//!
//! The plugin writes the file when QEMU ends; `xtask` compares the engine's estimates with it.
//! Every number is an exact count of the machine model.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

/// Version of this file's schema.
pub const VERSION: u32 = 4;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// [`VERSION`].
    pub version: u32,
    /// The machine profile, such as `icelake-server` or `zen4`.
    pub profile: String,
    /// Regions in the order in which they were first opened.
    pub regions: Vec<Region>,
}

impl Truth {
    /// The region of this kind with this tag; the first, if several address spaces have one.
    pub fn region(&self, kind: RegionKind, tag: u32) -> Option<&Region> {
        self.regions.iter().find(|region| region.kind == kind && region.tag == tag)
    }
}

/// How a region was opened. Tags are unique within a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegionKind {
    /// Code in any ring, by `Op::Open`.
    Marked,
    /// A kernel in ring 0, by `Op::OpenSession`.
    Session,
}

/// One region: everything that happened in one address space while it was open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// How it was opened.
    pub kind: RegionKind,
    /// The tag, unique among the regions of its kind in its address space.
    pub tag: u32,
    /// The address space that opened it: CR3's page-table base, a physical address.
    pub address_space: u64,
    /// Whether it was closed; an open region contains everything up to the end of the run.
    pub closed: bool,
    /// Counts by the vendor's event name. An event that the profile does not model is absent.
    pub events: BTreeMap<String, Count>,
    /// The same counts for each CPU, in order of their numbers.
    pub cpus: Vec<BTreeMap<String, Count>>,
    /// What the overflow interrupts cost that struck while it was open.
    pub pmi: PmiCost,
}

/// An event's count, split by the privilege at which it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// In ring 3.
    pub user: u64,
    /// In rings 0 to 2.
    pub kernel: u64,
}

/// The cost of the overflow interrupts that strike in a region: from the interrupt's delivery to
/// its handler's return (IRET), both included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PmiCost {
    /// Interrupts delivered, whose handler has returned.
    pub count: u64,
    /// Instructions of their handlers.
    pub instructions: u64,
    /// Cycles of their handlers.
    pub cycles: u64,
    /// Cycles of the whole region, all privileges, handlers included.
    pub region_cycles: u64,
    /// What their handlers add to the region's counts, by the same names.
    pub events: BTreeMap<String, Count>,
}
