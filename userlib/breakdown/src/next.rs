//! Events whose samples show the lines where the cycles of a part are lost.

use super::formulas::{CODE, DIVIDER, MACHINE_CLEARS, MISPREDICTED, MISPREDICTS, TRANSLATION};

/// Parts, each with its event. A part without a row has many causes: samples of cycles show them.
/// Lost cycles of memory are sampled, not misses: cheap misses are often more than expensive ones.
/// They are those of the part's formula: loads also wait where the first level has their data.
pub(super) type Sampled = &'static [(&'static str, &'static str)];

/// Parts and their events on Intel.
pub(super) const INTEL: Sampled = &[
    ("mispredicted branches, clears", MISPREDICTED),
    ("bad speculation", MISPREDICTED),
    ("mispredicted branches", MISPREDICTED),
    ("machine clears", MACHINE_CLEARS),
    ("instruction cache misses", CODE),
    ("instruction TLB misses", TRANSLATION),
    ("memory", "CYCLE_ACTIVITY.STALLS_MEM_ANY"),
    ("second-level cache", "MEM_LOAD_RETIRED.L2_HIT"),
    ("last-level cache", "MEM_LOAD_RETIRED.L3_HIT"),
    ("DRAM", "CYCLE_ACTIVITY.STALLS_L3_MISS"),
    ("stores", "L2_RQSTS.ALL_RFO"),
    ("divider", DIVIDER),
];

/// Parts and their events on AMD.
pub(super) const AMD: Sampled = &[
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
        for (name, _) in INTEL {
            assert!(firsts.contains(name) || named(name, ALL[0]), "{name}");
        }
        for (name, _) in AMD {
            assert!(firsts.contains(name) || named(name, ALL[2]), "{name}");
        }
    }
}
