//! PEBS: its registers, and the records of enabled counters.
//!
//! A counter that is enabled in `IA32_PEBS_ENABLE` sets no status bit at its overflow and raises no
//! interrupt, whatever its own interrupt bit says: it is armed. The next instruction with an event
//! of an armed counter gets the record, the same one if more of its events follow. Fixed counter 0,
//! and general counter 0 but on Ice Lake, have precise distribution: the instruction at whose event
//! they overflow gets it. With the record the counter gets its reset value, and the surplus
//! of an instruction with several events is dropped.
//!
//! At or above the buffer's interrupt threshold a record sets `IA32_PERF_GLOBAL_STATUS[62]` and, if
//! the bit was 0, makes an interrupt pending. A record for which there is no room is dropped, and
//! its counter is reset all the same.

use tally_model::Counts;

use crate::{
    arch_pebs::FIXED,
    counter::Counter,
    pebs::{
        BRANCHES_SHIFT, Buffer, FIXED_SHIFT, GENERAL_SHIFT, GROUP_BRANCHES, GROUP_COUNTERS,
        GROUPS_UNMODELLED, GuestMemory, Known, Pebs, RetiredInsn, record,
    },
    pmu::{
        access::{AccessResult, STATUS_BUFFER, Unmodelled, select},
        load_latency,
        state::VirtualPmu,
        version_6::Place,
    },
};

const DS_AREA: u32 = 0x600;
const PEBS_ENABLE: u32 = 0x3f1;
const PEBS_DATA_CFG: u32 = 0x3f2;
const MISC_ENABLE: u32 = 0x1a0;
/// `IA32_MISC_ENABLE` after QEMU's reset: fast strings.
const MISC_INITIAL: u64 = 1;
/// Read-only bits of it: branch trace storage is unavailable; PEBS would be.
const BTS_UNAVAILABLE: u64 = 1 << 11;
const PEBS_UNAVAILABLE: u64 = 1 << 12;
/// Bits of a linear address with five-level paging; the bits above them repeat the last.
const LINEAR_BITS: u32 = 57;

/// CPUID leaf 1: 64-bit debug store in ECX, debug store in EDX.
const CPUID_ECX: u32 = 1 << 2;
const CPUID_EDX: u32 = 1 << 21;
/// PERF_CAPABILITIES: records are written after the instruction, have the architectural registers,
/// and come from every counter and event.
const CAPABILITIES: u64 = 1 << 6 | 1 << 7 | 1 << 14;
const CAPABILITIES_FORMAT_SHIFT: u32 = 8;
/// PERF_CAPABILITIES.PEBS_TIMING_INFO: records have the retire latency.
const CAPABILITIES_TIMING_SHIFT: u32 = 17;

/// Returns whether an address is canonical.
fn is_canonical(address: u64) -> bool {
    let unused = u64::BITS - LINEAR_BITS;
    (((address << unused) as i64) >> unused) as u64 == address
}

impl VirtualPmu {
    /// The bits of PERF_CAPABILITIES.
    pub(super) fn pebs_capabilities(&self) -> u64 {
        self.pebs.as_ref().map_or(0, |Pebs { kind, .. }| {
            // What architectural PEBS has, CPUID says.
            let more = if kind.is_architectural() { 0 } else { CAPABILITIES };
            let timing = u64::from(kind.has_timing()) << CAPABILITIES_TIMING_SHIFT;
            more | kind.format() << CAPABILITIES_FORMAT_SHIFT | timing
        })
    }

    /// The bits of CPUID leaf 1, in ECX and EDX.
    pub(super) fn pebs_cpuid(&self) -> [u32; 2] {
        if self.has_debug_store() { [CPUID_ECX, CPUID_EDX] } else { [0; 2] }
    }

    /// Returns whether PEBS uses a debug store, and counters' controls have adaptive bits.
    pub(super) fn has_debug_store(&self) -> bool {
        self.pebs.is_some() && !self.has_record_buffer()
    }

    /// The bits of the counters that can have records.
    pub(super) fn pebs_counters(&self) -> u64 {
        let most = self.pebs.as_ref().map_or(0, |pebs| pebs.kind.general() as usize);
        let general = self.counters.len().min(most);
        ((1 << general) - 1) | ((1 << self.fixed.len()) - 1) << FIXED
    }

    /// Reads a register; `None` if it is not one of PEBS, or there is none.
    pub(super) fn pebs_rdmsr(&self, msr: u32) -> Option<AccessResult> {
        let pebs = self.pebs.as_ref()?;
        if pebs.kind.is_architectural() {
            return self.buffer_rdmsr(msr);
        }
        let value = match msr {
            DS_AREA => pebs.area,
            PEBS_ENABLE => pebs.enable,
            PEBS_DATA_CFG => pebs.data_cfg,
            MISC_ENABLE => {
                let written = pebs.misc_enable.unwrap_or(MISC_INITIAL);
                written & !PEBS_UNAVAILABLE | BTS_UNAVAILABLE
            }
            _ => return None,
        };
        Some(AccessResult::Done(value))
    }

    /// Writes a register; `None` if it is not one of PEBS, or there is none.
    pub(super) fn pebs_wrmsr(&mut self, msr: u32, value: u64) -> Option<AccessResult> {
        if self.has_record_buffer() {
            return self.buffer_wrmsr(msr, value);
        }
        let counters = self.pebs_counters();
        let pebs = self.pebs.as_mut()?;
        if msr == MISC_ENABLE {
            pebs.misc_enable = Some(value);
            return Some(AccessResult::Foreign);
        }
        let is_valid = match msr {
            DS_AREA => is_canonical(value),
            PEBS_ENABLE => value & !counters == 0,
            PEBS_DATA_CFG => value & !pebs.kind.data_cfg_valid() == 0,
            _ => return None,
        };
        if !is_valid {
            return Some(AccessResult::Fault);
        }
        match msr {
            DS_AREA => pebs.area = value,
            PEBS_ENABLE => pebs.set_enable(value),
            _ => pebs.data_cfg = value,
        }
        Some(AccessResult::Done(0))
    }

    /// Notes that a counter was written: an armed counter waits for an event from its new value on.
    pub(super) fn note_written(&mut self, place: Place, counts: &[Counts; 2]) {
        let (bit, counter) = match place {
            Place::Counter(index) | Place::FullCounter(index) => {
                (index as u32, &self.counters[index])
            }
            Place::Fixed(index) => (FIXED + index as u32, &self.fixed[index]),
            Place::Select(_) => return,
        };
        if let Some(pebs) = &mut self.pebs {
            pebs.note_value(bit, counter.unwrapped(counts, &self.profile.geometry));
        }
    }

    fn pebs_counter(&self, bit: u32) -> &Counter {
        match bit.checked_sub(FIXED) {
            Some(fixed) => &self.fixed[fixed as usize],
            None => &self.counters[bit as usize],
        }
    }

    /// The bits of a mask of counters, one by one.
    pub(super) fn bits(mask: u64) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |bit| mask >> bit & 1 != 0)
    }

    /// Minimum number of slots before an instruction can get a record or arm a counter; `None`
    /// without an enabled counter that counts.
    pub(super) fn slots_to_pebs(&self, counts: &[Counts; 2]) -> Option<u64> {
        let pebs = self.pebs.as_ref().filter(|pebs| pebs.enable != 0)?;
        let (geometry, width) = (self.geometry(), self.profile.width);
        let running = VirtualPmu::bits(pebs.enable)
            .map(|bit| (bit, self.pebs_counter(bit)))
            .filter(|(_, counter)| counter.is_running());
        let slots = running.map(|(bit, counter)| match pebs.armed >> bit & 1 {
            0 => counter.slots_to_overflow(counts, geometry, width),
            _ => 0,
        });
        slots.min()
    }

    /// Handles the retirement of one instruction: overflows, and the record of the counters for
    /// which this instruction is the one.
    pub(super) fn retire_for_pebs(
        &mut self,
        counts: &[Counts; 2],
        insn: &RetiredInsn,
        memory: &mut dyn GuestMemory,
    ) {
        let before = self.pebs.as_ref().map_or(0, |pebs| pebs.armed);
        let due = self.due(before, counts);
        self.sync(counts);
        let Some(pebs) = &self.pebs else { return };
        let new = pebs.armed & !before;
        // Of several events of an instruction, one that follows the overflow is the next.
        let due = due | new & pebs.kind.distributed() | self.due(new, counts);
        if due != 0 {
            self.assist(due, counts, insn, memory);
        }
    }

    /// Takes the events so far as those of an instruction that does not retire: an interrupt ended
    /// a repeated string instruction, or it faulted. The next instruction with an event gets the
    /// record.
    pub fn pass_events(&mut self, counts: &[Counts; 2]) {
        self.sync(counts);
        let armed = self.pebs.as_ref().map_or(0, |pebs| pebs.armed);
        for bit in VirtualPmu::bits(armed) {
            let value = self.pebs_counter(bit).unwrapped(counts, self.geometry());
            if let Some(pebs) = &mut self.pebs {
                pebs.note_value(bit, value);
            }
        }
    }

    /// Mask of the armed counters that have had an event since.
    fn due(&self, armed: u64, counts: &[Counts; 2]) -> u64 {
        let Some(pebs) = &self.pebs else { return 0 };
        let is_due = |bit: &u32| {
            let counter = self.pebs_counter(*bit);
            counter.is_running() && pebs.is_due(*bit, counter.unwrapped(counts, self.geometry()))
        };
        VirtualPmu::bits(armed).filter(is_due).map(|bit| 1 << bit).sum()
    }

    /// Writes the record of these counters and resets them.
    fn assist(
        &mut self,
        due: u64,
        counts: &[Counts; 2],
        insn: &RetiredInsn,
        memory: &mut dyn GuestMemory,
    ) {
        let (groups, known) = (self.groups(due), self.known(due));
        let Some(pebs) = &mut self.pebs else { return };
        pebs.armed &= !due;
        let (area, kind) = (pebs.area, pebs.kind);
        if kind.is_architectural() {
            return self.store_in_buffer(due, counts, insn, memory);
        }
        let Some(mut buffer) = Buffer::read(area, memory) else {
            return self.unmodelled.push(Unmodelled::DebugStore(area));
        };
        VirtualPmu::bits(due).for_each(|bit| self.reset_counter(bit, counts, memory));
        let more = self.more_groups(groups, counts);
        if groups & GROUPS_UNMODELLED != 0 {
            self.unmodelled.push(Unmodelled::Groups(groups));
        } else if !buffer.append(area, &record((kind, known), groups, due, insn, &more), memory) {
            self.unmodelled.push(Unmodelled::DebugStore(buffer.index));
        }
        if buffer.reaches_threshold() && self.status & STATUS_BUFFER == 0 {
            self.status |= STATUS_BUFFER;
            self.interrupt_pending = true;
            self.freeze(counts);
        }
    }

    /// The words of the groups behind that of the memory access: branches, and counters' values.
    fn more_groups(&self, groups: u64, counts: &[Counts; 2]) -> Vec<u64> {
        let has = |group| groups & group != 0;
        let branches = if has(GROUP_BRANCHES) { 1 + (groups >> BRANCHES_SHIFT & 0xff) } else { 0 };
        let mut words = self.branch_group(branches as usize);
        if has(GROUP_COUNTERS) {
            let (general, fixed) = (groups >> GENERAL_SHIFT & 0xffff, groups >> FIXED_SHIFT & 0xff);
            let chosen = (general | fixed << FIXED) & self.pebs_counters();
            words.extend(self.value_group(chosen, counts));
        }
        words
    }

    /// The group of counters' values, which begins with the masks of general and of fixed counters
    /// (Linux, `struct pebs_cntr_header`). A counter that gets the record has been reloaded by then
    /// (Linux, `__setup_pebs_counter_group`).
    pub(super) fn value_group(&self, chosen: u64, counts: &[Counts; 2]) -> Vec<u64> {
        let values = VirtualPmu::bits(chosen)
            .map(|bit| self.pebs_counter(bit).value(counts, self.geometry(), self.profile.width));
        [chosen, 0].into_iter().chain(values).collect()
    }

    /// The groups of a record of these counters beside the basic one: those of `MSR_PEBS_DATA_CFG`
    /// if a counter's adaptive bit is set.
    fn groups(&self, due: u64) -> u64 {
        let is_adaptive = |bit: u32| match bit.checked_sub(FIXED) {
            Some(fixed) => self.fixed_ctrl >> (4 * fixed) & select::FIXED_ADAPTIVE != 0,
            None => self.selects[bit as usize] & select::ADAPTIVE != 0,
        };
        let cfg = self.pebs.as_ref().map_or(0, |pebs| pebs.data_cfg);
        if VirtualPmu::bits(due).any(is_adaptive) { cfg } else { 0 }
    }

    /// The extent of the memory group in a record of these counters.
    pub(super) fn known(&self, due: u64) -> Known {
        let Some(Pebs { kind, .. }) = self.pebs else { return Known::Address };
        let mut general = VirtualPmu::bits(due).filter(|bit| *bit < FIXED);
        let is_latency = |bit: u32| load_latency::is_selected(self.selects[bit as usize]);
        let is_complete = || load_latency::is_complete(kind, self.selects.iter().copied());
        if general.any(is_latency) && is_complete() { Known::Latency } else { Known::Address }
    }

    /// Gives a counter its reset value from the management area, if that is mapped.
    fn reset_counter(&mut self, bit: u32, counts: &[Counts; 2], memory: &mut dyn GuestMemory) {
        let Some(Pebs { area, kind, .. }) = self.pebs else { return };
        let at = area.wrapping_add(kind.reset_offset(bit));
        let Some(value) = memory.read(at) else {
            return self.unmodelled.push(Unmodelled::DebugStore(at));
        };
        self.set_counter(bit, value, counts);
    }

    /// Sets a counter, by its bit, to the low bits of a value.
    pub(super) fn set_counter(&mut self, bit: u32, value: u64, counts: &[Counts; 2]) {
        let value = value & ((1 << self.profile.width) - 1);
        match bit.checked_sub(FIXED) {
            Some(fixed) => {
                self.fixed[fixed as usize].set(value, counts, &self.profile.geometry);
            }
            None => self.set_value(bit as usize, value, counts),
        }
    }
}
