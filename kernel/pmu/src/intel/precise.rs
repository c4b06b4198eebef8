//! Precise samples (PEBS): a counter that overflows makes the processor store a record with the
//! address of the instruction, and reload the counter. The interrupt comes after the record.
//!
//! Intel SDM volume 3, chapter "Performance Monitoring", sections "Processor Event Based Sampling",
//! "Adaptive PEBS" and "Extended PEBS". Linux, arch/x86/events/intel/ds.c.
//!
//! The driver takes records of the basic group, and of the group of memory accesses if the session
//! needs it, where every counter can store them: from Ice Lake on through the debug store, from
//! Panther Lake on in a buffer (architectural PEBS). An armed counter stores one record: then it
//! counts on from about 0, and overflows again only after all its bits have passed. The interrupt
//! is that of the debug store or of the buffer, whose threshold is one record.

mod buffer;
mod debug_store;
mod record;

pub(super) use self::debug_store::has_records;
pub use self::{buffer::RecordBuffer, debug_store::DebugStore};

use tally_engine::{PreciseRecords, Records};

use self::record::FIRST_FIXED;
use crate::{
    bus::{Bus, CountingBus},
    registers::{
        Register,
        intel::{DsArea, PebsDataCfg, PebsEnable, PebsLdLat, PerfGlobalStatus},
        records::{PmcCfgC, PmcFxCfgC},
    },
};

/// Format in IA32_PERF_CAPABILITIES that stands for architectural PEBS (Linux,
/// `intel_arch_pebs_init`).
pub(super) const ARCHITECTURAL: u8 = 0xf;

/// Memory in which the processor stores records.
#[derive(Clone, Copy, Debug)]
enum Memory {
    Store(&'static DebugStore),
    Buffer(&'static RecordBuffer),
}

/// State of a CPU's precise samples.
#[derive(Debug)]
pub(super) struct Precise {
    memory: Memory,
    /// Counters with precise distribution: the overflowing instruction has the record.
    exact: PebsEnable,
    /// Counters that store records.
    enabled: PebsEnable,
    /// Properties of records that the processor was told last.
    records: Records,
}

impl Precise {
    fn of(memory: Memory, exact: PebsEnable) -> Precise {
        Precise { memory, exact, enabled: PebsEnable::empty(), records: Records::default() }
    }

    /// Makes the processor use `store` for records of a format; `None` if a hypervisor lacks the
    /// registers.
    pub(super) fn in_store<B: Bus>(
        bus: &mut CountingBus<B>,
        (exact, format): (PebsEnable, u8),
        store: &'static DebugStore,
    ) -> Option<Precise> {
        store.set_up(exact, format);
        let has_all = bus.try_put(0, PebsEnable::empty())
            && bus.try_put(0, PebsDataCfg::empty())
            && bus.try_put(0, DsArea(store.address(0)));
        has_all.then(|| Precise::of(Memory::Store(store), exact))
    }

    /// Makes the processor use the buffer at a physical address; `None` if a hypervisor lacks the
    /// registers.
    pub(super) fn in_buffer<B: Bus>(
        bus: &mut CountingBus<B>,
        exact: PebsEnable,
        (buffer, physical): (&'static RecordBuffer, u64),
    ) -> Option<Precise> {
        let has_all = bus.try_put(0, PmcCfgC::empty())
            && bus.try_put(0, PmcFxCfgC(0))
            && buffer.set_up(bus, physical);
        has_all.then(|| Precise::of(Memory::Buffer(buffer), exact))
    }

    /// Lets records have what a session needs, before it counts.
    #[cold]
    pub(super) fn configure<B: Bus>(&mut self, bus: &mut CountingBus<B>, records: Records) {
        if let Memory::Store(_) = self.memory
            && records.accesses != self.records.accesses
        {
            let groups = if records.accesses { PebsDataCfg::MEMORY } else { PebsDataCfg::empty() };
            bus.put(0, groups);
        }
        if records.slow_load_cycles != self.records.slow_load_cycles {
            bus.put(0, PebsLdLat::from_bits_retain(records.slow_load_cycles.into()));
        }
        self.records = records;
    }

    /// Lets a counter that is about to be preloaded store a record. `counter` is its bit.
    pub(super) fn arm<B: Bus>(&mut self, bus: &mut CountingBus<B>, counter: u32) {
        let bit = PebsEnable::from_bits_retain(1 << counter);
        if self.enabled.contains(bit) {
            return;
        }
        self.enabled |= bit;
        match self.memory {
            Memory::Store(_) => bus.put(0, self.enabled),
            Memory::Buffer(_) => {
                let mut config = PmcCfgC::ENABLE;
                config.set(PmcCfgC::ACCESS, self.records.accesses);
                // As the debug store's reset values.
                let reload = u64::from(!self.exact.contains(bit));
                bus.put_at(config_of(counter), config.bits() | reload);
            }
        }
    }

    /// Disarms all counters.
    pub(super) fn disarm<B: Bus>(&mut self, bus: &mut CountingBus<B>) {
        let enabled = core::mem::replace(&mut self.enabled, PebsEnable::empty());
        match self.memory {
            _ if enabled.is_empty() => {}
            Memory::Store(_) => bus.put(0, PebsEnable::empty()),
            Memory::Buffer(_) => {
                let counters = (0..u64::BITS).filter(|bit| enabled.bits() >> bit & 1 == 1);
                counters.for_each(|counter| bus.put_at(config_of(counter), 0));
            }
        }
    }

    /// The status bit of records.
    pub(super) fn status(&self) -> PerfGlobalStatus {
        match self.memory {
            Memory::Store(_) => PerfGlobalStatus::DS_BUFFER,
            Memory::Buffer(_) => PerfGlobalStatus::RECORDS,
        }
    }

    /// Takes all records.
    pub(super) fn take<B: Bus>(&self, bus: &mut CountingBus<B>) -> PreciseRecords {
        match self.memory {
            Memory::Store(store) => store.take(),
            Memory::Buffer(buffer) => buffer.take(bus),
        }
    }
}

/// Address of the register that configures a counter's records, by the counter's bit.
fn config_of(counter: u32) -> u32 {
    match counter.checked_sub(FIRST_FIXED) {
        Some(fixed) => PmcFxCfgC::address(fixed as u8),
        None => PmcCfgC::address(counter as u8),
    }
}
