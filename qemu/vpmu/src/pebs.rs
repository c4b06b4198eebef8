//! Precise event-based sampling (PEBS): the state of its registers, and the layout of the debug
//! store's management area and of adaptive records (SDM vol. 3, "Debug Store (DS) Mechanism",
//! "Adaptive PEBS" and, for the counters' reset values, "PEBS Record Format").
//!
//! Counters are named by their bits in the registers: general ones from 0, fixed ones from 32.

use tally_model::{DataAccess, ServedBy};

use crate::{
    arch_pebs::{BufferRegisters, COUNTERS, FIXED},
    profile::PebsKind,
};

impl PebsKind {
    /// The version of performance monitoring that the processor has.
    pub(crate) fn version(self) -> u8 {
        if self.is_newer() { 6 } else { 5 }
    }

    /// Returns whether the processor is Lunar Lake or a later one.
    fn is_newer(self) -> bool {
        matches!(self, PebsKind::LunarLake | PebsKind::PantherLake)
    }

    /// Returns whether records are in a buffer at a physical address.
    pub(crate) fn is_architectural(self) -> bool {
        self == PebsKind::PantherLake
    }

    /// The format of the records in PERF_CAPABILITIES.
    pub(crate) fn format(self) -> u64 {
        match self {
            PebsKind::IceLake | PebsKind::SapphireRapids => 4,
            PebsKind::LunarLake => 6,
            PebsKind::PantherLake => 0xf,
        }
    }

    /// General counters that can have records, and behind whose reset values those of the fixed
    /// counters are: from format 5 on 32 (Linux, `intel_pmu_pebs_enable`, `MAX_PEBS_EVENTS`).
    pub(crate) fn general(self) -> u32 {
        if self.is_newer() { 32 } else { 8 }
    }

    /// Counters with precise distribution: fixed counter 0, and from Golden Cove on general counter
    /// 0 (Linux, `icl_get_event_constraints` and `glc_get_event_constraints`, which
    /// `mtl_get_event_constraints` takes for Lion Cove).
    pub(crate) fn distributed(self) -> u64 {
        1 << FIXED | u64::from(self != PebsKind::IceLake)
    }

    /// Returns whether records have the retire latency (PERF_CAPABILITIES.PEBS_TIMING_INFO).
    pub(crate) fn has_timing(self) -> bool {
        self == PebsKind::LunarLake
    }

    /// The valid bits of `MSR_PEBS_DATA_CFG`: the groups, the number of branch records less one,
    /// and from format 6 on masks of counters.
    pub(crate) fn data_cfg_valid(self) -> u64 {
        let counters =
            GROUP_COUNTERS | GROUP_METRICS | 0xffff << GENERAL_SHIFT | 0xff << FIXED_SHIFT;
        0b1111 | 0xff << BRANCHES_SHIFT | if self == PebsKind::LunarLake { counters } else { 0 }
    }

    /// Offset of a counter's reset value in the management area.
    pub(crate) fn reset_offset(self, counter: u32) -> u64 {
        let slot = counter.checked_sub(FIXED).map_or(counter, |fixed| self.general() + fixed);
        RESETS_OFFSET + 8 * u64::from(slot)
    }
}

/// `MSR_PEBS_DATA_CFG`: the group of a memory access.
pub(crate) const GROUP_MEMORY: u64 = 1;
/// Group of branch records in it, and the shift of their number less one.
pub(crate) const GROUP_BRANCHES: u64 = 1 << 3;
pub(crate) const BRANCHES_SHIFT: u32 = 24;
/// Group of counters' values, and the masks of general and of fixed counters (Linux,
/// `PEBS_DATACFG_CNTR_SHIFT`, `PEBS_DATACFG_FIX_SHIFT`).
pub(crate) const GROUP_COUNTERS: u64 = 1 << 4;
pub(crate) const GENERAL_SHIFT: u32 = 32;
pub(crate) const FIXED_SHIFT: u32 = 48;
/// Group of PERF_METRICS.
const GROUP_METRICS: u64 = 1 << 5;
/// The groups that are not modelled: general registers, XMM registers, PERF_METRICS.
pub(crate) const GROUPS_UNMODELLED: u64 = 0b0110 | GROUP_METRICS;

/// Offset of the buffer's base in the management area; the index, the absolute maximum and the
/// interrupt threshold follow.
const BUFFER_OFFSET: u64 = 0x20;
const INDEX_OFFSET: u64 = BUFFER_OFFSET + 8;
/// Offset of the general counters' reset values.
const RESETS_OFFSET: u64 = 0x40;

/// The guest's memory: at linear addresses of the current address space, and at physical ones.
pub trait GuestMemory {
    /// Reads eight bytes; `None` if the address is not mapped.
    fn read(&mut self, address: u64) -> Option<u64>;
    /// Writes bytes; returns whether the addresses are mapped.
    fn write(&mut self, address: u64, bytes: &[u8]) -> bool;
    /// Writes bytes at a physical address; returns whether there is memory.
    fn write_physical(&mut self, address: u64, bytes: &[u8]) -> bool;
}

/// A retired instruction, as a record describes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetiredInsn {
    /// Linear address of the instruction.
    pub ip: u64,
    /// Time-stamp counter at its retirement.
    pub tsc: u64,
    /// Load of the instruction, or its store if it has no load.
    pub data: Option<DataAccess>,
    /// Core cycles since the instruction before retired, at most 65,535.
    pub retire_cycles: u16,
}

/// The registers of PEBS, and the counters that wait for an event.
#[derive(Clone, Debug)]
pub(crate) struct Pebs {
    pub(crate) kind: PebsKind,
    /// `IA32_DS_AREA`.
    pub(crate) area: u64,
    /// `IA32_PEBS_ENABLE`.
    pub(crate) enable: u64,
    /// `MSR_PEBS_DATA_CFG`.
    pub(crate) data_cfg: u64,
    /// The registers of architectural PEBS.
    pub(crate) buffer: BufferRegisters,
    /// Counters that have overflowed since their last record.
    pub(crate) armed: u64,
    /// Their values at the overflow, 0, or when they were last written.
    armed_at: [u64; COUNTERS],
    /// `IA32_MISC_ENABLE` as the guest wrote it last, if it did: QEMU keeps it too.
    pub(crate) misc_enable: Option<u64>,
}

/// The buffer's fields in the management area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) index: u64,
    maximum: u64,
    threshold: u64,
}

impl Buffer {
    /// Reads the fields; `None` if they are not mapped.
    pub(crate) fn read(area: u64, memory: &mut dyn GuestMemory) -> Option<Buffer> {
        let mut field = |offset| memory.read(area.wrapping_add(offset));
        Some(Buffer {
            index: field(INDEX_OFFSET)?,
            maximum: field(INDEX_OFFSET + 8)?,
            threshold: field(INDEX_OFFSET + 16)?,
        })
    }

    /// Writes a record at the index, if there is room, and advances the index; returns whether all
    /// of it is mapped.
    pub(crate) fn append(
        &mut self,
        area: u64,
        record: &[u8],
        memory: &mut dyn GuestMemory,
    ) -> bool {
        let end = self.index.saturating_add(record.len() as u64);
        if end > self.maximum {
            return true;
        }
        let is_written = memory.write(self.index, record)
            && memory.write(area.wrapping_add(INDEX_OFFSET), &end.to_le_bytes());
        if is_written {
            self.index = end;
        }
        is_written
    }

    pub(crate) fn reaches_threshold(&self) -> bool {
        self.index >= self.threshold
    }
}

impl Pebs {
    pub(crate) fn new(kind: PebsKind) -> Pebs {
        let armed_at = [0; COUNTERS];
        let buffer = BufferRegisters::default();
        Pebs {
            kind,
            area: 0,
            enable: 0,
            data_cfg: 0,
            buffer,
            armed: 0,
            armed_at,
            misc_enable: None,
        }
    }

    /// Arms a counter that has overflowed, if it is enabled for records; returns whether it is.
    pub(crate) fn arm(&mut self, counter: u32) -> bool {
        let is_enabled = self.enable >> counter & 1 != 0;
        if is_enabled {
            self.armed |= 1 << counter;
            self.note_value(counter, 0);
        }
        is_enabled
    }

    /// Notes the value of a counter, from which on events count as new.
    pub(crate) fn note_value(&mut self, counter: u32, value: u64) {
        if let Some(at) = self.armed_at.get_mut(counter as usize) {
            *at = value;
        }
    }

    /// Returns whether an armed counter has had an event since it overflowed.
    pub(crate) fn is_due(&self, counter: u32, value: u64) -> bool {
        self.armed >> counter & 1 != 0 && value > self.armed_at[counter as usize]
    }

    /// Writes `IA32_PEBS_ENABLE`. A counter that is disabled is no longer armed.
    pub(crate) fn set_enable(&mut self, value: u64) {
        self.enable = value;
        self.armed &= value;
    }
}

/// Extent of a record's memory group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The address, and what every access has.
    Address,
    /// The latency and the source too: the record is of the load-latency event.
    Latency,
}

/// A record: the basic group, the memory group if `groups` has it, and the words of the groups that
/// follow. The retire latency is in bits 47:32 of the first word (Linux, `struct pebs_basic`).
pub(crate) fn record(
    (kind, known): (PebsKind, Known),
    groups: u64,
    counters: u64,
    insn: &RetiredInsn,
    more: &[u64],
) -> Vec<u8> {
    let memory = (groups & GROUP_MEMORY != 0).then(|| memory_group(kind, known, insn.data));
    let memory = memory.iter().flatten();
    let branches = if groups & GROUP_BRANCHES == 0 { 0 } else { 0xff << BRANCHES_SHIFT };
    let format = groups & (GROUP_MEMORY | GROUP_BRANCHES | GROUP_COUNTERS | branches);
    let retire = if kind.has_timing() { u64::from(insn.retire_cycles) << 32 } else { 0 };
    let bytes = 8 * (4 + memory.clone().count() + more.len()) as u64;
    let basic = [format | retire | bytes << 48, insn.ip, counters, insn.tsc];
    basic.iter().chain(memory).chain(more).flat_map(|word| word.to_le_bytes()).collect()
}

/// The memory group: linear address, auxiliary information, latency, TSX. Zero without an access.
/// From Golden Cove on the latency is that of the instruction in bits 15:0 and that of the caches
/// in bits 47:32; the model has one for both.
pub(crate) fn memory_group(kind: PebsKind, known: Known, data: Option<DataAccess>) -> [u64; 4] {
    let Some(data) = data else { return [0; 4] };
    let has_latency = known == Known::Latency && !data.is_store;
    let latency = if has_latency { u64::from(data.latency_cycles) } else { 0 };
    let of_caches = if kind == PebsKind::IceLake { 0 } else { latency << 32 };
    [data.address, auxiliary(kind, &data, has_latency), latency | of_caches, 0]
}

/// Auxiliary information (SDM vol. 3, "Data Source Encoding for Load Latency Record", and "Layout
/// of Precise Store Information"). A load has a source if its record has its latency.
///
/// Lion Cove has sources of eight bits, and the TLB's miss and the lock in bits 10 and 11 (Linux,
/// `lnc_pebs_data_source`, `lnl_latency_data`, which decodes slow loads so; that these bits are the
/// same in records of other events no text says).
fn auxiliary(kind: PebsKind, data: &DataAccess, has_latency: bool) -> u64 {
    // No other core has the line.
    let (sources, shift) = match kind {
        PebsKind::IceLake | PebsKind::SapphireRapids => ([0x1, 0x3, 0x4, 0xc], 4),
        PebsKind::LunarLake | PebsKind::PantherLake => ([0x1, 0x5, 0x8, 0x11], 10),
    };
    let source = match (data.is_store, data.by) {
        (true, by) => u64::from(by == ServedBy::L1),
        (false, _) if !has_latency => 0,
        (false, ServedBy::L1) => sources[0],
        (false, ServedBy::L2) => sources[1],
        (false, ServedBy::Llc) => sources[2],
        (false, ServedBy::Memory) => sources[3],
    };
    source | u64::from(data.walks) << shift | u64::from(data.is_locked) << (shift + 1)
}
