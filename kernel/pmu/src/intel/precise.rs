//! Precise samples (PEBS): a counter that overflows makes the processor store a record with the
//! address of the instruction, and reload the counter. The interrupt comes after the record.
//!
//! Intel SDM volume 3, chapter "Performance Monitoring", sections "Processor Event Based Sampling",
//! "Adaptive PEBS" and "Extended PEBS". Linux, arch/x86/events/intel/ds.c.
//!
//! The driver takes records of the basic group alone, from Ice Lake on, where every counter can
//! store them. An armed counter stores one record: then it counts on from about 0, and overflows
//! again only after all its bits have passed. The interrupt is that of the debug store, whose
//! threshold is one record.

use core::{
    ptr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use tally_abi::bank::PINNED_SLOT;
use tally_engine::{MAX_GENERAL, Pinned, PreciseAddresses, Selector};

use crate::{
    bus::{Bus, CountingBus},
    registers::intel::{DsArea, PebsDataCfg, PebsEnable, PerfCapabilities, PerfEvtSel},
};

/// Words of the debug store: its management area, and records.
const WORDS: usize = 128;
/// The first record.
const RECORDS: usize = 64;
const WORD_BYTES: u64 = 8;
/// Words of a record of the basic group: format and size, address, counters, TSC.
const RECORD_WORDS: usize = 4;
const ADDRESS: usize = 1;
const COUNTERS: usize = 2;
/// Position of the first fixed counter in a record's mask of counters.
const FIRST_FIXED: u32 = 32;

/// Words of the management area (section "DS Save Area", 64-bit format).
const BASE: usize = 4;
const INDEX: usize = 5;
const MAXIMUM: usize = 6;
const THRESHOLD: usize = 7;
const RESETS: usize = 8;

/// The format of the records, from Ice Lake to Meteor Lake.
const FORMAT: u8 = 4;
/// Fixed counters' reset values are behind those of so many general counters.
const FIXED_RESETS: usize = RESETS + 8;

/// Debug store of one CPU: memory in which the processor finds where to store records. Mapped for
/// ring 0 in every address space in which the CPU counts.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct DebugStore([AtomicU64; WORDS]);

impl DebugStore {
    /// Makes a store without records.
    pub const fn new() -> DebugStore {
        DebugStore([const { AtomicU64::new(0) }; WORDS])
    }

    /// The linear address of a word.
    fn address(&self, word: usize) -> u64 {
        ptr::from_ref(self).addr() as u64 + word as u64 * WORD_BYTES
    }

    /// Sets the management area up. `exact` are the counters with precise distribution, as in
    /// IA32_PEBS_ENABLE.
    ///
    /// A counter is reloaded with the events that it has counted since its overflow, so that none
    /// is lost: the next event writes the record, or the overflowing one where the distribution is
    /// precise.
    fn set_up(&self, exact: PebsEnable) {
        let reset = |bit: u32| u64::from(exact.bits() >> bit & 1 == 0);
        (0..8).for_each(|index| self.put(RESETS + index, reset(index as u32)));
        (0..3).for_each(|index| self.put(FIXED_RESETS + index, reset(FIRST_FIXED + index as u32)));
        self.put(BASE, self.address(RECORDS));
        self.put(INDEX, self.address(RECORDS));
        self.put(MAXIMUM, self.address(WORDS));
        self.put(THRESHOLD, self.address(RECORDS + RECORD_WORDS));
    }

    fn put(&self, word: usize, value: u64) {
        self.0[word].store(value, Relaxed);
    }

    /// Takes all records.
    fn take(&self) -> PreciseAddresses {
        let mut taken = PreciseAddresses::default();
        let end = self.0[INDEX].load(Relaxed).wrapping_sub(self.address(0)) / WORD_BYTES;
        let end = usize::try_from(end).unwrap_or(WORDS).min(WORDS);
        let records = self.0.get(RECORDS..end).unwrap_or_default();
        for record in records.chunks_exact(RECORD_WORDS) {
            let [address, counters] = [ADDRESS, COUNTERS].map(|word| record[word].load(Relaxed));
            let general = (0..MAX_GENERAL).filter(|index| counters >> index & 1 == 1);
            general.for_each(|slot| taken.add(slot, address));
            if counters >> FIRST_FIXED & 1 == 1 {
                taken.add(PINNED_SLOT + Pinned::Instructions as usize, address);
            }
        }
        if !records.is_empty() {
            self.put(INDEX, self.address(RECORDS));
        }
        taken
    }
}

impl Default for DebugStore {
    fn default() -> DebugStore {
        DebugStore::new()
    }
}

/// Returns whether the processor stores records that the driver can take.
pub(super) fn has_records(capabilities: PerfCapabilities) -> bool {
    capabilities.pebs_format() == FORMAT && capabilities.contains(PerfCapabilities::PEBS_BASELINE)
}

/// Returns whether a select's samples are precise.
pub(super) fn is_precise(select: Selector) -> bool {
    select.0 & PerfEvtSel::ADAPTIVE.bits() != 0
}

/// State of a CPU's precise samples.
#[derive(Debug)]
pub(super) struct Precise {
    store: &'static DebugStore,
    /// Value last written to IA32_PEBS_ENABLE.
    enabled: PebsEnable,
}

impl Precise {
    /// Makes the processor use `store`; `None` if a hypervisor lacks the registers.
    pub(super) fn new<B: Bus>(
        bus: &mut CountingBus<B>,
        exact: PebsEnable,
        store: &'static DebugStore,
    ) -> Option<Precise> {
        store.set_up(exact);
        let has_all = bus.try_put(0, PebsEnable::empty())
            && bus.try_put(0, PebsDataCfg::empty())
            && bus.try_put(0, DsArea(store.address(0)));
        has_all.then_some(Precise { store, enabled: PebsEnable::empty() })
    }

    /// Lets a counter that is about to be preloaded store a record.
    pub(super) fn arm<B: Bus>(&mut self, bus: &mut CountingBus<B>, counter: PebsEnable) {
        if !self.enabled.contains(counter) {
            self.enabled |= counter;
            bus.put(0, self.enabled);
        }
    }

    /// Disarms all counters.
    pub(super) fn disarm<B: Bus>(&mut self, bus: &mut CountingBus<B>) {
        if !self.enabled.is_empty() {
            self.enabled = PebsEnable::empty();
            bus.put(0, self.enabled);
        }
    }

    /// Takes all records.
    pub(super) fn take(&self) -> PreciseAddresses {
        self.store.take()
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use super::*;

    /// The word at an offset of the manual.
    fn at(store: &DebugStore, offset: usize) -> u64 {
        store.0[offset / 8].load(Relaxed)
    }

    /// Stores a record as the processor does, from the manual's figure.
    fn write(store: &DebugStore, address: u64, counters: u64) {
        let index = at(store, 0x28);
        let word = (index - store.address(0)) as usize / 8;
        [32 << 48, address, counters, 1].into_iter().zip(word..).for_each(|(value, word)| {
            store.put(word, value);
        });
        store.put(0x28 / 8, index + 32);
    }

    #[test]
    fn the_management_area_is_where_the_manual_has_it() {
        for exact in [PebsEnable::FIXED0, PebsEnable::FIXED0 | PebsEnable::GENERAL0] {
            let store: Box<DebugStore> = Box::default();
            store.set_up(exact);
            let [base, index, maximum, threshold] =
                [0x20, 0x28, 0x30, 0x38].map(|word| at(&store, word));
            assert_eq!(index, base);
            assert_eq!(threshold, base + 32, "one record interrupts");
            assert!(base >= store.address(0) + 0x80 + 3 * 8);
            assert_eq!(maximum, store.address(WORDS));
            assert_eq!([0x80, 0x88].map(|word| at(&store, word)), [0, 1], "fixed counters");
            let first = u64::from(!exact.contains(PebsEnable::GENERAL0));
            assert_eq!([0x40, 0x48].map(|word| at(&store, word)), [first, 1], "general counters");
        }
    }

    #[test]
    fn records_are_taken_once_by_their_counters() {
        let store: Box<DebugStore> = Box::default();
        store.set_up(PebsEnable::FIXED0);
        assert_eq!(store.take(), PreciseAddresses::default());
        write(&store, 0x40_1000, 1 << 2);
        write(&store, 0x40_2000, 1 << 32);
        let mut expected = PreciseAddresses::default();
        expected.add(2, 0x40_1000);
        expected.add(PINNED_SLOT, 0x40_2000);
        assert_eq!(store.take(), expected);
        assert_eq!(store.take(), PreciseAddresses::default());
        assert_eq!(at(&store, 0x28), at(&store, 0x20), "the buffer is empty again");
    }

    #[test]
    fn an_index_outside_of_the_store_is_no_record() {
        let store: Box<DebugStore> = Box::default();
        store.set_up(PebsEnable::FIXED0);
        for index in [0, store.address(0) - 8, u64::MAX] {
            store.put(INDEX, index);
            assert_eq!(store.take(), PreciseAddresses::default());
        }
    }
}
