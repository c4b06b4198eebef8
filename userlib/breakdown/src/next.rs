//! Events whose samples show the lines where the cycles of a part are lost.

use super::{formulas::MISPREDICTS, stacks::Stack};

/// Parts and their events on Intel. A part without a row has many causes: samples of cycles show
/// them.
const INTEL: [(&str, &str); 13] = [
    ("mispredicted branches, clears", "BR_MISP_RETIRED.ALL_BRANCHES"),
    ("bad speculation", "BR_MISP_RETIRED.ALL_BRANCHES"),
    ("mispredicted branches", "BR_MISP_RETIRED.ALL_BRANCHES"),
    ("machine clears", "MACHINE_CLEARS.COUNT"),
    ("instruction cache misses", "ICACHE_DATA.STALLS"),
    ("instruction TLB misses", "ICACHE_TAG.STALLS"),
    ("memory", "MEM_LOAD_RETIRED.L1_MISS"),
    ("second-level cache", "MEM_LOAD_RETIRED.L2_HIT"),
    ("last-level cache", "MEM_LOAD_RETIRED.L3_HIT"),
    ("DRAM", "MEM_LOAD_RETIRED.L3_MISS"),
    ("stores", "L2_RQSTS.ALL_RFO"),
    ("divider", "ARITH.DIVIDER_ACTIVE"),
    ("first-level cache", "MEM_INST_RETIRED.ALL_LOADS"),
];

/// Parts and their events on AMD.
const AMD: [(&str, &str); 5] = [
    ("mispredicted branches, clears", MISPREDICTS),
    ("bad speculation", MISPREDICTS),
    ("mispredicted branches", MISPREDICTS),
    ("memory", "L1-dcache-load-misses"),
    ("instruction fetch", "L1-icache-load-misses"),
];

impl Stack {
    /// Event to sample for the lines where the cycles of the part with this name are lost.
    pub fn event_to_sample(&self, part: &str) -> &'static str {
        let rows: &[_] = if self.cycles.starts_with("CPU_CLK") { &INTEL } else { &AMD };
        rows.iter().find(|(name, _)| *name == part).map_or(self.cycles, |(_, event)| event)
    }

    /// Names of the parts of the cycles, of the first level and of the whole tree.
    pub fn part_names(&self) -> impl Iterator<Item = &'static str> {
        self.method.metrics.iter().map(|metric| metric.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::ALL;

    #[test]
    fn every_row_is_of_a_part() {
        let named = |name: &str, stack: &Stack| stack.part_names().any(|part| part == name);
        let firsts = ["mispredicted branches, clears"];
        for (name, _) in INTEL {
            assert!(firsts.contains(&name) || named(name, ALL[0]), "{name}");
        }
        for (name, _) in AMD {
            assert!(firsts.contains(&name) || named(name, ALL[2]), "{name}");
        }
    }
}
