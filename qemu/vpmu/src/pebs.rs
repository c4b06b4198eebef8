//! Precise event-based sampling (PEBS): the state of its registers, and the layout of the debug
//! store's management area and of adaptive records (SDM vol. 3, "Debug Store (DS) Mechanism",
//! "Adaptive PEBS" and, for the counters' reset values, "PEBS Record Format").
//!
//! Counters are named by their bits in the registers: general ones from 0, fixed ones from 32.

use tally_model::{DataAccess, ServedBy};

use crate::profile::PebsKind;

/// Bit of the first fixed counter.
pub(crate) const FIXED: u32 = 32;
/// General counters that can have records.
pub(crate) const GENERAL: u32 = 8;
/// Counters that can have records: the general ones, then the fixed ones.
const COUNTERS: usize = GENERAL as usize + 4;
/// Counters with precise distribution: fixed counter 0, and on Golden Cove general counter 0
/// (Linux, `icl_get_event_constraints` and `glc_get_event_constraints`).
pub(crate) fn distributed(kind: PebsKind) -> u64 {
    1 << FIXED | u64::from(kind == PebsKind::GoldenCove)
}

/// `MSR_PEBS_DATA_CFG`: the group of a memory access.
pub(crate) const GROUP_MEMORY: u64 = 1;
/// Group of branch records in it, and the shift of their number less one.
pub(crate) const GROUP_BRANCHES: u64 = 1 << 3;
pub(crate) const BRANCHES_SHIFT: u32 = 24;
/// The groups that are not modelled: general registers, XMM registers.
pub(crate) const GROUPS_UNMODELLED: u64 = 0b0110;
/// Every bit of `MSR_PEBS_DATA_CFG`: the groups, and the number of branch records less one.
pub(crate) const DATA_CFG_VALID: u64 = 0b1111 | 0xff << 24;

/// Offset of the buffer's base in the management area; the index, the absolute maximum and the
/// interrupt threshold follow.
const BUFFER_OFFSET: u64 = 0x20;
const INDEX_OFFSET: u64 = BUFFER_OFFSET + 8;
/// Offset of the general counters' reset values.
const RESETS_OFFSET: u64 = 0x40;

/// The guest's memory at linear addresses of the current address space.
pub trait GuestMemory {
    /// Reads eight bytes; `None` if the address is not mapped.
    fn read(&mut self, address: u64) -> Option<u64>;
    /// Writes bytes; returns whether the addresses are mapped.
    fn write(&mut self, address: u64, bytes: &[u8]) -> bool;
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
}

/// The registers of PEBS, and the counters that wait for an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pebs {
    /// `IA32_DS_AREA`.
    pub(crate) area: u64,
    /// `IA32_PEBS_ENABLE`.
    pub(crate) enable: u64,
    /// `MSR_PEBS_DATA_CFG`.
    pub(crate) data_cfg: u64,
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
        if let Some(at) = self.armed_at.get_mut(slot(counter)) {
            *at = value;
        }
    }

    /// Returns whether an armed counter has had an event since it overflowed.
    pub(crate) fn is_due(&self, counter: u32, value: u64) -> bool {
        self.armed >> counter & 1 != 0 && value > self.armed_at[slot(counter)]
    }

    /// Writes `IA32_PEBS_ENABLE`. A counter that is disabled is no longer armed.
    pub(crate) fn set_enable(&mut self, value: u64) {
        self.enable = value;
        self.armed &= value;
    }
}

/// The index of a counter among those that can have records.
fn slot(counter: u32) -> usize {
    let slot = if counter < FIXED { counter } else { counter - FIXED + GENERAL };
    slot as usize
}

/// Offset of a counter's reset value in the management area.
pub(crate) fn reset_offset(counter: u32) -> u64 {
    RESETS_OFFSET + 8 * slot(counter) as u64
}

/// Extent of a record's memory group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The address, and what every access has.
    Address,
    /// The latency and the source too: the record is of the load-latency event.
    Latency,
}

/// A record: the basic group, the memory group if `groups` has it, and the words of the group of
/// branch records, of which `branches` is empty if `groups` does not have it. The retire
/// latency, bits 47:32 of the first word, is 0: no profile reports it.
pub(crate) fn record(
    (kind, known): (PebsKind, Known),
    groups: u64,
    counters: u64,
    insn: &RetiredInsn,
    branches: &[u64],
) -> Vec<u8> {
    let memory = (groups & GROUP_MEMORY != 0).then(|| memory_group(kind, known, insn.data));
    let memory = memory.iter().flatten();
    let of_branches = if branches.is_empty() {
        0
    } else {
        GROUP_BRANCHES | groups >> BRANCHES_SHIFT << BRANCHES_SHIFT
    };
    let format = groups & GROUP_MEMORY | of_branches;
    let bytes = 8 * (4 + memory.clone().count() + branches.len()) as u64;
    let basic = [format | bytes << 48, insn.ip, counters, insn.tsc];
    basic.iter().chain(memory).chain(branches).flat_map(|word| word.to_le_bytes()).collect()
}

/// The memory group: linear address, auxiliary information, latency, TSX. Zero without an access.
/// On Golden Cove the latency is that of the instruction in bits 15:0 and that of the caches in
/// bits 47:32; the model has one for both.
fn memory_group(kind: PebsKind, known: Known, data: Option<DataAccess>) -> [u64; 4] {
    let Some(data) = data else { return [0; 4] };
    let has_latency = known == Known::Latency && !data.is_store;
    let latency = if has_latency { u64::from(data.latency_cycles) } else { 0 };
    let of_caches = if kind == PebsKind::GoldenCove { latency << 32 } else { 0 };
    [data.address, auxiliary(&data, has_latency), latency | of_caches, 0]
}

/// Auxiliary information (SDM vol. 3, "Data Source Encoding for Load Latency Record", and "Layout
/// of Precise Store Information"). A load has a source if its record has its latency.
fn auxiliary(data: &DataAccess, has_latency: bool) -> u64 {
    let source = match (data.is_store, data.by) {
        (true, by) => u64::from(by == ServedBy::L1),
        (false, _) if !has_latency => 0,
        (false, ServedBy::L1) => 0x1,
        (false, ServedBy::L2) => 0x3,
        // No other core has the line.
        (false, ServedBy::Llc) => 0x4,
        (false, ServedBy::Memory) => 0xc,
    };
    source | u64::from(data.walks) << 4 | u64::from(data.is_locked) << 5
}
