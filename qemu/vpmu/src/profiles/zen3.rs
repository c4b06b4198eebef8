//! Zen 3.

use tally_model::{Geometry, Signal::*};

use super::{
    amd::{COMMON, FLOPS, LINUX, QUEUE_EMPTY},
    decode,
    shared::e,
    tally::TALLY,
    zen4::{self, DECODED},
};
use crate::{
    event::Event,
    profile::{IbsKind, Profile, QemuMachine},
};

/// Zen 3: AMD's core extension, without PerfMonV2.
pub(super) const PROFILE: Profile = Profile {
    name: "zen3",
    about: "AMD's core extension, as on Zen 3",
    geometry: Geometry::of("zen3"),
    version: 1,
    ibs: Some(IbsKind::Zen3),
    tsc_hz: None,
    // Family 19H, model 1.
    signature: 0xa0_0f11,
    kind: 0,
    machine: QemuMachine {
        name: "zen3",
        cpu: "EPYC-Milan,-rdrand,-rdseed",
        counters: 6,
        checks: &["", "pipeline=ooo,mode=inorder,rejections=yes", "large-pages=yes"],
    },
    tables: &[COMMON, LINUX, &[QUEUE_EMPTY], EVENTS, decode::AMD, TALLY],
    ..zen4::PROFILE
};

/// Events of Zen 3 only.
#[rustfmt::skip] // One event in as few lines as possible, as in the vendor's table.
const EVENTS: &[Event] = &[
    e("RETIRED_SSE_AVX_FLOPS.ANY", 0x03, 0x0f, FLOPS,
        "Floating-point operations of SSE and AVX retired: minima, maxima and approximations are none."),
    e("OPS_SOURCE_DISPATCHED_FROM_DECODER.X86DECODER_DISPATCHED", 0xaa, 0x01, DECODED,
        "Macro-operations dispatched that the op cache lacked, and all of wrong paths."),
    e("OPS_SOURCE_DISPATCHED_FROM_DECODER.OPCACHE_DISPATCHED", 0xaa, 0x02, &[UopsCached],
        "Macro-operations dispatched from the op cache.").uop_cache(),
    e("DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.INT_CACHE", 0x43, 0x02, &[LoadL3Hit],
        "Loads' lines that the L3 gave to the data cache."),
    e("DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.MEM_IO_LCL", 0x43, 0x08, &[LoadL3Miss],
        "Loads' lines that memory gave to the data cache."),
];
