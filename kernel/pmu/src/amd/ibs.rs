//! Precise samples (IBS): the processor tags an op when a count of cycles or of dispatched ops is
//! reached. When the op retires, registers have its address and its memory access, and an
//! interrupt comes.
//!
//! AMD64 Architecture Programmer's Manual volume 2, section "Instruction-Based Sampling"; processor
//! programming reference of family 19h, "IBS Execution Control" to "IBS DC Physical Address".
//! Linux, arch/x86/events/amd/ibs.c.
//!
//! The sampler has a count of its own, beside the counter of the event: the counter counts, and
//! where another event's counter would be preloaded, the sampler starts with the same distance.
//!
//! # Pitfalls, and how the driver avoids them
//! - The sampler knows no rings: it counts the end of the handler that starts it too. So it gets
//!   [`MARGIN`] more than the distance, and a sample that comes too early for its threshold is of
//!   no event. A sample of a ring that the event does not count is dropped; after each that was
//!   dropped in a row the margin doubles, so that a long way back to the program cannot take all
//!   samples. A slice that ends without a sample ends the row: the distance was too long for it.
//! - An interrupt can come after the sampler was stopped (family 10h, erratum 420). It finds no
//!   sample, and is spurious to the engine.
//! - A sample that is there when the sampler is stopped would be lost: it is read first.

use tally_engine::{Access, PreciseRecord, PreciseRecords, Records};

use crate::{
    bus::{Bus, CountingBus},
    registers::amd::{
        CYCLES_NOT_IN_HALT, IbsCtl, IbsDcLinAd, IbsOpCtl, IbsOpData, IbsOpData2, IbsOpData3,
        IbsOpRip, PerfCtl, RETIRED_OPS,
    },
};

/// Counts by which a sample comes later than its distance: more than the cycles and ops from the
/// start of the sampler to the program, and than the random start of the sampler's count.
const MARGIN: u64 = 1 << 12;
/// Limit of the margin's doublings.
const MOST_DOUBLINGS: u32 = 8;
/// The sampler's longest distance, and the unit of distances.
const MOST: u64 = (1 << 27) - UNIT;
const UNIT: u64 = 1 << 4;
/// Bits of the distance that the register has apart from the others.
const HIGH: u64 = 0x7f << 20;

/// State of a CPU's op sampler.
#[derive(Debug)]
pub(super) struct Ibs {
    /// The event's counter and select, while the sampler is on.
    armed: Option<(usize, PerfCtl)>,
    /// Properties of records that the session needs; `None` if it has no precise events.
    records: Option<Records>,
    /// The sample that was there when the sampler was stopped last, and its counter.
    taken: Option<(usize, PreciseRecord)>,
    /// Samples that were dropped in a row.
    dropped: u32,
    /// The low bits of the count that the last sample left, which are random.
    random: IbsOpCtl,
}

/// The sampler's control for the event of a select, if it counts that: cycles, or ops.
fn counted(select: PerfCtl) -> Option<IbsOpCtl> {
    let rings = PerfCtl::USR | PerfCtl::OS | PerfCtl::EN;
    match select.difference(rings) {
        of if of == PerfCtl::event(CYCLES_NOT_IN_HALT, 0) => Some(IbsOpCtl::empty()),
        of if of == PerfCtl::event(RETIRED_OPS, 0) => Some(IbsOpCtl::COUNTS_OPS),
        _ => None,
    }
}

impl Ibs {
    /// Turns the op sampler of this CPU off. Returns its state, and the number of its entry in the
    /// extended local vector table; `None` if a hypervisor lacks the registers.
    pub(super) fn find<B: Bus>(bus: &mut CountingBus<B>) -> Option<(Ibs, u8)> {
        let entry: IbsCtl = bus.try_get(0)?;
        if !bus.try_put(0, IbsOpCtl::empty()) || !entry.contains(IbsCtl::VALID) {
            return None;
        }
        let random = IbsOpCtl::empty();
        let ibs = Ibs { armed: None, records: None, taken: None, dropped: 0, random };
        Some((ibs, entry.intersection(IbsCtl::ENTRY).bits() as u8))
    }

    /// Notes what a session needs, before it counts. A sample that was not asked for yet stays: the
    /// engine asks whenever a session with precise events stops.
    pub(super) fn configure(&mut self, records: Option<Records>) {
        self.records = records;
    }

    /// Starts the sampler for the event on a counter, if the session's samples are precise and the
    /// sampler counts the event. Returns whether it has started.
    pub(super) fn arm<B: Bus>(
        &mut self,
        bus: &mut CountingBus<B>,
        index: usize,
        select: PerfCtl,
        remaining: u64,
    ) -> bool {
        let Some(counted) = counted(select).filter(|_| self.records.is_some()) else {
            return false;
        };
        let margin = MARGIN << self.dropped.min(MOST_DOUBLINGS);
        let distance = (remaining + margin).next_multiple_of(UNIT).min(MOST);
        let fields = IbsOpCtl::from_bits_retain((distance / UNIT) & 0xffff | distance & HIGH);
        self.armed = Some((index, select));
        bus.put(0, fields | counted | IbsOpCtl::ENABLE | self.random);
        true
    }

    /// Stops the sampler, and takes its sample.
    pub(super) fn disarm<B: Bus>(&mut self, bus: &mut CountingBus<B>) {
        let Some((index, select)) = self.armed.take() else { return };
        let control: IbsOpCtl = bus.get(0);
        let is_there = control.contains(IbsOpCtl::VALID);
        let record = is_there.then(|| self.record(bus, select)).flatten();
        if is_there {
            self.random = control & IbsOpCtl::RANDOM;
        }
        self.dropped = if is_there && record.is_none() { self.dropped + 1 } else { 0 };
        self.taken = record.map(|record| (index, record)).or(self.taken);
        bus.put(0, IbsOpCtl::empty());
    }

    /// Takes the last sample since the last call.
    pub(super) fn take(&mut self) -> PreciseRecords {
        let mut records = PreciseRecords::default();
        if let Some((slot, record)) = self.taken.take() {
            records.add(slot, record);
        }
        records
    }

    /// Reads the sample; `None` if its address is not known, or is of a ring that the event does
    /// not count.
    fn record<B: Bus>(&self, bus: &mut CountingBus<B>, select: PerfCtl) -> Option<PreciseRecord> {
        let IbsOpRip(address) = bus.get(0);
        let ring = if address >> 63 == 0 { PerfCtl::USR } else { PerfCtl::OS };
        if !select.contains(ring) {
            return None;
        }
        let data: IbsOpData = bus.get(0);
        if data.contains(IbsOpData::RIP_INVALID) {
            return None;
        }
        let has_accesses = self.records.is_some_and(|records| records.accesses);
        let access = if has_accesses { access(bus, data) } else { Access::default() };
        Some(PreciseRecord { address, access })
    }
}

/// Reads the memory access of the sampled op; all 0 if it has none.
fn access<B: Bus>(bus: &mut CountingBus<B>, data: IbsOpData) -> Access {
    let info: IbsOpData3 = bus.get(0);
    let is_access = info.intersects(IbsOpData3::LOAD | IbsOpData3::STORE);
    if !is_access || !info.contains(IbsOpData3::LINEAR_VALID) {
        return Access::default();
    }
    let IbsDcLinAd(address) = bus.get(0);
    let IbsOpData2(source) = bus.get(0);
    let latency = data.bits() & ((1 << SOURCE_SHIFT) - 1) | source << SOURCE_SHIFT;
    Access { address, info: info.bits(), latency }
}

/// Position of `IbsOpData2` above the used bits of `IbsOpData`, in an access's third word.
const SOURCE_SHIFT: u32 = 48;
