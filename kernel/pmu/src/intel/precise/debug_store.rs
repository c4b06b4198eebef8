//! The debug store: memory at a linear address, with a management area that the processor reads
//! and writes, and adaptive records.

use core::{
    ops::RangeInclusive,
    ptr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use tally_engine::{Access, PreciseRecord, PreciseRecords};

use super::record::{self, FIRST_FIXED};
use crate::registers::intel::{PebsDataCfg, PebsEnable, PerfCapabilities};

/// Words of the debug store: its management area, and records.
const WORDS: usize = 192;
/// The first record.
const RECORDS: usize = 64;
const WORD_BYTES: u64 = 8;
/// Words of a record's basic group: groups and size, address, counters, TSC.
const BASIC_WORDS: usize = 4;
const ADDRESS: usize = 1;
const COUNTERS: usize = 2;
/// Words of the group of a memory access, which follows: address, auxiliary information, latency,
/// transactions.
const MEMORY_WORDS: usize = 4;
/// Position of a record's size in its first word, in bytes.
const SIZE_SHIFT: u32 = 48;
/// Words of the management area (section "DS Save Area", 64-bit format).
const BASE: usize = 4;
const INDEX: usize = 5;
const MAXIMUM: usize = 6;
const THRESHOLD: usize = 7;
const RESETS: usize = 8;

/// Formats of records with the same groups: 4 from Ice Lake to Meteor Lake, 5 on Sierra Forest, 6
/// on Arrow Lake and Lunar Lake (Linux, `intel_ds_pebs_init`).
const FORMATS: RangeInclusive<u8> = 4..=6;

/// Returns the numbers of general counters with reset values, behind which those of the fixed ones
/// are, and of fixed counters (Linux, `intel_pmu_pebs_enable`, `MAX_PEBS_EVENTS`).
fn resets(format: u8) -> [usize; 2] {
    if format == 4 { [8, 4] } else { [32, 16] }
}
const _: () = assert!(RESETS + 32 + 16 <= RECORDS);

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
    pub(super) fn address(&self, word: usize) -> u64 {
        ptr::from_ref(self).addr() as u64 + word as u64 * WORD_BYTES
    }

    /// Sets the management area up for records of a format. `exact` are the counters with precise
    /// distribution, as in IA32_PEBS_ENABLE.
    ///
    /// A counter is reloaded with the events that it has counted since its overflow, so that none
    /// is lost: the next event writes the record, or the overflowing one where the distribution is
    /// precise.
    pub(super) fn set_up(&self, exact: PebsEnable, format: u8) {
        let [general, fixed] = resets(format);
        let bits = (0..general as u32).chain(FIRST_FIXED..FIRST_FIXED + fixed as u32);
        for (word, bit) in (RESETS..).zip(bits) {
            self.put(word, u64::from(exact.bits() >> bit & 1 == 0));
        }
        self.put(BASE, self.address(RECORDS));
        self.put(INDEX, self.address(RECORDS));
        self.put(MAXIMUM, self.address(WORDS));
        self.put(THRESHOLD, self.address(RECORDS + BASIC_WORDS));
    }

    fn put(&self, word: usize, value: u64) {
        self.0[word].store(value, Relaxed);
    }

    /// Takes all records.
    pub(super) fn take(&self) -> PreciseRecords {
        let mut taken = PreciseRecords::default();
        let end = self.0[INDEX].load(Relaxed).wrapping_sub(self.address(0)) / WORD_BYTES;
        let end = usize::try_from(end).unwrap_or(WORDS).min(WORDS);
        let records = self.0.get(RECORDS..end).unwrap_or_default();
        let mut left = records;
        while let Some((words, rest)) = split_record(left) {
            add_record(words, &mut taken);
            left = rest;
        }
        if !records.is_empty() {
            self.put(INDEX, self.address(RECORDS));
        }
        taken
    }
}

/// Splits the first record off; `None` at the end, or if its size is none.
fn split_record(words: &[AtomicU64]) -> Option<(&[AtomicU64], &[AtomicU64])> {
    let bytes = words.first()?.load(Relaxed) >> SIZE_SHIFT;
    let size = (bytes / WORD_BYTES) as usize;
    if size < BASIC_WORDS { None } else { words.split_at_checked(size) }
}

/// Adds a record to those of all its counters.
fn add_record(words: &[AtomicU64], to: &mut PreciseRecords) {
    let word = |index: usize| words.get(index).map_or(0, |word| word.load(Relaxed));
    let groups = PebsDataCfg::from_bits_retain(word(0));
    let has_access =
        groups.contains(PebsDataCfg::MEMORY) && words.len() >= BASIC_WORDS + MEMORY_WORDS;
    let access = if has_access {
        let [address, info, latency] = [0, 1, 2].map(|index| word(BASIC_WORDS + index));
        Access { address, info, latency }
    } else {
        Access::default()
    };
    let record = PreciseRecord { address: word(ADDRESS), access };
    record::add(record, word(COUNTERS), to);
}

impl Default for DebugStore {
    fn default() -> DebugStore {
        DebugStore::new()
    }
}

/// Returns whether the processor stores records that the driver can take.
pub(crate) fn has_records(capabilities: PerfCapabilities) -> bool {
    FORMATS.contains(&capabilities.pebs_format())
        && capabilities.contains(PerfCapabilities::PEBS_BASELINE)
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use tally_abi::bank::PINNED_SLOT;

    use super::*;

    /// The word at an offset of the manual.
    fn at(store: &DebugStore, offset: usize) -> u64 {
        store.0[offset / 8].load(Relaxed)
    }

    /// Stores a record as the processor does, from the manual's figure.
    fn write(store: &DebugStore, words: &[u64]) {
        let index = at(store, 0x28);
        let first = (index - store.address(0)) as usize / 8;
        words.iter().zip(first..).for_each(|(value, word)| store.put(word, *value));
        store.put(0x28 / 8, index + 8 * words.len() as u64);
    }

    fn of(address: u64) -> PreciseRecord {
        PreciseRecord { address, access: Access::default() }
    }

    #[test]
    fn the_management_area_is_where_the_manual_has_it() {
        let both = PebsEnable::FIXED0 | PebsEnable::GENERAL0;
        for (exact, format, fixed) in
            [(PebsEnable::FIXED0, 4, 0x80), (both, 4, 0x80), (both, 5, 0x140), (both, 6, 0x140)]
        {
            let store: Box<DebugStore> = Box::default();
            store.set_up(exact, format);
            let [base, index, maximum, threshold] =
                [0x20, 0x28, 0x30, 0x38].map(|word| at(&store, word));
            assert_eq!(index, base);
            assert_eq!(threshold, base + 32, "one record interrupts");
            assert!(base >= store.address(0) + fixed as u64 + 7 * 8);
            assert_eq!(maximum, store.address(WORDS));
            let resets = [fixed - 8, fixed, fixed + 8].map(|word| at(&store, word));
            assert_eq!(resets, [1, 0, 1], "fixed counters behind the general ones");
            let first = u64::from(!exact.contains(PebsEnable::GENERAL0));
            assert_eq!([0x40, 0x48].map(|word| at(&store, word)), [first, 1], "general counters");
        }
    }

    #[test]
    fn records_are_taken_once_by_their_counters() {
        let store: Box<DebugStore> = Box::default();
        store.set_up(PebsEnable::FIXED0, 4);
        assert_eq!(store.take(), PreciseRecords::default());
        let access = Access { address: 0x7000, info: 0x1c, latency: 200 };
        write(&store, &[32 << 48, 0x40_1000, 1 << 2, 1]);
        write(&store, &[64 << 48 | 1, 0x40_3000, 0b11, 1, 0x7000, 0x1c, 200, 0]);
        write(&store, &[32 << 48, 0x40_2000, 1 << 32, 1]);
        let mut expected = PreciseRecords::default();
        expected.add(2, of(0x40_1000));
        [0, 1]
            .into_iter()
            .for_each(|slot| expected.add(slot, PreciseRecord { address: 0x40_3000, access }));
        expected.add(PINNED_SLOT, of(0x40_2000));
        assert_eq!(store.take(), expected);
        assert_eq!(store.take(), PreciseRecords::default());
        assert_eq!(at(&store, 0x28), at(&store, 0x20), "the buffer is empty again");
    }

    #[test]
    fn a_record_of_no_size_or_behind_the_end_ends_the_records() {
        let store: Box<DebugStore> = Box::default();
        store.set_up(PebsEnable::FIXED0, 4);
        for first in [0, 8 << 48, 0xffff << 48] {
            write(&store, &[first, 0x40_1000, 1, 1]);
            assert_eq!(store.take(), PreciseRecords::default(), "{first:#x}");
        }
    }

    #[test]
    fn an_index_outside_of_the_store_is_no_record() {
        let store: Box<DebugStore> = Box::default();
        store.set_up(PebsEnable::FIXED0, 4);
        for index in [0, store.address(0) - 8, u64::MAX] {
            store.put(INDEX, index);
            assert_eq!(store.take(), PreciseRecords::default());
        }
    }
}
