//! Architectural PEBS: registers, CPUID, and records in a buffer at a physical address.
//!
//! Which instruction gets a record is as with the debug store. There are no adaptive bits in the
//! counters' controls: each counter has a register for its records.

use tally_model::Counts;

use crate::{
    arch_pebs::{
        ACCESS, BASE_VALID, CONFIG_VALID, FIXED, GROUPS, INDEX_VALID, RELOAD, access, basic,
        branches, record,
    },
    pebs::{GuestMemory, RetiredInsn, memory_group},
    pmu::{
        access::{AccessResult, STATUS_RECORDS, Unmodelled},
        state::VirtualPmu,
        version_6::bank,
    },
};

const BASE: u32 = 0x3f4;
const INDEX: u32 = 0x3f5;
/// The last registers of the rows of general and of fixed counters.
const GENERAL_CONFIG: u32 = 0x1903;
const FIXED_CONFIG: u32 = 0x1983;
const STRIDE: u32 = 4;

/// A register.
enum Register {
    Base,
    Index,
    /// The configuration of a counter, by its bit.
    Config(usize),
}

impl VirtualPmu {
    /// Returns whether PEBS is architectural.
    pub(super) fn has_record_buffer(&self) -> bool {
        self.pebs.as_ref().is_some_and(|pebs| pebs.kind.is_architectural())
    }

    fn buffer_register(&self, msr: u32) -> Option<Register> {
        let of_row = |first, count: usize| {
            let index = bank(msr, first, STRIDE as usize * count)?;
            index.is_multiple_of(STRIDE as usize).then_some(index / STRIDE as usize)
        };
        match msr {
            BASE => Some(Register::Base),
            INDEX => Some(Register::Index),
            _ => of_row(GENERAL_CONFIG, self.counters.len())
                .or_else(|| of_row(FIXED_CONFIG, self.fixed.len()).map(|at| at + FIXED as usize))
                .map(Register::Config),
        }
    }

    /// Reads a register; `None` if it is another one.
    pub(super) fn buffer_rdmsr(&self, msr: u32) -> Option<AccessResult> {
        let buffer = &self.pebs.as_ref()?.buffer;
        Some(AccessResult::Done(match self.buffer_register(msr)? {
            Register::Base => buffer.base,
            Register::Index => buffer.index,
            Register::Config(bit) => buffer.configs[bit],
        }))
    }

    /// Writes a register; `None` if it is another one.
    pub(super) fn buffer_wrmsr(&mut self, msr: u32, value: u64) -> Option<AccessResult> {
        let register = self.buffer_register(msr)?;
        let pebs = self.pebs.as_mut()?;
        let (held, valid) = match register {
            Register::Base => (&mut pebs.buffer.base, BASE_VALID),
            Register::Index => (&mut pebs.buffer.index, INDEX_VALID),
            Register::Config(bit) => (&mut pebs.buffer.configs[bit], CONFIG_VALID),
        };
        if value & !valid != 0 {
            return Some(AccessResult::Fault);
        }
        *held = value;
        pebs.set_enable(pebs.buffer.enabled());
        Some(AccessResult::Done(0))
    }

    /// CPUID leaf 23H: sub-leaf 4 has the groups, 5 the counters that store records and those with
    /// precise distribution.
    pub(super) fn record_leaf(&self, subleaf: u32) -> [u32; 4] {
        let counters = self.pebs_counters();
        let exact = self.pebs.as_ref().map_or(0, |pebs| pebs.kind.distributed());
        match subleaf {
            4 => [0, (GROUPS >> 32) as u32, 0, 0],
            _ => [counters, exact, counters >> FIXED, exact >> FIXED].map(|mask| mask as u32),
        }
    }

    /// Stores the record of these counters and reloads them.
    pub(super) fn store_in_buffer(
        &mut self,
        due: u64,
        counts: &[Counts; 2],
        insn: &RetiredInsn,
        memory: &mut dyn GuestMemory,
    ) {
        VirtualPmu::bits(due).for_each(|bit| self.reload(bit, counts));
        let record = self.record_of(due, counts, insn);
        let Some(pebs) = &mut self.pebs else { return };
        let place = pebs.buffer.append(record.len() as u64);
        if let Some(address) = place
            && !memory.write_physical(address, &record)
        {
            self.unmodelled.push(Unmodelled::DebugStore(address));
        }
        if pebs.buffer.reaches_threshold() && self.status & STATUS_RECORDS == 0 {
            self.status |= STATUS_RECORDS;
            self.interrupt_pending = true;
            self.freeze(counts);
        }
    }

    fn reload(&mut self, bit: u32, counts: &[Counts; 2]) {
        let config = self.pebs.as_ref().map_or(0, |pebs| pebs.buffer.configs[bit as usize]);
        self.set_counter(bit, (config & RELOAD) as u32 as i32 as u64, counts);
    }

    fn record_of(&self, due: u64, counts: &[Counts; 2], insn: &RetiredInsn) -> Vec<u8> {
        let Some(pebs) = &self.pebs else { return Vec::new() };
        let groups = pebs.buffer.groups(due);
        let mut first = basic(insn.ip, due, insn.tsc, insn.retire_cycles).to_vec();
        if groups & ACCESS != 0 {
            first.extend(access(memory_group(pebs.kind, self.known(due), insn.data)));
        }
        let (control, depth) = self.lbr.as_ref().map_or((0, 0), |lbr| (lbr.control, lbr.depth));
        let mut more = match branches(groups, depth) {
            0 => Vec::new(),
            count => [vec![0, control, depth as u64, 0, 0, 0], self.branch_group(count)].concat(),
        };
        let valued = pebs.buffer.valued(groups);
        if valued != 0 {
            more.extend(self.value_group(valued, counts));
        }
        record(groups, &first, &more)
    }
}
