//! The events that are counted.

use xtask::machine::Pmu;

/// Events of Table 1 by vendor: as many as the paper's table has for one processor.
pub(super) struct Lists {
    intel: [&'static str; 31],
    amd: [&'static str; 31],
}

impl Lists {
    /// The list of a machine.
    pub(super) fn of(&self, pmu: Pmu) -> &[&'static str] {
        match pmu {
            Pmu::Amd => &self.amd,
            _ => &self.intel,
        }
    }
}

/// The paper's pipes, caches, prefetches and floating point, as far as these processors and their
/// model have them.
pub(super) const TABLE_1: Lists = Lists {
    intel: [
        "INST_RETIRED.ANY",
        "CPU_CLK_UNHALTED.THREAD",
        "UOPS_RETIRED.SLOTS",
        "UOPS_ISSUED.ANY",
        "BR_INST_RETIRED.ALL_BRANCHES",
        "BR_INST_RETIRED.COND",
        "BR_INST_RETIRED.COND_TAKEN",
        "BR_INST_RETIRED.NEAR_CALL",
        "BR_INST_RETIRED.NEAR_RETURN",
        "BR_MISP_RETIRED.ALL_BRANCHES",
        "BR_MISP_RETIRED.COND",
        "MEM_INST_RETIRED.ALL_LOADS",
        "MEM_INST_RETIRED.ALL_STORES",
        "MEM_LOAD_RETIRED.L1_HIT",
        "MEM_LOAD_RETIRED.L1_MISS",
        "MEM_LOAD_RETIRED.L2_HIT",
        "MEM_LOAD_RETIRED.L2_MISS",
        "L1D.REPLACEMENT",
        "L2_RQSTS.ALL_DEMAND_DATA_RD",
        "L2_RQSTS.ALL_RFO",
        "L2_RQSTS.ALL_CODE_RD",
        "L2_RQSTS.DEMAND_DATA_RD_MISS",
        "LONGEST_LAT_CACHE.REFERENCE",
        "LONGEST_LAT_CACHE.MISS",
        "DTLB_LOAD_MISSES.WALK_COMPLETED",
        "DTLB_STORE_MISSES.WALK_COMPLETED",
        "FP_ARITH_INST_RETIRED.SCALAR_DOUBLE",
        "FP_ARITH_INST_RETIRED.128B_PACKED_DOUBLE",
        "ARITH.DIVIDER_ACTIVE",
        "DTLB_LOAD_MISSES.STLB_HIT",
        "INT_MISC.RECOVERY_CYCLES",
    ],
    amd: [
        "RETIRED_INSTRUCTIONS",
        "CYCLES_NOT_IN_HALT",
        "RETIRED_OPS",
        "RETIRED_BRANCH_INSTRUCTIONS",
        "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED",
        "RETIRED_TAKEN_BRANCH_INSTRUCTIONS",
        "RETIRED_TAKEN_BRANCH_INSTRUCTIONS_MISPREDICTED",
        "RETIRED_NEAR_RETURNS",
        "RETIRED_NEAR_RETURNS_MISPREDICTED",
        "RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS",
        "RETIRED_INDIRECT_BRANCH_INSTRUCTIONS",
        "LS_DISPATCH.LD_DISPATCH",
        "LS_DISPATCH.STORE_DISPATCH",
        "L1_ITLB_MISS_L2_ITLB_HIT",
        "MAB_ALLOCATION_BY_TYPE.LS",
        "ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2",
        "RETIRED_INDIRECT_BRANCH_INSTRUCTIONS_MISPREDICTED",
        "CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.LS_RD_BLK_X",
        "L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT",
        "L1_DTLB_MISS.TLB_RELOAD_4K_L2_MISS",
        "INSTRUCTION_CACHE_REFILLS_FROM_L2",
        "INSTRUCTION_CACHE_REFILLS_FROM_SYSTEM",
        "DIV_CYCLES_BUSY_COUNT",
        "DIV_OP_COUNT",
        "RETIRED_MMX_FP_INSTRUCTIONS.SSE_INSTR",
        "REQUESTS_TO_L2_GROUP1.RD_BLK_L",
        "REQUESTS_TO_L2_GROUP1.RD_BLK_X",
        "REQUESTS_TO_L2_GROUP1.CACHEABLE_IC_READ",
        "CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.LS_RD_BLK_C",
        "CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.LS_RD_BLK_L_HIT_X",
        "DISPATCH_STALLS_1.BE_STALLS",
    ],
};

/// The machine of Figure 7: the model counts floating-point instructions by width only on Intel.
pub(super) const FIGURE_7: Pmu = Pmu::Intel;

/// Figure 7's events: instructions on one number and on two at a time, and their loads and stores.
pub(super) const VECTORS: [&str; 5] = [
    "INST_RETIRED.ANY",
    "FP_ARITH_INST_RETIRED.SCALAR_DOUBLE",
    "FP_ARITH_INST_RETIRED.128B_PACKED_DOUBLE",
    "MEM_INST_RETIRED.ALL_LOADS",
    "MEM_INST_RETIRED.ALL_STORES",
];
