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
    /// Truth of the shadow cores, in the order in which the options name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadows: Vec<ShadowTruth>,
}

/// Counts of a shadow core, which runs beside a CPU's own core on the same instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowTruth {
    /// The structures that never miss, as spelled in the option.
    pub perfect: String,
    /// The truth's regions, without the cost of overflow interrupts.
    pub regions: Vec<Region>,
}

impl ShadowTruth {
    /// See [`Truth::region`].
    pub fn region(&self, kind: RegionKind, tag: u32) -> Option<&Region> {
        region(&self.regions, kind, tag)
    }

    /// See [`Truth::session`].
    pub fn session(&self, tag: u32) -> Option<Region> {
        session(&self.regions, tag)
    }
}

impl Truth {
    /// The region of this kind with this tag; the first, if several address spaces have one.
    pub fn region(&self, kind: RegionKind, tag: u32) -> Option<&Region> {
        region(&self.regions, kind, tag)
    }

    /// The session with this tag, summed over all address spaces. A session on a program has one
    /// address space; a session on a CPU has that of each program that the CPU ran.
    pub fn session(&self, tag: u32) -> Option<Region> {
        session(&self.regions, tag)
    }
}

fn session(regions: &[Region], tag: u32) -> Option<Region> {
    let is_it = |region: &&Region| (region.kind, region.tag) == (RegionKind::Session, tag);
    let mut regions = regions.iter().filter(is_it);
    let mut all = regions.next()?.clone();
    regions.for_each(|region| all.add(region));
    Some(all)
}

fn region(regions: &[Region], kind: RegionKind, tag: u32) -> Option<&Region> {
    regions.iter().find(|region| region.kind == kind && region.tag == tag)
}

/// Origin of a region. Tags are unique within a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegionKind {
    /// A mark in code in any ring, by `Op::Open`.
    Marked,
    /// A session of a kernel in ring 0, by `Op::OpenSession`.
    Session,
}

/// A region: everything that happened in one address space while the region was open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The region's origin.
    pub kind: RegionKind,
    /// The tag, unique among the regions of its kind in its address space.
    pub tag: u32,
    /// The address space in which the region was opened: CR3's page-table base, a physical address.
    pub address_space: u64,
    /// Whether the region was closed; an open region contains everything up to the end of the run.
    pub closed: bool,
    /// Counts by the vendor's event name. An event that the profile does not model is absent.
    pub events: BTreeMap<String, Count>,
    /// Counts for each CPU, in the order of CPU numbers, as in `events`. An event that did not
    /// happen there is absent.
    pub cpus: Vec<BTreeMap<String, Count>>,
    /// Cost of the overflow interrupts in the region.
    pub pmi: PmiCost,
}

impl Region {
    /// Adds the counts of the same session in another address space.
    fn add(&mut self, other: &Region) {
        self.closed &= other.closed;
        add_counts(&mut self.events, &other.events);
        for (counts, others) in self.cpus.iter_mut().zip(&other.cpus) {
            add_counts(counts, others);
        }
        let PmiCost { count, instructions, cycles, region_cycles, events } = &other.pmi;
        self.pmi.count += count;
        self.pmi.instructions += instructions;
        self.pmi.cycles += cycles;
        self.pmi.region_cycles += region_cycles;
        add_counts(&mut self.pmi.events, events);
    }
}

fn add_counts(counts: &mut BTreeMap<String, Count>, others: &BTreeMap<String, Count>) {
    for (event, Count { user, kernel }) in others {
        let count = counts.entry(event.clone()).or_default();
        count.user += user;
        count.kernel += kernel;
    }
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
    /// Events that their handlers add to the region's counts, by the same names.
    pub events: BTreeMap<String, Count>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_the_sum_of_its_address_spaces() {
        let region = |kind, tag, user, closed| {
            let events = BTreeMap::from([(String::from("E"), Count { user, kernel: 1 })]);
            let pmi = PmiCost { count: user, events: events.clone(), ..PmiCost::default() };
            let cpus = Vec::from([events.clone(), events.clone()]);
            Region { kind, tag, address_space: user, closed, events, cpus, pmi }
        };
        let session = RegionKind::Session;
        let regions = Vec::from([
            region(session, 1, 3, true),
            region(RegionKind::Marked, 1, 100, true),
            region(session, 2, 1000, true),
            region(session, 1, 4, false),
        ]);
        let truth =
            Truth { version: VERSION, profile: String::new(), regions, shadows: Vec::new() };
        let all = truth.session(1).unwrap();
        let sum = Count { user: 7, kernel: 2 };
        assert_eq!((all.events["E"], all.cpus[1]["E"], all.pmi.events["E"]), (sum, sum, sum));
        assert_eq!((all.address_space, all.closed, all.pmi.count), (3, false, 7));
        assert_eq!(truth.session(3), None);
    }
}
