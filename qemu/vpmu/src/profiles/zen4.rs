//! Zen 4.

use tally_model::{
    Geometry,
    Signal::{self, *},
};

use super::{
    amd::{COMMON, FLOPS, LINUX, QUEUE_EMPTY},
    decode,
    shared::{BACK_END_SLOTS, NOT_COMPLETE, e},
    tally::TALLY,
};
use crate::{
    event::{Conversion, Event},
    profile::{IbsKind, LbrKind, Profile, QemuMachine, Vendor},
};

/// Zen 4: AMD PerfMonV2.
pub(super) const PROFILE: Profile = Profile {
    name: "zen4",
    about: "AMD PerfMonV2, as on Zen 4",
    vendor: Vendor::Amd,
    geometry: Geometry::of("zen4"),
    counters: (6, 6),
    fixed: 0,
    width: 48,
    offcore: [0; 2],
    second_level: false,
    pebs: None,
    ibs: Some(IbsKind::Zen4),
    lbr: Some(LbrKind::Amd),
    version: 2,
    tsc_hz: None,
    // Family 19H, model 11H.
    signature: 0xa1_0f11,
    kind: 0,
    machine: QemuMachine {
        name: "amd",
        cpu: "EPYC-Genoa,-rdrand,-rdseed",
        counters: 6,
        checks: &[
            "",
            "counters=4",
            "pipeline=ooo,unit=yes,prefetch=on,uop-cache=yes",
            "pipeline=ooo,threads=2,large-pages=yes",
        ],
    },
    tables: &[COMMON, LINUX, &[QUEUE_EMPTY.unlisted()], EVENTS, decode::AMD, TALLY],
};

/// Dispatched micro-operations: those that retire, and those of wrong paths.
const DISPATCHED: &[Signal] = &[Uops, SlotsWrongPath];
/// Dispatched micro-operations that the op cache did not deliver; it has none of wrong paths.
pub(super) const DECODED: &[Signal] = &[UopsDecoded, UopsMicrocode, SlotsWrongPath];
/// Slots that the front end left empty, also during the recovery from a wrong path.
const FRONT_END_SLOTS: &[Signal] = &[SlotsFetchLatency, SlotsFetchBandwidth, SlotsRefill];

/// Events of Zen 4 only.
#[rustfmt::skip] // One event in as few lines as possible, as in the vendor's table.
const EVENTS: &[Event] = &[
    e("RETIRED_SSE_AVX_FLOPS.ANY", 0x03, 0x1f, FLOPS,
        "Floating-point operations of SSE and AVX retired: minima, maxima and approximations are none."),
    e("RETIRED_SSE_AVX_FLOPS.BFLOAT_MAC_FLOPS", 0x03, 0x10, &[],
        "Operations on bfloat numbers, which the model does not have."),
    e("OPS_SOURCE_DISPATCHED_FROM_DECODER.DECODER", 0xaa, 0x01, DECODED,
        "Macro-operations dispatched that the op cache lacked, and all of wrong paths."),
    e("OPS_SOURCE_DISPATCHED_FROM_DECODER.OPCACHE", 0xaa, 0x02, &[UopsCached],
        "Macro-operations dispatched from the op cache.").uop_cache(),
    e("OPS_SOURCE_DISPATCHED_FROM_DECODER:DECODER:OPCACHE:LOOP_BUFFER", 0xaa, 0x07, DISPATCHED,
        "Macro-operations dispatched from any source, those of wrong paths included.").unlisted(),
    e("RESYNCS", 0x96, 0x00, &[MachineClears],
        "Restarts of the pipeline other than for mispredictions; without the option `rejections` the \
         model has none."),
    e("P0_FREQ_CYCLES_NOT_IN_HALT.P0_FREQ_CYCLES", 0x120, 0x01, &[Slots],
        "Cycles at the reference frequency while not halted.")
            .conversion(Conversion::SlotsAsReference),
    e("RETIRED_UNCONDITIONAL_INDIRECT_BRANCH_INSTRUCTIONS_MISPREDICTED", 0x1c8, 0x00,
        &[MispredictIndirect],
        "Unconditional indirect branches retired that were mispredicted."),
    e("RETIRED_UNCONDITIONAL_BRANCH_INSTRUCTIONS", 0x1c9, 0x00, &[BranchUncond],
        "Near unconditional branches retired: jumps, calls and returns."),
    e("RETIRED_UCODE_INSTRUCTIONS", 0x1c1, 0x00, &[Microcoded],
        "Instructions retired that the microcode sequencer ran."),
    e("RETIRED_UCODE_OPS", 0x1c2, 0x00, &[UopsMicrocode],
        "Macro-operations retired that came from the microcode sequencer."),
    e("DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LOCAL_CCX", 0x43, 0x02, &[LoadL3Hit],
        "Loads' lines that the L3 gave to the data cache."),
    e("DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.DRAM_IO_NEAR", 0x43, 0x08, &[LoadL3Miss],
        "Loads' lines that memory gave to the data cache."),
    e("CYCLES_NO_RETIRE.EMPTY", 0xd6, 0x01, &[StallL1i, StallItlb, StallMispredict, StallFrontEnd],
        "Cycles without retirement because the retire queue was empty."),
    e("CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD", 0xd6, 0xa2,
        &[StallL2Hit, StallL3Hit, StallMemory, StallDtlb],
        "Cycles without retirement behind a load that missed."),
    e("CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU", 0xd6, 0x02, NOT_COMPLETE,
        "Cycles without retirement because the oldest operation was not complete."),
    e("CYCLES_NO_RETIRE.OTHER", 0xd6, 0x08, &[StallSerialize, StallResources],
        "Cycles without retirement for another reason."),
    e("DISPATCH_STALLS_1.FE_NO_OPS", 0x1a0, 0x01, FRONT_END_SLOTS,
        "Slots of dispatch that the front end left empty while no structure was full."),
    e("DISPATCH_STALLS_1.FE_NO_OPS:c=6", 0x1a0, 0x01, &[SlotsFetchLatency, SlotsRefill],
        "Cycles in which the front end gave nothing while no structure was full.")
            .cmask(6).conversion(Conversion::SlotsAsCycles).unlisted(),
    e("DISPATCH_STALLS_1.BE_STALLS", 0x1a0, 0x1e, BACK_END_SLOTS,
        "Slots of dispatch left empty because a structure was full, or for a serializing \
         instruction."),
    e("DISPATCH_STALLS_1.SMT_CONTENTION", 0x1a0, 0x60, &[],
        "Slots of dispatch given to the core's other thread, which the model does not have."),
];
