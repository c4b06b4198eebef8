//! Lunar Lake's performance cores (Lion Cove), which have version 6.

use tally_model::{Geometry, is_equal};

use super::{
    decode, execution,
    intel::COMMON,
    sapphire_rapids,
    shared::{METRICS, MORE_METRICS},
    tally::TALLY,
};
use crate::{
    event::Event,
    profile::{PebsKind, Profile, QemuMachine},
};

/// Lunar Lake: the PMU of its Lion Cove, with ten general counters, over Sapphire Rapids' caches
/// and pipeline. All cores of the machine are performance cores.
pub(super) const PROFILE: Profile = Profile {
    name: "lunar-lake",
    about: "Intel's version 6, as on Lunar Lake's P-cores; the machine is Sapphire Rapids'",
    geometry: Geometry::of("sapphire-rapids"),
    counters: (10, 10),
    pebs: Some(PebsKind::LunarLake),
    version: 6,
    // Family 6, model BDH.
    signature: 0xb06d1,
    // A performance core, native model 3.
    kind: 0x4000_0003,
    machine: QemuMachine {
        name: "lunar-lake",
        cpu: "SapphireRapids,-rdrand,-rdseed",
        counters: 10,
        checks: &["", "counters=9,pipeline=ooo"],
    },
    tables: &[&EVENTS, METRICS, MORE_METRICS, TALLY],
    ..sapphire_rapids::PROFILE
};

/// Every general counter.
const ALL: u16 = 0x3ff;

/// The event of Sapphire Rapids with this name.
pub(super) const fn of(name: &str) -> Event {
    let tables = [
        COMMON,
        sapphire_rapids::EVENTS,
        execution::COMMON,
        execution::SAPPHIRE_RAPIDS,
        decode::INTEL,
        decode::SAPPHIRE_RAPIDS,
    ];
    let mut table = 0;
    while table < tables.len() {
        let mut index = 0;
        while index < tables[table].len() {
            if is_equal(tables[table][index].name, name) {
                return tables[table][index];
            }
            index += 1;
        }
        table += 1;
    }
    panic!("Sapphire Rapids has no event of that name")
}

/// Events of Sapphire Rapids that Lion Cove has with the same meaning, with its unit masks and
/// counters.
#[rustfmt::skip] // One event in a line, as in the vendor's table.
pub(super) const EVENTS: [Event; 124] = [
    of("INST_RETIRED.ANY_P"),
    of("INST_RETIRED.NOP"),
    of("UOPS_RETIRED.SLOTS"),
    of("CPU_CLK_UNHALTED.THREAD_P"),
    of("TOPDOWN.SLOTS_P"),
    of("BR_INST_RETIRED.ALL_BRANCHES"),
    of("BR_INST_RETIRED.COND_TAKEN").umask(0x101),
    of("BR_INST_RETIRED.COND_NTAKEN"),
    of("BR_INST_RETIRED.NEAR_CALL"),
    of("BR_INST_RETIRED.NEAR_RETURN"),
    of("BR_INST_RETIRED.COND").umask(0x111),
    of("BR_INST_RETIRED.NEAR_TAKEN"),
    of("BR_INST_RETIRED.FAR_BRANCH"),
    of("BR_INST_RETIRED.INDIRECT"),
    of("BR_MISP_RETIRED.ALL_BRANCHES"),
    of("BR_MISP_RETIRED.COND_TAKEN").umask(0x101),
    of("BR_MISP_RETIRED.COND_NTAKEN"),
    of("BR_MISP_RETIRED.INDIRECT_CALL"),
    of("BR_MISP_RETIRED.RET"),
    of("BR_MISP_RETIRED.COND").umask(0x111),
    of("BR_MISP_RETIRED.INDIRECT"),
    of("MEM_INST_RETIRED.ALL_LOADS"),
    of("MEM_INST_RETIRED.ALL_STORES"),
    of("MEM_INST_RETIRED.LOCK_LOADS"),
    of("MEM_INST_RETIRED.SPLIT_LOADS"),
    of("MEM_INST_RETIRED.SPLIT_STORES"),
    of("MEM_LOAD_RETIRED.L1_HIT").umask(0x101),
    of("MEM_LOAD_RETIRED.L2_HIT"),
    of("MEM_LOAD_RETIRED.L3_HIT"),
    of("MEM_LOAD_RETIRED.L1_MISS"),
    of("MEM_LOAD_RETIRED.L2_MISS"),
    of("MEM_LOAD_RETIRED.L3_MISS"),
    of("L1D.REPLACEMENT").umask(0x5).on(ALL),
    of("L2_RQSTS.DEMAND_DATA_RD_HIT").umask(0x41).on(ALL),
    of("L2_RQSTS.DEMAND_DATA_RD_MISS").on(ALL),
    of("L2_RQSTS.ALL_DEMAND_DATA_RD").on(ALL),
    of("L2_RQSTS.RFO_HIT").umask(0x42).on(ALL),
    of("L2_RQSTS.RFO_MISS").on(ALL),
    of("L2_RQSTS.CODE_RD_HIT").umask(0x44).on(ALL),
    of("L2_RQSTS.CODE_RD_MISS").on(ALL),
    of("L2_RQSTS.ALL_CODE_RD").on(ALL),
    of("LONGEST_LAT_CACHE.REFERENCE"),
    of("LONGEST_LAT_CACHE.MISS"),
    of("ICACHE_DATA.STALLS").on(ALL),
    of("ICACHE_TAG.STALLS").on(ALL),
    of("CYCLE_ACTIVITY.STALLS_TOTAL"),
    of("FP_ARITH_INST_RETIRED.SCALAR_DOUBLE"),
    of("FP_ARITH_INST_RETIRED.SCALAR_SINGLE"),
    of("FP_ARITH_INST_RETIRED.SCALAR"),
    of("FP_ARITH_INST_RETIRED.128B_PACKED_DOUBLE"),
    of("FP_ARITH_INST_RETIRED.128B_PACKED_SINGLE"),
    of("FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE"),
    of("FP_ARITH_INST_RETIRED.256B_PACKED_SINGLE"),
    of("FP_ARITH_INST_RETIRED.4_FLOPS"),
    of("FP_ARITH_INST_RETIRED.VECTOR").umask(0x3c),
    of("EXE_ACTIVITY.BOUND_ON_STORES"),
    of("BR_MISP_RETIRED.NEAR_TAKEN"),
    of("MEM_INST_RETIRED.STLB_MISS_LOADS"),
    of("MEM_INST_RETIRED.STLB_MISS_STORES"),
    of("TOPDOWN.BACKEND_BOUND_SLOTS"),
    of("MACHINE_CLEARS.COUNT"),
    of("MACHINE_CLEARS.MEMORY_ORDERING"),
    of("OFFCORE_REQUESTS.DEMAND_DATA_RD").on(ALL),
    of("OFFCORE_REQUESTS.DEMAND_CODE_RD").on(ALL),
    of("OFFCORE_REQUESTS.DEMAND_RFO").on(ALL),
    of("OFFCORE_REQUESTS.DATA_RD").on(ALL),
    of("OFFCORE_REQUESTS.L3_MISS_DEMAND_DATA_RD").on(ALL),
    of("INT_MISC.UOP_DROPPING"),
    of("EXE_ACTIVITY.BOUND_ON_LOADS"),
    of("TOPDOWN.BAD_SPEC_SLOTS"),
    of("TOPDOWN.BR_MISPREDICT_SLOTS"),
    of("CPU_CLK_UNHALTED.REF_TSC_P"),
    of("BR_INST_RETIRED.UMASK_04"),
    of("BR_MISP_RETIRED.UMASK_04"),
    of("UOPS_ISSUED.ANY"),
    of("L2_LINES_IN.ALL").on(ALL),
    of("ITLB_MISSES.STLB_HIT").umask(0x120).on(ALL),
    of("ITLB_MISSES.WALK_COMPLETED").on(ALL),
    of("ITLB_MISSES.WALK_COMPLETED_4K").on(ALL),
    of("ITLB_MISSES.WALK_COMPLETED_2M_4M").on(ALL),
    of("ITLB_MISSES.WALK_PENDING").on(ALL),
    of("ITLB_MISSES.WALK_ACTIVE").on(ALL),
    of("DTLB_LOAD_MISSES.STLB_HIT").umask(0x320).on(ALL),
    of("DTLB_LOAD_MISSES.WALK_COMPLETED").on(ALL),
    of("DTLB_LOAD_MISSES.WALK_COMPLETED_4K").on(ALL),
    of("DTLB_LOAD_MISSES.WALK_COMPLETED_2M_4M").on(ALL),
    of("DTLB_LOAD_MISSES.WALK_COMPLETED_1G").on(ALL),
    of("DTLB_LOAD_MISSES.WALK_PENDING").on(ALL),
    of("DTLB_LOAD_MISSES.WALK_ACTIVE").on(ALL),
    of("DTLB_STORE_MISSES.STLB_HIT").umask(0x320).on(ALL),
    of("DTLB_STORE_MISSES.WALK_COMPLETED").on(ALL),
    of("DTLB_STORE_MISSES.WALK_COMPLETED_4K").on(ALL),
    of("DTLB_STORE_MISSES.WALK_COMPLETED_2M_4M").on(ALL),
    of("DTLB_STORE_MISSES.WALK_COMPLETED_1G").on(ALL),
    of("DTLB_STORE_MISSES.WALK_PENDING").on(ALL),
    of("DTLB_STORE_MISSES.WALK_ACTIVE").on(ALL),
    of("INT_MISC.RECOVERY_CYCLES"),
    of("INT_MISC.CLEARS_COUNT"),
    of("IDQ.MS_UOPS").on(ALL),
    of("BACLEARS.ANY").on(ALL),
    of("SW_PREFETCH_ACCESS.ANY").on(ALL),
    of("INT_MISC.CLEAR_RESTEER_CYCLES"),
    of("LD_BLOCKS.ADDRESS_ALIAS").on(ALL),
    of("LD_BLOCKS.STORE_FORWARD").on(ALL),
    of("TOPDOWN.MEMORY_BOUND_SLOTS").on(1 << 3),
    of("UOPS_RETIRED.CYCLES"),
    of("EXE_ACTIVITY.1_PORTS_UTIL"),
    of("EXE_ACTIVITY.2_PORTS_UTIL"),
    of("EXE_ACTIVITY.3_PORTS_UTIL"),
    of("EXE_ACTIVITY.4_PORTS_UTIL"),
    of("UOPS_EXECUTED.THREAD").on(1 << 3),
    of("UOPS_EXECUTED.CYCLES_GE_1").on(1 << 3),
    of("UOPS_EXECUTED.CYCLES_GE_2").on(1 << 3),
    of("UOPS_EXECUTED.CYCLES_GE_3").on(1 << 3),
    of("UOPS_EXECUTED.CYCLES_GE_4").on(1 << 3),
    of("EXE_ACTIVITY.EXE_BOUND_0_PORTS"),
    of("EXE_ACTIVITY.2_3_PORTS_UTIL"),
    of("RS.EMPTY_RESOURCE"),
    of("IDQ.MITE_UOPS").on(ALL),
    of("IDQ.MITE_CYCLES_ANY").on(ALL),
    of("IDQ.DSB_UOPS").on(ALL),
    of("IDQ.DSB_CYCLES_ANY").on(ALL),
    of("DSB2MITE_SWITCHES.PENALTY_CYCLES").on(ALL),
    of("LSD.UOPS"),
];
