//! Events whose samples show the lines where the cycles of a part are lost.

use super::formulas::{
    CODE, DIVIDER, ICX_IN_MEMORY, MACHINE_CLEARS, MISPREDICTED, MISPREDICTS, ON_LOADS, TRANSLATION,
};

/// Parts, each with its event. A part without a row has many causes: samples of cycles show them.
/// Lost cycles of memory are sampled, not misses: cheap misses are often more than expensive ones.
/// They are those of the part's formula: loads also wait where the first level has their data.
type Rows = &'static [(&'static str, &'static str)];
/// Tables of the parts and their events.
pub(super) type Sampled = &'static [Rows];

/// Parts and their events on Ice Lake.
pub(super) const ICE_LAKE: Sampled = &[&[("memory", ICX_IN_MEMORY)], INTEL];
/// Parts and their events on Sapphire Rapids.
pub(super) const SAPPHIRE_RAPIDS: Sampled = &[&[("memory", ON_LOADS)], INTEL];
/// Parts and their events on AMD.
pub(super) const ZEN_4: Sampled = &[AMD];

const INTEL: Rows = &[
    ("mispredicted branches, clears", MISPREDICTED),
    ("bad speculation", MISPREDICTED),
    ("mispredicted branches", MISPREDICTED),
    ("machine clears", MACHINE_CLEARS),
    ("instruction cache misses", CODE),
    ("instruction TLB misses", TRANSLATION),
    ("second-level cache", "MEM_LOAD_RETIRED.L2_HIT"),
    ("last-level cache", "MEM_LOAD_RETIRED.L3_HIT"),
    ("DRAM", "CYCLE_ACTIVITY.STALLS_L3_MISS"),
    ("stores", "L2_RQSTS.ALL_RFO"),
    ("divider", DIVIDER),
];

const AMD: Rows = &[
    ("mispredicted branches, clears", MISPREDICTS),
    ("bad speculation", MISPREDICTS),
    ("mispredicted branches", MISPREDICTS),
    ("memory", "CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD"),
    ("instruction fetch", "L1-icache-load-misses"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::{ALL, Stack};

    #[test]
    fn every_row_is_of_a_part() {
        let named = |name: &str, stack: &Stack| stack.part_names().any(|part| part == name);
        let firsts = ["mispredicted branches, clears"];
        let tables = [ICE_LAKE, &SAPPHIRE_RAPIDS[..1], ZEN_4];
        for (stack, sampled) in ALL.iter().zip(tables) {
            for (name, _) in sampled.iter().copied().flatten() {
                assert!(firsts.contains(name) || named(name, stack), "{name}");
            }
        }
    }
}
