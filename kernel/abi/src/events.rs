//! Lists of events: the default lists, and how a list is split into words. The catalogue resolves
//! the words.

/// The default job's events on the processor with this signature (CPUID leaf 1, EAX): events that
/// explain its cycles. On a processor without a table in the catalogue, events that every processor
/// can count.
pub fn default_list(signature: u32) -> &'static str {
    let model = signature >> 12 & 0xf0 | signature >> 4 & 0xf;
    match (signature & 0x0ff0_0f00, model) {
        (0x600, 0x6a | 0x6c | 0x8f) => INTEL,
        (0xa0_0f00, 0x10..=0x1f | 0x60..=0xaf) => ZEN4,
        (0xa0_0f00, 0x00..=0x0f | 0x20..=0x5f) => ZEN3,
        _ => DEFAULT_STAT,
    }
}

/// Ice Lake and Sapphire Rapids servers.
const INTEL: &str = "\
    INST_RETIRED.ANY CPU_CLK_UNHALTED.THREAD CPU_CLK_UNHALTED.REF_TSC \
    UOPS_RETIRED.SLOTS BR_INST_RETIRED.ALL_BRANCHES BR_INST_RETIRED.COND_TAKEN \
    BR_INST_RETIRED.NEAR_CALL BR_INST_RETIRED.NEAR_TAKEN BR_INST_RETIRED.INDIRECT \
    BR_MISP_RETIRED.ALL_BRANCHES BR_MISP_RETIRED.COND MEM_INST_RETIRED.ALL_LOADS \
    MEM_INST_RETIRED.ALL_STORES MEM_LOAD_RETIRED.L1_HIT MEM_LOAD_RETIRED.L1_MISS \
    MEM_LOAD_RETIRED.L2_HIT MEM_LOAD_RETIRED.L2_MISS L1D.REPLACEMENT L2_RQSTS.ALL_RFO \
    L2_LINES_IN.ALL DTLB_LOAD_MISSES.STLB_HIT CYCLE_ACTIVITY.STALLS_TOTAL \
    CYCLE_ACTIVITY.STALLS_L1D_MISS";

const ZEN4: &str = "\
    RETIRED_INSTRUCTIONS CYCLES_NOT_IN_HALT RETIRED_OPS RETIRED_BRANCH_INSTRUCTIONS \
    RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_TAKEN_BRANCH_INSTRUCTIONS \
    RETIRED_TAKEN_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS \
    RETIRED_UNCONDITIONAL_BRANCH_INSTRUCTIONS RETIRED_NEAR_RETURNS \
    RETIRED_INDIRECT_BRANCH_INSTRUCTIONS RETIRED_FUSED_INSTRUCTIONS LS_DISPATCH.LD_DISPATCH \
    LS_DISPATCH.STORE_DISPATCH ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2 \
    DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2 MAB_ALLOCATION_BY_TYPE.LS \
    L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT REQUESTS_TO_L2_GROUP1.RD_BLK_L \
    REQUESTS_TO_L2_GROUP1.RD_BLK_X CYCLES_NO_RETIRE.EMPTY \
    CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD";

/// Those of [`ZEN4`] that Zen 3 has.
const ZEN3: &str = "\
    RETIRED_INSTRUCTIONS CYCLES_NOT_IN_HALT RETIRED_OPS RETIRED_BRANCH_INSTRUCTIONS \
    RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_TAKEN_BRANCH_INSTRUCTIONS \
    RETIRED_TAKEN_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS \
    RETIRED_NEAR_RETURNS RETIRED_INDIRECT_BRANCH_INSTRUCTIONS RETIRED_FUSED_INSTRUCTIONS \
    LS_DISPATCH.LD_DISPATCH LS_DISPATCH.STORE_DISPATCH \
    ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2 DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2 \
    MAB_ALLOCATION_BY_TYPE.LS L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT REQUESTS_TO_L2_GROUP1.RD_BLK_L \
    REQUESTS_TO_L2_GROUP1.RD_BLK_X";

/// The events that `tally stat` counts by default, as `perf stat` does.
pub const DEFAULT_STAT: &str =
    "cycles,instructions,branches,branch-misses,cache-references,cache-misses";

/// The events that `tally stat -d` counts besides: those of `perf stat -d` that the core counts on
/// every processor of the catalogue.
pub const DETAILED_STAT: &str = "L1-dcache-loads,L1-dcache-load-misses";

/// The event that `tally record` samples by default, as `perf record` does.
pub const DEFAULT_RECORD: &str = "cycles";

/// The words of a list, which is split at commas and white space, except inside `cpu/…/`.
pub fn words(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    core::iter::from_fn(move || {
        rest = rest.trim_start_matches(separates);
        if rest.is_empty() {
            return None;
        }
        let terms = terms_end(rest).unwrap_or(0);
        let end = rest[terms..].find(separates).map_or(rest.len(), |end| terms + end);
        let (word, left) = rest.split_at(end);
        rest = left;
        Some(word)
    })
}

fn separates(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

/// Where the terms of `cpu/…/` end, if `text` begins with that.
pub fn terms_end(text: &str) -> Option<usize> {
    let begin = terms_begin(text)?;
    text[begin..].find('/').map(|end| begin + end + 1)
}

/// Where the terms of `cpu/…/` begin, if `text` begins with that.
pub fn terms_begin(text: &str) -> Option<usize> {
    let pmu = text.get(..4)?;
    pmu.eq_ignore_ascii_case("cpu/").then_some(4)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_processor_with_a_table_has_a_list_of_its_own() {
        for (signature, list) in [
            (0x606a6, INTEL),
            (0x806f8, INTEL),
            (0xa0_0f11, ZEN3),
            (0xa1_0f11, ZEN4),
            (0xa6_0f12, ZEN4),
            // Zen 4c.
            (0xaa_0f01, ZEN4),
            (0xb4_0f40, DEFAULT_STAT),
        ] {
            assert_eq!(default_list(signature), list, "{signature:#x}");
        }
    }

    #[test]
    fn commas_inside_of_terms_separate_nothing() {
        let list = "a,b/u  cpu/event=1,umask=2/u,,c:k";
        let words: Vec<&str> = words(list).collect();
        assert_eq!(words, ["a", "b/u", "cpu/event=1,umask=2/u", "c:k"]);
    }
}
