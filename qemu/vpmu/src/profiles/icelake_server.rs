//! Ice Lake server.

use tally_model::{Geometry, Signal::*};

use super::{
    intel::{COMMON, FRONT_END, LOW},
    shared::{MEMORY, e},
};
use crate::{
    event::{Conversion, Event},
    profile::{Profile, QemuMachine, Vendor},
};

/// Ice Lake server: Intel architectural performance monitoring, version 5.
pub(super) const PROFILE: Profile = Profile {
    name: "icelake-server",
    about: "Intel architectural performance monitoring, as on Ice Lake servers",
    vendor: Vendor::Intel,
    geometry: Geometry::of("icelake-server"),
    counters: (4, 8),
    fixed: 4,
    width: 48,
    offcore: [0xb7, 0xbb],
    second_level: false,
    version: 5,
    // Family 6, model 6AH.
    signature: 0x606a6,
    machine: QemuMachine {
        name: "intel",
        cpu: "Icelake-Server,-rdrand,-rdseed",
        counters: 4,
        checks: &["", "counters=8,fixed=2,width=40", "pipeline=ooo"],
    },
    tables: &[COMMON, EVENTS],
};

/// Events of Ice Lake only, or with another encoding.
#[rustfmt::skip] // One event in as few lines as possible, as in the vendor's table.
const EVENTS: &[Event] = &[
    e("OFFCORE_REQUESTS.DEMAND_DATA_RD", 0xb0, 0x01, &[LlcReadHit, LlcReadMiss],
        "Data reads that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.DEMAND_CODE_RD", 0xb0, 0x02, &[LlcCodeHit, LlcCodeMiss],
        "Code reads that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.DEMAND_RFO", 0xb0, 0x04, &[LlcRfoHit, LlcRfoMiss],
        "Requests for ownership that went beyond the L2.").on(LOW),
    e("OFFCORE_REQUESTS.ALL_DATA_RD", 0xb0, 0x08, &[LlcReadHit, LlcReadMiss],
        "Data reads that went beyond the L2; there are no prefetchers.").on(LOW),
    e("OFFCORE_REQUESTS.L3_MISS_DEMAND_DATA_RD", 0xb0, 0x10, &[LlcReadMiss],
        "Data reads that memory served.").on(LOW),
    e("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x9c, 0x01, FRONT_END,
        "Cycles without retirement because the front end gave nothing, wrong paths aside.")
            .cmask(5),
    e("UOPS_ISSUED.ANY", 0x0e, 0x01, &[Uops],
        "Micro-operations issued; the model issues none that it does not retire."),
    e("CPU_CLK_UNHALTED.REF_XCLK", 0x3c, 0x01, &[Slots],
        "Ticks of the 25 MHz crystal while not halted.").conversion(Conversion::SlotsAsCrystal),
    e("L2_LINES_IN.ALL", 0xf1, 0x1f,
        &[LlcReadHit, LlcReadMiss, LlcRfoHit, LlcRfoMiss, LlcCodeHit, LlcCodeMiss],
        "Lines brought into the L2.").on(LOW),
    e("ICACHE_64B.IFTAG_HIT", 0x83, 0x01, &[L1iHit],
        "Lines of code fetched that the L1 instruction cache had.").on(LOW),
    e("ICACHE_64B.IFTAG_MISS", 0x83, 0x02, &[L1iMiss],
        "Lines of code fetched that the L1 instruction cache had not.").on(LOW),
    e("ITLB_MISSES.STLB_HIT", 0x85, 0x20, &[ItlbStlbHit],
        "Fetches that missed the instruction TLB and hit the second level.").on(LOW),
    e("ITLB_MISSES.WALK_COMPLETED", 0x85, 0x0e, &[ItlbWalks], "Page walks for fetches.").on(LOW),
    e("ITLB_MISSES.WALK_PENDING", 0x85, 0x10, &[ItlbWalkCycles],
        "Page walks for fetches in flight, summed over cycles.").on(LOW),
    e("ITLB_MISSES.WALK_ACTIVE", 0x85, 0x10, &[ItlbWalkCycles],
        "Cycles with a page walk for a fetch in flight.").cmask(1).on(LOW),
    e("DTLB_LOAD_MISSES.STLB_HIT", 0x08, 0x20, &[DtlbLoadStlbHit],
        "Loads that missed the data TLB and hit the second level.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x08, 0x0e, &[DtlbLoadWalks],
        "Page walks for loads.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_PENDING", 0x08, 0x10, &[DtlbLoadWalkCycles],
        "Page walks for loads in flight, summed over cycles.").on(LOW),
    e("DTLB_LOAD_MISSES.WALK_ACTIVE", 0x08, 0x10, &[DtlbLoadWalkCycles],
        "Cycles with a page walk for a load in flight.").cmask(1).on(LOW),
    e("DTLB_STORE_MISSES.STLB_HIT", 0x49, 0x20, &[DtlbStoreStlbHit],
        "Stores that missed the data TLB and hit the second level.").on(LOW),
    e("DTLB_STORE_MISSES.WALK_COMPLETED", 0x49, 0x0e, &[DtlbStoreWalks],
        "Page walks for stores.").on(LOW),
    e("DTLB_STORE_MISSES.WALK_PENDING", 0x49, 0x10, &[DtlbStoreWalkCycles],
        "Page walks for stores in flight, summed over cycles.").on(LOW),
    e("TLB_FLUSH.DTLB_THREAD", 0xbd, 0x01, &[TlbFlushes],
        "Times the data TLB was flushed.").on(LOW),
    e("CYCLE_ACTIVITY.STALLS_MEM_ANY", 0xa3, 0x14, MEMORY,
        "Cycles in which nothing executed behind memory of any level.").cmask(20),
    e("INT_MISC.RECOVERY_CYCLES", 0x0d, 0x01, &[StallMispredict],
        "Cycles spent on getting back to the right path."),
    e("INT_MISC.CLEARS_COUNT", 0x0d, 0x01, &[Mispredicts],
        "Times the pipeline was cleared for a misprediction.").cmask(1).edge(),
    e("ARITH.DIVIDER_ACTIVE", 0x14, 0x09, &[DividerActive],
        "Cycles in which the divider was busy.").cmask(1),
    e("IDQ.MS_UOPS", 0x79, 0x30, &[UopsMicrocode],
        "Micro-operations that came from the microcode sequencer.").on(LOW),
    e("MISC_RETIRED.PAUSE_INST", 0xcc, 0x40, &[Pauses], "PAUSE instructions retired."),
    e("SW_PREFETCH_ACCESS.ANY", 0x32, 0x0f, &[Prefetches], "Software prefetches executed.").on(LOW),
    e("INT_MISC.CLEAR_RESTEER_CYCLES", 0x0d, 0x80, &[StallMispredict],
        "Cycles from a misprediction to the right path."),
    e("LD_BLOCKS.STORE_FORWARD", 0x03, 0x02, &[ForwardsBlocked],
        "Loads that waited for a store that could not be forwarded.").on(LOW).out_of_order(),
];
