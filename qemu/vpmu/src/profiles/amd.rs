//! What AMD's profiles share: events, and the sets of signals that events count.
//!
//! Names and encodings are those of AMD's Processor Programming Reference in libpfm4's spelling,
//! the unit mask's name after a dot; a test compares them with the catalogue. The sentences
//! describe what the model counts.

use tally_model::Signal::*;

use super::shared::{LOADS, MISPREDICTS_TAKEN, e};
use crate::event::{Conversion, Event};

/// Events of both.
#[rustfmt::skip] // One event in as few lines as possible, as in the vendor's table.
pub(super) const COMMON: &[Event] = &[
    e("RETIRED_INSTRUCTIONS", 0xc0, 0x00, &[Instructions], "Instructions retired."),
    e("RETIRED_OPS", 0xc1, 0x00, &[Uops], "Macro-operations retired."),
    e("CYCLES_NOT_IN_HALT", 0x76, 0x00, &[Slots],
        "Core cycles while not halted.").conversion(Conversion::SlotsAsCycles),
    e("RETIRED_BRANCH_INSTRUCTIONS", 0xc2, 0x00, &[Branches], "Branches retired, near and far."),
    e("RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED", 0xc3, 0x00, &[Mispredicts],
        "Branches retired that were mispredicted."),
    e("RETIRED_TAKEN_BRANCH_INSTRUCTIONS", 0xc4, 0x00, &[Taken, BranchFar],
        "Branches retired that were taken, near and far."),
    e("RETIRED_TAKEN_BRANCH_INSTRUCTIONS_MISPREDICTED", 0xc5, 0x00,
        MISPREDICTS_TAKEN,
        "Taken branches retired that were mispredicted."),
    e("RETIRED_FAR_CONTROL_TRANSFERS", 0xc6, 0x00, &[BranchFar, Interrupts],
        "Far branches, interrupts and exceptions."),
    e("RETIRED_NEAR_RETURNS", 0xc8, 0x00, &[BranchReturn], "Near returns retired."),
    e("RETIRED_NEAR_RETURNS_MISPREDICTED", 0xc9, 0x00, &[MispredictReturn],
        "Near returns retired that were mispredicted."),
    e("RETIRED_INDIRECT_BRANCH_INSTRUCTIONS_MISPREDICTED", 0xca, 0x00, &[MispredictIndirect],
        "Indirect jumps and calls retired that were mispredicted."),
    e("RETIRED_MMX_FP_INSTRUCTIONS.SSE_INSTR", 0xcb, 0x04, &[Sse],
        "SSE and AVX instructions retired."),
    e("RETIRED_MMX_FP_INSTRUCTIONS.X87_INSTR", 0xcb, 0x01, &[X87], "x87 instructions retired."),
    e("RETIRED_INDIRECT_BRANCH_INSTRUCTIONS", 0xcc, 0x00, &[BranchIndirect],
        "Indirect jumps and calls retired, without returns."),
    e("RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS", 0xd1, 0x00, &[BranchCond],
        "Conditional branches retired."),
    e("RETIRED_BRANCH_MISPREDICTED_DIRECTION_MISMATCH", 0x1c7, 0x00, &[MispredictCond],
        "Conditional branches retired that went the other way than predicted."),
    e("RETIRED_FUSED_INSTRUCTIONS", 0x1d0, 0x00, &[Fused],
        "Pairs of compare and branch retired as one."),
    e("DIV_CYCLES_BUSY_COUNT", 0xd3, 0x00, &[DividerActive],
        "Cycles in which the divider was busy."),
    e("DIV_OP_COUNT", 0xd4, 0x00, &[Divisions], "Divisions and square roots retired."),
    e("RETIRED_LOCK_INSTRUCTIONS.BUS_LOCK", 0x25, 0x01, &[Locked],
        "Instructions retired with a lock."),
    e("RETIRED_CLFLUSH_INSTRUCTIONS", 0x26, 0x00, &[Flushes], "Cache-line flushes retired."),
    e("RETIRED_CPUID_INSTRUCTIONS", 0x27, 0x00, &[Cpuids], "CPUID instructions retired."),
    e("LS_DISPATCH.LD_DISPATCH", 0x29, 0x01, LOADS,
        "Loads; the model dispatches none that it does not retire."),
    e("LS_DISPATCH.STORE_DISPATCH", 0x29, 0x02, &[Stores],
        "Stores; the model dispatches none that it does not retire."),
    e("INTERRUPT_TAKEN", 0x2c, 0x00, &[Interrupts], "Interrupts and exceptions delivered."),
    e("DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2", 0x43, 0x01, &[L2ReadHit, L2RfoHit],
        "Lines that the L2 gave to the data cache."),
    e("ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2", 0x44, 0x01, &[L2ReadHit, L2RfoHit],
        "Lines that the L2 gave to the data cache."),
    e("MAB_ALLOCATION_BY_TYPE.LS", 0x41, 0x3f, &[L1dFills], "Lines that the data cache requested."),
    e("L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT", 0x45, 0x01, &[DtlbLoadStlbHit, DtlbStoreStlbHit],
        "Data accesses that missed the first TLB and hit the second."),
    e("L1_DTLB_MISS.TLB_RELOAD_4K_L2_MISS", 0x45, 0x10, &[DtlbLoadWalks, DtlbStoreWalks],
        "Data accesses that took a page walk."),
    e("MISALIGNED_LOADS.MA64", 0x47, 0x01, &[SplitLoads], "Loads that crossed a cache line."),
    e("PREFETCH_INSTRUCTIONS_DISPATCHED.ANY", 0x4b, 0x07, &[Prefetches],
        "Software prefetches dispatched."),
    e("TLB_FLUSHES.ALL", 0x78, 0xff, &[TlbFlushes], "Times the TLBs were flushed."),
    e("INSTRUCTION_CACHE_REFILLS_FROM_L2", 0x82, 0x00, &[L2CodeHit],
        "Lines of code that the L2 gave."),
    e("INSTRUCTION_CACHE_REFILLS_FROM_SYSTEM", 0x83, 0x00, &[LlcCodeHit, LlcCodeMiss],
        "Lines of code that came from beyond the L2."),
    e("L1_ITLB_MISS_L2_ITLB_HIT", 0x84, 0x00, &[ItlbStlbHit],
        "Fetches that missed the first TLB and hit the second."),
    e("L1_ITLB_MISS_L2_ITLB_MISS.IF4K", 0x85, 0x01, &[ItlbWalks], "Fetches that took a page walk."),
    e("L1_ITLB_FETCH_HIT.IF4K", 0x94, 0x01, &[ItlbHit], "Fetches that hit the first TLB."),
    e("IC_TAG_HIT_MISS.IC_HIT", 0x18e, 0x07, &[L1iHit],
        "Lines of code fetched that the instruction cache had."),
    e("IC_TAG_HIT_MISS.IC_MISS", 0x18e, 0x18, &[L1iMiss],
        "Lines of code fetched that the instruction cache had not."),
    e("IC_TAG_HIT_MISS.ALL_IC_ACCESS", 0x18e, 0x1f, &[L1iHit, L1iMiss], "Lines of code fetched."),
    e("REQUESTS_TO_L2_GROUP1.RD_BLK_L", 0x60, 0x80, &[L2ReadHit, LlcReadHit, LlcReadMiss],
        "Data reads that asked the L2."),
    e("REQUESTS_TO_L2_GROUP1.RD_BLK_X", 0x60, 0x40, &[L2RfoHit, LlcRfoHit, LlcRfoMiss],
        "Stores that asked the L2."),
    e("REQUESTS_TO_L2_GROUP1.CACHEABLE_IC_READ", 0x60, 0x10, &[L2CodeHit, LlcCodeHit, LlcCodeMiss],
        "Code reads that asked the L2."),
    e("CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.LS_RD_BLK_L_HIT_X", 0x64, 0x40, &[L2ReadHit],
        "Data reads that hit the L2."),
    e("CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.LS_RD_BLK_X", 0x64, 0x10, &[L2RfoHit],
        "Stores that hit the L2."),
    e("CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.LS_RD_BLK_C", 0x64, 0x08,
        &[LlcReadHit, LlcReadMiss, LlcRfoHit, LlcRfoMiss],
        "Data requests that missed the L2."),
    e("CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.IC_FILL_HIT_X", 0x64, 0x04, &[L2CodeHit],
        "Code reads that hit the L2."),
    e("CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.IC_FILL_MISS", 0x64, 0x01,
        &[LlcCodeHit, LlcCodeMiss],
        "Code reads that missed the L2."),
    e("BAD_STATUS_2.STLI_OTHER", 0x24, 0x02, &[ForwardsBlocked],
        "Loads that waited for a store that could not be forwarded.").out_of_order(),
    e("STORE_TO_LOAD_FORWARD", 0x35, 0x00, &[Forwards],
        "Loads that a store in the store queue served.").out_of_order(),
    e("DISPATCH_RESOURCE_STALL_CYCLES_1.LOAD_QUEUE_RSRC_STALL", 0xae, 0x02, &[FullLoads],
        "Cycles for which a full load queue kept an instruction from dispatch.").out_of_order(),
    e("DISPATCH_RESOURCE_STALL_CYCLES_1.STORE_QUEUE_RSRC_STALL", 0xae, 0x04, &[FullStores],
        "Cycles for which a full store queue kept an instruction from dispatch.").out_of_order(),
    e("DISPATCH_RESOURCE_STALL_CYCLES_2.RETIRE_TOKEN_STALL", 0xaf, 0x20, &[FullReorder],
        "Cycles for which a full retire queue kept an instruction from dispatch.").out_of_order(),
];

/// What Linux selects for its own events and libpfm4's table of the processor lacks. Both are in
/// AMD's Processor Programming References: PMCx040, "Data Cache Accesses", and PMCx0A9, "Op Queue
/// Empty".
#[rustfmt::skip] // One event in as few lines as possible, as in the vendor's table.
pub(super) const LINUX: &[Event] = &[
    e("LS_DC_ACCESSES", 0x40, 0x00, &[LoadL1Hit, LoadL2Hit, LoadL3Hit, LoadL3Miss, Stores],
        "Loads and stores retired; the model accesses the data cache for no others.").unlisted(),
];
#[rustfmt::skip] // As above.
pub(super) const QUEUE_EMPTY: Event =
    e("UOPS_QUEUE_EMPTY", 0xa9, 0x00, &[StallL1i, StallItlb, StallMispredict, StallFrontEnd],
        "Cycles without retirement because nothing came from the front end.");
