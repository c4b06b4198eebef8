//! The events that were sampled, and their attributes.

use std::collections::BTreeMap;

use tally_abi::session::Mode;
use tally_pmu::Catalogue;
use tally_vpmu::Vendor;

use crate::{export::bytes::Bytes, perf, recording::Recording, trace::run::Processor};

/// Bytes of an attribute: `PERF_ATTR_SIZE_VER5`.
pub(super) const ATTR_BYTES: u32 = 112;
/// `PERF_TYPE_RAW`: the configuration is an event select.
const TYPE_RAW: u32 = 4;
/// Fields of a sample: `PERF_SAMPLE_IDENTIFIER`, `IP`, `TID`, `TIME`, `CPU`, `PERIOD`.
const SAMPLE_TYPE: u64 = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8;
/// Further field if stacks were recorded: `PERF_SAMPLE_CALLCHAIN`.
const SAMPLE_CALLERS: u64 = 1 << 5;
/// Further fields if samples have memory accesses: `PERF_SAMPLE_ADDR`, `WEIGHT`, `DATA_SRC`.
const SAMPLE_ACCESS: u64 = 1 << 3 | 1 << 14 | 1 << 15;
/// Further field if branches were recorded: `PERF_SAMPLE_BRANCH_STACK`.
const SAMPLE_BRANCHES: u64 = 1 << 11;
/// The attribute's `branch_sample_type` then, at this offset: any branches of ring 3, of ring 0.
const BRANCH_TYPE_OFFSET: usize = 72;
const BRANCHES_ANY: u64 = 1 << 3;
const BRANCHES_USER: u64 = 1;
const BRANCHES_KERNEL: u64 = 1 << 1;
/// The attribute's flags `exclude_user`, `exclude_kernel` and `exclude_hv`.
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// The attribute's field `precise_ip`, from bit 15: samples are precise, though the next event may
/// have taken them.
const PRECISE: u64 = 2 << 15;
/// The attribute's flags `mmap`, `comm`, `sample_id_all` and `mmap2`.
const FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 18 | 1 << 23;

/// An event that was sampled.
pub(super) struct Sampled {
    /// The id in the event's samples.
    pub(super) id: u64,
    pub(super) name: String,
    /// The event select; 0 if the catalogue does not know the event.
    config: u64,
    mode: Mode,
    /// Whether samples have callers.
    pub(super) has_callers: bool,
    /// Whether samples have memory accesses.
    pub(super) has_accesses: bool,
    /// Whether samples have branches.
    pub(super) has_branches: bool,
    /// Whether samples are precise.
    is_precise: bool,
}

/// The sampled events, by session and index in its list.
pub(super) type Events = BTreeMap<(u32, u16), Sampled>;

pub(super) fn events(of: &Recording) -> Events {
    let mut events = Events::new();
    for sample in &of.records.samples {
        let id = events.len() as u64 + 1;
        events.entry((sample.session, sample.event)).or_insert_with(|| {
            let session = of.session(sample.session);
            let event = session.and_then(|of| of.events.get(usize::from(sample.event)));
            let native = event.and_then(|event| event.native.as_deref());
            let processor = of.run.processor.as_ref();
            let config = native.zip(processor).and_then(|(event, of)| config(event, of));
            Sampled {
                id,
                name: of.event_name(sample.session, sample.event),
                config: config.unwrap_or_default(),
                mode: event.map_or(Mode::Full, |event| event.mode),
                has_callers: of.has_callers(),
                has_accesses: !of.accesses.is_empty(),
                has_branches: of.branches.has_branches(),
                is_precise: sample.precise,
            }
        });
    }
    events
}

/// The select of an event of the processor's catalogue.
fn config(native: &str, of: &Processor) -> Option<u64> {
    let named = Catalogue::named(&of.catalogue);
    let (catalogue, vendor) = match of.vendor.as_str() {
        "GenuineIntel" => {
            (named.unwrap_or_else(|| Catalogue::intel(of.family, of.model, 0, 0)), Vendor::Intel)
        }
        "AuthenticAMD" => {
            (named.unwrap_or_else(|| Catalogue::amd(of.family, of.model)), Vendor::Amd)
        }
        _ => return None,
    };
    let resolved = catalogue.resolve(native, Mode::User).ok()?;
    Some(perf::select(resolved.first()?, vendor).0)
}

/// Appends a `perf_event_attr`. Its period is 0, as each sample has its own period.
pub(super) fn attribute(event: &Sampled, to: Bytes) -> Bytes {
    let end = to.len() as usize + ATTR_BYTES as usize;
    let exclude = match event.mode {
        Mode::User => EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        Mode::Kernel => EXCLUDE_USER | EXCLUDE_HYPERVISOR,
        Mode::Full => EXCLUDE_HYPERVISOR,
    };
    let mut attr = to.u32(TYPE_RAW).u32(ATTR_BYTES).u64(event.config);
    // Period, fields of samples, fields of reads, flags; the rest is zero.
    let callers = if event.has_callers { SAMPLE_CALLERS } else { 0 };
    let accesses = if event.has_accesses { SAMPLE_ACCESS } else { 0 };
    let branches = if event.has_branches { SAMPLE_BRANCHES } else { 0 };
    let sample_type = SAMPLE_TYPE | callers | accesses | branches;
    let precise = if event.is_precise { PRECISE } else { 0 };
    attr = attr.u64(0).u64(sample_type).u64(0).u64(FLAGS | exclude | precise);
    if event.has_branches {
        let rings = match event.mode {
            Mode::User => BRANCHES_USER,
            Mode::Kernel => BRANCHES_KERNEL,
            Mode::Full => BRANCHES_USER | BRANCHES_KERNEL,
        };
        attr.0.resize(end - ATTR_BYTES as usize + BRANCH_TYPE_OFFSET, 0);
        attr = attr.u64(BRANCHES_ANY | rings);
    }
    attr.0.resize(end, 0);
    attr
}
