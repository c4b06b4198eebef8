//! Names that are not the vendors': perf's generic events, as Linux's drivers map them
//! (arch/x86/events/intel/core.c, `intel_perfmon_event_map`, `skl_…` and `glc_hw_cache_event_ids`;
//! arch/x86/events/amd/core.c, `amd_zen2_…` and `amd_zen4_perfmon_event_map`,
//! `amd_hw_cache_event_ids_f17h`), and PAPI's presets (src/papi_events.csv: `skx`,
//! `amd64_fam19h_zen3`; newer Intel processors after the same definitions).
//!
//! The definition of an alias is the spelling of its event, or `+` or `-` with the two events whose
//! sum or difference it is, or `!` with the reason why it is refused.

use super::Processor;

/// Meaning of an alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alias {
    /// Another spelling of one event.
    Event(&'static str),
    /// Sum or difference of two events.
    Derived(Derived),
    /// Not countable, for this reason.
    Refused(&'static str),
}

/// Sum or difference of two events, which no counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derived {
    /// Spellings of the two events.
    pub terms: [&'static str; 2],
    /// Whether the second is subtracted from the first; otherwise they are added.
    pub subtracts: bool,
}

type Table = &'static [(&'static str, &'static str)];

const INTEL: Table = &[
    ("cycles", "r3c"),
    ("cpu-cycles", "r3c"),
    ("instructions", "rc0"),
    ("ref-cycles", "cpu/event=0,umask=3/"),
    ("bus-cycles", "r13c"),
    ("branches", "rc4"),
    ("branch-instructions", "rc4"),
    ("branch-misses", "rc5"),
    ("cache-references", "r4f2e"),
    ("cache-misses", "r412e"),
    (
        "stalled-cycles-frontend",
        "!Linux maps it to no event of this processor; IDQ_UOPS_NOT_DELIVERED.CORE comes near",
    ),
    (
        "stalled-cycles-backend",
        "!Linux maps it to no event of this processor; CYCLE_ACTIVITY.STALLS_TOTAL comes near",
    ),
    ("PAPI_TOT_CYC", "r3c"),
    ("PAPI_TOT_INS", "rc0"),
    ("PAPI_REF_CYC", "cpu/event=0,umask=3/"),
    ("PAPI_BR_INS", "rc4"),
    ("PAPI_L2_TCM", "r4f2e"),
    ("PAPI_L3_TCA", "r4f2e"),
    ("PAPI_L3_TCM", "r412e"),
];

/// Aliases for Skylake, Ice Lake and Sapphire Rapids servers.
const INTEL_SERVERS: Table = &[
    ("L1-dcache-loads", "r81d0"),
    ("L1-dcache-stores", "r82d0"),
    ("dTLB-loads", "r81d0"),
    ("dTLB-stores", "r82d0"),
    ("PAPI_LD_INS", "MEM_INST_RETIRED.ALL_LOADS"),
    ("PAPI_SR_INS", "MEM_INST_RETIRED.ALL_STORES"),
    ("PAPI_LST_INS", "MEM_INST_RETIRED.ANY"),
    ("PAPI_L1_DCM", "L1D.REPLACEMENT"),
    ("PAPI_L1_ICM", "L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L1_LDM", "L2_RQSTS.ALL_DEMAND_DATA_RD"),
    ("PAPI_L1_STM", "L2_RQSTS.ALL_RFO"),
    ("PAPI_L1_TCM", "+L1D.REPLACEMENT L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L2_DCA", "re724"),
    ("PAPI_L2_DCR", "L2_RQSTS.ALL_DEMAND_DATA_RD"),
    ("PAPI_L2_DCM", "-LONGEST_LAT_CACHE.REFERENCE L2_RQSTS.CODE_RD_MISS"),
    ("PAPI_L2_ICA", "L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L2_ICH", "L2_RQSTS.CODE_RD_HIT"),
    ("PAPI_L2_ICM", "L2_RQSTS.CODE_RD_MISS"),
    ("PAPI_L2_ICR", "L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L2_LDM", "L2_RQSTS.DEMAND_DATA_RD_MISS"),
    ("PAPI_L2_STM", "L2_RQSTS.RFO_MISS"),
    ("PAPI_L2_TCA", "+re724 L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L2_TCR", "+L2_RQSTS.ALL_DEMAND_DATA_RD L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L3_DCA", "-LONGEST_LAT_CACHE.REFERENCE L2_RQSTS.CODE_RD_MISS"),
    ("PAPI_L3_DCR", "OFFCORE_REQUESTS.DEMAND_DATA_RD"),
    ("PAPI_L3_DCW", "L2_RQSTS.RFO_MISS"),
    ("PAPI_L3_ICA", "L2_RQSTS.CODE_RD_MISS"),
    ("PAPI_L3_ICR", "L2_RQSTS.CODE_RD_MISS"),
    ("PAPI_L3_LDM", "MEM_LOAD_RETIRED.L3_MISS"),
    ("PAPI_L3_TCW", "L2_RQSTS.RFO_MISS"),
    ("PAPI_TLB_DM", "+DTLB_LOAD_MISSES.WALK_COMPLETED DTLB_STORE_MISSES.WALK_COMPLETED"),
    ("PAPI_MEM_WCY", "RESOURCE_STALLS.SB"),
    ("PAPI_STL_CCY", "UOPS_RETIRED.STALL_CYCLES"),
    ("PAPI_BR_CN", "BR_INST_RETIRED.COND"),
    ("PAPI_BR_NTK", "BR_INST_RETIRED.COND_NTAKEN"),
    ("PAPI_BR_UCN", "-BR_INST_RETIRED.ALL_BRANCHES BR_INST_RETIRED.COND"),
    ("PAPI_BR_PRC", "-PAPI_BR_CN PAPI_BR_MSP"),
    ("PAPI_FP_OPS", FLOPS),
    ("PAPI_SP_OPS", FLOPS),
    ("PAPI_DP_OPS", FLOPS),
    ("PAPI_VEC_SP", FLOPS),
    ("PAPI_VEC_DP", FLOPS),
];

const FLOPS: &str = "!it is a weighted sum: count the events FP_ARITH_INST_RETIRED.*";

/// Aliases for Skylake servers.
const SKYLAKE: Table = &[
    ("iTLB-loads", "r2085"),
    ("PAPI_TLB_IM", "ITLB_MISSES.MISS_CAUSES_A_WALK"),
    ("PAPI_RES_STL", "RESOURCE_STALLS.ANY"),
    ("PAPI_BR_MSP", "BR_MISP_RETIRED.CONDITIONAL"),
    ("PAPI_BR_TKN", "-BR_INST_RETIRED.COND BR_INST_RETIRED.NOT_TAKEN"),
];

/// Aliases for Skylake and Ice Lake servers.
const SKYLAKE_AND_ICE_LAKE: Table = &[
    ("L1-dcache-load-misses", "r151"),
    ("L1-icache-load-misses", "r283"),
    ("LLC-loads", "cpu/event=0xb7,umask=1,offcore_rsp=0x3fc0010001/"),
    ("LLC-load-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x3ffc020001/"),
    ("LLC-stores", "cpu/event=0xb7,umask=1,offcore_rsp=0x3fc0010002/"),
    ("LLC-store-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x3ffc020002/"),
    ("node-loads", "cpu/event=0xb7,umask=1,offcore_rsp=0x1fc4000001/"),
    ("node-load-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x1ff8000001/"),
    ("node-stores", "cpu/event=0xb7,umask=1,offcore_rsp=0x1fc4000002/"),
    ("node-store-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x1ff8000002/"),
    ("dTLB-load-misses", "re08"),
    ("dTLB-store-misses", "re49"),
    ("iTLB-load-misses", "re85"),
    ("branch-loads", "rc4"),
    ("branch-load-misses", "rc5"),
];

/// Aliases for Ice Lake and Sapphire Rapids servers.
const SINCE_ICE_LAKE: Table = &[
    ("slots", "cpu/event=0,umask=4/"),
    ("iTLB-loads", "!Linux maps it to no event of this processor; ITLB_MISSES.STLB_HIT comes near"),
    ("PAPI_TLB_IM", "ITLB_MISSES.WALK_COMPLETED"),
    ("PAPI_BR_MSP", "BR_MISP_RETIRED.COND"),
    ("PAPI_BR_TKN", "BR_INST_RETIRED.COND_TAKEN"),
];

const SAPPHIRE_RAPIDS: Table = &[
    ("L1-dcache-load-misses", "re124"),
    ("L1-icache-load-misses", "re424"),
    ("LLC-loads", "cpu/event=0x2a,umask=1,offcore_rsp=0x10001/"),
    ("LLC-load-misses", "cpu/event=0x2a,umask=1,offcore_rsp=0x3fbfc00001/"),
    ("LLC-stores", "cpu/event=0x2a,umask=1,offcore_rsp=0x3f3ffc0002/"),
    ("LLC-store-misses", "cpu/event=0x2a,umask=1,offcore_rsp=0x3f3fc00002/"),
    ("node-loads", "cpu/event=0x2a,umask=1,offcore_rsp=0x10c000001/"),
    ("node-load-misses", "cpu/event=0x2a,umask=1,offcore_rsp=0x3fb3000001/"),
    ("dTLB-load-misses", "re12"),
    ("dTLB-store-misses", "re13"),
    ("iTLB-load-misses", "re11"),
    ("branch-loads", "r4c4"),
    ("branch-load-misses", "r4c5"),
];

const NO_LLC: &str = "!the last-level cache's counters are not the core's, and are not driven";

const AMD: Table = &[
    ("cycles", "r76"),
    ("cpu-cycles", "r76"),
    ("instructions", "rc0"),
    ("branches", "rc2"),
    ("branch-instructions", "rc2"),
    ("branch-misses", "rc3"),
    ("PAPI_TOT_CYC", "r76"),
    ("PAPI_TOT_INS", "rc0"),
    ("PAPI_BR_INS", "rc2"),
    ("PAPI_BR_MSP", "rc3"),
    ("PAPI_BR_TKN", "rc4"),
];

const MERGED_FLOPS: &str = "!PMCx003 takes two counters that the event Merge joins, and the planner does \
    not make such pairs; RETIRED_MMX_FP_INSTRUCTIONS.SSE_INSTR counts the instructions";

/// Aliases for Zen 3 and Zen 4.
const ZEN: Table = &[
    ("cache-references", "rff60"),
    ("cache-misses", "r964"),
    ("stalled-cycles-frontend", "ra9"),
    ("stalled-cycles-backend", "!Linux maps it to no event of this processor"),
    ("L1-dcache-loads", "r40"),
    ("L1-dcache-load-misses", "rc860"),
    ("L1-dcache-prefetches", "rff5a"),
    ("L1-icache-loads", "!this processor does not count them right (PMCx080)"),
    ("L1-icache-load-misses", "r1060"),
    ("LLC-loads", NO_LLC),
    ("LLC-load-misses", NO_LLC),
    ("LLC-stores", NO_LLC),
    ("LLC-store-misses", NO_LLC),
    ("dTLB-loads", "rff45"),
    ("dTLB-load-misses", "rf045"),
    ("iTLB-loads", "r84"),
    ("iTLB-load-misses", "rff85"),
    ("branch-loads", "rc2"),
    ("branch-load-misses", "rc3"),
    ("PAPI_TLB_DM", "rff45"),
    ("PAPI_TLB_IM", "+L1_ITLB_MISS_L2_ITLB_HIT r0f85"),
    ("PAPI_L1_DCA", "r729"),
    ("PAPI_L1_DCM", "re860"),
    ("PAPI_L2_DCM", "r864"),
    ("PAPI_L2_DCR", "re860"),
    ("PAPI_L2_DCH", "rf064"),
    ("PAPI_L2_ICR", "r1060"),
    ("PAPI_L2_ICA", "r1060"),
    ("PAPI_L2_ICM", "r164"),
    ("PAPI_L2_ICH", "r664"),
    ("PAPI_VEC_INS", MERGED_FLOPS),
    ("PAPI_FP_INS", MERGED_FLOPS),
    ("PAPI_FP_OPS", MERGED_FLOPS),
    ("PAPI_FML_INS", MERGED_FLOPS),
    ("PAPI_FAD_INS", MERGED_FLOPS),
    ("PAPI_FDV_INS", MERGED_FLOPS),
    ("PAPI_FSQ_INS", MERGED_FLOPS),
];

const ZEN4: Table = &[("ref-cycles", "r100000120")];

fn tables(processor: Processor) -> &'static [Table] {
    match processor {
        Processor::SkylakeServer => &[INTEL, INTEL_SERVERS, SKYLAKE_AND_ICE_LAKE, SKYLAKE],
        Processor::IceLakeServer => &[INTEL, INTEL_SERVERS, SKYLAKE_AND_ICE_LAKE, SINCE_ICE_LAKE],
        Processor::SapphireRapids => &[INTEL, INTEL_SERVERS, SINCE_ICE_LAKE, SAPPHIRE_RAPIDS],
        Processor::Intel => &[INTEL],
        Processor::Zen3 => &[AMD, ZEN],
        Processor::Zen4 => &[AMD, ZEN, ZEN4],
        Processor::Amd => &[AMD],
    }
}

/// Looks up an alias, ignoring case.
pub(super) fn alias(processor: Processor, name: &str) -> Option<Alias> {
    let mut all = tables(processor).iter().copied().flatten();
    let (_, event) = all.find(|(alias, _)| alias.eq_ignore_ascii_case(name))?;
    Some(match event.split_at(1) {
        ("!", why) => Alias::Refused(why),
        (sign @ ("+" | "-"), terms) => derived(sign, terms),
        _ => Alias::Event(event),
    })
}

fn derived(sign: &str, terms: &'static str) -> Alias {
    let (first, second) = terms.split_once(' ').unwrap_or((terms, ""));
    Alias::Derived(Derived { terms: [first, second], subtracts: sign == "-" })
}

/// Returns the names of all aliases.
pub(super) fn aliases(processor: Processor) -> impl Iterator<Item = &'static str> {
    tables(processor).iter().copied().flatten().map(|(name, _)| *name)
}
