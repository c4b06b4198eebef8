//! The events of Ice Lake and Sapphire Rapids servers that the model counts.
//!
//! Names, encodings and counter restrictions are those of Intel's published tables for the
//! processors (perfmon, icelakex and sapphirerapids); a test compares them with the catalogue. The
//! sentences describe what the model counts.

use tally_model::Signal::*;

use crate::event::{Event, Unit};

/// The general counters 0 to 3 only.
const LOW: u8 = 0x0f;
/// Shorthand for the table.
const fn e(
    name: &'static str,
    code: u16,
    umask: u8,
    signals: &'static [tally_model::Signal],
    about: &'static str,
) -> Event {
    Event::new(name, code, umask, signals, about)
}

/// Every cause of a cycle without retirement that lies in memory.
pub(crate) const MEMORY: &[tally_model::Signal] =
    &[StallL1Hit, StallL2Hit, StallL3Hit, StallMemory, StallDtlb, StallStore];
/// Every cause of a cycle without retirement that lies behind the front end.
const BACK_END: &[tally_model::Signal] = &[
    StallL1Hit,
    StallL2Hit,
    StallL3Hit,
    StallMemory,
    StallDtlb,
    StallStore,
    StallDivider,
    StallChain,
    StallFp,
    StallInteger,
    StallResources,
    StallSerialize,
];
/// Every cause of a cycle without retirement.
const STALLS: &[tally_model::Signal] = tally_model::Signal::STALLS;
/// Every cause of a cycle without retirement that lies in the front end, wrong paths aside.
const FRONT_END: &[tally_model::Signal] = &[StallL1i, StallItlb, StallFrontEnd];
/// Every cause of a cycle without retirement that lies in loads.
const LOAD_STALLS: &[tally_model::Signal] =
    &[StallL1Hit, StallL2Hit, StallL3Hit, StallMemory, StallDtlb];
/// Taken branches that were mispredicted.
const MISPREDICTS_TAKEN: &[tally_model::Signal] =
    &[MispredictCondTaken, MispredictReturn, MispredictIndirect];
/// Every code read that accesses the L2.
const L2_CODE: &[tally_model::Signal] = &[L2CodeHit, LlcCodeHit, LlcCodeMiss];

/// Every load, by where it was served.
const LOADS: &[tally_model::Signal] = &[LoadL1Hit, LoadL2Hit, LoadL3Hit, LoadL3Miss];

/// Ice Lake's events.
pub(crate) const ICELAKE_SERVER: &[&[Event]] = &[COMMON, ICELAKE];
/// Sapphire Rapids' events.
pub(crate) const SAPPHIRE_RAPIDS: &[&[Event]] = &[COMMON, SAPPHIRE];

/// Events of both.
#[rustfmt::skip] // One event a line, as in the vendor's table.
const COMMON: &[Event] = &[
    e("INST_RETIRED.ANY_P", 0xc0, 0x00, &[Instructions], "Instructions retired."),
    e("INST_RETIRED.NOP", 0xc0, 0x02, &[Nops], "No-operation instructions retired."),
    e("UOPS_RETIRED.SLOTS", 0xc2, 0x02, &[Uops], "Retirement slots used: fused micro-operations."),
    e("UOPS_RETIRED.STALL_CYCLES", 0xc2, 0x02, STALLS, "Cycles in which a stall kept every micro-operation from retiring.").cmask(1).inv(),
    e("CPU_CLK_UNHALTED.THREAD_P", 0x3c, 0x00, &[Slots], "Core cycles while not halted.").unit(Unit::SlotsAsCycles),
    e("TOPDOWN.SLOTS_P", 0xa4, 0x01, &[Slots], "Pipeline slots that passed while not halted."),
    e("BR_INST_RETIRED.ALL_BRANCHES", 0xc4, 0x00, &[Branches], "Branches retired, near and far."),
    e("BR_INST_RETIRED.COND_TAKEN", 0xc4, 0x01, &[CondTaken], "Conditional branches retired that were taken."),
    e("BR_INST_RETIRED.NEAR_CALL", 0xc4, 0x02, &[BranchCall], "Near calls retired."),
    e("BR_INST_RETIRED.NEAR_RETURN", 0xc4, 0x08, &[BranchReturn], "Near returns retired."),
    e("BR_INST_RETIRED.COND", 0xc4, 0x11, &[BranchCond], "Conditional branches retired."),
    e("BR_INST_RETIRED.NEAR_TAKEN", 0xc4, 0x20, &[Taken], "Near branches retired that were taken."),
    e("BR_INST_RETIRED.FAR_BRANCH", 0xc4, 0x40, &[BranchFar], "Far branches retired."),
    e("BR_INST_RETIRED.INDIRECT", 0xc4, 0x80, &[BranchIndirect], "Near indirect jumps and calls retired, without returns."),
    e("BR_MISP_RETIRED.ALL_BRANCHES", 0xc5, 0x00, &[Mispredicts], "Branches retired that were mispredicted."),
    e("BR_MISP_RETIRED.COND_TAKEN", 0xc5, 0x01, &[MispredictCondTaken], "Taken conditional branches retired that were mispredicted."),
    e("BR_MISP_RETIRED.INDIRECT_CALL", 0xc5, 0x02, &[MispredictIndirectCall], "Indirect calls retired that were mispredicted."),
    e("BR_MISP_RETIRED.RET", 0xc5, 0x08, &[MispredictReturn], "Near returns retired that were mispredicted."),
    e("BR_MISP_RETIRED.COND", 0xc5, 0x11, &[MispredictCond], "Conditional branches retired that were mispredicted."),
    e("BR_MISP_RETIRED.INDIRECT", 0xc5, 0x80, &[MispredictIndirect], "Indirect jumps and calls retired that were mispredicted."),
    e("MEM_INST_RETIRED.ALL_LOADS", 0xd0, 0x81, LOADS, "Loads retired.").on(LOW),
    e("MEM_INST_RETIRED.ALL_STORES", 0xd0, 0x82, &[Stores], "Stores retired.").on(LOW),
    e("MEM_INST_RETIRED.ANY", 0xd0, 0x83, &[LoadL1Hit, LoadL2Hit, LoadL3Hit, LoadL3Miss, Stores], "Loads and stores retired.").on(LOW),
    e("MEM_INST_RETIRED.LOCK_LOADS", 0xd0, 0x21, &[Locked], "Loads retired with a lock.").on(LOW),
    e("MEM_INST_RETIRED.SPLIT_LOADS", 0xd0, 0x41, &[SplitLoads], "Loads retired that crossed a cache line.").on(LOW),
    e("MEM_INST_RETIRED.SPLIT_STORES", 0xd0, 0x42, &[SplitStores], "Stores retired that crossed a cache line.").on(LOW),
    e("MEM_LOAD_RETIRED.L1_HIT", 0xd1, 0x01, &[LoadL1Hit], "Loads retired that the L1 data cache served.").on(LOW),
    e("MEM_LOAD_RETIRED.L2_HIT", 0xd1, 0x02, &[LoadL2Hit], "Loads retired that the L2 served.").on(LOW),
    e("MEM_LOAD_RETIRED.L3_HIT", 0xd1, 0x04, &[LoadL3Hit], "Loads retired that the last-level cache served.").on(LOW),
    e("MEM_LOAD_RETIRED.L1_MISS", 0xd1, 0x08, &[LoadL2Hit, LoadL3Hit, LoadL3Miss], "Loads retired that the L1 data cache did not serve.").on(LOW),
    e("MEM_LOAD_RETIRED.L2_MISS", 0xd1, 0x10, &[LoadL3Hit, LoadL3Miss], "Loads retired that neither L1 nor L2 served.").on(LOW),
    e("MEM_LOAD_RETIRED.L3_MISS", 0xd1, 0x20, &[LoadL3Miss], "Loads retired that memory served.").on(LOW),
    e("L1D.REPLACEMENT", 0x51, 0x01, &[L1dFills], "Lines brought into the L1 data cache.").on(LOW),
    e("L2_RQSTS.DEMAND_DATA_RD_HIT", 0x24, 0xc1, &[L2ReadHit], "Data reads that hit the L2.").on(LOW),
    e("L2_RQSTS.DEMAND_DATA_RD_MISS", 0x24, 0x21, &[LlcReadHit, LlcReadMiss], "Data reads that missed the L2.").on(LOW),
    e("L2_RQSTS.ALL_DEMAND_DATA_RD", 0x24, 0xe1, &[L2ReadHit, LlcReadHit, LlcReadMiss], "Data reads that asked the L2.").on(LOW),
    e("L2_RQSTS.RFO_HIT", 0x24, 0xc2, &[L2RfoHit], "Requests for ownership that hit the L2.").on(LOW),
    e("L2_RQSTS.RFO_MISS", 0x24, 0x22, &[LlcRfoHit, LlcRfoMiss], "Requests for ownership that missed the L2.").on(LOW),
    e("L2_RQSTS.ALL_RFO", 0x24, 0xe2, &[L2RfoHit, LlcRfoHit, LlcRfoMiss], "Requests for ownership that asked the L2.").on(LOW),
    e("L2_RQSTS.CODE_RD_HIT", 0x24, 0xc4, &[L2CodeHit], "Code reads that hit the L2.").on(LOW),
    e("L2_RQSTS.CODE_RD_MISS", 0x24, 0x24, &[LlcCodeHit, LlcCodeMiss], "Code reads that missed the L2.").on(LOW),
    e("L2_RQSTS.ALL_CODE_RD", 0x24, 0xe4, L2_CODE, "Code reads that asked the L2.").on(LOW),
    e("L2_RQSTS.ALL_DEMAND_MISS", 0x24, 0x27, &[LlcReadHit, LlcReadMiss, LlcRfoHit, LlcRfoMiss, LlcCodeHit, LlcCodeMiss], "Demand requests that missed the L2.").on(LOW),
    e("LONGEST_LAT_CACHE.REFERENCE", 0x2e, 0x4f, &[LlcReadHit, LlcReadMiss, LlcRfoHit, LlcRfoMiss, LlcCodeHit, LlcCodeMiss], "Requests that asked the last-level cache."),
    e("LONGEST_LAT_CACHE.MISS", 0x2e, 0x41, &[LlcReadMiss, LlcRfoMiss, LlcCodeMiss], "Requests that the last-level cache did not serve."),
    e("ICACHE_DATA.STALLS", 0x80, 0x04, &[StallL1i], "Cycles in which fetch waited for a line of code.").on(LOW),
    e("ICACHE_TAG.STALLS", 0x83, 0x04, &[StallItlb], "Cycles in which fetch waited for a translation.").on(LOW),
    e("CYCLE_ACTIVITY.STALLS_TOTAL", 0xa3, 0x04, STALLS, "Cycles in which nothing executed, for any cause.").cmask(4),
    e("CYCLE_ACTIVITY.STALLS_L1D_MISS", 0xa3, 0x0c, &[StallL2Hit, StallL3Hit, StallMemory], "Cycles in which nothing executed behind a load that missed L1.").cmask(12).on(LOW),
    e("CYCLE_ACTIVITY.STALLS_L2_MISS", 0xa3, 0x05, &[StallL3Hit, StallMemory], "Cycles in which nothing executed behind a load that missed L2.").cmask(5).on(LOW),
    e("CYCLE_ACTIVITY.STALLS_L3_MISS", 0xa3, 0x06, &[StallMemory], "Cycles in which nothing executed behind a load that memory served.").cmask(6).on(LOW),
    e("RESOURCE_STALLS.SCOREBOARD", 0xa2, 0x02, &[StallSerialize], "Cycles in which a serialising operation kept others from issuing."),
    e("FP_ARITH_INST_RETIRED.SCALAR_DOUBLE", 0xc7, 0x01, &[FpScalarDouble], "Scalar double-precision arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.SCALAR_SINGLE", 0xc7, 0x02, &[FpScalarSingle], "Scalar single-precision arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.SCALAR", 0xc7, 0x03, &[FpScalarDouble, FpScalarSingle], "Scalar arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.128B_PACKED_DOUBLE", 0xc7, 0x04, &[FpPackedDouble], "Packed 128-bit double-precision arithmetic instructions retired."),
    e("FP_ARITH_INST_RETIRED.128B_PACKED_SINGLE", 0xc7, 0x08, &[FpPackedSingle], "Packed 128-bit single-precision arithmetic instructions retired."),
    e("EXE_ACTIVITY.BOUND_ON_STORES", 0xa6, 0x40, &[StallStore], "Cycles in which nothing executed behind a store.").cmask(2).out_of_order(),
    e("RESOURCE_STALLS.SB", 0xa2, 0x08, &[FullStores], "Cycles for which a full store queue kept an instruction from issuing.").out_of_order(),
    e("BR_MISP_RETIRED.NEAR_TAKEN", 0xc5, 0x20, MISPREDICTS_TAKEN, "Near branches retired that were taken and mispredicted."),
    e("MEM_INST_RETIRED.STLB_MISS_LOADS", 0xd0, 0x11, &[DtlbLoadWalks], "Loads that took a page walk.").on(LOW),
    e("MEM_INST_RETIRED.STLB_MISS_STORES", 0xd0, 0x12, &[DtlbStoreWalks], "Stores that took a page walk.").on(LOW),
    e("IDQ_UOPS_NOT_DELIVERED.CORE", 0x9c, 0x01, FRONT_END, "Slots of the cycles without retirement because the front end gave nothing, wrong paths aside.").unit(Unit::CyclesAsSlots),
    e("TOPDOWN.BACKEND_BOUND_SLOTS", 0xa4, 0x02, BACK_END, "Slots of the cycles without retirement behind memory or units.").unit(Unit::CyclesAsSlots),
];

/// Events of Ice Lake only, or with another encoding.
#[rustfmt::skip] // One event a line, as in the vendor's table.
const ICELAKE: &[Event] = &[
    e("OFFCORE_REQUESTS.DEMAND_DATA_RD", 0xb0, 0x01, &[LlcReadHit, LlcReadMiss], "Data reads that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.DEMAND_CODE_RD", 0xb0, 0x02, &[LlcCodeHit, LlcCodeMiss], "Code reads that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.DEMAND_RFO", 0xb0, 0x04, &[LlcRfoHit, LlcRfoMiss], "Requests for ownership that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.ALL_DATA_RD", 0xb0, 0x08, &[LlcReadHit, LlcReadMiss], "Data reads that went beyond the L2; there are no prefetchers.").on(LOW),
    e("OFFCORE_REQUESTS.L3_MISS_DEMAND_DATA_RD", 0xb0, 0x10, &[LlcReadMiss], "Data reads that memory served.").on(LOW),
    e("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x9c, 0x01, FRONT_END, "Cycles without retirement because the front end gave nothing, wrong paths aside.").cmask(5),
    e("UOPS_ISSUED.ANY", 0x0e, 0x01, &[Uops], "Micro-operations issued; the model issues none that it does not retire."),
    e("CPU_CLK_UNHALTED.REF_XCLK", 0x3c, 0x01, &[Slots], "Ticks of the 25 MHz crystal while not halted.").unit(Unit::SlotsAsCrystal),
    e("L2_LINES_IN.ALL", 0xf1, 0x1f, &[LlcReadHit, LlcReadMiss, LlcRfoHit, LlcRfoMiss, LlcCodeHit, LlcCodeMiss], "Lines brought into the L2.").on(LOW),
    e("ICACHE_64B.IFTAG_HIT", 0x83, 0x01, &[L1iHit], "Lines of code fetched that the L1 instruction cache had.").on(LOW),
    e("ICACHE_64B.IFTAG_MISS", 0x83, 0x02, &[L1iMiss], "Lines of code fetched that the L1 instruction cache had not.").on(LOW),
    e("ITLB_MISSES.STLB_HIT", 0x85, 0x20, &[ItlbStlbHit], "Fetches that missed the instruction TLB and hit the second level.").on(LOW),
    e("ITLB_MISSES.WALK_COMPLETED", 0x85, 0x0e, &[ItlbWalks], "Page walks for fetches.").on(LOW),
    e("ITLB_MISSES.WALK_PENDING", 0x85, 0x10, &[ItlbWalkCycles], "Page walks for fetches in flight, summed over cycles.").on(LOW),
    e("ITLB_MISSES.WALK_ACTIVE", 0x85, 0x10, &[ItlbWalkCycles], "Cycles with a page walk for a fetch in flight.").cmask(1).on(LOW),
    e("DTLB_LOAD_MISSES.STLB_HIT", 0x08, 0x20, &[DtlbLoadStlbHit], "Loads that missed the data TLB and hit the second level.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x08, 0x0e, &[DtlbLoadWalks], "Page walks for loads.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_PENDING", 0x08, 0x10, &[DtlbLoadWalkCycles], "Page walks for loads in flight, summed over cycles.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_ACTIVE", 0x08, 0x10, &[DtlbLoadWalkCycles], "Cycles with a page walk for a load in flight.").cmask(1).on(LOW),
    e("DTLB_STORE_MISSES.STLB_HIT", 0x49, 0x20, &[DtlbStoreStlbHit], "Stores that missed the data TLB and hit the second level.").on(LOW),
    e("DTLB_STORE_MISSES.WALK_COMPLETED", 0x49, 0x0e, &[DtlbStoreWalks], "Page walks for stores.").on(LOW),
    e("DTLB_STORE_MISSES.WALK_PENDING", 0x49, 0x10, &[DtlbStoreWalkCycles], "Page walks for stores in flight, summed over cycles.").on(LOW),
    e("TLB_FLUSH.DTLB_THREAD", 0xbd, 0x01, &[TlbFlushes], "Times the data TLB was flushed.").on(LOW),
    e("CYCLE_ACTIVITY.STALLS_MEM_ANY", 0xa3, 0x14, MEMORY, "Cycles in which nothing executed behind memory of any level.").cmask(20),
    e("INT_MISC.RECOVERY_CYCLES", 0x0d, 0x01, &[StallMispredict], "Cycles spent on getting back to the right path."),
    e("INT_MISC.CLEARS_COUNT", 0x0d, 0x01, &[Mispredicts], "Times the pipeline was cleared for a misprediction.").cmask(1).edge(),
    e("ARITH.DIVIDER_ACTIVE", 0x14, 0x09, &[DividerActive], "Cycles in which the divider was busy.").cmask(1),
    e("IDQ.MS_UOPS", 0x79, 0x30, &[UopsMicrocode], "Micro-operations that came from the microcode sequencer.").on(LOW),
    e("MISC_RETIRED.PAUSE_INST", 0xcc, 0x40, &[Pauses], "PAUSE instructions retired."),
    e("SW_PREFETCH_ACCESS.ANY", 0x32, 0x0f, &[Prefetches], "Software prefetches executed.").on(LOW),
    e("INT_MISC.CLEAR_RESTEER_CYCLES", 0x0d, 0x80, &[StallMispredict], "Cycles from a misprediction to the right path."),
    e("LD_BLOCKS.STORE_FORWARD", 0x03, 0x02, &[ForwardsBlocked], "Loads that waited for a store that could not be forwarded.").on(LOW).out_of_order(),
];

/// Events of Sapphire Rapids only, or with another encoding.
#[rustfmt::skip] // One event a line, as in the vendor's table.
const SAPPHIRE: &[Event] = &[
    e("OFFCORE_REQUESTS.DEMAND_DATA_RD", 0x21, 0x01, &[LlcReadHit, LlcReadMiss], "Data reads that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.DEMAND_CODE_RD", 0x21, 0x02, &[LlcCodeHit, LlcCodeMiss], "Code reads that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.DEMAND_RFO", 0x21, 0x04, &[LlcRfoHit, LlcRfoMiss], "Requests for ownership that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.DATA_RD", 0x21, 0x08, &[LlcReadHit, LlcReadMiss], "Data reads that went beyond the L2; there are no prefetchers.").on(LOW),
    e("OFFCORE_REQUESTS.L3_MISS_DEMAND_DATA_RD", 0x21, 0x10, &[LlcReadMiss], "Data reads that memory served.").on(LOW),
    e("L2_RQSTS.ALL_DEMAND_REFERENCES", 0x24, 0xe7, &[L2ReadHit, LlcReadHit, LlcReadMiss, L2RfoHit, LlcRfoHit, LlcRfoMiss, L2CodeHit, LlcCodeHit, LlcCodeMiss], "Demand requests that asked the L2.").on(LOW),
    e("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x9c, 0x01, FRONT_END, "Cycles without retirement because the front end gave nothing, wrong paths aside.").cmask(6),
    e("MEMORY_ACTIVITY.STALLS_L1D_MISS", 0x47, 0x03, &[StallL2Hit, StallL3Hit, StallMemory], "Cycles in which nothing executed behind a load that missed L1.").cmask(3).on(LOW),
    e("MEMORY_ACTIVITY.STALLS_L2_MISS", 0x47, 0x05, &[StallL3Hit, StallMemory], "Cycles in which nothing executed behind a load that missed L2.").cmask(5).on(LOW),
    e("MEMORY_ACTIVITY.STALLS_L3_MISS", 0x47, 0x09, &[StallMemory], "Cycles in which nothing executed behind a load that memory served.").cmask(9).on(LOW),
    e("EXE_ACTIVITY.BOUND_ON_LOADS", 0xa6, 0x21, LOAD_STALLS, "Cycles in which nothing executed behind a load.").cmask(5),
    e("TOPDOWN.BAD_SPEC_SLOTS", 0xa4, 0x04, &[StallMispredict], "Slots of the cycles spent on getting back to the right path.").unit(Unit::CyclesAsSlots).on(1),
    e("TOPDOWN.BR_MISPREDICT_SLOTS", 0xa4, 0x08, &[StallMispredict], "Slots of the cycles spent on getting back from a mispredicted branch; there are no other clears.").unit(Unit::CyclesAsSlots).on(1),
    e("CPU_CLK_UNHALTED.REF_TSC_P", 0x3c, 0x01, &[Slots], "Time-stamp counter ticks while not halted.").unit(Unit::SlotsAsReference),
    e("BR_INST_RETIRED.UMASK_04", 0xc4, 0x04, &[Branches], "Branches retired, near and far, by the encoding that Linux selects for branch-loads.").unlisted(),
    e("BR_MISP_RETIRED.UMASK_04", 0xc5, 0x04, &[Mispredicts], "Branches retired that were mispredicted, by the encoding that Linux selects for branch-load-misses.").unlisted(),
    e("UOPS_ISSUED.ANY", 0xae, 0x01, &[Uops], "Micro-operations issued; the model issues none that it does not retire."),
    e("L2_LINES_IN.ALL", 0x25, 0x1f, &[LlcReadHit, LlcReadMiss, LlcRfoHit, LlcRfoMiss, LlcCodeHit, LlcCodeMiss], "Lines brought into the L2.").on(LOW),
    e("ITLB_MISSES.STLB_HIT", 0x11, 0x20, &[ItlbStlbHit], "Fetches that missed the instruction TLB and hit the second level.").on(LOW),
    e("ITLB_MISSES.WALK_COMPLETED", 0x11, 0x0e, &[ItlbWalks], "Page walks for fetches.").on(LOW),
    e("ITLB_MISSES.WALK_PENDING", 0x11, 0x10, &[ItlbWalkCycles], "Page walks for fetches in flight, summed over cycles.").on(LOW),
    e("ITLB_MISSES.WALK_ACTIVE", 0x11, 0x10, &[ItlbWalkCycles], "Cycles with a page walk for a fetch in flight.").cmask(1).on(LOW),
    e("DTLB_LOAD_MISSES.STLB_HIT", 0x12, 0x20, &[DtlbLoadStlbHit], "Loads that missed the data TLB and hit the second level.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x12, 0x0e, &[DtlbLoadWalks], "Page walks for loads.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_PENDING", 0x12, 0x10, &[DtlbLoadWalkCycles], "Page walks for loads in flight, summed over cycles.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_ACTIVE", 0x12, 0x10, &[DtlbLoadWalkCycles], "Cycles with a page walk for a load in flight.").cmask(1).on(LOW),
    e("DTLB_STORE_MISSES.STLB_HIT", 0x13, 0x20, &[DtlbStoreStlbHit], "Stores that missed the data TLB and hit the second level.").on(LOW),
    e("DTLB_STORE_MISSES.WALK_COMPLETED", 0x13, 0x0e, &[DtlbStoreWalks], "Page walks for stores.").on(LOW),
    e("DTLB_STORE_MISSES.WALK_PENDING", 0x13, 0x10, &[DtlbStoreWalkCycles], "Page walks for stores in flight, summed over cycles.").on(LOW),
    e("INT_MISC.RECOVERY_CYCLES", 0xad, 0x01, &[StallMispredict], "Cycles spent on getting back to the right path."),
    e("INT_MISC.CLEARS_COUNT", 0xad, 0x01, &[Mispredicts], "Times the pipeline was cleared for a misprediction.").cmask(1).edge(),
    e("ARITH.DIVIDER_ACTIVE", 0xb0, 0x09, &[DividerActive], "Cycles in which the divider was busy.").cmask(1),
    e("IDQ.MS_UOPS", 0x79, 0x20, &[UopsMicrocode], "Micro-operations that came from the microcode sequencer.").on(LOW),
    e("SW_PREFETCH_ACCESS.ANY", 0x40, 0x0f, &[Prefetches], "Software prefetches executed.").on(LOW),
    e("INT_MISC.CLEAR_RESTEER_CYCLES", 0xad, 0x80, &[StallMispredict], "Cycles from a misprediction to the right path."),
    e("LD_BLOCKS.STORE_FORWARD", 0x03, 0x82, &[ForwardsBlocked], "Loads that waited for a store that could not be forwarded.").on(LOW).out_of_order(),
    e("TOPDOWN.MEMORY_BOUND_SLOTS", 0xa4, 0x10, MEMORY, "Slots of the cycles without retirement behind memory.").unit(Unit::CyclesAsSlots),
    e("UOPS_RETIRED.CYCLES", 0xc2, 0x02, &[RetireCycles], "Cycles in which something retired.").cmask(1).out_of_order(),
];
