//! Architectural PEBS: records in a buffer at a physical address, without a management area.
//!
//! Linux, arch/x86/include/asm/perf_event.h (`struct arch_pebs_header` and those behind it) and
//! arch/x86/events/intel/ds.c (`intel_pmu_drain_arch_pebs`).
//!
//! A record is one fragment or several. Each has a header with its size and its groups, and the bit
//! that another one continues it; the first has the basic group. A fragment without groups is
//! continued too.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tally_engine::{Access, PreciseRecord, PreciseRecords};

use super::record;
use crate::{
    bus::{Bus, CountingBus},
    registers::records::{PebsBase, PebsIndex},
};

/// Words of the buffer, which is a frame.
const WORDS: usize = 512;
const WORD_BYTES: u64 = 8;
/// Words of a fragment's header: size and groups, and one that is reserved.
const HEADER_WORDS: usize = 2;
/// The header's fields: size in bytes, another fragment follows, any group, and the groups of a
/// memory access and of every record.
const SIZE: u64 = 0xffff;
const CONTINUES: u64 = 1 << 31;
const GROUPS: u64 = !0xffff;
const ACCESS: u64 = 1 << 62;
const BASIC: u64 = 1 << 63;
/// Words of the basic group: address, counters, TSC, retire latency, and two that are reserved.
const BASIC_WORDS: usize = 6;
/// Words of the group of a memory access: address, four that are reserved, auxiliary information,
/// latency, transactions.
const ACCESS_WORDS: usize = 8;
const INFO: usize = 5;
const LATENCY: usize = 6;

/// Buffer of one CPU: a frame in which the processor stores records.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct RecordBuffer([AtomicU64; WORDS]);

/// Parts of a record from the fragments up to now.
#[derive(Default)]
struct Parts {
    address: u64,
    counters: u64,
    access: Access,
}

impl Parts {
    /// Adds a fragment's groups. They are in the order of basic, access and others.
    fn add(&mut self, fragment: &[AtomicU64]) {
        let word = |index: usize| fragment.get(index).map_or(0, |word| word.load(Relaxed));
        let mut at = HEADER_WORDS;
        if word(0) & BASIC != 0 {
            (self.address, self.counters) = (word(at), word(at + 1));
            at += BASIC_WORDS;
        }
        if word(0) & ACCESS != 0 && fragment.len() >= at + ACCESS_WORDS {
            let [address, info, latency] = [0, INFO, LATENCY].map(|index| word(at + index));
            self.access = Access { address, info, latency };
        }
    }
}

impl RecordBuffer {
    /// Makes a buffer without records, for tests; the kernel's is a frame.
    #[cfg(test)]
    pub(crate) fn new() -> RecordBuffer {
        RecordBuffer([const { AtomicU64::new(0) }; WORDS])
    }

    /// The records in the first bytes.
    fn records(&self, bytes: u64) -> PreciseRecords {
        let mut records = PreciseRecords::default();
        let mut parts = Parts::default();
        let mut left = self.0.get(..(bytes / WORD_BYTES) as usize).unwrap_or(&self.0);
        while let Some((fragment, rest)) = split_fragment(left) {
            parts.add(fragment);
            let header = fragment.first().map_or(0, |word| word.load(Relaxed));
            if header & CONTINUES == 0 && header & GROUPS != 0 {
                let Parts { address, counters, access } = core::mem::take(&mut parts);
                record::add(PreciseRecord { address, access }, counters, &mut records);
            }
            left = rest;
        }
        records
    }

    /// Makes the processor use the buffer, whose physical address is `physical`; returns whether a
    /// hypervisor has the registers.
    pub(super) fn set_up<B: Bus>(&self, bus: &mut CountingBus<B>, physical: u64) -> bool {
        self.0.iter().for_each(|word| word.store(0, Relaxed));
        bus.try_put(0, PebsIndex::empty())
            && bus.try_put(0, PebsBase::of_frame(physical))
            && bus.try_put(0, PebsIndex::EACH)
    }

    /// Takes all records. The first header tells without an access to a register whether there are
    /// any.
    pub(super) fn take<B: Bus>(&self, bus: &mut CountingBus<B>) -> PreciseRecords {
        let [first, ..] = &self.0;
        if first.load(Relaxed) == 0 {
            return PreciseRecords::default();
        }
        let index: PebsIndex = bus.get(0);
        let records = self.records(index.written_bytes());
        first.store(0, Relaxed);
        bus.put(0, PebsIndex::EACH);
        records
    }
}

/// Splits the first fragment off; `None` at the end, or if its size is none.
fn split_fragment(words: &[AtomicU64]) -> Option<(&[AtomicU64], &[AtomicU64])> {
    let size = ((words.first()?.load(Relaxed) & SIZE) / WORD_BYTES) as usize;
    if size < HEADER_WORDS { None } else { words.split_at_checked(size) }
}

#[cfg(test)]
mod tests {
    use tally_abi::bank::PINNED_SLOT;

    use super::*;

    fn buffer(words: &[u64]) -> RecordBuffer {
        let word = |index| AtomicU64::new(words.get(index).copied().unwrap_or(0));
        RecordBuffer(core::array::from_fn(word))
    }

    fn of(address: u64) -> PreciseRecord {
        PreciseRecord { address, access: Access::default() }
    }

    /// A basic record of 64 bytes: its counters in the fourth word.
    fn basic(address: u64, counters: u64) -> [u64; 8] {
        [1 << 63 | 1 << 30 | 64, 0, address, counters, 7, 1 << 16 | 9, 0, 0]
    }

    #[test]
    fn records_are_of_all_their_counters() {
        let words = [basic(0x40_1000, 1 << 9 | 1), basic(0x40_2000, 1 << 32)].concat();
        let found = buffer(&words).records(128);
        let mut expected = PreciseRecords::default();
        [(0, 0x40_1000), (9, 0x40_1000), (PINNED_SLOT, 0x40_2000)]
            .into_iter()
            .for_each(|(slot, address)| expected.add(slot, of(address)));
        assert_eq!(found, expected);
        // Up to the index alone.
        let mut expected = PreciseRecords::default();
        [0, 9].into_iter().for_each(|slot| expected.add(slot, of(0x40_1000)));
        assert_eq!(buffer(&words).records(64), expected);
    }

    #[test]
    fn an_access_is_behind_the_basic_group_or_in_a_fragment_of_its_own() {
        let access = Access { address: 0x7000, info: 0x411, latency: 200 };
        let group = [0x7000, 0, 0, 0, 0, 0x411, 200, 0];
        let record = PreciseRecord { address: 0x40_1000, access };
        let mut expected = PreciseRecords::default();
        expected.add(1, record);
        let mut first = basic(0x40_1000, 1 << 1);
        first[0] = 1 << 63 | 1 << 62 | 128;
        let whole = [first.as_slice(), &group].concat();
        assert_eq!(buffer(&whole).records(128), expected);
        // The first fragment is continued by its bit, the second one because it has no group.
        let mut first = basic(0x40_1000, 1 << 1);
        first[0] |= 1 << 31;
        let apart = [first.as_slice(), &[16, 0], &[1 << 62 | 80, 0], &group].concat();
        assert_eq!(buffer(&apart).records(160), expected);
        assert_eq!(buffer(&apart).records(80), PreciseRecords::default(), "its end is missing");
    }

    #[test]
    fn a_fragment_of_no_size_or_behind_the_end_ends_the_records() {
        for size in [0, 8, 0xfff8] {
            let mut record = basic(0x40_1000, 1);
            record[0] = 1 << 63 | size;
            assert_eq!(buffer(&record).records(64), PreciseRecords::default(), "{size}");
            assert_eq!(buffer(&record).records(u64::MAX), PreciseRecords::default(), "{size}");
        }
    }
}
