//! A precise record, by the counters that it belongs to.

use tally_abi::bank::PINNED_SLOT;
use tally_engine::{MAX_GENERAL, Pinned, PreciseRecord, PreciseRecords};

/// Position of the first fixed counter in a mask of counters.
pub(super) const FIRST_FIXED: u32 = 32;

/// Adds a record to those of all its counters, which are as in IA32_PEBS_ENABLE.
pub(super) fn add(record: PreciseRecord, counters: u64, to: &mut PreciseRecords) {
    let general = (0..MAX_GENERAL).filter(|index| counters >> index & 1 == 1);
    general.for_each(|slot| to.add(slot, record));
    if counters >> FIRST_FIXED & 1 == 1 {
        to.add(PINNED_SLOT + Pinned::Instructions as usize, record);
    }
}
