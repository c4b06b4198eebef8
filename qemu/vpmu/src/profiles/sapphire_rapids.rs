//! Sapphire Rapids server.

use tally_model::{Geometry, Signal::*};

use super::{
    decode, execution, icelake_server,
    intel::{BEYOND_L2, COMMON, DATA_BEYOND_L2, LOW},
    shared::{BAD_SPECULATION_SLOTS, LOAD_STALLS, e},
    tally::TALLY,
};
use crate::{
    event::{Conversion, Event},
    profile::{Profile, QemuMachine},
};

/// Sapphire Rapids server: like Ice Lake's, with the second level of PERF_METRICS.
pub(super) const PROFILE: Profile = Profile {
    name: "sapphire-rapids",
    about: "Intel's, as on Sapphire Rapids servers",
    geometry: Geometry::of("sapphire-rapids"),
    offcore: [0x2a, 0x2b],
    second_level: true,
    // Family 6, model 8FH.
    signature: 0x806f8,
    machine: QemuMachine {
        name: "sapphire-rapids",
        cpu: "SapphireRapids,-rdrand,-rdseed",
        counters: 8,
        checks: &["", "pipeline=ooo,mode=single"],
    },
    tables: &[
        COMMON,
        EVENTS,
        execution::COMMON,
        execution::SAPPHIRE_RAPIDS,
        decode::INTEL,
        decode::SAPPHIRE_RAPIDS,
        TALLY,
    ],
    ..icelake_server::PROFILE
};

/// Events of Sapphire Rapids only, or with another encoding.
#[rustfmt::skip] // One event in as few lines as possible, as in the vendor's table.
const EVENTS: &[Event] = &[
    e("OFFCORE_REQUESTS.DEMAND_DATA_RD", 0x21, 0x01, &[LlcReadHit, LlcReadMiss],
        "Data reads that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.DEMAND_CODE_RD", 0x21, 0x02, &[LlcCodeHit, LlcCodeMiss],
        "Code reads that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.DEMAND_RFO", 0x21, 0x04, &[LlcRfoHit, LlcRfoMiss],
        "Requests for ownership that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.DATA_RD", 0x21, 0x08, DATA_BEYOND_L2,
        "Data reads that went beyond the L2, prefetchers' too.").on(LOW),
    e("OFFCORE_REQUESTS.L3_MISS_DEMAND_DATA_RD", 0x21, 0x10, &[LlcReadMiss],
        "Data reads that memory served.").on(LOW),
    e("L2_RQSTS.ALL_DEMAND_REFERENCES", 0x24, 0xe7,
        &[L2ReadHit, LlcReadHit, LlcReadMiss, L2RfoHit, LlcRfoHit, LlcRfoMiss, L2CodeHit,
          LlcCodeHit, LlcCodeMiss],
        "Demand requests that asked the L2.").on(LOW),
    e("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x9c, 0x01, &[SlotsFetchLatency],
        "Cycles in which the front end gave nothing while no structure was full, wrong paths aside.")
            .cmask(6).conversion(Conversion::SlotsAsCycles),
    e("INT_MISC.UOP_DROPPING", 0xad, 0x10, &[],
        "Slots of micro-operations dropped on the way to dispatch: the model drops none."),
    e("MEMORY_ACTIVITY.STALLS_L1D_MISS", 0x47, 0x03, &[StallL2Hit, StallL3Hit, StallMemory],
        "Cycles in which nothing executed behind a load that missed L1.").cmask(3).on(LOW),
    e("MEMORY_ACTIVITY.STALLS_L2_MISS", 0x47, 0x05, &[StallL3Hit, StallMemory],
        "Cycles in which nothing executed behind a load that missed L2.").cmask(5).on(LOW),
    e("MEMORY_ACTIVITY.STALLS_L3_MISS", 0x47, 0x09, &[StallMemory],
        "Cycles in which nothing executed behind a load that memory served.").cmask(9).on(LOW),
    e("EXE_ACTIVITY.BOUND_ON_LOADS", 0xa6, 0x21, LOAD_STALLS,
        "Cycles in which nothing executed behind a load.").cmask(5),
    e("TOPDOWN.BAD_SPEC_SLOTS", 0xa4, 0x04, BAD_SPECULATION_SLOTS,
        "Slots of dispatch lost to wrong paths, from a mispredicted branch to the right path.")
            .on(1),
    e("TOPDOWN.BR_MISPREDICT_SLOTS", 0xa4, 0x08, BAD_SPECULATION_SLOTS,
        "Slots of dispatch lost to mispredicted branches; there are no other clears.").on(1),
    e("CPU_CLK_UNHALTED.REF_TSC_P", 0x3c, 0x01, &[Slots],
        "Time-stamp counter ticks while not halted.").conversion(Conversion::SlotsAsReference),
    e("BR_INST_RETIRED.UMASK_04", 0xc4, 0x04, &[Branches],
        "Branches retired, near and far, by the encoding that Linux selects for branch-loads.")
            .unlisted(),
    e("BR_MISP_RETIRED.UMASK_04", 0xc5, 0x04, &[Mispredicts],
        "Branches retired that were mispredicted, by the encoding that Linux selects for \
         branch-load-misses.").unlisted(),
    e("UOPS_ISSUED.ANY", 0xae, 0x01, &[Uops, SlotsWrongPath],
        "Micro-operations issued, those of wrong paths included."),
    e("L2_LINES_IN.ALL", 0x25, 0x1f, BEYOND_L2,
        "Lines brought into the L2, by prefetchers too.").on(LOW),
    e("ITLB_MISSES.STLB_HIT", 0x11, 0x20, &[ItlbStlbHit],
        "Fetches that missed the instruction TLB and hit the second level.").on(LOW),
    e("ITLB_MISSES.WALK_COMPLETED", 0x11, 0x0e, &[ItlbWalks], "Page walks for fetches.").on(LOW),
    e("ITLB_MISSES.WALK_PENDING", 0x11, 0x10, &[ItlbWalkCycles],
        "Page walks for fetches in flight, summed over cycles.").on(LOW),
    e("ITLB_MISSES.WALK_ACTIVE", 0x11, 0x10, &[ItlbWalkCycles],
        "Cycles with a page walk for a fetch in flight.").cmask(1).on(LOW),
    e("DTLB_LOAD_MISSES.STLB_HIT", 0x12, 0x20, &[DtlbLoadStlbHit],
        "Loads that missed the data TLB and hit the second level.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x12, 0x0e, &[DtlbLoadWalks],
        "Page walks for loads.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_PENDING", 0x12, 0x10, &[DtlbLoadWalkCycles],
        "Page walks for loads in flight, summed over cycles.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_ACTIVE", 0x12, 0x10, &[DtlbLoadWalkCycles],
        "Cycles with a page walk for a load in flight.").cmask(1).on(LOW),
    e("DTLB_STORE_MISSES.STLB_HIT", 0x13, 0x20, &[DtlbStoreStlbHit],
        "Stores that missed the data TLB and hit the second level.").on(LOW),
    e("DTLB_STORE_MISSES.WALK_COMPLETED", 0x13, 0x0e, &[DtlbStoreWalks],
        "Page walks for stores.").on(LOW),
    e("DTLB_STORE_MISSES.WALK_PENDING", 0x13, 0x10, &[DtlbStoreWalkCycles],
        "Page walks for stores in flight, summed over cycles.").on(LOW),
    e("DTLB_STORE_MISSES.WALK_ACTIVE", 0x13, 0x10, &[DtlbStoreWalkCycles],
        "Cycles with a page walk for a store in flight.").cmask(1).on(LOW),
    e("INT_MISC.RECOVERY_CYCLES", 0xad, 0x01, &[StallMispredict],
        "Cycles spent on getting back to the right path."),
    e("INT_MISC.CLEARS_COUNT", 0xad, 0x01, &[Mispredicts],
        "Times the pipeline was cleared for a misprediction.").cmask(1).edge(),
    e("ARITH.DIVIDER_ACTIVE", 0xb0, 0x09, &[DividerActive],
        "Cycles in which the divider was busy.").cmask(1),
    e("IDQ.MS_UOPS", 0x79, 0x20, &[UopsMicrocode],
        "Micro-operations that came from the microcode sequencer.").on(LOW),
    e("BACLEARS.ANY", 0x60, 0x01, &[Resteers],
        "Taken branches of which fetch did not know: it started again when they were decoded.")
            .on(LOW).target_buffer(),
    e("SW_PREFETCH_ACCESS.ANY", 0x40, 0x0f, &[Prefetches], "Software prefetches executed.").on(LOW),
    e("INT_MISC.CLEAR_RESTEER_CYCLES", 0xad, 0x80, &[StallMispredict],
        "Cycles from a misprediction to the right path."),
    e("LD_BLOCKS.STORE_FORWARD", 0x03, 0x82, &[ForwardsBlocked],
        "Loads that waited for a store that could not be forwarded.").on(LOW).out_of_order(),
    e("TOPDOWN.MEMORY_BOUND_SLOTS", 0xa4, 0x10, &[SlotsMemory],
        "Slots of dispatch left empty because a structure was full behind memory."),
    e("UOPS_RETIRED.CYCLES", 0xc2, 0x02, &[RetireCycles],
        "Cycles in which something retired.").cmask(1).out_of_order(),
];
