//! Shared parts of Intel's profiles: events, and the sets of signals that events count.
//!
//! Names, encodings and counter restrictions are from Intel's published tables for the processors
//! (perfmon, icelakex and sapphirerapids); a test compares them with the catalogue. The sentences
//! describe the counts in the model.

use tally_model::Signal::*;

use super::shared::{BACK_END_SLOTS, FETCH_SLOTS, LOADS, MISPREDICTS_TAKEN, e};
use crate::event::{Conversion, Event};

/// The general counters 0 to 3 only.
pub(super) const LOW: u16 = 0x0f;
/// Every cause of a cycle without retirement.
pub(super) const STALLS: &[tally_model::Signal] = tally_model::Signal::STALLS;
/// Every code read that accesses the L2.
pub(super) const L2_CODE: &[tally_model::Signal] = &[L2CodeHit, LlcCodeHit, LlcCodeMiss];

/// Every request that goes beyond the L2, prefetchers' too.
#[rustfmt::skip] // By requester.
pub(super) const BEYOND_L2: &[tally_model::Signal] = &[
    LlcReadHit, LlcReadMiss, LlcRfoHit, LlcRfoMiss, LlcCodeHit, LlcCodeMiss,
    L1PrefetchLlcHit, L1PrefetchLlcMiss, L2PrefetchLlcHit, L2PrefetchLlcMiss,
    L2PrefetchCodeHit, L2PrefetchCodeMiss,
];
/// Every read of data that goes beyond the L2, prefetchers' too.
#[rustfmt::skip] // By requester.
pub(super) const DATA_BEYOND_L2: &[tally_model::Signal] = &[
    LlcReadHit, LlcReadMiss,
    L1PrefetchLlcHit, L1PrefetchLlcMiss, L2PrefetchLlcHit, L2PrefetchLlcMiss,
];

/// Events of both profiles.
#[rustfmt::skip] // One event in as few lines as possible, as in the vendor's table.
pub(super) const COMMON: &[Event] = &[
    e("INST_RETIRED.ANY_P", 0xc0, 0x00, &[Instructions], "Instructions retired."),
    e("INST_RETIRED.NOP", 0xc0, 0x02, &[Nops], "No-operation instructions retired."),
    e("UOPS_RETIRED.SLOTS", 0xc2, 0x02, &[Uops], "Retirement slots used: fused micro-operations."),
    e("UOPS_RETIRED.STALL_CYCLES", 0xc2, 0x02, STALLS,
        "Cycles in which a stall kept every micro-operation from retiring.").cmask(1).inv(),
    e("CPU_CLK_UNHALTED.THREAD_P", 0x3c, 0x00, &[Slots],
        "Core cycles while not halted.").conversion(Conversion::SlotsAsCycles),
    e("TOPDOWN.SLOTS_P", 0xa4, 0x01, &[Slots], "Pipeline slots that passed while not halted."),
    e("BR_INST_RETIRED.ALL_BRANCHES", 0xc4, 0x00, &[Branches], "Branches retired, near and far."),
    e("BR_INST_RETIRED.COND_TAKEN", 0xc4, 0x01, &[CondTaken],
        "Conditional branches retired that were taken."),
    e("BR_INST_RETIRED.COND_NTAKEN", 0xc4, 0x10, &[CondNotTaken],
        "Conditional branches retired that were not taken."),
    e("BR_INST_RETIRED.NEAR_CALL", 0xc4, 0x02, &[BranchCall], "Near calls retired."),
    e("BR_INST_RETIRED.NEAR_RETURN", 0xc4, 0x08, &[BranchReturn], "Near returns retired."),
    e("BR_INST_RETIRED.COND", 0xc4, 0x11, &[BranchCond], "Conditional branches retired."),
    e("BR_INST_RETIRED.NEAR_TAKEN", 0xc4, 0x20, &[Taken], "Near branches retired that were taken."),
    e("BR_INST_RETIRED.FAR_BRANCH", 0xc4, 0x40, &[BranchFar], "Far branches retired."),
    e("BR_INST_RETIRED.INDIRECT", 0xc4, 0x80, &[BranchIndirect],
        "Near indirect jumps and calls retired, without returns."),
    e("BR_MISP_RETIRED.ALL_BRANCHES", 0xc5, 0x00, &[Mispredicts],
        "Branches retired that were mispredicted."),
    e("BR_MISP_RETIRED.COND_TAKEN", 0xc5, 0x01, &[MispredictCondTaken],
        "Taken conditional branches retired that were mispredicted."),
    e("BR_MISP_RETIRED.COND_NTAKEN", 0xc5, 0x10, &[MispredictCondNotTaken],
        "Conditional branches retired that were mispredicted and not taken."),
    e("BR_MISP_RETIRED.INDIRECT_CALL", 0xc5, 0x02, &[MispredictIndirectCall],
        "Indirect calls retired that were mispredicted."),
    e("BR_MISP_RETIRED.RET", 0xc5, 0x08, &[MispredictReturn],
        "Near returns retired that were mispredicted."),
    e("BR_MISP_RETIRED.COND", 0xc5, 0x11, &[MispredictCond],
        "Conditional branches retired that were mispredicted."),
    e("BR_MISP_RETIRED.INDIRECT", 0xc5, 0x80, &[MispredictIndirect],
        "Indirect jumps and calls retired that were mispredicted."),
    e("MEM_INST_RETIRED.ALL_LOADS", 0xd0, 0x81, LOADS, "Loads retired.").on(LOW),
    e("MEM_INST_RETIRED.ALL_STORES", 0xd0, 0x82, &[Stores], "Stores retired.").on(LOW),
    e("MEM_INST_RETIRED.ANY", 0xd0, 0x83, &[LoadL1Hit, LoadL2Hit, LoadL3Hit, LoadL3Miss, Stores],
        "Loads and stores retired.").on(LOW),
    e("MEM_INST_RETIRED.LOCK_LOADS", 0xd0, 0x21, &[Locked], "Loads retired with a lock.").on(LOW),
    e("MEM_INST_RETIRED.SPLIT_LOADS", 0xd0, 0x41, &[SplitLoads],
        "Loads retired that crossed a cache line.").on(LOW),
    e("MEM_INST_RETIRED.SPLIT_STORES", 0xd0, 0x42, &[SplitStores],
        "Stores retired that crossed a cache line.").on(LOW),
    e("MEM_LOAD_RETIRED.L1_HIT", 0xd1, 0x01, &[LoadL1Hit],
        "Loads retired that the L1 data cache served.").on(LOW),
    e("MEM_LOAD_RETIRED.L2_HIT", 0xd1, 0x02, &[LoadL2Hit],
        "Loads retired that the L2 served.").on(LOW),
    e("MEM_LOAD_RETIRED.L3_HIT", 0xd1, 0x04, &[LoadL3Hit],
        "Loads retired that the last-level cache served.").on(LOW),
    e("MEM_LOAD_RETIRED.L1_MISS", 0xd1, 0x08, &[LoadL2Hit, LoadL3Hit, LoadL3Miss],
        "Loads retired that the L1 data cache did not serve.").on(LOW),
    e("MEM_LOAD_RETIRED.L2_MISS", 0xd1, 0x10, &[LoadL3Hit, LoadL3Miss],
        "Loads retired that neither L1 nor L2 served.").on(LOW),
    e("MEM_LOAD_RETIRED.L3_MISS", 0xd1, 0x20, &[LoadL3Miss],
        "Loads retired that memory served.").on(LOW),
    e("L1D.REPLACEMENT", 0x51, 0x01,
        &[L1dFills, L1PrefetchL2Hit, L1PrefetchLlcHit, L1PrefetchLlcMiss],
        "Lines brought into the L1 data cache, by prefetchers too.").on(LOW),
    e("L2_RQSTS.DEMAND_DATA_RD_HIT", 0x24, 0xc1, &[L2ReadHit],
        "Data reads that hit the L2.").on(LOW),
    e("L2_RQSTS.DEMAND_DATA_RD_MISS", 0x24, 0x21, &[LlcReadHit, LlcReadMiss],
        "Data reads that missed the L2.").on(LOW),
    e("L2_RQSTS.ALL_DEMAND_DATA_RD", 0x24, 0xe1, &[L2ReadHit, LlcReadHit, LlcReadMiss],
        "Data reads that asked the L2.").on(LOW),
    e("L2_RQSTS.RFO_HIT", 0x24, 0xc2, &[L2RfoHit],
        "Requests for ownership that hit the L2.").on(LOW),
    e("L2_RQSTS.RFO_MISS", 0x24, 0x22, &[LlcRfoHit, LlcRfoMiss],
        "Requests for ownership that missed the L2.").on(LOW),
    e("L2_RQSTS.ALL_RFO", 0x24, 0xe2, &[L2RfoHit, LlcRfoHit, LlcRfoMiss],
        "Requests for ownership that asked the L2.").on(LOW),
    e("L2_RQSTS.CODE_RD_HIT", 0x24, 0xc4, &[L2CodeHit], "Code reads that hit the L2.").on(LOW),
    e("L2_RQSTS.CODE_RD_MISS", 0x24, 0x24, &[LlcCodeHit, LlcCodeMiss],
        "Code reads that missed the L2.").on(LOW),
    e("L2_RQSTS.ALL_CODE_RD", 0x24, 0xe4, L2_CODE, "Code reads that asked the L2.").on(LOW),
    e("L2_RQSTS.ALL_DEMAND_MISS", 0x24, 0x27,
        &[LlcReadHit, LlcReadMiss, LlcRfoHit, LlcRfoMiss, LlcCodeHit, LlcCodeMiss],
        "Demand requests that missed the L2.").on(LOW),
    e("LONGEST_LAT_CACHE.REFERENCE", 0x2e, 0x4f, BEYOND_L2,
        "Requests that asked the last-level cache, prefetchers' too."),
    e("LONGEST_LAT_CACHE.MISS", 0x2e, 0x41,
        &[LlcReadMiss, LlcRfoMiss, LlcCodeMiss, L1PrefetchLlcMiss, L2PrefetchLlcMiss,
          L2PrefetchCodeMiss],
        "Requests that the last-level cache did not serve, prefetchers' too."),
    e("ICACHE_DATA.STALLS", 0x80, 0x04, &[StallL1i],
        "Cycles in which fetch waited for a line of code.").on(LOW),
    e("ICACHE_TAG.STALLS", 0x83, 0x04, &[StallItlb],
        "Cycles in which fetch waited for a translation.").on(LOW),
    e("CYCLE_ACTIVITY.STALLS_TOTAL", 0xa3, 0x04, STALLS,
        "Cycles in which nothing executed, for any cause.").cmask(4),
    e("CYCLE_ACTIVITY.STALLS_L1D_MISS", 0xa3, 0x0c, &[StallL2Hit, StallL3Hit, StallMemory],
        "Cycles in which nothing executed behind a load that missed L1.").cmask(12).on(LOW),
    e("CYCLE_ACTIVITY.STALLS_L2_MISS", 0xa3, 0x05, &[StallL3Hit, StallMemory],
        "Cycles in which nothing executed behind a load that missed L2.").cmask(5).on(LOW),
    e("CYCLE_ACTIVITY.STALLS_L3_MISS", 0xa3, 0x06, &[StallMemory],
        "Cycles in which nothing executed behind a load that memory served.").cmask(6).on(LOW),
    e("RESOURCE_STALLS.SCOREBOARD", 0xa2, 0x02, &[StallSerialize],
        "Cycles in which a serialising operation kept others from issuing."),
    // Those with two calculations for each element, such as FMA's, count twice.
    e("FP_ARITH_INST_RETIRED.SCALAR_DOUBLE", 0xc7, 0x01, &[FpScalarDouble],
        "Scalar double-precision arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.SCALAR_SINGLE", 0xc7, 0x02, &[FpScalarSingle],
        "Scalar single-precision arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.SCALAR", 0xc7, 0x03, &[FpScalarDouble, FpScalarSingle],
        "Scalar arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.128B_PACKED_DOUBLE", 0xc7, 0x04, &[FpPackedDouble],
        "Packed 128-bit double-precision arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.128B_PACKED_SINGLE", 0xc7, 0x08, &[FpPackedSingle],
        "Packed 128-bit single-precision arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE", 0xc7, 0x10, &[FpWideDouble],
        "Packed 256-bit double-precision arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.256B_PACKED_SINGLE", 0xc7, 0x20, &[FpWideSingle],
        "Packed 256-bit single-precision arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.512B_PACKED_DOUBLE", 0xc7, 0x40, &[],
        "None: the machine has no AVX-512."),
    e("FP_ARITH_INST_RETIRED.512B_PACKED_SINGLE", 0xc7, 0x80, &[],
        "None: the machine has no AVX-512."),
    e("FP_ARITH_INST_RETIRED.4_FLOPS", 0xc7, 0x18, &[FpPackedSingle, FpWideDouble],
        "Packed arithmetic instructions of four elements retired."),
    e("FP_ARITH_INST_RETIRED.8_FLOPS", 0xc7, 0x60, &[FpWideSingle],
        "Packed arithmetic instructions of eight elements retired."),
    e("FP_ARITH_INST_RETIRED.VECTOR", 0xc7, 0xfc,
        &[FpPackedDouble, FpPackedSingle, FpWideDouble, FpWideSingle],
        "Packed arithmetic instructions retired."),
    e("EXE_ACTIVITY.BOUND_ON_STORES", 0xa6, 0x40, &[StallStore],
        "Cycles in which nothing executed behind a store.").cmask(2),
    e("RESOURCE_STALLS.SB", 0xa2, 0x08, &[FullStores],
        "Cycles for which a full store queue kept an instruction from issuing.").out_of_order(),
    e("L1D_PEND_MISS.PENDING", 0x48, 0x01, &[PendingMisses],
        "Fill buffers of the data cache in use, summed over cycles.").on(LOW).out_of_order(),
    e("L1D_PEND_MISS.PENDING_CYCLES", 0x48, 0x01, &[PendingMissCycles],
        "Cycles in which a fill buffer of the data cache was in use.")
            .cmask(1).on(LOW).out_of_order(),
    e("L1D_PEND_MISS.FB_FULL", 0x48, 0x02, &[FullFills],
        "Cycles in which a line waited for a fill buffer of the data cache.").on(LOW).out_of_order(),
    e("L1D_PEND_MISS.FB_FULL_PERIODS", 0x48, 0x02, &[FullFillPeriods],
        "Times at which lines began to wait for a fill buffer of the data cache.")
            .cmask(1).edge().on(LOW).out_of_order(),
    e("BR_MISP_RETIRED.NEAR_TAKEN", 0xc5, 0x20, MISPREDICTS_TAKEN,
        "Near branches retired that were taken and mispredicted."),
    e("MEM_INST_RETIRED.STLB_MISS_LOADS", 0xd0, 0x11, &[LoadsWalked],
        "Loads that took a page walk.").on(LOW),
    e("MEM_INST_RETIRED.STLB_MISS_STORES", 0xd0, 0x12, &[StoresWalked],
        "Stores that took a page walk.").on(LOW),
    e("IDQ_UOPS_NOT_DELIVERED.CORE", 0x9c, 0x01, FETCH_SLOTS,
        "Slots of dispatch that the front end left empty while no structure was full, wrong paths \
         aside."),
    e("TOPDOWN.BACKEND_BOUND_SLOTS", 0xa4, 0x02, BACK_END_SLOTS,
        "Slots of dispatch left empty because a structure was full, or for a serializing \
         instruction."),
    e("MACHINE_CLEARS.COUNT", 0xc3, 0x01, &[MachineClears],
        "Clears of the pipeline other than for mispredictions; without the option `rejections` the \
         model has none.")
            .cmask(1).edge(),
    e("MACHINE_CLEARS.MEMORY_ORDERING", 0xc3, 0x02, &[MachineClears],
        "Clears of the pipeline for a load that was executed ahead of a store to the same bytes.")
            .rejections(),
];
