//! The events of paper 003 (its Table III) and its findings on them (its section III).

/// An event of the paper.
pub(super) struct Finding {
    pub(super) name: &'static str,
    /// The nearest events of Intel's and AMD's profiles; empty without one.
    pub(super) ours: [&'static str; 2],
    /// The paper's class by length (section III.B), which has no finding for some events.
    pub(super) by_length: &'static str,
}

const fn f(name: &'static str, ours: [&'static str; 2], by_length: &'static str) -> Finding {
    Finding { name, ours, by_length }
}

/// The paper's class by frequency for every event: all were affected, most often linearly past a
/// threshold (section III.C).
pub(super) const BY_FREQUENCY: &str = "linear";

/// The paper's events.
#[rustfmt::skip] // One event in as few lines as possible.
pub(super) const FINDINGS: [Finding; 15] = [
    f("64k aliases", ["", ""], "step"),
    f("global power events (cycles)", ["CPU_CLK_UNHALTED.THREAD", "CYCLES_NOT_IN_HALT"], "none"),
    f("conditional branches",
      ["BR_INST_RETIRED.COND", "RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS"], "step"),
    f("conditional branch mispredictions",
      ["BR_MISP_RETIRED.COND", "RETIRED_BRANCH_MISPREDICTED_DIRECTION_MISMATCH"], "-"),
    f("data TLB misses",
      ["DTLB_LOAD_MISSES.STLB_HIT", "L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT"], "step"),
    f("ITLB reads and writes", ["", "L1_ITLB_FETCH_HIT.IF4K"], "step"),
    f("ITLB misses", ["ITLB_MISSES.STLB_HIT", "L1_ITLB_MISS_L2_ITLB_HIT"], "step"),
    f("instructions retired", ["INST_RETIRED.ANY", "RETIRED_INSTRUCTIONS"], "step"),
    f("L1 misses",
      ["MEM_LOAD_RETIRED.L1_MISS", "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2"], "step"),
    f("loads", ["MEM_INST_RETIRED.ALL_LOADS", "LS_DISPATCH.LD_DISPATCH"], "step"),
    f("split loads", ["MEM_INST_RETIRED.SPLIT_LOADS", "MISALIGNED_LOADS.MA64"], "none"),
    f("split stores", ["MEM_INST_RETIRED.SPLIT_STORES", ""], "step"),
    // Counted in the pipeline `ooo` alone.
    f("store-buffer stalls", ["", ""], "none"),
    f("trace cache build mode", ["ICACHE_64B.IFTAG_MISS", "IC_TAG_HIT_MISS.IC_MISS"], "step"),
    f("time stamp, delivery mode", ["", ""], "linear"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use tally_vpmu::Profile;

    #[test]
    fn our_events_are_modelled() {
        for (index, profile) in ["icelake-server", "zen4"].into_iter().enumerate() {
            let profile = Profile::find(profile).unwrap();
            for finding in FINDINGS.iter().filter(|finding| !finding.ours[index].is_empty()) {
                let name = finding.ours[index];
                let mut events = profile.fixed_events().iter().chain(profile.events());
                assert!(events.any(|event| event.name == name), "{name}");
            }
        }
    }
}
