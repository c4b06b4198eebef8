//! Names that are not the vendors': perf's generic events, as Linux's drivers map them
//! (arch/x86/events/intel/core.c, `intel_perfmon_event_map`, `hsw_…`, `skl_…`, `glc_…`, `glm_…`
//! and `glp_hw_cache_event_ids`; arch/x86/events/amd/core.c, `amd_zen2_…` and
//! `amd_zen4_perfmon_event_map`, `amd_hw_cache_event_ids_f17h`), and PAPI's presets
//! (src/papi_events.csv: `skx`, `amd64_fam19h_zen3`; other processors after the same definitions),
//! and the names by which perf itself knows AMD's events.
//!
//! The definition of an alias is the spelling of its event, or `+` or `-` with the two events whose
//! sum or difference it is, or `!` with the reason why it is refused. Where processors have
//! different names of an event, definitions are separated by `|`: the first whose events the table
//! has counts. An alias does not exist where the table has none of them.

use super::{Catalogue, perf_names::perf_names, processors::Core, responses};

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

const NONE: &str = "!Linux maps it to no event of this processor";
const NO_STALLS: &str = "!Linux maps it to no event of this processor; top-down events come near";

/// Event 3CH with unit mask 01H counts the bus clock where it has this name, and at the rate of the
/// time-stamp counter since Sapphire Rapids, where Linux still maps the alias to it.
const BUS_CYCLES: &str = "CPU_CLK_UNHALTED.REF_XCLK|!no event of this processor is known to count \
                          the bus clock; ref-cycles counts the time-stamp counter's";

const NO_IBS: &str =
    "!the processor samples its loads and stores among all ops: record -d, or -e ex_ret_ops:p";

const INTEL: Table = &[
    ("cycles", "r3c"),
    ("cpu-cycles", "r3c"),
    ("instructions", "rc0"),
    ("ref-cycles", "cpu/event=0,umask=3/"),
    ("bus-cycles", BUS_CYCLES),
    ("branches", "rc4"),
    ("branch-instructions", "rc4"),
    ("branch-misses", "rc5"),
    ("cache-references", "r4f2e"),
    ("cache-misses", "r412e"),
    ("stalled-cycles-frontend", NO_STALLS),
    ("stalled-cycles-backend", NO_STALLS),
    ("PAPI_TOT_CYC", "r3c"),
    ("PAPI_TOT_INS", "rc0"),
    ("PAPI_REF_CYC", "cpu/event=0,umask=3/"),
    ("PAPI_BR_INS", "rc4"),
    ("PAPI_L2_TCM", "r4f2e"),
    ("PAPI_L3_TCA", "r4f2e"),
    ("PAPI_L3_TCM", "r412e"),
];

/// Aliases for all cores but Knights Landing's: instructions with memory operands.
const MEMORY: Table = &[
    ("L1-dcache-loads", "r81d0"),
    ("L1-dcache-stores", "r82d0"),
    ("dTLB-loads", "r81d0"),
    ("dTLB-stores", "r82d0"),
];

/// Aliases for Intel's large cores: perf's events of `perf mem`.
const ACCESSES: Table =
    &[("mem-loads", "cpu/event=0xcd,umask=1,ldlat=3/"), ("mem-stores", "r82d0")];

/// PAPI's presets by names of events.
const PRESETS: Table = &[
    ("PAPI_LD_INS", "MEM_INST_RETIRED.ALL_LOADS|MEM_UOPS_RETIRED.ALL_LOADS"),
    ("PAPI_SR_INS", "MEM_INST_RETIRED.ALL_STORES|MEM_UOPS_RETIRED.ALL_STORES"),
    ("PAPI_LST_INS", "MEM_INST_RETIRED.ANY|MEM_UOPS_RETIRED.ALL"),
    ("PAPI_L1_DCM", "L1D.REPLACEMENT"),
    ("PAPI_L1_ICM", "L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L1_LDM", "L2_RQSTS.ALL_DEMAND_DATA_RD"),
    ("PAPI_L1_STM", "L2_RQSTS.ALL_RFO"),
    ("PAPI_L1_TCM", "+L1D.REPLACEMENT L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L2_DCA", "L2_RQSTS.ALL_DEMAND_REFERENCES"),
    ("PAPI_L2_DCR", "L2_RQSTS.ALL_DEMAND_DATA_RD"),
    ("PAPI_L2_DCM", "-LONGEST_LAT_CACHE.REFERENCE L2_RQSTS.CODE_RD_MISS"),
    ("PAPI_L2_ICA", "L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L2_ICH", "L2_RQSTS.CODE_RD_HIT"),
    ("PAPI_L2_ICM", "L2_RQSTS.CODE_RD_MISS"),
    ("PAPI_L2_ICR", "L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L2_LDM", "L2_RQSTS.DEMAND_DATA_RD_MISS"),
    ("PAPI_L2_STM", "L2_RQSTS.RFO_MISS"),
    ("PAPI_L2_TCA", "+L2_RQSTS.ALL_DEMAND_REFERENCES L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L2_TCR", "+L2_RQSTS.ALL_DEMAND_DATA_RD L2_RQSTS.ALL_CODE_RD"),
    ("PAPI_L3_DCA", "-LONGEST_LAT_CACHE.REFERENCE L2_RQSTS.CODE_RD_MISS"),
    ("PAPI_L3_DCR", "OFFCORE_REQUESTS.DEMAND_DATA_RD"),
    ("PAPI_L3_DCW", "L2_RQSTS.RFO_MISS"),
    ("PAPI_L3_ICA", "L2_RQSTS.CODE_RD_MISS"),
    ("PAPI_L3_ICR", "L2_RQSTS.CODE_RD_MISS"),
    ("PAPI_L3_LDM", "MEM_LOAD_RETIRED.L3_MISS|MEM_LOAD_UOPS_RETIRED.L3_MISS"),
    ("PAPI_L3_TCW", "L2_RQSTS.RFO_MISS"),
    ("PAPI_TLB_DM", "+DTLB_LOAD_MISSES.WALK_COMPLETED DTLB_STORE_MISSES.WALK_COMPLETED"),
    ("PAPI_MEM_WCY", "RESOURCE_STALLS.SB"),
    ("PAPI_STL_CCY", "UOPS_RETIRED.STALL_CYCLES|UOPS_RETIRED.STALLS"),
    ("PAPI_BR_CN", "BR_INST_RETIRED.COND|BR_INST_RETIRED.CONDITIONAL|BR_INST_RETIRED.JCC"),
    ("PAPI_BR_NTK", "BR_INST_RETIRED.COND_NTAKEN|BR_INST_RETIRED.NOT_TAKEN"),
    (
        "PAPI_BR_UCN",
        "-BR_INST_RETIRED.ALL_BRANCHES BR_INST_RETIRED.COND|-BR_INST_RETIRED.ALL_BRANCHES BR_INST_RETIRED.CONDITIONAL|-BR_INST_RETIRED.ALL_BRANCHES BR_INST_RETIRED.JCC",
    ),
    ("PAPI_BR_PRC", "-PAPI_BR_CN PAPI_BR_MSP"),
    ("PAPI_TLB_IM", "ITLB_MISSES.WALK_COMPLETED|ITLB_MISSES.MISS_CAUSES_A_WALK"),
    ("PAPI_RES_STL", "RESOURCE_STALLS.ANY"),
    ("PAPI_BR_MSP", "BR_MISP_RETIRED.COND|BR_MISP_RETIRED.CONDITIONAL|BR_MISP_RETIRED.JCC"),
    (
        "PAPI_BR_TKN",
        "BR_INST_RETIRED.COND_TAKEN|-BR_INST_RETIRED.COND BR_INST_RETIRED.NOT_TAKEN|\
         -BR_INST_RETIRED.CONDITIONAL BR_INST_RETIRED.NOT_TAKEN|BR_INST_RETIRED.TAKEN_JCC",
    ),
    ("PAPI_FP_OPS", FLOPS),
    ("PAPI_SP_OPS", FLOPS),
    ("PAPI_DP_OPS", FLOPS),
    ("PAPI_VEC_SP", FLOPS),
    ("PAPI_VEC_DP", FLOPS),
];

const FLOPS: &str = "!it is a weighted sum: count the events FP_ARITH_INST_RETIRED.*";

/// Aliases for Haswell and Broadwell.
const HASWELL_AND_BROADWELL: Table = &[
    ("L1-dcache-load-misses", "r151"),
    ("L1-icache-load-misses", "r280"),
    ("LLC-loads", "cpu/event=0xb7,umask=1,offcore_rsp=0x10001/"),
    ("LLC-stores", "cpu/event=0xb7,umask=1,offcore_rsp=0x10002/"),
    ("node-load-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x1fb8000001/"),
    ("node-store-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x1fb8000002/"),
    ("dTLB-load-misses", "r108"),
    ("dTLB-store-misses", "r149"),
    ("iTLB-loads", "r6085"),
    ("iTLB-load-misses", "r185"),
    ("branch-loads", "rc4"),
    ("branch-load-misses", "rc5"),
];

const HASWELL: Table = &[
    ("LLC-load-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x3fb8400001/"),
    ("LLC-store-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x3fb8400002/"),
    ("node-loads", "cpu/event=0xb7,umask=1,offcore_rsp=0x1f80400001/"),
    ("node-stores", "cpu/event=0xb7,umask=1,offcore_rsp=0x1f80400002/"),
];

const BROADWELL: Table = &[
    ("LLC-load-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x1fbc000001/"),
    ("LLC-store-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x1fbc000002/"),
    ("node-loads", "cpu/event=0xb7,umask=1,offcore_rsp=0x1f84000001/"),
    ("node-stores", "cpu/event=0xb7,umask=1,offcore_rsp=0x1f84000002/"),
];

const SKYLAKE: Table = &[("iTLB-loads", "r2085")];

/// Aliases for Skylake and Sunny Cove.
const SKYLAKE_AND_SUNNY_COVE: Table = &[
    ("L1-dcache-load-misses", "r151"),
    ("L1-icache-load-misses", "r283"),
    ("dTLB-load-misses", "re08"),
    ("dTLB-store-misses", "re49"),
    ("iTLB-load-misses", "re85"),
    ("branch-loads", "rc4"),
    ("branch-load-misses", "rc5"),
];

/// Aliases for Sunny Cove and later cores of its line.
const SINCE_SUNNY_COVE: Table = &[
    ("slots", "cpu/event=0,umask=4/"),
    ("topdown-retiring", "cpu/event=0,umask=0x80/"),
    ("topdown-bad-spec", "cpu/event=0,umask=0x81/"),
    ("topdown-fe-bound", "cpu/event=0,umask=0x82/"),
    ("topdown-be-bound", "cpu/event=0,umask=0x83/"),
    ("iTLB-loads", "!Linux maps it to no event of this processor; ITLB_MISSES.STLB_HIT comes near"),
];

/// Aliases for Golden Cove and later cores of its line.
const SINCE_GOLDEN_COVE: Table = &[
    ("L1-dcache-load-misses", "re124"),
    ("L1-icache-load-misses", "re424"),
    ("dTLB-load-misses", "re12"),
    ("dTLB-store-misses", "re13"),
    ("iTLB-load-misses", "re11"),
    ("branch-loads", "r4c4"),
    ("branch-load-misses", "r4c5"),
    ("topdown-heavy-ops", "cpu/event=0,umask=0x84/"),
    ("topdown-br-mispredict", "cpu/event=0,umask=0x85/"),
    ("topdown-fetch-lat", "cpu/event=0,umask=0x86/"),
    ("topdown-mem-bound", "cpu/event=0,umask=0x87/"),
];

const NO_RESPONSES: &str =
    "!its off-core responses need MSR_OFFMODULE_RSP, which the engine does not drive";

const COYOTE_COVE: Table = &[
    ("LLC-loads", NO_RESPONSES),
    ("LLC-load-misses", NO_RESPONSES),
    ("LLC-stores", NO_RESPONSES),
    ("LLC-store-misses", NO_RESPONSES),
    ("node-loads", NO_RESPONSES),
    ("node-load-misses", NO_RESPONSES),
];

/// Aliases for Atom cores from Goldmont on.
const ATOM: Table = &[
    ("L1-dcache-load-misses", NONE),
    ("L1-icache-loads", "r380"),
    ("L1-icache-load-misses", "r280"),
    ("iTLB-load-misses", "r481"),
    ("branch-loads", "rc4"),
    ("branch-load-misses", "rc5"),
];

const GOLDMONT: Table =
    &[("dTLB-load-misses", NONE), ("dTLB-store-misses", NONE), ("iTLB-loads", "rc0")];

/// Aliases for Goldmont Plus and Tremont.
const GOLDMONT_PLUS: Table =
    &[("dTLB-load-misses", "re08"), ("dTLB-store-misses", "re49"), ("iTLB-loads", "rc0")];

/// Aliases for Gracemont and later Atom cores.
const SINCE_GRACEMONT: Table =
    &[("dTLB-load-misses", "re08"), ("dTLB-store-misses", "re49"), ("iTLB-loads", NONE)];

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

/// Aliases for all of AMD's Zen cores.
const ZEN: Table = &[
    ("mem-loads", NO_IBS),
    ("mem-stores", NO_IBS),
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
    ("PAPI_VEC_INS", "RETIRED_SSE_AVX_FLOPS.ANY|rff03"),
    ("PAPI_FP_INS", "RETIRED_SSE_AVX_FLOPS.ANY|rff03"),
    ("PAPI_FP_OPS", "RETIRED_SSE_AVX_FLOPS.ANY|rff03"),
    ("PAPI_FML_INS", "RETIRED_SSE_AVX_FLOPS.MULT_FLOPS|r2203"),
    ("PAPI_FAD_INS", "RETIRED_SSE_AVX_FLOPS.ADD_SUB_FLOPS|r1103"),
    ("PAPI_FDV_INS", "RETIRED_SSE_AVX_FLOPS.DIV_FLOPS|r4403"),
    ("PAPI_FSQ_INS", "RETIRED_SSE_AVX_FLOPS.DIV_FLOPS|r4403"),
];

/// Aliases for Zen 4 and later.
const SINCE_ZEN4: Table = &[("ref-cycles", "r100000120")];

/// The generic names on this core, without PAPI's, each with its definitions.
pub(super) fn generic(core: Core) -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = tables(core).iter().copied().flatten().copied();
    all.filter(|(name, _)| !name.starts_with("PAPI_"))
}

fn tables(core: Core) -> &'static [Table] {
    match core {
        Core::Haswell => &[INTEL, MEMORY, ACCESSES, PRESETS, HASWELL_AND_BROADWELL, HASWELL],
        Core::Broadwell => &[INTEL, MEMORY, ACCESSES, PRESETS, HASWELL_AND_BROADWELL, BROADWELL],
        Core::Skylake => {
            &[INTEL, MEMORY, ACCESSES, PRESETS, SKYLAKE_AND_SUNNY_COVE, SKYLAKE, responses::SKYLAKE]
        }
        Core::SunnyCove => &[
            INTEL,
            MEMORY,
            ACCESSES,
            PRESETS,
            SKYLAKE_AND_SUNNY_COVE,
            SINCE_SUNNY_COVE,
            responses::SUNNY_COVE,
        ],
        Core::GoldenCove | Core::RedwoodCove | Core::LionCove => &[
            INTEL,
            MEMORY,
            ACCESSES,
            PRESETS,
            SINCE_SUNNY_COVE,
            SINCE_GOLDEN_COVE,
            responses::GOLDEN_COVE,
        ],
        Core::CoyoteCove => {
            &[INTEL, MEMORY, ACCESSES, PRESETS, SINCE_SUNNY_COVE, COYOTE_COVE, SINCE_GOLDEN_COVE]
        }
        Core::Goldmont => &[INTEL, MEMORY, PRESETS, ATOM, GOLDMONT],
        Core::GoldmontPlus | Core::Tremont => &[INTEL, MEMORY, PRESETS, ATOM, GOLDMONT_PLUS],
        Core::Gracemont | Core::Crestmont | Core::Skymont | Core::ArcticWolf => {
            &[INTEL, MEMORY, PRESETS, ATOM, SINCE_GRACEMONT]
        }
        Core::KnightsLanding => &[INTEL, PRESETS],
        Core::Intel => &[INTEL],
        Core::Zen1 | Core::Zen2 | Core::Zen3 => &[AMD, ZEN],
        Core::Zen4 | Core::Zen5 | Core::Zen6 => &[AMD, ZEN, SINCE_ZEN4],
        Core::Amd => &[AMD],
    }
}

/// Looks up an alias, ignoring case.
pub(super) fn alias(catalogue: &Catalogue, name: &str) -> Option<Alias> {
    let (_, definitions) = all(catalogue).find(|(alias, _)| alias.eq_ignore_ascii_case(name))?;
    definition(catalogue, definitions)
}

fn all(catalogue: &Catalogue) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let core = catalogue.processor.core;
    tables(core).iter().copied().flatten().copied().chain(perf_names(core))
}

/// Returns the first of the definitions whose events exist.
fn definition(catalogue: &Catalogue, definitions: &'static str) -> Option<Alias> {
    definitions.split('|').find_map(|definition| match definition.split_at(1) {
        ("!", why) => Some(Alias::Refused(why)),
        (sign @ ("+" | "-"), terms) => derived(catalogue, sign, terms),
        _ => exists(catalogue, definition).then_some(Alias::Event(definition)),
    })
}

fn derived(catalogue: &Catalogue, sign: &str, terms: &'static str) -> Option<Alias> {
    let (first, second) = terms.split_once(' ')?;
    let exist = exists(catalogue, first) && exists(catalogue, second);
    let derived = Derived { terms: [first, second], subtracts: sign == "-" };
    exist.then_some(Alias::Derived(derived))
}

/// Returns whether an event exists: given by numbers, in the table, or an alias.
pub(super) fn exists(catalogue: &Catalogue, event: &str) -> bool {
    let is_number = event.starts_with("cpu/")
        || event.strip_prefix('r').is_some_and(|hex| hex.bytes().all(|it| it.is_ascii_hexdigit()));
    is_number || catalogue.find(event).is_some() || alias(catalogue, event).is_some()
}

/// Returns the names of all aliases.
pub(super) fn aliases(catalogue: &Catalogue) -> impl Iterator<Item = &'static str> + use<> {
    let catalogue = *catalogue;
    let exists =
        move |(_, definitions): &(_, &'static str)| definition(&catalogue, definitions).is_some();
    all(&catalogue).filter(exists).map(|(name, _)| name)
}
